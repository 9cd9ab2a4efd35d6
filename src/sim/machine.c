/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the source locations of threads, suspends threads, and records errors.
 */
#include "sim/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of loop iterations of a thread between two barriers, to detect endless loops. 2^27
 * iterations take seconds. */
static const long long ROUNDS_MAX = 1LL << 27;

void tgl_machine_rest(tgl_sim_thread *thread)
{
    thread->loops.rounds_left = ROUNDS_MAX;
}

void tgl_machine_wait(tgl_machine *machine, tgl_thread_state state, const void *pc)
{
    tgl_sim_thread *thread = machine->current;
    thread->state = state;
    thread->waits_at = pc;
    tgl_fiber_switch(&thread->fiber, &machine->scheduler);
}

bool tgl_machine_is_register(const tgl_machine *machine, const void *address)
{
    return (uintptr_t)address - (uintptr_t)machine->current->stack < machine->stack_size;
}

uint64_t tgl_machine_block_number(const tgl_sim_launch *launch, const unsigned at[3])
{
    return ((uint64_t)at[2] * launch->grid[1] + at[1]) * launch->grid[0] + at[0];
}

void tgl_machine_block_at(const tgl_sim_launch *launch, uint32_t cluster, unsigned rank,
                          unsigned at[3])
{
    for (int i = 0; i < 3; i++) {
        const unsigned clusters = launch->grid[i] / launch->cluster[i];
        at[i] = cluster % clusters * launch->cluster[i] + rank % launch->cluster[i];
        cluster /= clusters;
        rank /= launch->cluster[i];
    }
}

/* Writes the place of a thread: "ladder/naive, block (1, 0), thread 35, ladder/01_naive.cu:21: ".
 * In a launch for a batch the block has three coordinates. */
static int write_place(const tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                       char *text, size_t size)
{
    const tgl_sim_launch *l = machine->launch;
    const unsigned *at = machine->now->at;
    char z[24] = "";
    if (l->grid[2] > 1) snprintf(z, sizeof z, ", %u", at[2]);
    return snprintf(text, size, "%s, block (%u, %u%s), thread %u%s%s: ", l->module->kernel->name,
                    at[0], at[1], z, thread->index, pc != NULL ? ", " : "",
                    pc != NULL ? tgl_sim_place(l->module, pc).text : "");
}

static void write_fault(const tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                        const char *format, va_list args, char text[TGL_SIM_MESSAGE])
{
    const int length = write_place(machine, thread, pc, text, TGL_SIM_MESSAGE);
    if (length >= 0 && length < TGL_SIM_MESSAGE)
        vsnprintf(text + length, TGL_SIM_MESSAGE - (size_t)length, format, args);
}

/* Records a fault. If there is a deferred fault, reports the deferred fault instead: it happened
 * earlier, and may be the cause of the new one. */
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

_Noreturn void tgl_machine_fault(tgl_machine *machine, const void *pc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record_fault(machine, machine->current, pc, format, args);
    va_end(args);
    for (;;) /* the scheduler reads machine->status and ends the launch */
        tgl_machine_wait(machine, TGL_THREAD_DONE, pc);
}

void tgl_machine_fault_of(tgl_machine *machine, const tgl_sim_thread *thread, const void *pc,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record_fault(machine, thread, pc, format, args);
    va_end(args);
}

_Noreturn void tgl_machine_give_up(tgl_machine *machine)
{
    snprintf(machine->message, sizeof machine->message,
             "no memory to follow the kernel's accesses");
    machine->status = TGL_NO_MEMORY;
    for (;;)
        tgl_machine_wait(machine, TGL_THREAD_DONE, NULL);
}

void *tgl_machine_reserve(void *memory, size_t *room, size_t count, size_t element)
{
    if (*room >= count) return memory;
    free(memory);
    memory = calloc(count, element);
    *room = memory != NULL ? count : 0;
    return memory;
}

uint32_t tgl_machine_count(tgl_machine *machine, const void *pc, tgl_access_kind kind, int target,
                           int64_t bytes, int64_t sectors)
{
    uint32_t site;
    if (!tgl_tally_bulk(&machine->tally, pc, kind, target, bytes, sectors, &site))
        tgl_machine_give_up(machine);
    return site;
}
