/* SPDX-License-Identifier: Apache-2.0
 *
 * Vector clocks (terms: sim/machine.h). They say which accesses are ordered by synchronisation
 * other than barriers of the whole block or cluster.
 *
 * The time of a thread is the number of its release operations: arrivals at mbarriers, barriers (of
 * a warp only while there are clocks), proxy fences, TMA stores. The clock of a thread is a row
 * with a column for each actor of the cluster (threads, copies counted by an mbarrier, asynchronous
 * readers). A value t means: all accesses of the actor up to its time t are ordered before the
 * thread's next access. The second half of the row has the same columns for the async proxy (TMA
 * and wgmma). There a value t means: a fence.proxy.async separates the accesses of the actor up to
 * its time t from the thread's next access. An mbarrier has a row, too. An arrival sets the
 * mbarrier's row, and a wait sets the thread's row, to the element-by-element maximum of the two
 * rows.
 *
 * Kernels without mbarriers, named barriers, proxy fences, TMA stores and wgmma have no clocks.
 */
#include "sim/clocks.h"

#include <stdlib.h>
#include <string.h>

/* ---- Rows and columns ------------------------------------------------------------------------ */

uint32_t *tgl_clock_of(const tgl_machine *machine, const tgl_sim_block *block, unsigned thread)
{
    const size_t rank = (size_t)(block - machine->blocks);
    return machine->clocks + (rank * machine->launch->threads + thread) * machine->clock_row;
}

static size_t columns_of_block(const tgl_machine *machine)
{
    return machine->launch->threads + TGL_SIM_MBARRIERS_MAX + TGL_SIM_READERS_MAX;
}

size_t tgl_clock_column(const tgl_machine *machine, const tgl_sim_block *block, unsigned actor)
{
    const size_t rank = (size_t)(block - machine->blocks);
    const size_t own = actor < TGL_SIM_THREADS_MAX
                           ? actor
                           : machine->launch->threads + (actor - TGL_SIM_THREADS_MAX);
    return rank * columns_of_block(machine) + own;
}

void tgl_clock_join(const tgl_machine *machine, uint32_t *to, const uint32_t *from)
{
    for (size_t i = 0; i < machine->clock_row; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* ---- Allocation ------------------------------------------------------------------------------ */

/* Initialises a thread's row when the clocks are allocated. Until then only barriers of the whole
 * block and cluster have ordered threads of different warps, so the row follows from the times of
 * the threads of the same block and from phase_time of the other blocks. */
static void fill_row(tgl_machine *machine, const tgl_sim_block *block, uint32_t *row)
{
    for (unsigned i = 0; i < machine->cluster_size; i++) {
        const tgl_sim_block *other = &machine->blocks[i];
        uint32_t *columns = row + tgl_clock_column(machine, other, 0);
        for (unsigned j = 0; j < machine->launch->threads; j++)
            columns[j] = other == block ? other->threads[j].time - 1 : other->phase_time;
    }
}

void tgl_clocks_need(tgl_machine *machine)
{
    const unsigned threads = machine->launch->threads;
    if (machine->has_clocks) return;
    machine->clock_columns = machine->cluster_size * columns_of_block(machine);
    machine->clock_row = 2 * machine->clock_columns;
    const size_t count = machine->cluster_size * threads * machine->clock_row;
    machine->clocks =
        tgl_machine_reserve(machine->clocks, &machine->clock_room, count, sizeof *machine->clocks);
    if (machine->clock_room < count) tgl_machine_give_up(machine);
    memset(machine->clocks, 0, count * sizeof *machine->clocks);
    for (unsigned i = 0; i < machine->cluster_size; i++)
        for (unsigned j = 0; j < threads; j++)
            fill_row(machine, &machine->blocks[i], tgl_clock_of(machine, &machine->blocks[i], j));
    machine->has_clocks = true;
}

void tgl_clocks_end_cluster(tgl_machine *machine)
{
    machine->has_clocks = false;
}

/* ---- Release operations and barriers --------------------------------------------------------- */

static uint32_t *release_clock(tgl_machine *machine, const tgl_sim_block *block,
                               tgl_sim_thread *thread)
{
    uint32_t *own = tgl_clock_of(machine, block, thread->index);
    own[tgl_clock_column(machine, block, thread->index)] = thread->time++;
    machine->clock_version++;
    return own;
}

uint32_t *tgl_clock_release(tgl_machine *machine)
{
    return release_clock(machine, machine->now, machine->current);
}

/* Sets every row to the element-by-element maximum of all rows. */
static void join_rows(const tgl_machine *machine, uint32_t *const *rows, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        tgl_clock_join(machine, rows[0], rows[i]);
    for (unsigned i = 1; i < count; i++)
        memcpy(rows[i], rows[0], machine->clock_row * sizeof(uint32_t));
}

void tgl_clocks_meet(tgl_machine *machine, tgl_sim_thread *const *threads, unsigned count)
{
    uint32_t *rows[TGL_SIM_THREADS_MAX];
    for (unsigned i = 0; i < count; i++)
        rows[i] = release_clock(machine, machine->now, threads[i]);
    join_rows(machine, rows, count);
}

/* Records a barrier of `count` blocks. The times of the threads advance even before clocks are
 * allocated, because fill_row() reads them later. */
static void meet_blocks(tgl_machine *machine, tgl_sim_block *blocks, unsigned count)
{
    const unsigned threads = machine->launch->threads;
    if (!machine->has_clocks) {
        for (unsigned i = 0; i < count; i++)
            for (unsigned j = 0; j < threads; j++)
                blocks[i].threads[j].time++;
        return;
    }
    uint32_t *first = tgl_clock_of(machine, blocks, 0); /* the rows of all blocks are contiguous */
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < threads; j++)
            tgl_clock_join(machine, first,
                           release_clock(machine, &blocks[i], &blocks[i].threads[j]));
    for (unsigned i = 1; i < count * threads; i++)
        memcpy(first + i * machine->clock_row, first, machine->clock_row * sizeof *first);
}

void tgl_clocks_meet_block(tgl_machine *machine)
{
    meet_blocks(machine, machine->now, 1);
}

void tgl_clocks_meet_cluster(tgl_machine *machine)
{
    meet_blocks(machine, machine->blocks, machine->cluster_size);
}

/* ---- The async proxy ------------------------------------------------------------------------- */

void tgl_clocks_fence(tgl_machine *machine)
{
    tgl_clocks_need(machine);
    uint32_t *own = tgl_clock_release(machine), *fenced = own + machine->clock_columns;
    for (size_t i = 0; i < machine->clock_columns; i++)
        fenced[i] = own[i] > fenced[i] ? own[i] : fenced[i];
}

bool tgl_clock_is_fenced(const tgl_machine *machine, const tgl_sim_block *block,
                         const tgl_shared_access *write, const uint32_t *clock)
{
    const size_t column = tgl_clock_column(machine, block, write->thread);
    return write->thread >= TGL_SIM_THREADS_MAX ||
           clock[machine->clock_columns + column] >= write->time;
}

unsigned tgl_async_reader_of(tgl_machine *machine, bool is_wgmma, unsigned thread, const void *pc)
{
    tgl_sim_block *block = machine->now;
    for (int i = 0; i < block->reader_count; i++)
        if (block->readers[i].is_wgmma == is_wgmma && block->readers[i].thread == thread)
            return TGL_ACTOR_READER + (unsigned)i;
    if (block->reader_count == TGL_SIM_READERS_MAX)
        tgl_machine_fault(machine, pc,
                          "more than %d threads with TMA stores and warpgroups with wgmma in a "
                          "block, which is the maximum of the simulator",
                          TGL_SIM_READERS_MAX);
    block->readers[block->reader_count] = (tgl_async_reader){is_wgmma, thread};
    return TGL_ACTOR_READER + (unsigned)block->reader_count++;
}

void tgl_async_reader_done(tgl_machine *machine, bool is_wgmma, unsigned thread, uint32_t group)
{
    const unsigned reader = tgl_async_reader_of(machine, is_wgmma, thread, NULL);
    uint32_t *clock = tgl_clock_of(machine, machine->now, machine->current->index);
    clock[tgl_clock_column(machine, machine->now, reader)] = group;
    machine->clock_version++;
}
