/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of the simulated GPU: a fiber for each, with a stack that holds the variables that a
 * GPU keeps in registers.
 */
#include "sim/machine_threads.h"

#include "sim/mbarriers.h"
#include "sim/shadow_global.h"
#include "sim/tma_unit.h"
#include "sim/wgmma_groups.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of a thread's stack. It is large, because at -O0 each inlined call of a device function has
 * variables of its own on the stack. */
enum { STACK_SIZE = 128 * 1024 };

void tgl_machine_thread_main(void *argument)
{
    tgl_sim_thread *thread = argument;
    const tgl_sim_launch *l = thread->machine->launch;
    _Alignas(64) unsigned char
        arguments[TGL_ARGUMENT_BYTES_MAX]; /* the kernel's parameters, on the thread's stack because
                                              they count as registers */
    memcpy(arguments, l->arguments, (size_t)l->argument_bytes);
    l->module->image->entry(arguments);
    tgl_tma_end_thread(thread->machine);
    for (;;)
        tgl_machine_wait(thread->machine, TGL_THREAD_DONE, NULL);
}

/* Allocates the stacks, separated by inaccessible pages, so that a stack overflow faults. */
bool tgl_machine_make_threads(tgl_machine *machine, tgl_sim_block *block, unsigned count)
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
    tgl_mbarriers_free(block);
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

void tgl_machine_forget_threads(const tgl_machine *machine)
{
    for (int i = 0; i < TGL_CLUSTER_MAX; i++)
        for (unsigned j = 0; j < machine->blocks[i].made; j++)
            tgl_fiber_forget(machine->blocks[i].threads[j].stack, machine->stack_size);
}
