/* SPDX-License-Identifier: Apache-2.0
 *
 * mbarriers. A phase completes when all its arrivals have come. A phase that also counts TMA copies
 * completes as late as possible: when all its arrivals and bytes have come and a thread waits for
 * it. The accesses of a thread before it arrives at an mbarrier are ordered before the accesses of
 * another thread after that thread has waited for the phase (clocks.c).
 */
#include "sim/mbarriers.h"

#include "sim/boxes.h"
#include "sim/clocks.h"
#include "sim/growing.h"
#include "sim/shadow_shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Blocks ---------------------------------------------------------------------------------- */

void tgl_mbarriers_free(tgl_sim_block *block)
{
    for (int i = 0; i < block->mbarrier_count; i++) {
        free(block->mbarriers[i].arrived);
        free(block->mbarriers[i].complete);
        free(block->mbarriers[i].copies);
    }
    block->mbarrier_count = 0;
}

void tgl_mbarriers_check_end(tgl_machine *machine)
{
    const tgl_sim_block *block = machine->now;
    for (int i = 0; i < block->mbarrier_count; i++) {
        const tgl_mbarrier *b = &block->mbarriers[i];
        if (b->copy_count == 0) continue;
        tgl_machine_fault_of(machine,
                             &machine->blocks[b->copies[0].rank].threads[b->copies[0].thread],
                             machine->tally.sites[b->copies[0].site].pc,
                             "has left the kernel, and no thread has waited for this TMA copy");
        return;
    }
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static size_t offset_of(tgl_machine *machine, const void *barrier, const void *pc)
{
    const size_t offset = (uintptr_t)barrier - machine->launch->module->shared_base;
    if (offset >= machine->launch->module->shared_size)
        tgl_machine_fault(machine, pc, "uses an mbarrier that is not in shared memory");
    if (offset % 8 != 0)
        tgl_machine_fault(machine, pc,
                          "uses an mbarrier at an address that is not a multiple of 8");
    tgl_shared_check_bounds(machine, offset, 8, true, pc);
    return offset;
}

static tgl_mbarrier *find_mbarrier(tgl_sim_block *block, size_t offset)
{
    for (int i = 0; i < block->mbarrier_count; i++)
        if (block->mbarriers[i].offset == offset) return &block->mbarriers[i];
    return NULL;
}

tgl_mbarrier *tgl_mbarrier_use(tgl_machine *machine, tgl_sim_block *block, const void *barrier,
                               const void *pc)
{
    const tgl_sim_module *module = machine->launch->module;
    const size_t offset = offset_of(machine, barrier, pc);
    tgl_mbarrier *b = find_mbarrier(block, offset);
    const char *whose = block == machine->now ? "" : " of another block of the cluster";
    if (b == NULL)
        tgl_machine_fault(machine, pc, "uses the mbarrier at %s%s, which is not initialised",
                          tgl_shared_where(module, offset).text, whose);
    if (!tgl_shared_is_before(machine, block, &b->made))
        tgl_machine_fault(machine, pc,
                          "race: uses the mbarrier at %s, which thread %u%s initialises at %s with "
                          "no barrier between",
                          tgl_shared_where(module, offset).text, b->made.thread, whose,
                          tgl_sim_place(module, b->made_at).text);
    return b;
}

/* ---- Arrivals and phases --------------------------------------------------------------------- */

static tgl_mbarrier *add_mbarrier(tgl_machine *machine, size_t offset, const void *pc)
{
    tgl_sim_block *block = machine->now;
    if (block->mbarrier_count == TGL_SIM_MBARRIERS_MAX)
        tgl_machine_fault(machine, pc,
                          "initialises more than %d mbarriers, which is the maximum of the "
                          "simulator",
                          TGL_SIM_MBARRIERS_MAX);
    tgl_clocks_need(machine);
    tgl_mbarrier *b = &block->mbarriers[block->mbarrier_count];
    *b = (tgl_mbarrier){.offset = offset,
                        .phase = 1,
                        .arrived = calloc(machine->clock_row, sizeof *b->arrived),
                        .complete = calloc(machine->clock_row, sizeof *b->complete)};
    block->mbarrier_count++;
    if (b->arrived == NULL || b->complete == NULL) tgl_machine_give_up(machine);
    return b;
}

void tgl_mbarrier_init(tgl_machine *machine, const void *barrier, int arrivals, const void *pc)
{
    const tgl_sim_thread *thread = machine->current;
    const size_t offset = offset_of(machine, barrier, pc);
    if (arrivals < 1)
        tgl_machine_fault(machine, pc, "initialises an mbarrier for %d arrivals", arrivals);
    if (find_mbarrier(machine->now, offset) != NULL)
        tgl_machine_fault(machine, pc, "initialises an mbarrier for the second time");
    tgl_mbarrier *b = add_mbarrier(machine, offset, pc);
    b->arrivals = b->pending = arrivals;
    b->made_at = pc;
    b->made = (tgl_shared_access){machine->now->epoch, thread->warp_epoch, thread->time, 0,
                                  (uint16_t)thread->index};
}

void tgl_mbarrier_fence(tgl_machine *machine)
{
    tgl_sim_block *block = machine->now;
    for (int i = 0; i < block->mbarrier_count; i++)
        if (tgl_shared_is_before(machine, block, &block->mbarriers[i].made))
            block->mbarriers[i].is_fenced = true;
    tgl_clocks_fence(machine); /* mbarrier_init_fence() contains a proxy fence (lib/mbarrier.h) */
}

void tgl_mbarrier_add_copy(tgl_machine *machine, tgl_mbarrier *b, const tgl_tma_copy *copy)
{
    tgl_tma_copy *copies =
        tgl_grow(b->copies, &b->copy_room, (size_t)b->copy_count, sizeof *copies);
    if (copies == NULL) tgl_machine_give_up(machine);
    b->copies = copies;
    b->copies[b->copy_count++] = *copy;
}

/* Completes a TMA copy: writes its data to the running block's shared memory, and records the
 * write. */
static void deliver_tma(tgl_machine *machine, const tgl_mbarrier *b, const tgl_tma_copy *copy)
{
    const tgl_shared_access access = {
        machine->now->epoch, 0, b->phase, copy->site,
        (uint16_t)(TGL_ACTOR_MBARRIER + (b - machine->now->mbarriers))};
    tgl_box_to_shared(&copy->map, copy->at, copy->shared);
    tgl_shared_arrive(machine, (uintptr_t)copy->shared - machine->launch->module->shared_base,
                      tgl_box_bytes(&copy->map), &access);
}

/* Completes a phase for which all arrivals and bytes have come. If the phase counts TMA copies, it
 * must be completed while its block runs, because the data of the copies is written to the block's
 * shared memory here. */
static void complete_phase(tgl_machine *machine, const tgl_sim_block *block, tgl_mbarrier *b)
{
    const unsigned own = TGL_ACTOR_MBARRIER + (unsigned)(b - block->mbarriers);
    for (int i = 0; i < b->copy_count; i++)
        deliver_tma(machine, b, &b->copies[i]);
    b->copy_count = 0;
    b->arrived[tgl_clock_column(machine, block, own)] = b->phase;
    memcpy(b->complete, b->arrived, machine->clock_row * sizeof *b->complete);
    b->pending = b->arrivals;
    b->phase++;
}

static void count_arrival(tgl_machine *machine, const tgl_sim_block *block, tgl_mbarrier *b,
                          unsigned bytes, const void *pc)
{
    if (b->pending == 0)
        tgl_machine_fault(machine, pc,
                          "arrives at the mbarrier at %s in a phase that has all its arrivals and "
                          "that no thread has waited for",
                          tgl_shared_where(machine->launch->module, b->offset).text);
    tgl_clock_join(machine, b->arrived, tgl_clock_release(machine));
    b->missing += bytes;
    b->pending--;
    if (b->pending == 0 && b->missing == 0 && b->copy_count == 0) complete_phase(machine, block, b);
}

void tgl_mbarrier_arrive(tgl_machine *machine, const void *barrier, unsigned bytes, const void *pc)
{
    count_arrival(machine, machine->now, tgl_mbarrier_use(machine, machine->now, barrier, pc),
                  bytes, pc);
}

void tgl_mbarrier_arrive_at(tgl_machine *machine, const void *barrier, int rank, const void *pc)
{
    if ((unsigned)rank >= machine->cluster_size)
        tgl_machine_fault(machine, pc, "arrives at an mbarrier of block %d of a cluster of %u",
                          rank, machine->cluster_size);
    tgl_sim_block *block = &machine->blocks[rank];
    if (block->is_done)
        tgl_machine_fault(machine, pc,
                          "arrives at an mbarrier of a block of the cluster that has ended");
    count_arrival(machine, block, tgl_mbarrier_use(machine, block, barrier, pc), 0, pc);
}

bool tgl_mbarrier_is_open(const tgl_machine *machine, const tgl_sim_thread *thread)
{
    const tgl_mbarrier *b = &machine->now->mbarriers[thread->mbarrier];
    return b->phase > thread->phase || (b->pending == 0 && b->missing == 0);
}

/* The number of the phase with this parity: the current one or the previous one. */
static uint32_t phase_of(const tgl_mbarrier *b, unsigned parity)
{
    return (b->phase - 1) % 2 == parity ? b->phase : b->phase - 1;
}

void tgl_mbarrier_wait(tgl_machine *machine, const void *barrier, unsigned parity, const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    if (parity > 1)
        tgl_machine_fault(machine, pc, "waits for the parity %u of an mbarrier: it is 0 or 1",
                          parity);
    tgl_mbarrier *b = tgl_mbarrier_use(machine, machine->now, barrier, pc);
    machine->mbarrier_waits++;
    thread->mbarrier = (int)(b - machine->now->mbarriers);
    thread->phase = phase_of(b, parity);
    while (b->phase <= thread->phase) {
        if (tgl_mbarrier_is_open(machine, thread))
            complete_phase(machine, machine->now, b);
        else
            tgl_machine_wait(machine, TGL_THREAD_AT_MBARRIER, pc);
    }
    tgl_clock_join(machine, tgl_clock_of(machine, machine->now, thread->index), b->complete);
    machine->clock_version++;
}

void tgl_mbarrier_describe_wait(const tgl_machine *machine, const tgl_sim_block *block,
                                const tgl_sim_thread *thread, char *text, size_t size)
{
    const tgl_mbarrier *b = &block->mbarriers[thread->mbarrier];
    const tgl_where where = tgl_shared_where(machine->launch->module, b->offset);
    if (b->pending > 0)
        snprintf(text, size,
                 "waits for a phase of the mbarrier at %s, where %d of %d arrivals never come",
                 where.text, b->pending, b->arrivals);
    else
        snprintf(text, size, "waits for a phase of the mbarrier at %s, where %lld bytes %s",
                 where.text, (long long)llabs(b->missing),
                 b->missing > 0 ? "were announced and are never copied"
                                : "were copied and not announced");
}
