/* SPDX-License-Identifier: Apache-2.0
 *
 * The shadow of global memory that kernels write: the result, and the workspace through which
 * blocks and launches exchange data.
 *
 * Within a launch, a block may read or overwrite data that another block has written only if both
 * blocks synchronise:
 *   writer   the write; a fence; an atomic on a counter
 *   reader   a later atomic on the same counter; a fence; the access
 * Each of these steps must be ordered before the next: by the same thread, or by a barrier between
 * them. A later launch sees the writes of an earlier one, unless the two may run concurrently.
 *
 * The shadow records moments (tgl_moment): which thread did something, and when. `which` is the
 * index of a shadow: 0 of D, 1 of the counters, 2 of the scratch.
 */
#include "sim/shadow_global.h"

#include "sim/growing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGE = 1 << 20 /* bytes; above this, an array is freed and allocated as zeros instead of being
                       cleared */
};

/* ---- Start and end of runs and launches ------------------------------------------------------ */

static bool reserve_words(tgl_global_shadow *shadow, int which, size_t count)
{
    shadow->words[which] = tgl_machine_reserve(shadow->words[which], &shadow->rooms[which], count,
                                               sizeof(tgl_global_word));
    shadow->counts[which] = count;
    return shadow->rooms[which] >= count;
}

static bool clear_words(tgl_global_shadow *shadow, int which, size_t count)
{
    if (shadow->rooms[which] * sizeof(tgl_global_word) > LARGE) {
        free(shadow->words[which]);
        shadow->words[which] = NULL;
        shadow->rooms[which] = 0;
    }
    const bool is_kept = shadow->rooms[which] >= count;
    const bool ok = reserve_words(shadow, which, count);
    if (is_kept && count > 0) memset(shadow->words[which], 0, count * sizeof(tgl_global_word));
    return ok;
}

bool tgl_global_start_run(tgl_machine *machine)
{
    const tgl_sim_memory *memory = &machine->memory;
    const size_t elements = (size_t)memory->m * (size_t)memory->n * (size_t)memory->batch;
    return clear_words(&machine->global, 0, elements) &&
           clear_words(&machine->global, TGL_SIM_COUNTERS - TGL_SIM_D, memory->counter_bytes / 4) &&
           clear_words(&machine->global, TGL_SIM_SCRATCH - TGL_SIM_D, memory->scratch_bytes / 4);
}

bool tgl_global_start_launch(tgl_machine *machine, size_t clusters)
{
    tgl_global_shadow *shadow = &machine->global;
    shadow->ranges =
        tgl_machine_reserve(shadow->ranges, &shadow->range_room, clusters, sizeof *shadow->ranges);
    const bool ok = shadow->range_room >= clusters;
    if (ok) memset(shadow->ranges, 0, clusters * sizeof *shadow->ranges);
    shadow->event_count = shadow->meeting_count = shadow->time = 0;
    shadow->ordered.launch = 0;
    return ok;
}

void tgl_global_start_cluster(tgl_machine *machine)
{
    tgl_global_shadow *shadow = &machine->global;
    shadow->ranges[machine->cluster] =
        (tgl_event_range){shadow->event_count, 0, shadow->meeting_count, 0};
    shadow->has_atomic = false;
}

/* Discards the fences and meetings of a cluster without atomics, because no other cluster can be
 * ordered by them. */
void tgl_global_end_cluster(tgl_machine *machine)
{
    tgl_event_range *range = &machine->global.ranges[machine->cluster];
    if (machine->global.has_atomic) return;
    machine->global.event_count = range->first;
    machine->global.meeting_count = range->first_meeting;
    range->count = range->meeting_count = 0;
}

/* ---- Helpers --------------------------------------------------------------------------------- */

bool tgl_global_copy(tgl_machine *helper, const tgl_machine *machine)
{
    const tgl_global_shadow *from = &machine->global;
    tgl_global_shadow *to = &helper->global;
    for (int i = 0; i < 3; i++) {
        if (!reserve_words(to, i, from->counts[i])) return false;
        if (to->counts[i] > 0)
            memcpy(to->words[i], from->words[i], to->counts[i] * sizeof(tgl_global_word));
    }
    return true;
}

/* Whether launch `launch` read or wrote the word. *is_written: whether it wrote the word. */
static bool is_accessed(const tgl_global_word *word, uint32_t launch, bool *is_written)
{
    *is_written = word->written.launch == launch;
    return *is_written || word->read_launch == launch;
}

static bool has_conflict_at(tgl_machine *const *helpers, int count, int which, size_t i)
{
    int users = 0, writers = 0;
    for (int h = 0; h < count; h++) {
        bool is_written;
        users += is_accessed(&helpers[h]->global.words[which][i], helpers[h]->number, &is_written);
        writers += is_written;
    }
    return writers > 0 && users > 1;
}

/* Any event means an atomic: tgl_global_end_cluster() has discarded the fences of clusters without
 * atomics. */
bool tgl_global_has_conflict(tgl_machine *const *helpers, int count)
{
    for (int h = 0; h < count; h++)
        if (helpers[h]->global.event_count > 0) return true;
    for (int which = 0; which < 3; which++)
        for (size_t i = 0; i < helpers[0]->global.counts[which]; i++)
            if (has_conflict_at(helpers, count, which, i)) return true;
    return false;
}

void tgl_global_merge(tgl_machine *machine, const tgl_machine *helper)
{
    for (int which = 0; which < 3; which++)
        for (size_t i = 0; i < helper->global.counts[which]; i++) {
            tgl_global_word *to = &machine->global.words[which][i];
            const tgl_global_word *from = &helper->global.words[which][i];
            bool is_written;
            const bool is_used = is_accessed(from, machine->number, &is_written);
            if (is_written)
                *to = *from;
            else if (is_used)
                to->read_launch = machine->number;
        }
}

void tgl_global_free(tgl_global_shadow *shadow)
{
    for (int i = 0; i < 3; i++)
        free(shadow->words[i]);
    free(shadow->events);
    free(shadow->meetings);
    free(shadow->ranges);
}

/* ---- Order ----------------------------------------------------------------------------------- */

static tgl_moment moment_now(const tgl_machine *machine)
{
    return (tgl_moment){
        .launch = machine->number,
        .cluster = machine->cluster,
        .epoch = machine->now->epoch,
        .warp_epoch = machine->current->warp_epoch,
        .phase = machine->phase,
        .time = machine->global.time,
        .thread = (uint16_t)machine->current->index,
        .rank = (uint8_t)(machine->now - machine->blocks),
    };
}

static bool takes_part(const tgl_sync_meeting *meeting, unsigned thread)
{
    return (meeting->threads[thread / 32] >> thread % 32 & 1) != 0;
}

/* Whether two threads of one block passed a named barrier together, one after its moment x and the
 * other before its moment y. */
static bool has_meeting_between(const tgl_machine *machine, const tgl_moment *x,
                                const tgl_moment *y)
{
    const tgl_event_range *range = &machine->global.ranges[x->cluster];
    const tgl_sync_meeting *meetings = machine->global.meetings + range->first_meeting;
    for (uint32_t i = range->meeting_count; i > 0 && meetings[i - 1].time > x->time; i--)
        if (meetings[i - 1].rank == x->rank && meetings[i - 1].time <= y->time &&
            takes_part(&meetings[i - 1], x->thread) && takes_part(&meetings[i - 1], y->thread))
            return true;
    return false;
}

/* Whether x is ordered before y, by barriers or because both are in the same thread. x and y belong
 * to the same launch. */
static bool is_before_moment(const tgl_machine *machine, const tgl_moment *x, const tgl_moment *y)
{
    if (x->cluster != y->cluster) return false;
    if (x->rank != y->rank) return x->phase < y->phase;
    if (x->thread == y->thread) return x->time < y->time;
    return x->epoch < y->epoch ||
           (x->thread / TGL_WARP == y->thread / TGL_WARP && x->warp_epoch < y->warp_epoch) ||
           has_meeting_between(machine, x, y);
}

static void add_event(tgl_machine *machine, uintptr_t counter)
{
    tgl_global_shadow *shadow = &machine->global;
    tgl_sync_event *events =
        tgl_grow(shadow->events, &shadow->event_room, shadow->event_count, sizeof *events);
    if (events == NULL) tgl_machine_give_up(machine);
    shadow->events = events;
    shadow->time++;
    shadow->has_atomic = shadow->has_atomic || counter != 0;
    shadow->events[shadow->event_count++] = (tgl_sync_event){moment_now(machine), counter};
    shadow->ranges[machine->cluster].count++;
}

void tgl_global_meet(tgl_machine *machine, tgl_sim_thread *const *threads, unsigned count)
{
    tgl_global_shadow *shadow = &machine->global;
    tgl_sync_meeting *meetings =
        tgl_grow(shadow->meetings, &shadow->meeting_room, shadow->meeting_count, sizeof *meetings);
    if (meetings == NULL) { /* called while no simulated thread runs, so that tgl_machine_give_up()
                               cannot be used */
        snprintf(machine->message, sizeof machine->message,
                 "no memory to follow the kernel's barriers");
        machine->status = TGL_NO_MEMORY;
        return;
    }
    shadow->meetings = meetings;
    tgl_sync_meeting *meeting = &shadow->meetings[shadow->meeting_count++];
    *meeting = (tgl_sync_meeting){.time = ++shadow->time,
                                  .rank = (uint8_t)(machine->now - machine->blocks)};
    for (unsigned i = 0; i < count; i++)
        meeting->threads[threads[i]->index / 32] |= 1u << threads[i]->index % 32;
    shadow->ranges[machine->cluster].meeting_count++;
}

void tgl_global_fence(tgl_machine *machine, const void *pc)
{
    (void)pc;
    add_event(machine, 0);
}

/* Whether any thread in the cluster of x executed a fence that is ordered after x and before y. */
static bool has_fence_between(const tgl_machine *machine, const tgl_moment *x, const tgl_moment *y)
{
    const tgl_event_range *range = &machine->global.ranges[x->cluster];
    const tgl_sync_event *events = machine->global.events + range->first;
    for (uint32_t i = 0; i < range->count; i++)
        if (events[i].counter == 0 && is_before_moment(machine, x, &events[i].at) &&
            is_before_moment(machine, &events[i].at, y))
            return true;
    return false;
}

/* The reader's half of the synchronisation: whether the running cluster, after the atomic `since`,
 * executed an atomic on the same counter, and then a fence before `now`. */
static bool is_acquired(const tgl_machine *machine, const tgl_sync_event *since,
                        const tgl_moment *now)
{
    const tgl_event_range *range = &machine->global.ranges[now->cluster];
    const tgl_sync_event *events = machine->global.events + range->first;
    for (uint32_t i = 0; i < range->count; i++)
        if (events[i].counter == since->counter && events[i].at.time > since->at.time &&
            has_fence_between(machine, &events[i].at, now))
            return true;
    return false;
}

/* Whether x, a moment in another cluster, is ordered before `now` by fences and atomics.
 * *is_published: whether x's cluster has done its half of the synchronisation: a fence after x,
 * then an atomic. */
static bool is_passed_on(const tgl_machine *machine, const tgl_moment *x, const tgl_moment *now,
                         bool *is_published)
{
    const tgl_event_range *range = &machine->global.ranges[x->cluster];
    const tgl_sync_event *events = machine->global.events + range->first;
    for (uint32_t i = 0; i < range->count; i++) {
        if (events[i].counter == 0 || !has_fence_between(machine, x, &events[i].at)) continue;
        *is_published = true;
        if (is_acquired(machine, &events[i], now)) return true;
    }
    return false;
}

/* Whether the moment x is ordered before the current thread. Keeps the latest positive answer for
 * the next call, because a thread often reads many words that the same thread has written. */
static bool is_ordered(tgl_machine *machine, const tgl_moment *x, bool *is_published)
{
    tgl_global_shadow *shadow = &machine->global;
    const tgl_moment *kept = &shadow->ordered, *by = &shadow->reader;
    tgl_moment now = moment_now(machine);
    now.time = UINT32_MAX; /* after all events */
    *is_published = false;
    if (x->cluster == now.cluster) return is_before_moment(machine, x, &now);
    if (kept->launch == x->launch && kept->cluster == x->cluster && kept->rank == x->rank &&
        kept->thread == x->thread && kept->epoch == x->epoch && x->time <= kept->time &&
        kept->warp_epoch == x->warp_epoch && kept->phase == x->phase &&
        by->cluster == now.cluster && by->rank == now.rank && by->thread == now.thread)
        return true;
    if (!is_passed_on(machine, x, &now, is_published)) return false;
    shadow->ordered = *x;
    shadow->reader = now;
    return true;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

typedef struct access {
    int region;
    uintptr_t address;
    bool is_write, is_atomic;
    const void *pc;
} access;

static const char *verb_of(bool is_write, bool is_atomic)
{
    return is_atomic ? "updates" : tgl_verb(is_write);
}

static tgl_where where_of_word(const tgl_machine *machine, const access *a)
{
    tgl_where where;
    bool is_inside;
    tgl_regions_describe(&machine->launch->regions[a->region], 1, a->address, &is_inside, &where);
    return where;
}

/* The source location of the last write to a word. */
static tgl_place place_of_write(const tgl_machine *machine, const tgl_global_word *word)
{
    const tgl_sim_module *module = machine->modules[word->written.launch - 1];
    return tgl_sim_place(module, (const char *)module->image + word->pc);
}

static const char *reason_of(const tgl_moment *x, const tgl_moment *now, bool is_published)
{
    if (x->cluster == now->cluster && x->rank == now->rank) return "with no barrier between";
    if (x->cluster == now->cluster) return "with no barrier of the cluster between";
    if (!is_published)
        return "and does not publish it: a fence and then an atomic on a counter must follow the "
               "write";
    return "and publishes it; an atomic on the same counter and then a fence must precede this "
           "access";
}

static void fault_global_race(tgl_machine *machine, const access *a, const tgl_global_word *word,
                              bool is_published)
{
    unsigned at[3];
    const tgl_moment *x = &word->written, now = moment_now(machine);
    tgl_machine_block_at(machine->launch, x->cluster, x->rank, at);
    tgl_machine_fault(machine, a->pc, "race: %s %s, which thread %u of block %llu %s at %s %s",
                      verb_of(a->is_write, a->is_atomic), where_of_word(machine, a).text, x->thread,
                      (unsigned long long)tgl_machine_block_number(machine->launch, at),
                      verb_of(true, word->is_atomic), place_of_write(machine, word).text,
                      reason_of(x, &now, is_published));
}

/* Whether an earlier launch, number `launch`, may still be running. */
static bool is_beside(const tgl_machine *machine, uint32_t launch)
{
    return launch > 0 && launch < machine->number && launch >= machine->first_beside &&
           !machine->current->has_waited;
}

static void beside_fault(tgl_machine *machine, const access *a, const char *other_verb,
                         uint32_t launch)
{
    tgl_machine_fault(machine, a->pc, "race: %s %s, which %s %s; it may run beside this launch",
                      verb_of(a->is_write, a->is_atomic), where_of_word(machine, a).text,
                      machine->modules[launch - 1]->kernel->name, other_verb);
}

static void unwritten_fault(tgl_machine *machine, const access *a)
{
    const char *forbidden =
        tgl_region_member(&machine->launch->regions[a->region], a->address)->forbidden;
    if (a->region == TGL_SIM_D)
        tgl_machine_fault(machine, a->pc, "reads %s, but %s", where_of_word(machine, a).text,
                          forbidden);
    tgl_machine_fault(machine, a->pc, "reads %s, which no launch of this run has written",
                      where_of_word(machine, a).text);
}

/* ---- Accesses -------------------------------------------------------------------------------- */

static void check_word(tgl_machine *machine, const access *a, const tgl_global_word *word)
{
    bool is_published;
    const tgl_moment *x = &word->written;
    if (x->launch == machine->number && !(a->is_atomic && word->is_atomic) &&
        !is_ordered(machine, x, &is_published))
        fault_global_race(machine, a, word, is_published);
    if (is_beside(machine, x->launch)) beside_fault(machine, a, "writes", x->launch);
    if (a->is_write && is_beside(machine, word->read_launch))
        beside_fault(machine, a, "reads", word->read_launch);
}

static void record_word(tgl_machine *machine, const access *a, tgl_global_word *word, uint8_t mask)
{
    if (!a->is_write || a->is_atomic) word->read_launch = machine->number;
    if (!a->is_write) return;
    word->written = moment_now(machine);
    word->pc = (int32_t)((const char *)a->pc - (const char *)machine->launch->module->image);
    word->is_atomic = a->is_atomic;
    word->has_data |= mask;
}

/* The shadow word for an address in the region. */
static tgl_global_word *word_at(const tgl_machine *machine, int region, uintptr_t address)
{
    const tgl_sim_memory *memory = &machine->memory;
    tgl_global_word *words = machine->global.words[region - TGL_SIM_D];
    if (region == TGL_SIM_COUNTERS) return &words[(address - (uintptr_t)memory->counters) / 4];
    if (region == TGL_SIM_SCRATCH) return &words[(address - (uintptr_t)memory->scratch) / 4];
    int64_t index, row, col;
    tgl_region_locate(&machine->launch->regions[TGL_SIM_D], address, &index, &row, &col);
    index += machine->launch->first_problem;
    row += tgl_region_member(&machine->launch->regions[TGL_SIM_D], address)->shadow_row;
    return &words[(index * memory->m + row) * memory->n + col];
}

static bool is_readable(const tgl_machine *machine, const access *a, const tgl_global_word *word,
                        uint8_t mask)
{
    if (a->region == TGL_SIM_SCRATCH) return (word->has_data & mask) == mask;
    if (a->region == TGL_SIM_COUNTERS || word->written.launch > 0) return true;
    return tgl_region_member(&machine->launch->regions[TGL_SIM_D], a->address)->forbidden == NULL;
}

bool tgl_global_has_shadow(int region)
{
    return region == TGL_SIM_D || region == TGL_SIM_COUNTERS || region == TGL_SIM_SCRATCH;
}

void tgl_global_access(tgl_machine *machine, int region, uintptr_t address, unsigned bytes,
                       bool is_write, bool is_atomic, const void *pc)
{
    if (!tgl_global_has_shadow(region)) return;
    const unsigned step =
        region == TGL_SIM_D ? (unsigned)machine->launch->regions[TGL_SIM_D].element : 4;
    const uint8_t mask = tgl_byte_mask(address, bytes);
    tgl_global_word *word = word_at(machine, region, address);
    for (unsigned i = 0; i < bytes; i += step, word++) {
        const access a = {region, address + i, is_write, is_atomic, pc};
        check_word(machine, &a, word);
        if ((!is_write || is_atomic) && !is_readable(machine, &a, word, mask))
            unwritten_fault(machine, &a);
        record_word(machine, &a, word, mask);
    }
    if (is_atomic) add_event(machine, address);
}
