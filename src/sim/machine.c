/* SPDX-License-Identifier: Apache-2.0
 *
 * Running blocks: each thread of a block goes as far as the next barrier, warp by warp, and when
 * all have come there the barrier opens. The blocks of a cluster take turns: each goes as far as
 * the next barrier of the cluster. There is one place for shared memory; the others' is put aside.
 */
#include "sim/machine.h"

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

/* Rounds of loops between two barriers, some seconds of them. */
static const long long ROUNDS_MAX = 1LL << 27;

/* ---- Threads --------------------------------------------------------------------------------- */

static void thread_main(void *argument)
{
    tgl_sim_thread *thread = argument;
    const tgl_sim_launch *l = thread->machine->launch;
    _Alignas(
        64) unsigned char arguments[TGL_ARGUMENT_BYTES_MAX]; /* on its stack, as parameters are */
    memcpy(arguments, l->arguments, (size_t)l->argument_bytes);
    l->module->image->entry(arguments);
    for (;;)
        tgl_machine_wait(thread->machine, TGL_THREAD_DONE, NULL);
}

static void stop_endless(void *run, const void *pc)
{
    tgl_machine_fault(run, pc, "does not come to a barrier or an end: an endless loop?");
}

/* Stacks with a page between them that stops a kernel which overruns its own. */
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

bool tgl_machine_init(tgl_machine *machine)
{
    *machine = (tgl_machine){.stack_size = STACK_SIZE};
    machine->now = machine->blocks;
    return tgl_tally_init(&machine->tally);
}

static void free_block(tgl_sim_block *block)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < block->made; i++) {
        free(block->threads[i].copies);
        tgl_fiber_forget(block->threads[i].stack, STACK_SIZE); /* it never returned */
        munmap(block->threads[i].stack - page, page + STACK_SIZE);
    }
    free(block->threads);
    free(block->words);
    free(block->shared);
    tgl_mbarriers_free_block(block);
}

void tgl_machine_free(tgl_machine *machine)
{
    for (int i = 0; i < TGL_CLUSTER_MAX; i++)
        free_block(&machine->blocks[i]);
    free(machine->order);
    free(machine->modules);
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
        tgl_machine_fault(machine, pc, "the mask 0x%08x of a warp's call leaves out its own lane",
                          lanes);
    thread->waits_for = lanes;
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
        tgl_machine_fault(machine, pc, "shuffles from lane %d, which takes no part", source % WARP);
    const unsigned result = machine->now->threads[other].given;
    wait_for_warp(run, lanes, pc); /* nobody gives anew before all have taken */
    return result;
}

/* Opens the warp barriers of which all lanes have arrived. False if there is none. */
static bool open_warp_barriers(tgl_machine *machine, tgl_sim_thread *warp, unsigned lanes)
{
    uint32_t arrived = 0, opened = 0;
    for (unsigned i = 0; i < lanes; i++)
        if (warp[i].state == TGL_THREAD_AT_WARP) arrived |= 1u << i;
    const uint32_t exist = lanes == WARP ? ~0u : (1u << lanes) - 1;
    for (unsigned i = 0; i < lanes; i++)
        if (warp[i].state == TGL_THREAD_AT_WARP && (warp[i].waits_for & exist & ~arrived) == 0)
            opened |= 1u << i;
    for (unsigned i = 0; i < lanes; i++)
        if (opened >> i & 1) {
            warp[i].state = TGL_THREAD_READY;
            warp[i].warp_epoch++;
        }
    if (machine->now->mbarrier_count > 0) tgl_mbarriers_join_lanes(machine, warp, opened);
    return opened != 0;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void resume(tgl_machine *machine, tgl_sim_thread *thread)
{
    machine->current = thread;
    machine->hooks->thread[0] = thread->index;
    machine->hooks->loops = &thread->loops;
    tgl_fiber_switch(&machine->scheduler, &thread->fiber);
}

/* The thread waits for an mbarrier whose phase can complete: it goes on, and sees to that. */
static bool open_mbarrier(const tgl_machine *machine, tgl_sim_thread *thread)
{
    if (thread->state != TGL_THREAD_AT_MBARRIER || !tgl_mbarrier_is_open(machine, thread))
        return false;
    thread->state = TGL_THREAD_READY;
    thread->loops.rounds_left = ROUNDS_MAX;
    return true;
}

/* Runs a warp until all its threads wait for other warps or are done. */
static void run_warp(tgl_machine *machine, tgl_sim_thread *warp, unsigned lanes)
{
    bool goes_on = true;
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

/* All threads of the block have stopped: lets them go on from where all must be, or says who is not
 * there. */
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
        if (threads[i].waits_at != waiting->waits_at) {
            tgl_machine_fault_of(machine, &threads[i], threads[i].waits_at,
                                 "waits at this barrier, while thread %u waits at that of %s",
                                 waiting->index, place);
            return;
        }
        threads[i].state = TGL_THREAD_READY;
        threads[i].loops.rounds_left = ROUNDS_MAX;
    }
    machine->barriers++;
    machine->now->epoch++;
}

/* The first thread that waits at a barrier; NULL: all are done, or one has done something illegal.
 */
static const tgl_sim_thread *first_at_barrier(tgl_machine *machine)
{
    const tgl_sim_thread *waiting = NULL;
    if (machine->deferred[0] != '\0') {
        memcpy(machine->message, machine->deferred, TGL_SIM_MESSAGE);
        machine->status = TGL_KERNEL_FAULT;
        return NULL;
    }
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        const tgl_sim_thread *thread = &machine->now->threads[i];
        if (is_at_barrier(thread) && waiting == NULL) waiting = thread;
        if (thread->state == TGL_THREAD_AT_MBARRIER) {
            tgl_mbarrier_fault_stuck(machine, thread);
            return NULL;
        }
        if (thread->state != TGL_THREAD_AT_WARP) continue;
        tgl_machine_fault_of(machine, thread, thread->waits_at,
                             "waits for lanes of its warp (mask 0x%08x) that never come",
                             thread->waits_for);
        return NULL;
    }
    return waiting;
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
    tgl_shared_start_block(machine);
    tgl_mbarriers_start_block(machine);
    for (unsigned i = 0; i < l->threads; i++) {
        tgl_sim_thread *thread = &block->threads[i];
        thread->state = TGL_THREAD_READY;
        thread->warp_epoch = thread->time = 1;
        thread->has_waited = false;
        thread->loops = (tgl_sim_loops){.rounds_left = ROUNDS_MAX};
        thread->first_copy = thread->copy_count = 0;
        thread->groups = 0;
        tgl_fiber_make(&thread->fiber, thread->stack, machine->stack_size, thread_main, thread);
    }
}

/* Runs all warps until each thread waits at a barrier or is done; warps that wait for an mbarrier
 * go on as long as others open it. */
static void run_warps(tgl_machine *machine)
{
    const unsigned threads = machine->launch->threads;
    bool goes_on = true;
    while (goes_on && machine->status == TGL_OK) {
        for (unsigned first = 0; first < threads && machine->status == TGL_OK; first += WARP)
            run_warp(machine, &machine->now->threads[first],
                     threads - first < WARP ? threads - first : WARP);
        goes_on = false;
        for (unsigned i = 0; i < threads && machine->now->mbarrier_count > 0; i++)
            if (open_mbarrier(machine, &machine->now->threads[i])) goes_on = true;
    }
}

/* Runs the block to its end, or to a barrier of the cluster, which is an ordinary one if the block
 * is alone. */
static void run_block(tgl_machine *machine)
{
    const tgl_sim_thread *waiting;
    do {
        run_warps(machine);
        if (machine->status != TGL_OK) return;
        waiting = first_at_barrier(machine);
        machine->now->is_done = waiting == NULL;
        if (waiting == NULL && machine->status == TGL_OK) tgl_mbarriers_check_end(machine);
        if (waiting == NULL) return;
        if (waiting->state == TGL_THREAD_AT_CLUSTER && machine->cluster_size > 1) return;
        release_threads(machine, waiting);
    } while (machine->status == TGL_OK);
}

/* ---- Clusters -------------------------------------------------------------------------------- */

/* Puts the block where its kernel runs, or aside. */
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

/* A block that ends takes its shared memory along: no other may use it then. */
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

/* All blocks have ended or wait: lets these go on, or says who is not there. False: all have ended.
 */
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
        const tgl_sim_thread *first = block->is_done ? NULL : first_at_barrier(machine);
        if (first != NULL)
            release_threads(machine, first);
        else if (machine->status == TGL_OK)
            tgl_machine_fault_of(machine, &block->threads[0], NULL,
                                 "has left the kernel, while another block of its cluster waits "
                                 "for it");
    }
    machine->phase++;
    return machine->status == TGL_OK;
}

static void run_cluster(tgl_machine *machine, uint32_t cluster)
{
    const unsigned count = machine->cluster_size;
    machine->cluster = cluster;
    machine->phase = 1;
    tgl_global_start_cluster(machine);
    for (unsigned i = 0; i < count; i++) {
        machine->now = &machine->blocks[i];
        start_block(machine, i);
        leave_block(machine);
    }
    do
        for (unsigned i = 0; i < count && machine->status == TGL_OK; i++) {
            enter_block(machine, &machine->blocks[i]);
            run_block(machine);
            leave_block(machine);
        }
    while (machine->status == TGL_OK && open_cluster_barrier(machine));
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
        .mbarrier_wait = tgl_mbarrier_wait,
        .tma_load = tgl_tma_load,
        .endless = stop_endless,
        .block_dim = {l->threads, 1, 1},
        .grid_dim = {l->grid[0], l->grid[1], l->grid[2]},
    };
}

/* A random order of the clusters, drawn from the seed and the launch's number (SplitMix64 and
 * Fisher-Yates). */
static void shuffle_clusters(tgl_machine *machine, uint32_t count)
{
    uint64_t state = machine->seed * 0x9e3779b97f4a7c15u + machine->number;
    for (uint32_t i = 0; i < count; i++)
        machine->order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        const uint32_t j = (uint32_t)((z ^ (z >> 31)) % i), swapped = machine->order[j];
        machine->order[j] = machine->order[i - 1];
        machine->order[i - 1] = swapped;
    }
}

static bool reserve_launch(tgl_machine *machine, size_t clusters)
{
    void *order = machine->order;
    bool ok = true;
    for (unsigned i = 0; i < machine->cluster_size && ok; i++)
        ok = make_threads(machine, &machine->blocks[i], machine->launch->threads);
    if (ok && machine->is_shuffled)
        ok = tgl_machine_reserve(&order, &machine->order_room, clusters, sizeof *machine->order);
    machine->order = order;
    return ok && tgl_shared_start_launch(machine) && tgl_global_start_launch(machine, clusters);
}

/* Remembers whose launch this is, for what later ones find that it has written. */
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

/* Of a row of launches beside one another, each may run while those before it in the row do, and
 * the launch that the row began beside. */
static void start_launch(tgl_machine *machine, const tgl_sim_launch *launch)
{
    machine->number++;
    if (launch->order != TGL_BESIDE)
        machine->first_beside = machine->number;
    else if (!machine->is_beside)
        machine->first_beside = machine->number > 1 ? machine->number - 1 : 1;
    machine->is_beside = launch->order == TGL_BESIDE;
    machine->launch = launch;
    machine->has_waited = false;
    machine->cluster_size = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    machine->status = TGL_OK;
    machine->message[0] = machine->deferred[0] = '\0';
    machine->barriers = 0;
    tgl_tally_clear(&machine->tally);
}

/* Threads were left half-way. */
static void forget_threads(const tgl_machine *machine)
{
    for (int i = 0; i < TGL_CLUSTER_MAX; i++)
        for (unsigned j = 0; j < machine->blocks[i].made; j++)
            tgl_fiber_forget(machine->blocks[i].threads[j].stack, machine->stack_size);
}

static void run_clusters(tgl_machine *machine, uint32_t count)
{
    if (machine->is_shuffled) shuffle_clusters(machine, count);
    for (uint32_t i = 0; i < count && machine->status == TGL_OK; i++)
        run_cluster(machine, machine->is_shuffled ? machine->order[i] : i);
    if (machine->status != TGL_OK) {
        forget_threads(machine);
    } else if (machine->launch->order != TGL_AFTER_ALL && !machine->has_waited) {
        snprintf(machine->message, sizeof machine->message,
                 "%s ends without having waited for the launches before it",
                 machine->launch->module->kernel->name);
        machine->status = TGL_KERNEL_FAULT;
    }
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

tgl_status tgl_machine_run(tgl_machine *machine, const tgl_sim_launch *launch)
{
    uint64_t clusters = 1;
    for (int i = 0; i < 3; i++)
        clusters *= launch->grid[i] / launch->cluster[i];
    start_launch(machine, launch);
    if (clusters > UINT32_MAX)
        return tgl_fail(TGL_UNSUPPORTED, "%s has more blocks than the simulator counts",
                        launch->module->kernel->name);
    if (!keep_module(machine) || !reserve_launch(machine, (size_t)clusters))
        return tgl_fail(TGL_NO_MEMORY, "no memory to simulate a block");
    set_hooks(machine);
    run_clusters(machine, (uint32_t)clusters);
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
