/* SPDX-License-Identifier: Apache-2.0
 *
 * The shadow of shared memory: for each 4-byte word, which bytes have been written, and which
 * threads accessed it since the last barrier. An epoch is the interval between two barriers of a
 * block.
 */
#include "sim/shadow_shared.h"

#include "sim/clocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OVERRUN = 16 * 1024, /* an access up to this many bytes behind shared memory is reported as an
                            overrun */
};

static tgl_place site_place(const tgl_machine *machine, uint32_t site)
{
    return tgl_sim_place(machine->launch->module, machine->tally.sites[site].pc);
}

static tgl_where where_of(const tgl_machine *machine, size_t offset)
{
    return tgl_shared_where(machine->launch->module, offset);
}

/* ---- Start ----------------------------------------------------------------------------------- */

static bool reserve_block(const tgl_machine *machine, tgl_sim_block *block)
{
    const size_t size = machine->launch->module->shared_size;
    const size_t words = size / 4 + 1, saved = machine->cluster_size > 1 ? size : 0;
    block->words =
        tgl_machine_reserve(block->words, &block->word_room, words, sizeof *block->words);
    block->shared = tgl_machine_reserve(block->shared, &block->shared_room, saved, sizeof(char));
    return block->word_room >= words && block->shared_room >= saved;
}

bool tgl_shared_start_launch(tgl_machine *machine)
{
    for (unsigned i = 0; i < machine->cluster_size; i++)
        if (!reserve_block(machine, &machine->blocks[i])) return false;
    return true;
}

void tgl_shared_start_block(tgl_machine *machine)
{
    const tgl_sim_module *module = machine->launch->module;
    /* + 1, because the size need not be a multiple of 4. */
    memset(machine->now->words, 0, (module->shared_size / 4 + 1) * sizeof(tgl_shared_word));
    memset(module->image->shared_begin, 0xff,
           module->shared_size); /* NaN (-1 in integers), so that a read of unwritten memory that is
                                    not detected makes the result NaN */
}

/* ---- Names of places ------------------------------------------------------------------------- */

tgl_where tgl_shared_where(const tgl_sim_module *module, size_t offset)
{
    tgl_where where;
    const tgl_shared_array *before = NULL;
    for (int i = 0; i < module->array_count; i++) {
        const tgl_shared_array *array = &module->arrays[i];
        if (array->begin <= offset && (before == NULL || array->begin > before->begin))
            before = array;
    }
    if (before == NULL)
        snprintf(where.text, sizeof where.text, "shared memory before the first array");
    else if (offset < before->end)
        snprintf(where.text, sizeof where.text, "%s + %zu bytes", before->name,
                 offset - before->begin);
    else
        snprintf(where.text, sizeof where.text, "%zu bytes past the end of %s, which has %zu bytes",
                 offset - before->end, before->name, before->end - before->begin);
    return where;
}

bool tgl_shared_has(const tgl_sim_module *module, uintptr_t address)
{
    return address - module->shared_base < module->shared_size + OVERRUN;
}

int tgl_shared_check_bounds(tgl_machine *machine, size_t offset, size_t bytes, bool is_write,
                            const void *pc)
{
    const tgl_sim_module *module = machine->launch->module;
    const size_t end = offset + bytes - 1;
    const uint16_t first = module->array_of_word[offset / 4];
    const uint16_t last = end < module->shared_size ? module->array_of_word[end / 4] : 0;
    if (first == 0 || first != last)
        tgl_machine_fault(machine, pc, "%s %zu bytes of shared memory at %s", tgl_verb(is_write),
                          bytes, where_of(machine, first == 0 ? offset : end).text);
    const tgl_shared_array *array = &module->arrays[first - 1];
    const size_t limit = machine->launch->shared_limit;
    /* Small arrays may share a word, and `array` is only one of them. */
    if (limit > 0 && end >= array->begin + limit && end < array->end)
        tgl_machine_fault(machine, pc,
                          "%s %zu bytes of shared memory at %s, where the launch gives %zu",
                          tgl_verb(is_write), bytes, where_of(machine, end).text, limit);
    return first - 1;
}

/* ---- Races ----------------------------------------------------------------------------------- */

/* Whether an access in a block of the cluster is ordered before an operation with this clock. For
 * an asynchronous read, a barrier does not suffice: its group must have been waited for. */
static bool is_before(const tgl_machine *machine, const tgl_sim_block *block,
                      const tgl_shared_access *x, const uint32_t *clock)
{
    const bool is_reader = x->thread >= TGL_ACTOR_READER;
    const uint32_t ordered = block == machine->now ? block->epoch : block->phase_epoch;
    if (x->epoch == 0 || (!is_reader && x->epoch < ordered)) return true;
    return machine->has_clocks && clock[tgl_clock_column(machine, block, x->thread)] >= x->time;
}

bool tgl_shared_is_before(const tgl_machine *machine, const tgl_sim_block *block,
                          const tgl_shared_access *x)
{
    const tgl_sim_thread *now = machine->current;
    if (block == machine->now) {
        if (x->thread == now->index) return true;
        if (x->thread / TGL_WARP == now->index / TGL_WARP && x->warp_epoch < now->warp_epoch)
            return true;
    }
    return is_before(machine, block, x,
                     machine->has_clocks ? tgl_clock_of(machine, machine->now, now->index) : NULL);
}

/* Describes the other access of a race: "which thread 3 reads at ... with no barrier between". */
static void describe_other(const tgl_machine *machine, const tgl_sim_block *block,
                           const tgl_shared_access *other, bool other_writes, char *text,
                           size_t size)
{
    const tgl_place place = site_place(machine, other->site);
    if (other->thread >= TGL_ACTOR_READER)
        snprintf(text, size, "which the %s issued at %s reads; no wait for it comes before this",
                 block->readers[other->thread - TGL_ACTOR_READER].is_wgmma ? "wgmma" : "TMA store",
                 place.text);
    else if (other->thread >= TGL_ACTOR_MBARRIER)
        snprintf(text, size,
                 "which the copy issued at %s writes; this thread has not waited for its mbarrier",
                 place.text);
    else
        snprintf(text, size, "which thread %u %s at %s with no barrier between", other->thread,
                 tgl_verb(other_writes), place.text);
}

static void fault_shared_race(tgl_machine *machine, const tgl_sim_block *block, size_t offset,
                              bool is_write, const tgl_shared_access *other, bool other_writes,
                              const void *pc)
{
    char reason[sizeof(tgl_place) + 128], whose[64] = "";
    machine->deferred[0] = '\0';
    describe_other(machine, block, other, other_writes, reason, sizeof reason);
    if (block != machine->now)
        snprintf(whose, sizeof whose, " of block (%u, %u)", block->at[0], block->at[1]);
    tgl_machine_fault(machine, pc, "race: %s %s%s, %s", tgl_verb(is_write),
                      where_of(machine, offset).text, whose, reason);
}

static void remote_race(tgl_machine *machine, size_t offset, bool is_write, uint32_t other_site,
                        const void *pc)
{
    machine->deferred[0] = '\0';
    tgl_machine_fault(machine, pc,
                      "race: %s %s, which another block of the cluster %s at %s with no barrier of "
                      "the cluster between",
                      tgl_verb(is_write), where_of(machine, offset).text, tgl_verb(!is_write),
                      site_place(machine, other_site).text);
}

static void check_awaited(tgl_machine *machine, const tgl_shared_word *word, size_t offset,
                          bool is_write, const void *pc)
{
    if (!word->is_awaited) return;
    const bool is_tma = word->is_awaited == TGL_AWAITS_TMA;
    machine->deferred[0] = '\0';
    tgl_machine_fault(machine, pc, "%s %s before the %s that thread %u issued at %s was waited for",
                      tgl_verb(is_write), where_of(machine, offset).text,
                      is_tma ? "TMA copy" : "cp.async", word->copier,
                      site_place(machine, word->copy_site).text);
}

static tgl_shared_access access_now(const tgl_machine *machine, uint32_t site)
{
    const tgl_sim_thread *thread = machine->current;
    return (tgl_shared_access){machine->now->epoch, thread->warp_epoch, thread->time, site,
                               (uint16_t)thread->index};
}

/* Records a read. Two readers are kept: the earliest reader that is not ordered before a later
 * reader, and the latest reader. If the two are different threads, a race with any writer is
 * detected, because at least one of them is not the writer. clock: the vector clock of an
 * asynchronous read; NULL: the current thread's clock. */
static void keep_reader(const tgl_machine *machine, tgl_shared_word *word, uint8_t mask,
                        const tgl_shared_access *now, const uint32_t *clock)
{
    bool is_past = word->read.epoch != now->epoch, is_all_past = is_past;
    if (machine->has_clocks) {
        if (clock == NULL) clock = tgl_clock_of(machine, machine->now, now->thread);
        is_past = is_before(machine, machine->now, &word->read, clock);
        is_all_past = is_past && is_before(machine, machine->now, &word->other, clock);
    }
    word->read_bytes = is_all_past ? mask : word->read_bytes | mask;
    if (is_past || word->read.thread == now->thread)
        word->read = *now;
    else
        word->other = *now;
}

static void check_has_data(tgl_machine *machine, const tgl_shared_word *word, size_t offset,
                           uint8_t mask, const void *pc)
{
    if ((word->has_data & mask) == mask) return;
    /* Deferred: if another thread writes this word before the next barrier, the error is a race. */
    tgl_machine_defer_fault(machine, pc, "reads %s, which no thread has written",
                            where_of(machine, offset).text);
}

static void read_word(tgl_machine *machine, tgl_shared_word *word, size_t offset, uint8_t mask,
                      uint32_t site, const void *pc)
{
    const tgl_shared_access now = access_now(machine, site);
    check_awaited(machine, word, offset, false, pc);
    check_has_data(machine, word, offset, mask, pc);
    if ((word->write_bytes & mask) != 0 &&
        !tgl_shared_is_before(machine, machine->now, &word->write))
        fault_shared_race(machine, machine->now, offset, false, &word->write, true, pc);
    keep_reader(machine, word, mask, &now, NULL);
}

/* Reports a race of the current thread's write with accesses since the last barrier. The second
 * reader, word->other, is not checked if it is in the current thread's warp. */
static void check_write(tgl_machine *machine, const tgl_sim_block *block,
                        const tgl_shared_word *word, size_t offset, uint8_t mask, const void *pc)
{
    const unsigned warp = machine->current->index / TGL_WARP;
    check_awaited(machine, word, offset, true, pc);
    if ((word->write_bytes & mask) != 0 && !tgl_shared_is_before(machine, block, &word->write))
        fault_shared_race(machine, block, offset, true, &word->write, true, pc);
    if (word->remote_phase == machine->phase)
        remote_race(machine, offset, true, word->remote_site, pc);
    if ((word->read_bytes & mask) == 0) return;
    if (!tgl_shared_is_before(machine, block, &word->read))
        fault_shared_race(machine, block, offset, true, &word->read, false, pc);
    if ((block != machine->now || word->other.thread / TGL_WARP != warp) &&
        !tgl_shared_is_before(machine, block, &word->other))
        fault_shared_race(machine, block, offset, true, &word->other, false, pc);
}

static void write_word(tgl_machine *machine, tgl_shared_word *word, uint8_t mask,
                       const tgl_shared_access *access)
{
    const bool is_same = word->write.epoch == access->epoch && word->write.thread == access->thread;
    word->write_bytes = is_same ? word->write_bytes | mask : mask;
    word->write = *access;
    word->write_phase = machine->phase;
    word->has_data |= mask;
}

void tgl_shared_access_words(tgl_machine *machine, size_t offset, unsigned bytes, bool is_write,
                             uint32_t site, const void *pc)
{
    const uint8_t mask = tgl_byte_mask(offset, bytes);
    const tgl_shared_access now = access_now(machine, site);
    tgl_shared_word *word = &machine->now->words[offset / 4];
    for (unsigned i = 0; i < bytes; i += 4, word++) {
        if (is_write) {
            check_write(machine, machine->now, word, offset + i, mask, pc);
            write_word(machine, word, mask, &now);
        } else {
            read_word(machine, word, offset + i, mask, site, pc);
        }
    }
}

/* ---- Clusters and asynchronous copies -------------------------------------------------------- */

float tgl_shared_remote_load(tgl_machine *machine, tgl_sim_block *block, size_t offset,
                             uint32_t site, const void *pc)
{
    float value;
    tgl_shared_word *word = &block->words[offset / 4];
    const tgl_where where = where_of(machine, offset);
    if (block->is_done)
        tgl_machine_fault(machine, pc, "reads %s of a block of the cluster that has ended",
                          where.text);
    check_awaited(machine, word, offset, false, pc);
    if (word->has_data != 0xf)
        tgl_machine_fault(machine, pc,
                          "reads %s of another block of the cluster, which no thread has written",
                          where.text);
    if (word->write_phase == machine->phase)
        remote_race(machine, offset, false, word->write.site, pc);
    word->remote_phase = block->read_phase = machine->phase;
    word->remote_site = site;
    memcpy(&value, block->shared + offset, sizeof value);
    return value;
}

/* Reports an access of the async proxy (TMA or wgmma) to data that a thread has written, if there
 * is no proxy fence between the write and the access (PTX ISA, "Async proxy"). */
static void check_proxy(tgl_machine *machine, const tgl_sim_block *block,
                        const tgl_shared_word *word, size_t offset, bool is_write,
                        const uint32_t *clock, const void *pc)
{
    if (word->write_bytes == 0 || tgl_clock_is_fenced(machine, block, &word->write, clock)) return;
    tgl_machine_fault(machine, pc,
                      "%s %s through the async proxy, which thread %u writes at %s with no "
                      "fence_proxy_async() between",
                      tgl_verb(is_write), where_of(machine, offset).text, word->write.thread,
                      site_place(machine, word->write.site).text);
}

void tgl_shared_await(tgl_machine *machine, tgl_sim_block *block, size_t offset, size_t bytes,
                      tgl_awaited kind, uint32_t site, const void *pc)
{
    for (size_t i = 0; i < bytes; i += 4) {
        tgl_shared_word *word = &block->words[(offset + i) / 4];
        check_write(machine, block, word, offset + i, 0xf, pc);
        if (kind == TGL_AWAITS_TMA)
            check_proxy(machine, block, word, offset + i, true,
                        tgl_clock_of(machine, machine->now, machine->current->index), pc);
        word->is_awaited = (uint8_t)kind;
        word->copier = (uint16_t)machine->current->index;
        word->copy_site = site;
    }
}

void tgl_shared_read_async(tgl_machine *machine, size_t offset, size_t bytes,
                           const tgl_shared_access *access, const uint32_t *clock, const void *pc)
{
    for (size_t i = 0; i < bytes; i += 4) {
        tgl_shared_word *word = &machine->now->words[(offset + i) / 4];
        check_awaited(machine, word, offset + i, false, pc);
        check_has_data(machine, word, offset + i, 0xf, pc);
        if (word->write_bytes != 0 && !is_before(machine, machine->now, &word->write, clock))
            fault_shared_race(machine, machine->now, offset + i, false, &word->write, true, pc);
        check_proxy(machine, machine->now, word, offset + i, false, clock, pc);
        keep_reader(machine, word, 0xf, access, clock);
    }
}

void tgl_shared_arrive(tgl_machine *machine, size_t offset, size_t bytes,
                       const tgl_shared_access *access)
{
    for (size_t i = 0; i < bytes; i += 4) {
        tgl_shared_word *word = &machine->now->words[(offset + i) / 4];
        word->is_awaited = TGL_AWAITS_NOTHING;
        write_word(machine, word, 0xf, access);
    }
}
