/* SPDX-License-Identifier: Apache-2.0
 *
 * The shadow of shared memory: for each word what has been written, and which threads touched it
 * since the last barrier.
 */
#include "sim/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARP = 32,
    OVERRUN = 16 * 1024, /* bytes behind shared memory that are reported as its overrun */
};

static const char *site_place(const tgl_machine *machine, uint32_t site, char text[TGL_SIM_PLACE])
{
    return tgl_sim_place(machine->launch->module, machine->tally.sites[site].pc, text,
                         TGL_SIM_PLACE);
}

/* ---- Start ----------------------------------------------------------------------------------- */

static bool reserve_block(const tgl_machine *machine, tgl_sim_block *block)
{
    const size_t size = machine->launch->module->shared_size;
    void *words = block->words, *shared = block->shared;
    const bool ok =
        tgl_machine_reserve(&words, &block->word_room, size / 4 + 1, sizeof *block->words) &&
        (machine->cluster_size == 1 ||
         tgl_machine_reserve(&shared, &block->shared_room, size, sizeof(char)));
    block->words = words;
    block->shared = shared;
    return ok;
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
    /* The last word may be one that shared memory fills in part. */
    memset(machine->now->words, 0, (module->shared_size / 4 + 1) * sizeof(tgl_shared_word));
    memset(module->image->shared_begin, 0xff,
           module->shared_size); /* NaN, should one slip through */
}

/* ---- Names of places ------------------------------------------------------------------------- */

const char *tgl_shared_describe(const tgl_sim_module *module, size_t offset,
                                char text[TGL_SIM_WHERE])
{
    const tgl_shared_array *before = NULL;
    for (int i = 0; i < module->array_count; i++) {
        const tgl_shared_array *array = &module->arrays[i];
        if (array->begin <= offset && (before == NULL || array->begin > before->begin))
            before = array;
    }
    if (before == NULL)
        snprintf(text, TGL_SIM_WHERE, "shared memory before the first array");
    else if (offset < before->end)
        snprintf(text, TGL_SIM_WHERE, "%s + %zu bytes", before->name, offset - before->begin);
    else
        snprintf(text, TGL_SIM_WHERE, "%zu bytes past the end of %s, which has %zu bytes",
                 offset - before->end, before->name, before->end - before->begin);
    return text;
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
    if (first == 0 || first != last) {
        char where[TGL_SIM_WHERE];
        tgl_shared_describe(machine->launch->module, first == 0 ? offset : end, where);
        tgl_machine_fault(machine, pc, "%s %zu bytes of shared memory at %s", tgl_verb(is_write),
                          bytes, where);
    }
    return first - 1;
}

/* ---- Races ----------------------------------------------------------------------------------- */

bool tgl_shared_is_before(const tgl_machine *machine, const tgl_shared_access *x)
{
    const tgl_sim_thread *now = machine->current;
    const tgl_sim_block *block = machine->now;
    if (x->epoch != block->epoch || x->thread == now->index) return true;
    if (x->thread / WARP == now->index / WARP && x->warp_epoch < now->warp_epoch) return true;
    if (block->mbarrier_count == 0) return false;
    const size_t column = x->thread < TGL_SIM_THREADS_MAX
                              ? x->thread
                              : machine->launch->threads + (x->thread - TGL_SIM_THREADS_MAX);
    return block->clocks[now->index * block->clock_row + column] >= x->time;
}

/* "thread 3 reads at ...", or of an asynchronous copy which mbarrier has counted it. */
static void race(tgl_machine *machine, size_t offset, bool is_write, const tgl_shared_access *other,
                 bool other_writes, const void *pc)
{
    char where[TGL_SIM_WHERE], place[TGL_SIM_PLACE];
    machine->deferred[0] = '\0';
    tgl_shared_describe(machine->launch->module, offset, where);
    site_place(machine, other->site, place);
    if (other->thread < TGL_SIM_THREADS_MAX)
        tgl_machine_fault(machine, pc,
                          "race: %s %s, which thread %u %s at %s with no barrier between",
                          tgl_verb(is_write), where, other->thread, tgl_verb(other_writes), place);
    tgl_machine_fault(machine, pc,
                      "race: %s %s, which the copy issued at %s writes; this thread has not waited "
                      "for its mbarrier",
                      tgl_verb(is_write), where, place);
}

static void remote_race(tgl_machine *machine, size_t offset, bool is_write, uint32_t other_site,
                        const void *pc)
{
    char where[TGL_SIM_WHERE], place[TGL_SIM_PLACE];
    machine->deferred[0] = '\0';
    tgl_machine_fault(machine, pc,
                      "race: %s %s, which another block of the cluster %s at %s with no barrier of "
                      "the cluster between",
                      tgl_verb(is_write),
                      tgl_shared_describe(machine->launch->module, offset, where),
                      tgl_verb(!is_write), site_place(machine, other_site, place));
}

static void check_awaited(tgl_machine *machine, const tgl_shared_word *word, size_t offset,
                          bool is_write, const void *pc)
{
    char where[TGL_SIM_WHERE], place[TGL_SIM_PLACE];
    if (!word->is_awaited) return;
    const bool is_tma = word->is_awaited == TGL_AWAITS_TMA;
    tgl_machine_fault(machine, pc, "%s %s before the %s that thread %u issued at %s was waited for",
                      tgl_verb(is_write),
                      tgl_shared_describe(machine->launch->module, offset, where),
                      is_tma ? "TMA copy" : "cp.async", word->copier,
                      site_place(machine, word->copy_site, place));
}

static tgl_shared_access access_now(const tgl_machine *machine, uint32_t site)
{
    const tgl_sim_thread *thread = machine->current;
    return (tgl_shared_access){machine->now->epoch, thread->warp_epoch, thread->time, site,
                               (uint16_t)thread->index};
}

/* Two readers are kept: the first one that is not ordered before a later one, and the latest. With
 * two different ones, a race with any writer is found, since a writer is not both. */
static void keep_reader(const tgl_machine *machine, tgl_shared_word *word, uint8_t mask,
                        uint32_t site)
{
    const tgl_shared_access now = access_now(machine, site);
    if (word->read.epoch != now.epoch) {
        word->read_bytes = mask;
        word->read = now;
        return;
    }
    word->read_bytes |= mask;
    const bool is_replaced =
        word->read.thread == now.thread ||
        (machine->now->mbarrier_count > 0 && tgl_shared_is_before(machine, &word->read));
    if (is_replaced)
        word->read = now;
    else
        word->other = now;
}

static void read_word(tgl_machine *machine, tgl_shared_word *word, size_t offset, uint8_t mask,
                      uint32_t site, const void *pc)
{
    check_awaited(machine, word, offset, false, pc);
    if ((word->has_data & mask) != mask) {
        char where[TGL_SIM_WHERE]; /* somebody may be about to: then it is a race */
        tgl_machine_defer_fault(machine, pc, "reads %s, which nobody has written",
                                tgl_shared_describe(machine->launch->module, offset, where));
    }
    if ((word->write_bytes & mask) != 0 && !tgl_shared_is_before(machine, &word->write))
        race(machine, offset, false, &word->write, true, pc);
    keep_reader(machine, word, mask, site);
}

/* Races with those who touched the word since the last barrier. A second reader counts as one of no
 * warp epoch: its order within the warp is not kept. */
static void check_write(tgl_machine *machine, tgl_shared_word *word, size_t offset, uint8_t mask,
                        const void *pc)
{
    check_awaited(machine, word, offset, true, pc);
    if ((word->write_bytes & mask) != 0 && !tgl_shared_is_before(machine, &word->write))
        race(machine, offset, true, &word->write, true, pc);
    if (word->remote_phase == machine->phase)
        remote_race(machine, offset, true, word->remote_site, pc);
    if ((word->read_bytes & mask) == 0) return;
    if (!tgl_shared_is_before(machine, &word->read))
        race(machine, offset, true, &word->read, false, pc);
    if (word->other.thread / WARP != machine->current->index / WARP &&
        !tgl_shared_is_before(machine, &word->other))
        race(machine, offset, true, &word->other, false, pc);
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

/* The bytes of a word that an access from `offset` on covers, as a mask. */
static uint8_t byte_mask(size_t offset, unsigned bytes)
{
    return bytes >= 4 ? 0xf : (uint8_t)(((1u << bytes) - 1) << offset % 4);
}

void tgl_shared_access_words(tgl_machine *machine, size_t offset, unsigned bytes, bool is_write,
                             uint32_t site, const void *pc)
{
    const uint8_t mask = byte_mask(offset, bytes);
    const tgl_shared_access now = access_now(machine, site);
    tgl_shared_word *word = &machine->now->words[offset / 4];
    for (unsigned i = 0; i < bytes; i += 4, word++) {
        if (is_write) {
            check_write(machine, word, offset + i, mask, pc);
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
    char where[TGL_SIM_WHERE];
    float value;
    tgl_shared_word *word = &block->words[offset / 4];
    tgl_shared_describe(machine->launch->module, offset, where);
    if (block->is_done)
        tgl_machine_fault(machine, pc, "reads %s of a block of the cluster that has ended", where);
    check_awaited(machine, word, offset, false, pc);
    if (word->has_data != 0xf)
        tgl_machine_fault(machine, pc,
                          "reads %s of another block of the cluster, which nobody has written",
                          where);
    if (word->write_phase == machine->phase)
        remote_race(machine, offset, false, word->write.site, pc);
    word->remote_phase = block->read_phase = machine->phase;
    word->remote_site = site;
    memcpy(&value, block->shared + offset, sizeof value);
    return value;
}

void tgl_shared_await(tgl_machine *machine, size_t offset, size_t bytes, tgl_awaited kind,
                      uint32_t site, const void *pc)
{
    for (size_t i = 0; i < bytes; i += 4) {
        tgl_shared_word *word = &machine->now->words[(offset + i) / 4];
        check_write(machine, word, offset + i, 0xf, pc);
        word->is_awaited = (uint8_t)kind;
        word->copier = (uint16_t)machine->current->index;
        word->copy_site = site;
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
