/* SPDX-License-Identifier: Apache-2.0
 *
 * Running blocks: each thread of a block goes as far as the next barrier, warp by warp, and when
 * all have come there the barrier opens. The blocks of a cluster take turns: each goes as far as
 * the next barrier of the cluster. There is one place for shared memory; the others' is put aside.
 */
#include "sim/machine.h"

#include <stdarg.h>
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
static const long long MOST_ROUNDS = 1LL << 27;

typedef void ladder_kernel(int m, int n, int k, float alpha, const float *A, long long lda,
                           const float *B, long long ldb, float beta, float *C, long long ldc);
typedef void gemm_kernel(const struct tgl_gemm_args args);

/* ---- Threads --------------------------------------------------------------------------------- */

static void thread_main(void *argument)
{
    tgl_sim_thread *thread = argument;
    const tgl_sim_launch *l = thread->machine->launch;
    void (*const entry)(void) = l->module->image->kernel;
    if (l->gemm != NULL)
        ((gemm_kernel *)entry)(*l->gemm);
    else
        ((ladder_kernel *)entry)(l->m, l->n, l->k, l->alpha, l->A, l->lda, l->B, l->ldb, l->beta,
                                 l->C, l->ldc);
    for (;;)
        tgl_machine_wait(thread->machine, TGL_THREAD_DONE, NULL);
}

void tgl_machine_wait(tgl_machine *machine, tgl_thread_state state, const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    thread->state = state;
    thread->waits_at = pc;
    tgl_fiber_switch(&thread->fiber, &machine->scheduler);
}

/* "ladder/naive, block (1, 0), thread 35, ladder/01_naive.cu:21: "; of a batch "block (1, 0, 2)" */
static int write_place(const tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                       char *text, size_t size)
{
    const tgl_sim_launch *l = machine->launch;
    const uint64_t layer = (uint64_t)l->grid_x * l->grid_y;
    char place[160] = "", z[24] = "";
    if (l->grid_z > 1) snprintf(z, sizeof z, ", %u", (unsigned)(machine->now->number / layer));
    if (pc != NULL) tgl_sim_place(l->module, pc, place, sizeof place);
    return snprintf(text, size, "%s, block (%u, %u%s), thread %u%s%s: ", l->module->kernel.name,
                    (unsigned)(machine->now->number % l->grid_x),
                    (unsigned)(machine->now->number % layer / l->grid_x), z, thread->index,
                    pc != NULL ? ", " : "", place);
}

static void write_fault(const tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                        const char *format, va_list args, char text[TGL_SIM_MESSAGE])
{
    const int length = write_place(machine, thread, pc, text, TGL_SIM_MESSAGE);
    if (length >= 0 && length < TGL_SIM_MESSAGE)
        vsnprintf(text + length, TGL_SIM_MESSAGE - (size_t)length, format, args);
}

/* A deferred fault came first, and may have led to this one. */
static void record_fault(tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                         const char *format, va_list args)
{
    if (machine->deferred[0] != '\0')
        memcpy(machine->message, machine->deferred, TGL_SIM_MESSAGE);
    else
        write_fault(machine, thread, pc, format, args, machine->message);
    machine->status = TGL_KERNEL_FAULT;
}

void tgl_machine_defer_fault(tgl_machine *machine, const void *pc, const char *format, ...)
{
    if (machine->deferred[0] != '\0') return;
    va_list args;
    va_start(args, format);
    write_fault(machine, machine->current, pc, format, args, machine->deferred);
    va_end(args);
}

void tgl_machine_fault(tgl_machine *machine, const void *pc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record_fault(machine, machine->current, pc, format, args);
    va_end(args);
    for (;;) /* the scheduler sees the status and gives the launch up */
        tgl_machine_wait(machine, TGL_THREAD_DONE, pc);
}

/* The same for a thread that does not run. */
TGL_PRINTF(4, 5)
static void fault_of(tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record_fault(machine, thread, pc, format, args);
    va_end(args);
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
        block->threads = calloc(TGL_SIM_MOST_THREADS, sizeof *block->threads);
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
        munmap(block->threads[i].stack - page, page + STACK_SIZE);
    }
    free(block->threads);
    free(block->words);
    free(block->shared);
}

void tgl_machine_free(tgl_machine *machine)
{
    for (int i = 0; i < TGL_SIM_MOST_BLOCKS; i++)
        free_block(&machine->blocks[i]);
    free(machine->c_words);
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
static bool open_warp_barriers(tgl_sim_thread *warp, unsigned lanes)
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

/* Runs a warp until all its threads wait at the barrier or are done. */
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
        goes_on = open_warp_barriers(warp, lanes);
        for (unsigned i = 0; i < lanes; i++)
            if (warp[i].state == TGL_THREAD_AT_WINDOW) {
                warp[i].state = TGL_THREAD_READY;
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
    char place[160];
    tgl_sim_place(machine->launch->module, waiting->waits_at, place, sizeof place);
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        if (is_at_barrier(&threads[i])) continue;
        fault_of(machine, &threads[i], NULL,
                 "has left the kernel, while thread %u waits at the barrier of %s", waiting->index,
                 place);
        return;
    }
    for (unsigned i = 0; i < machine->launch->threads; i++) {
        if (threads[i].waits_at != waiting->waits_at) {
            fault_of(machine, &threads[i], threads[i].waits_at,
                     "waits at this barrier, while thread %u waits at that of %s", waiting->index,
                     place);
            return;
        }
        threads[i].state = TGL_THREAD_READY;
        threads[i].loops.rounds_left = MOST_ROUNDS;
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
        if (thread->state != TGL_THREAD_AT_WARP) continue;
        fault_of(machine, thread, thread->waits_at,
                 "waits for lanes of its warp (mask 0x%08x) that never come", thread->waits_for);
        return NULL;
    }
    return waiting;
}

static void start_block(tgl_machine *machine, uint64_t number)
{
    const tgl_sim_launch *l = machine->launch;
    tgl_sim_block *block = machine->now;
    block->number = number;
    block->is_done = false;
    block->epoch = 1;
    block->read_phase = 0;
    tgl_memory_start_block(machine);
    for (unsigned i = 0; i < l->threads; i++) {
        tgl_sim_thread *thread = &block->threads[i];
        thread->state = TGL_THREAD_READY;
        thread->warp_epoch = 1;
        thread->loops = (tgl_sim_loops){.rounds_left = MOST_ROUNDS};
        thread->first_copy = thread->copy_count = 0;
        thread->groups = 0;
        tgl_fiber_make(&thread->fiber, thread->stack, machine->stack_size, thread_main, thread);
    }
}

/* Runs the block to its end, or to a barrier of the cluster, which is an ordinary one if the block
 * is alone. */
static void run_block(tgl_machine *machine)
{
    const unsigned threads = machine->launch->threads;
    const tgl_sim_thread *waiting;
    do {
        for (unsigned first = 0; first < threads && machine->status == TGL_OK; first += WARP)
            run_warp(machine, &machine->now->threads[first],
                     threads - first < WARP ? threads - first : WARP);
        if (machine->status != TGL_OK) return;
        waiting = first_at_barrier(machine);
        machine->now->is_done = waiting == NULL;
        if (waiting == NULL) return;
        if (waiting->state == TGL_THREAD_AT_CLUSTER && machine->launch->cluster > 1) return;
        release_threads(machine, waiting);
    } while (machine->status == TGL_OK);
}

/* ---- Clusters -------------------------------------------------------------------------------- */

/* Puts the block where its kernel runs, or aside. */
static void enter_block(tgl_machine *machine, tgl_sim_block *block)
{
    const tgl_sim_launch *l = machine->launch;
    const tgl_sim_module *module = l->module;
    const uint64_t number = block->number;
    machine->now = block;
    machine->hooks->block[0] = (unsigned)(number % l->grid_x);
    machine->hooks->block[1] = (unsigned)(number / l->grid_x % l->grid_y);
    machine->hooks->block[2] = (unsigned)(number / l->grid_x / l->grid_y);
    if (l->cluster > 1) memcpy(module->image->shared_begin, block->shared, module->shared_size);
}

static void leave_block(tgl_machine *machine)
{
    const tgl_sim_module *module = machine->launch->module;
    if (machine->launch->cluster > 1)
        memcpy(machine->now->shared, module->image->shared_begin, module->shared_size);
}

/* A block that ends takes its shared memory along, which others must not be at then. */
static void check_ended(tgl_machine *machine)
{
    for (unsigned i = 0; i < machine->launch->cluster && machine->status == TGL_OK; i++) {
        tgl_sim_block *block = machine->now = &machine->blocks[i];
        if (block->is_done && block->read_phase == machine->phase)
            fault_of(machine, &block->threads[0], NULL,
                     "has left the kernel, while another block of its cluster may still read its "
                     "shared memory");
    }
}

/* All blocks have ended or wait: lets these go on, or says who is not there. False: all have ended.
 */
static bool open_cluster_barrier(tgl_machine *machine)
{
    const unsigned count = machine->launch->cluster;
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
            fault_of(machine, &block->threads[0], NULL,
                     "has left the kernel, while another block of its cluster waits for it");
    }
    machine->phase++;
    return machine->status == TGL_OK;
}

static void run_cluster(tgl_machine *machine, uint64_t first)
{
    const unsigned count = machine->launch->cluster;
    machine->phase = 1;
    for (unsigned i = 0; i < count; i++) {
        machine->now = &machine->blocks[i];
        start_block(machine, first + i);
        leave_block(machine);
    }
    do
        for (unsigned i = 0; i < count && machine->status == TGL_OK; i++) {
            enter_block(machine, &machine->blocks[i]);
            run_block(machine);
            leave_block(machine);
        }
    while (machine->status == TGL_OK && open_cluster_barrier(machine));
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
        .endless = stop_endless,
        .block_dim = {l->threads, 1, 1},
        .grid_dim = {l->grid_x, l->grid_y, l->grid_z},
    };
}

static bool make_blocks(tgl_machine *machine)
{
    const tgl_sim_launch *launch = machine->launch;
    for (unsigned i = 0; i < launch->cluster; i++)
        if (!make_threads(machine, &machine->blocks[i], launch->threads)) return false;
    return tgl_memory_start_launch(machine);
}

/* Threads were left half-way. */
static void forget_threads(const tgl_machine *machine)
{
    for (int i = 0; i < TGL_SIM_MOST_BLOCKS; i++)
        for (unsigned j = 0; j < machine->blocks[i].made; j++)
            tgl_fiber_forget(machine->blocks[i].threads[j].stack, machine->stack_size);
}

tgl_status tgl_machine_run(tgl_machine *machine, const tgl_sim_launch *launch)
{
    machine->launch = launch;
    machine->status = TGL_OK;
    machine->message[0] = machine->deferred[0] = '\0';
    machine->barriers = 0;
    tgl_tally_clear(&machine->tally);
    if (!make_blocks(machine)) {
        snprintf(machine->message, sizeof machine->message, "no memory to simulate a block");
        return machine->status = TGL_NO_MEMORY;
    }
    set_hooks(machine);
    const uint64_t blocks = (uint64_t)launch->grid_x * launch->grid_y * launch->grid_z;
    for (uint64_t i = 0; i < blocks && machine->status == TGL_OK; i += launch->cluster)
        run_cluster(machine, i);
    if (machine->status != TGL_OK) forget_threads(machine);
    return machine->status;
}
