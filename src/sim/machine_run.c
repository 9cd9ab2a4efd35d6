/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the blocks of a launch. Each thread of a block runs until the next barrier, warp by warp;
 * when all have reached it, they continue. The blocks of a cluster run one after the other, each
 * until the next barrier of the cluster. There is one place for shared memory: that of the blocks
 * that are not running is saved elsewhere.
 */
#include "sim/machine_run.h"

#include "sim/clocks.h"
#include "sim/mbarriers.h"
#include "sim/meetings.h"
#include "sim/shadow_global.h"
#include "sim/shadow_memory.h"
#include "sim/shadow_shared.h"
#include "sim/tma_unit.h"
#include "sim/warp_mma.h"
#include "sim/wgmma_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    WARP = 32,
    STACK_SIZE = 128 * 1024, /* kernels keep their registers there, each use of a device function
                                its own */
};

/* ---- Threads --------------------------------------------------------------------------------- */

static void thread_main(void *argument)
{
    tgl_sim_thread *thread = argument;
    const tgl_sim_launch *l = thread->machine->launch;
    _Alignas(64) unsigned char
        arguments[TGL_ARGUMENT_BYTES_MAX]; /* a kernel's parameters are on its stack */
    memcpy(arguments, l->arguments, (size_t)l->argument_bytes);
    l->module->image->entry(arguments);
    tgl_tma_end_thread(thread->machine);
    for (;;)
        tgl_machine_wait(thread->machine, TGL_THREAD_DONE, NULL);
}

static void stop_endless(void *run, const void *pc)
{
    tgl_machine_fault(run, pc, "reaches neither a barrier nor its end: an endless loop?");
}

/* Allocates stacks, separated by inaccessible pages that detect stack overflows. */
static bool make_threads(tgl_machine *machine, tgl_sim_block *block, unsigned count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (block->threads == NULL)
        block->threads = calloc(TGL_SIM_THREADS_MAX, sizeof *block->threads);
    if (block->threads == NULL) return false;
    for (; block->made < count; block->made++) {
        char *stack = mmap(NULL, page + STACK_SIZE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) return false;
        mprotect(stack, page, PROT_NONE);
        block->threads[block->made] =
            (tgl_sim_thread){.machine = machine, .stack = stack + page, .index = block->made};
    }
    return true;
}

bool tgl_machine_init(tgl_machine *machine, bool is_helper)
{
    *machine = (tgl_machine){.stack_size = STACK_SIZE, .is_helper = is_helper};
    machine->now = machine->blocks;
    return tgl_tally_init(&machine->tally);
}

static void free_block(tgl_sim_block *block)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < block->made; i++) {
        free(block->threads[i].copies);
        tgl_tma_forget_stores(&block->threads[i]);
        tgl_fiber_forget(block->threads[i].stack, STACK_SIZE); /* the fiber did not finish */
        munmap(block->threads[i].stack - page, page + STACK_SIZE);
    }
    free(block->threads);
    free(block->words);
    free(block->shared);
    tgl_mbarriers_free_block(block);
    tgl_wgmma_free_block(block);
}

void tgl_machine_free(tgl_machine *machine)
{
    for (int i = 0; i < TGL_CLUSTER_MAX; i++)
        free_block(&machine->blocks[i]);
    free(machine->clocks);
    free(machine->order);
    if (!machine->is_helper) free(machine->modules);
    tgl_global_free(&machine->global);
    tgl_tally_free(&machine->tally);
}

/* ---- Barriers and shuffles ------------------------------------------------------------------- */

static void wait_at_barrier(void *run, const void *pc)
{
    tgl_machine_wait(run, TGL_THREAD_AT_BARRIER, pc);
}

static void wait_for_cluster(void *run, const void *pc)
{
    tgl_machine_wait(run, TGL_THREAD_AT_CLUSTER, pc);
}

static void wait_for_warp(void *run, unsigned lanes, const void *pc)
{
    tgl_machine *machine = run;
    tgl_sim_thread *thread = machine->current;
    if ((lanes >> thread->index % WARP & 1) == 0)
        tgl_machine_fault(machine, pc,
                          "the mask 0x%08x of a warp's call does not contain its own lane", lanes);
    thread->waits_for = lanes;
    thread->operands = NULL;
    tgl_machine_wait(machine, TGL_THREAD_AT_WARP, pc);
}

static unsigned shuffle(void *run, unsigned lanes, unsigned value, int source, const void *pc)
{
    tgl_machine *machine = run;
    tgl_sim_thread *thread = machine->current;
    const unsigned other = thread->index / WARP * WARP + (unsigned)source % WARP;
    thread->given = value;
    wait_for_warp(run, lanes, pc);
    if (other >= machine->launch->threads || (lanes >> other % WARP & 1) == 0)
        tgl_machine_fault(machine, pc, "shuffles from lane %d, which does not take part",
                          source % WARP);
    const unsigned result = machine->now->threads[other].given;
    wait_for_warp(
        run, lanes,
        pc); /* a second barrier: no lane overwrites its value before all lanes have read it */
    return result;
}

/* Records that lanes of a warp have passed a warp barrier. An instruction of the whole warp is not
 * a barrier: it orders nothing. */
static void pass_warp_barrier(tgl_machine *machine, tgl_sim_thread *warp, uint32_t opened)
{
    tgl_sim_thread *lanes[WARP];
    unsigned count = 0;
    for (unsigned i = 0; i < WARP; i++)
        if ((opened >> i & 1) != 0 && warp[i].operands == NULL) {
            warp[i].warp_epoch++;
            lanes[count++] = &warp[i];
        }
    if (machine->has_clocks && count > 0) tgl_clocks_meet(machine, lanes, count);
}

/* Releases the warp barriers that all their lanes have reached. False: there is none. */
static bool open_warp_barriers(tgl_machine *machine, tgl_sim_thread *warp, unsigned lanes)
{
    uint32_t arrived = 0, opened = 0;
    for (unsigned i = 0; i < lanes; i++)
        if (warp[i].state == TGL_THREAD_AT_WARP) arrived |= 1u << i;
    if (arrived == 0) return false;
    const uint32_t exist = lanes == WARP ? ~0u : (1u << lanes) - 1;
    for (unsigned i = 0; i < lanes; i++)
        if (warp[i].state == TGL_THREAD_AT_WARP && (warp[i].waits_for & exist & ~arrived) == 0)
            opened |= 1u << i;
    for (unsigned i = 0; i < lanes; i++)
        if (opened >> i & 1) warp[i].state = TGL_THREAD_READY;
    pass_warp_barrier(machine, warp, opened);
    return opened != 0;
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint32_t random_below(tgl_machine *machine, uint32_t count)
{
    uint64_t z = machine->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % count);
}

/* Orders depend on the seed, the launch and the cluster (part > 0), not on what has run before. */
static void seed_orders(tgl_machine *machine, uint64_t part)
{
    machine->random =
        (machine->seed * 0x9e3779b97f4a7c15u + machine->number) ^ part * 0xd1342543de82ef95u;
}

/* order := 0, 1, ..., in a random order if the machine has a seed (Fisher-Yates shuffle). */
static void make_order(tgl_machine *machine, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; machine->is_shuffled && i > 1; i--) {
        const uint32_t j = random_below(machine, i), swapped = order[j];
        order[j] = order[i - 1];
        order[i - 1] = swapped;
    }
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void resume(tgl_machine *machine, tgl_sim_thread *thread)
{
    machine->current = thread;
    machine->hooks->thread[0] = thread->index;
    machine->hooks->loops = &thread->loops;
    tgl_fiber_switch(&machine->scheduler, &thread->fiber);
}

/* Completes the phase that the thread waits for, if it can complete, and makes the thread ready. */
static bool open_mbarrier(const tgl_machine *machine, tgl_sim_thread *thread)
{
    if (thread->state != TGL_THREAD_AT_MBARRIER || !tgl_mbarrier_is_open(machine, thread))
        return false;
    thread->state = TGL_THREAD_READY;
    tgl_machine_rest(thread);
    return true;
}

/* Runs a warp until all its threads have finished or wait for other warps. */
static void run_warp(tgl_machine *machine, tgl_sim_thread *warp, unsigned lanes)
{
    const bool is_traced = machine->cluster == 0 && machine->now == machine->blocks;
    bool goes_on = true;
    machine->tally.trace = is_traced ? machine->launch->trace : NULL;
    machine->tally.warp = (int)(warp->index / WARP);
    while (goes_on) {
        for (unsigned i = 0; i < lanes; i++) {
            if (warp[i].state != TGL_THREAD_READY) continue;
            resume(machine, &warp[i]);
            if (machine->status != TGL_OK) return;
        }
        tgl_tally_flush(&machine->tally);
        goes_on = open_warp_barriers(machine, warp, lanes);
        for (unsigned i = 0; i < lanes; i++)
            if (warp[i].state == TGL_THREAD_AT_WINDOW) {
                warp[i].state = TGL_THREAD_READY;
                goes_on = true;
            } else if (open_mbarrier(machine, &warp[i])) {
                goes_on = true;
            }
    }
}

static bool is_at_barrier(const tgl_sim_thread *thread)
{
    return thread->state == TGL_THREAD_AT_BARRIER || thread->state == TGL_THREAD_AT_CLUSTER;
}

/* Whether a thread waits at the barrier of another one. Warps may wait for their cluster at
 * different places of the kernel; the threads of a warp wait at one place (PTX ISA,
 * "barrier.cluster", .aligned). warp: the first thread of the thread's warp. */
static bool waits_with(const tgl_sim_thread *thread, const tgl_sim_thread *warp,
                       const tgl_sim_thread *other)
{
    const bool are_at_cluster =
        thread->state == TGL_THREAD_AT_CLUSTER && other->state == TGL_THREAD_AT_CLUSTER;
    return thread->waits_at == (are_at_cluster ? warp : other)->waits_at;
}

/* All threads of the block have stopped, and `waiting` is at a barrier. Releases them if they wait
 * at the same barrier, else reports the error. */
static void release_threads(tgl_machine *machine, const tgl_sim_thread *waiting)
{
    tgl_sim_thread *threads = machine->now->threads;
    char place[TGL_SIM_PLACE];
    tgl_sim_place(machine->launch->module, waiting->waits_at, place, sizeof place);
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        if (is_at_barrier(&threads[i])) continue;
        tgl_machine_fault_of(machine, &threads[i], NULL,
                             "has left the kernel, while thread %u waits at the barrier of %s",
                             waiting->index, place);
        return;
    }
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        if (waits_with(&threads[i], &threads[i / 32 * 32], waiting)) continue;
        tgl_machine_fault_of(machine, &threads[i], threads[i].waits_at,
                             "waits at this barrier, while thread %u waits at that of %s",
                             waiting->index, place);
        return;
    }
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        threads[i].state = TGL_THREAD_READY;
        tgl_machine_rest(&threads[i]);
    }
    machine->barriers++;
    machine->now->epoch++;
}

/* Where the threads of a block wait, when all have stopped. */
typedef struct standstill {
    const tgl_sim_thread *at_barrier; /* the first one that waits at a barrier */
    const tgl_sim_thread *elsewhere;  /* the first one that waits for anything else */
} standstill;

static standstill look_at(const tgl_machine *machine, const tgl_sim_block *block)
{
    standstill s = {NULL, NULL};
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        const tgl_sim_thread *thread = &block->threads[i];
        if (thread->state == TGL_THREAD_DONE) continue;
        if (is_at_barrier(thread))
            s.at_barrier = s.at_barrier != NULL ? s.at_barrier : thread;
        else
            s.elsewhere = s.elsewhere != NULL ? s.elsewhere : thread;
    }
    return s;
}

/* A deferred fault is one now that the block has stopped. */
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
    tgl_mbarriers_start_block(machine);
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
        tgl_fiber_make(&thread->fiber, thread->stack, machine->stack_size, thread_main, thread);
    }
}

/* Makes those threads of the running block ready whose named barrier, warpgroup or mbarrier is
 * complete. Returns whether any thread is ready. */
static bool open_waits(tgl_machine *machine)
{
    bool goes_on = tgl_meetings_open(machine);
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        tgl_sim_thread *thread = &machine->now->threads[i];
        if (open_mbarrier(machine, thread) || thread->state == TGL_THREAD_READY) goes_on = true;
    }
    return goes_on;
}

/* Runs all warps until no thread of the block can continue: each has finished, waits at a barrier
 * of the block or cluster, or waits for something that this block alone does not complete. */
static void run_warps(tgl_machine *machine)
{
    const unsigned threads = machine->launch->threads, warps = (threads + WARP - 1) / WARP;
    uint32_t order[TGL_SIM_THREADS_MAX / WARP];
    do {
        make_order(machine, order, warps);
        for (unsigned i = 0; i < warps && machine->status == TGL_OK; i++) {
            const unsigned first = order[i] * WARP;
            run_warp(machine, &machine->now->threads[first],
                     threads - first < WARP ? threads - first : WARP);
        }
    } while (machine->status == TGL_OK && open_waits(machine));
}

static void end_block(tgl_machine *machine)
{
    machine->now->is_done = true;
    tgl_wgmma_check_end(machine);
    if (machine->status == TGL_OK) tgl_mbarriers_check_end(machine);
}

/* Runs the block until it ends, reaches a barrier of the cluster, or waits for other blocks of the
 * cluster. In a cluster of one block the barrier of the cluster is an ordinary barrier. */
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
        release_threads(machine, waiting);
        tgl_clocks_meet_block(machine);
    }
}

/* ---- Clusters -------------------------------------------------------------------------------- */

/* Switches to another block: saves the shared memory of the current one and restores the other's.
 */
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

/* After a block has ended, no other block may access its shared memory. */
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

/* No block can continue. Reports a thread that waits for something other than a barrier of the
 * block or cluster. */
static void report_stuck(tgl_machine *machine)
{
    for (unsigned i = 0; i < machine->cluster_size && machine->status == TGL_OK; i++) {
        machine->now = &machine->blocks[i];
        const standstill s = look_at(machine, machine->now);
        if (s.elsewhere != NULL) tgl_meetings_fault_stuck(machine, s.elsewhere);
    }
}

/* All blocks have ended or wait at the cluster barrier: releases them or reports the error. False:
 * all have ended. */
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
            release_threads(machine, at_barrier);
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

/* Runs each block of the cluster that can continue. False: none can. */
static bool run_blocks(tgl_machine *machine)
{
    bool has_run = false;
    uint32_t order[TGL_CLUSTER_MAX] = {0};
    make_order(machine, order, machine->cluster_size);
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
    seed_orders(machine, cluster + 1);
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

/* ---- Launches -------------------------------------------------------------------------------- */

static void wait_for_launches(void *run)
{
    tgl_machine *machine = run;
    machine->has_waited = machine->current->has_waited = true;
    if (machine->now->waited_epoch == 0) machine->now->waited_epoch = machine->now->epoch;
}

static void set_hooks(tgl_machine *machine)
{
    const tgl_sim_launch *l = machine->launch;
    machine->hooks = l->module->image->hooks;
    *machine->hooks = (tgl_sim_hooks){
        .run = machine,
        .access = tgl_memory_access,
        .barrier = wait_at_barrier,
        .cluster_barrier = wait_for_cluster,
        .cluster_load = tgl_memory_cluster_load,
        .warp_barrier = wait_for_warp,
        .shuffle = shuffle,
        .async_copy = tgl_memory_async_copy,
        .async_commit = tgl_memory_async_commit,
        .async_wait = tgl_memory_async_wait,
        .atomic = tgl_memory_atomic,
        .fence = tgl_global_fence,
        .wait_for_launches = wait_for_launches,
        .mbarrier_init = tgl_mbarrier_init,
        .mbarrier_fence = tgl_mbarrier_fence,
        .mbarrier_arrive = tgl_mbarrier_arrive,
        .wide_load = tgl_memory_wide_load,
        .mbarrier_wait = tgl_mbarrier_wait,
        .mbarrier_arrive_at = tgl_mbarrier_arrive_at,
        .named_barrier = tgl_named_barrier,
        .tma_load = tgl_tma_load,
        .tma_store = tgl_tma_store,
        .tma_store_commit = tgl_tma_store_commit,
        .tma_store_wait = tgl_tma_store_wait,
        .fence_proxy_async = tgl_clocks_fence,
        .mma = tgl_warp_mma,
        .ldmatrix = tgl_warp_ldmatrix,
        .stmatrix = tgl_warp_stmatrix,
        .wgmma_tile = tgl_wgmma_tile,
        .wgmma = tgl_wgmma,
        .wgmma_fence = tgl_wgmma_fence,
        .wgmma_commit = tgl_wgmma_commit,
        .wgmma_wait = tgl_wgmma_wait,
        .set_registers = tgl_set_registers,
        .endless = stop_endless,
        .code = l->module->load_address,
        .code_size = l->module->code_size,
        .visits = l->module->visits,
        .block_dim = {l->threads, 1, 1},
        .grid_dim = {l->grid[0], l->grid[1], l->grid[2]},
    };
}

uint64_t tgl_machine_clusters(const tgl_sim_launch *launch)
{
    uint64_t clusters = 1;
    for (int i = 0; i < 3; i++)
        clusters *= launch->grid[i] / launch->cluster[i];
    return clusters;
}

static bool reserve_launch(tgl_machine *machine, size_t clusters)
{
    void *order = machine->order;
    bool ok = true;
    for (unsigned i = 0; i < machine->cluster_size && ok; i++)
        ok = make_threads(machine, &machine->blocks[i], machine->launch->threads);
    if (ok && machine->is_shuffled && !machine->is_helper)
        ok = tgl_machine_reserve(&order, &machine->order_room, clusters, sizeof *machine->order);
    machine->order = order;
    return ok && tgl_shared_start_launch(machine) && tgl_global_start_launch(machine, clusters);
}

/* Stores the module of this launch, for error messages of later launches about what this one has
 * written. */
static bool keep_module(tgl_machine *machine)
{
    if (machine->number > machine->module_room) {
        const size_t room = 2 * (size_t)machine->number;
        tgl_sim_module **modules = realloc(machine->modules, room * sizeof(tgl_sim_module *));
        if (modules == NULL) return false;
        machine->modules = modules;
        machine->module_room = room;
    }
    machine->modules[machine->number - 1] = machine->launch->module;
    return true;
}

/* In a sequence of TGL_BESIDE launches, each may run concurrently with the earlier ones of the
 * sequence and with the launch before the sequence. */
static void number_launch(tgl_machine *machine, tgl_ordering order)
{
    machine->number++;
    if (order != TGL_BESIDE)
        machine->first_beside = machine->number;
    else if (!machine->is_beside)
        machine->first_beside = machine->number > 1 ? machine->number - 1 : 1;
    machine->is_beside = order == TGL_BESIDE;
}

static void clear_launch(tgl_machine *machine, const tgl_sim_launch *launch)
{
    machine->launch = launch;
    machine->has_waited = false;
    machine->cluster_size = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    machine->status = TGL_OK;
    machine->message[0] = machine->deferred[0] = '\0';
    machine->barriers = machine->mbarrier_waits = machine->multicast_bytes = 0;
    tgl_tally_clear(&machine->tally);
}

void tgl_machine_forget_threads(const tgl_machine *machine)
{
    for (int i = 0; i < TGL_CLUSTER_MAX; i++)
        for (unsigned j = 0; j < machine->blocks[i].made; j++)
            tgl_fiber_forget(machine->blocks[i].threads[j].stack, machine->stack_size);
}

tgl_status tgl_machine_begin(tgl_machine *machine, const tgl_sim_memory *memory)
{
    machine->memory = *memory;
    machine->number = 0;
    machine->is_beside = false;
    if (!tgl_global_start_run(machine))
        return tgl_fail(TGL_NO_MEMORY, "no memory to follow the accesses of a run");
    return TGL_OK;
}

tgl_status tgl_machine_start(tgl_machine *machine, const tgl_sim_launch *launch)
{
    const uint64_t clusters = tgl_machine_clusters(launch);
    number_launch(machine, launch->order);
    clear_launch(machine, launch);
    if (clusters > UINT32_MAX)
        return tgl_fail(TGL_UNSUPPORTED, "%s has more blocks than the simulator counts",
                        launch->module->kernel->name);
    if (!keep_module(machine) || !reserve_launch(machine, (size_t)clusters))
        return tgl_fail(TGL_NO_MEMORY, "no memory to simulate a block");
    if (machine->is_shuffled) {
        seed_orders(machine, 0);
        make_order(machine, machine->order, (uint32_t)clusters);
    }
    return TGL_OK;
}

bool tgl_machine_start_helper(tgl_machine *helper, const tgl_machine *machine,
                              const tgl_sim_launch *launch)
{
    helper->memory = machine->memory;
    helper->number = machine->number;
    helper->first_beside = machine->first_beside;
    helper->is_beside = machine->is_beside;
    helper->modules = machine->modules;
    helper->is_shuffled = machine->is_shuffled;
    helper->seed = machine->seed;
    clear_launch(helper, launch);
    if (!reserve_launch(helper, (size_t)tgl_machine_clusters(launch)) ||
        !tgl_global_copy(helper, machine))
        return false;
    set_hooks(helper);
    return true;
}

uint32_t tgl_machine_cluster_at(const tgl_machine *machine, uint32_t turn)
{
    return machine->is_shuffled ? machine->order[turn] : turn;
}

void tgl_machine_run_clusters(tgl_machine *machine)
{
    const uint32_t count = (uint32_t)tgl_machine_clusters(machine->launch);
    set_hooks(machine);
    for (uint32_t i = 0; i < count && machine->status == TGL_OK; i++)
        tgl_machine_run_cluster(machine, tgl_machine_cluster_at(machine, i));
}

tgl_status tgl_machine_finish(tgl_machine *machine)
{
    if (machine->status != TGL_OK) {
        tgl_machine_forget_threads(machine);
    } else if (machine->launch->order != TGL_AFTER_ALL && !machine->has_waited) {
        snprintf(machine->message, sizeof machine->message,
                 "%s ends without having waited for earlier launches",
                 machine->launch->module->kernel->name);
        machine->status = TGL_KERNEL_FAULT;
    }
    if (machine->status != TGL_OK) tgl_set_error("%s", machine->message);
    return machine->status;
}

tgl_status tgl_machine_end(tgl_machine *machine)
{
    const unsigned *counters = (const unsigned *)machine->memory.counters;
    for (size_t i = 0; i < machine->memory.counter_bytes / sizeof *counters; i++) {
        const tgl_moment *last = &machine->global.words[TGL_SIM_COUNTERS - TGL_SIM_D][i].written;
        if (counters[i] == 0) continue;
        const char *name =
            last->launch > 0 ? machine->modules[last->launch - 1]->kernel->name : "the launch list";
        return tgl_fail(TGL_KERNEL_FAULT, "%s leaves counter %zu at %u; a run must leave it at 0",
                        name, i, counters[i]);
    }
    return TGL_OK;
}
