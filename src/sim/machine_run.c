/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the blocks of a cluster. Each thread of a block runs until the next barrier, warp by warp;
 * when all have reached it, they continue. The blocks of a cluster run one after the other, each
 * until the next barrier of the cluster. The compiled kernel has one copy of shared memory, which
 * the running block uses. The shared memory of the other blocks is saved in tgl_sim_block.shared.
 */
#include "sim/machine_run.h"

#include "sim/clocks.h"
#include "sim/machine_threads.h"
#include "sim/mbarriers.h"
#include "sim/meetings.h"
#include "sim/random_order.h"
#include "sim/shadow_global.h"
#include "sim/shadow_shared.h"
#include "sim/tma_unit.h"
#include "sim/wgmma_groups.h"

#include <string.h>

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void resume_thread(tgl_machine *machine, tgl_sim_thread *thread)
{
    machine->current = thread;
    machine->hooks->thread[0] = thread->index;
    machine->hooks->loops = &thread->loops;
    tgl_fiber_switch(&machine->scheduler, &thread->fiber);
}

/* Makes the thread ready if it waits for an mbarrier phase that can complete now; the thread then
 * completes the phase itself (tgl_mbarrier_wait()). Returns whether the thread was made ready. */
static bool open_mbarrier(const tgl_machine *machine, tgl_sim_thread *thread)
{
    if (thread->state != TGL_THREAD_AT_MBARRIER || !tgl_mbarrier_is_open(machine, thread))
        return false;
    thread->state = TGL_THREAD_READY;
    tgl_machine_rest(thread);
    return true;
}

/* Runs a warp until each thread has finished or waits for other warps. */
static void run_warp(tgl_machine *machine, tgl_sim_thread *warp, unsigned lanes)
{
    const bool is_traced = machine->cluster == 0 && machine->now == machine->blocks;
    bool goes_on = true;
    machine->tally.trace = is_traced ? machine->launch->trace : NULL;
    machine->tally.warp = (int)(warp->index / TGL_WARP);
    while (goes_on) {
        for (unsigned i = 0; i < lanes; i++) {
            if (warp[i].state != TGL_THREAD_READY) continue;
            resume_thread(machine, &warp[i]);
            if (machine->status != TGL_OK) return;
        }
        tgl_tally_flush(&machine->tally);
        goes_on = tgl_warp_barriers_open(machine, warp, lanes);
        for (unsigned i = 0; i < lanes; i++)
            if (warp[i].state == TGL_THREAD_AT_WINDOW) {
                warp[i].state = TGL_THREAD_READY;
                goes_on = true;
            } else if (open_mbarrier(machine, &warp[i])) {
                goes_on = true;
            }
    }
}

/* The threads that explain why no thread of a block can continue. */
typedef struct standstill {
    const tgl_sim_thread *at_barrier; /* first thread that waits at a barrier of the block or
                                         cluster */
    const tgl_sim_thread *elsewhere;  /* first thread that waits for anything else */
} standstill;

static standstill look_at(const tgl_machine *machine, const tgl_sim_block *block)
{
    standstill s = {NULL, NULL};
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        const tgl_sim_thread *thread = &block->threads[i];
        if (thread->state == TGL_THREAD_DONE) continue;
        if (tgl_is_at_barrier(thread))
            s.at_barrier = s.at_barrier != NULL ? s.at_barrier : thread;
        else
            s.elsewhere = s.elsewhere != NULL ? s.elsewhere : thread;
    }
    return s;
}

/* Reports the deferred fault (tgl_machine_defer_fault()), if any, because the block has stopped at
 * a barrier or ended. */
static void report_deferred(tgl_machine *machine)
{
    if (machine->deferred[0] == '\0') return;
    memcpy(machine->message, machine->deferred, TGL_SIM_MESSAGE);
    machine->status = TGL_KERNEL_FAULT;
}

static void start_block(tgl_machine *machine, unsigned rank)
{
    const tgl_sim_launch *l = machine->launch;
    tgl_sim_block *block = machine->now;
    tgl_machine_block_at(l, machine->cluster, rank, block->at);
    block->is_done = false;
    block->epoch = 1;
    block->waited_epoch = 0;
    block->read_phase = 0;
    block->phase_epoch = block->phase_time = 0;
    block->reader_count = 0;
    tgl_shared_start_block(machine);
    tgl_mbarriers_free(block);
    tgl_wgmma_start_block(machine);
    for (unsigned i = 0; i < l->threads; i++) {
        tgl_sim_thread *thread = &block->threads[i];
        thread->state = TGL_THREAD_READY;
        thread->warp_epoch = thread->time = 1;
        thread->has_waited = false;
        thread->loops = (tgl_sim_loops){0};
        tgl_machine_rest(thread);
        thread->first_copy = thread->copy_count = 0;
        thread->groups = 0;
        thread->operands = NULL;
        thread->wgmmas = (tgl_sim_wgmma_thread){0};
        tgl_tma_forget_stores(thread);
        thread->store_groups = thread->stores_read = 0;
        tgl_fiber_make(&thread->fiber, thread->stack, machine->stack_size, tgl_machine_thread_main,
                       thread);
    }
}

/* Makes threads of the running block ready if their named barrier, warpgroup instruction or
 * mbarrier phase is complete. Returns whether any thread is ready. */
static bool open_waits(tgl_machine *machine)
{
    bool goes_on = tgl_meetings_open(machine);
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        tgl_sim_thread *thread = &machine->now->threads[i];
        if (open_mbarrier(machine, thread) || thread->state == TGL_THREAD_READY) goes_on = true;
    }
    return goes_on;
}

/* Runs all warps until no thread of the block can continue: each has finished, or waits at a
 * barrier of the block or cluster, or waits for another block. */
static void run_warps(tgl_machine *machine)
{
    const unsigned threads = machine->launch->threads, warps = (threads + TGL_WARP - 1) / TGL_WARP;
    uint32_t order[TGL_SIM_THREADS_MAX / TGL_WARP];
    do {
        tgl_order_make(machine, order, warps);
        for (unsigned i = 0; i < warps && machine->status == TGL_OK; i++) {
            const unsigned first = order[i] * TGL_WARP;
            run_warp(machine, &machine->now->threads[first],
                     threads - first < TGL_WARP ? threads - first : TGL_WARP);
        }
    } while (machine->status == TGL_OK && open_waits(machine));
}

static void end_block(tgl_machine *machine)
{
    machine->now->is_done = true;
    tgl_wgmma_check_end(machine);
    if (machine->status == TGL_OK) tgl_mbarriers_check_end(machine);
}

/* Runs the block until it ends, reaches a barrier of the cluster, or waits for another block of the
 * cluster. In a cluster of one block, a cluster barrier acts as a block barrier. */
static void run_block(tgl_machine *machine)
{
    while (machine->status == TGL_OK) {
        run_warps(machine);
        if (machine->status == TGL_OK) report_deferred(machine);
        if (machine->status != TGL_OK) return;
        const standstill s = look_at(machine, machine->now);
        const tgl_sim_thread *waiting = s.at_barrier;
        if (waiting == NULL && s.elsewhere == NULL) end_block(machine);
        if (waiting == NULL || s.elsewhere != NULL) return;
        if (waiting->state == TGL_THREAD_AT_CLUSTER && machine->cluster_size > 1) return;
        tgl_block_barrier_open(machine, waiting);
        tgl_clocks_meet_block(machine);
    }
}

/* ---- Clusters -------------------------------------------------------------------------------- */

/* Makes `block` the running block, and restores its shared memory, which leave_block() saves. In a
 * cluster of one block, the shared memory stays in place. */
static void enter_block(tgl_machine *machine, tgl_sim_block *block)
{
    const tgl_sim_module *module = machine->launch->module;
    machine->now = block;
    memcpy(machine->hooks->block, block->at, sizeof block->at);
    if (machine->cluster_size > 1)
        memcpy(module->image->shared_begin, block->shared, module->shared_size);
}

static void leave_block(tgl_machine *machine)
{
    const tgl_sim_module *module = machine->launch->module;
    if (machine->cluster_size > 1)
        memcpy(machine->now->shared, module->image->shared_begin, module->shared_size);
}

/* Reports a block that has ended although another block has read its shared memory since the latest
 * barrier of the cluster. */
static void check_ended(tgl_machine *machine)
{
    for (unsigned i = 0; i < machine->cluster_size && machine->status == TGL_OK; i++) {
        tgl_sim_block *block = machine->now = &machine->blocks[i];
        if (block->is_done && block->read_phase == machine->phase)
            tgl_machine_fault_of(machine, &block->threads[0], NULL,
                                 "has left the kernel, while another block of its cluster may "
                                 "still read its shared memory");
    }
}

/* Called when no block can continue. Reports a deadlock if a thread waits for something other than
 * a barrier of the block or cluster. */
static void report_stuck(tgl_machine *machine)
{
    for (unsigned i = 0; i < machine->cluster_size && machine->status == TGL_OK; i++) {
        machine->now = &machine->blocks[i];
        const standstill s = look_at(machine, machine->now);
        if (s.elsewhere != NULL) tgl_meetings_fault_stuck(machine, s.elsewhere);
    }
}

/* Called when every block has ended or waits at the cluster barrier: releases the barrier, or
 * reports an error if only some blocks wait. False: all blocks have ended, or an error was
 * reported. */
static bool open_cluster_barrier(tgl_machine *machine)
{
    const unsigned count = machine->cluster_size;
    unsigned waiting = 0;
    check_ended(machine);
    for (unsigned i = 0; i < count; i++)
        if (!machine->blocks[i].is_done) waiting++;
    if (waiting == 0) return false;
    for (unsigned i = 0; i < count && machine->status == TGL_OK; i++) {
        tgl_sim_block *block = machine->now = &machine->blocks[i];
        const tgl_sim_thread *at_barrier = look_at(machine, block).at_barrier;
        if (at_barrier != NULL)
            tgl_block_barrier_open(machine, at_barrier);
        else
            tgl_machine_fault_of(machine, &block->threads[0], NULL,
                                 "has left the kernel, while another block of its cluster waits "
                                 "for it");
    }
    if (machine->status != TGL_OK) return false;
    tgl_clocks_meet_cluster(machine);
    for (unsigned i = 0; i < count; i++) {
        machine->blocks[i].phase_epoch = machine->blocks[i].epoch;
        machine->blocks[i].phase_time = machine->blocks[i].threads[0].time - 1;
    }
    machine->phase++;
    return true;
}

/* Runs each block of the cluster that can continue. False: no block could continue, or there was an
 * error. */
static bool run_blocks(tgl_machine *machine)
{
    bool has_run = false;
    uint32_t order[TGL_CLUSTER_MAX] = {0};
    tgl_order_make(machine, order, machine->cluster_size);
    for (unsigned i = 0; i < machine->cluster_size && machine->status == TGL_OK; i++) {
        machine->now = &machine->blocks[order[i]];
        if (machine->now->is_done || !open_waits(machine)) continue;
        enter_block(machine, machine->now);
        run_block(machine);
        leave_block(machine);
        has_run = true;
    }
    return has_run && machine->status == TGL_OK;
}

void tgl_machine_run_cluster(tgl_machine *machine, uint32_t cluster)
{
    machine->cluster = machine->tally.cluster = cluster;
    tgl_order_seed(machine, cluster + 1);
    machine->phase = 1;
    tgl_global_start_cluster(machine);
    for (unsigned i = 0; i < machine->cluster_size; i++) {
        machine->now = &machine->blocks[i];
        start_block(machine, i);
        leave_block(machine);
    }
    do {
        while (run_blocks(machine))
            continue;
        report_stuck(machine);
    } while (machine->status == TGL_OK && open_cluster_barrier(machine));
    tgl_clocks_end_cluster(machine);
    tgl_global_end_cluster(machine);
}
