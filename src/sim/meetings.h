/* SPDX-License-Identifier: Apache-2.0
 *
 * Named barriers, instructions of a warpgroup, and deadlocks.
 */
#ifndef TGL_SIM_MEETINGS_H
#define TGL_SIM_MEETINGS_H

#include "sim/machine.h"

void tgl_named_barrier(void *run, int id, int threads, const void *pc);

/* The current thread waits for the other threads of its warpgroup at an instruction. word: the name
 * of the instruction in messages. */
void tgl_meet_warpgroup(tgl_machine *machine, const char *word, const void *pc);

/* Releases the named barriers and warpgroups of the running block that all their threads have
 * reached. False: there is none. */
bool tgl_meetings_open(tgl_machine *machine);

/* Reports a deadlock: what this thread waits for, and what other threads wait for. */
void tgl_meetings_fault_stuck(tgl_machine *machine, const tgl_sim_thread *thread);

#endif
