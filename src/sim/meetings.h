/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers of all kinds except mbarriers, instructions of a whole warpgroup, and reports of
 * deadlocks.
 */
#ifndef TGL_SIM_MEETINGS_H
#define TGL_SIM_MEETINGS_H

#include "sim/machine.h"

/* The hooks of kernels/sim/hooks.h: functions that the compiled kernel calls. pc: the source
 * location of the call. */
void tgl_block_barrier(tgl_machine *machine, const void *pc);
void tgl_cluster_barrier(tgl_machine *machine, const void *pc);
void tgl_warp_barrier(tgl_machine *machine, unsigned lanes, const void *pc);
unsigned tgl_shuffle(tgl_machine *machine, unsigned lanes, unsigned value, int source,
                     const void *pc);
void tgl_named_barrier(tgl_machine *machine, int id, int threads, const void *pc);

/* Suspends the current thread at an instruction until all threads of its warpgroup have reached the
 * instruction. word: the instruction's name for messages. */
void tgl_meet_warpgroup(tgl_machine *machine, const char *word, const void *pc);

/* Makes the threads of a warp ready that wait at a warp barrier, if all lanes in the barrier's mask
 * have reached it. warp: first thread of the warp; lanes: number of its threads. False: no thread
 * was released. */
bool tgl_warp_barriers_open(tgl_machine *machine, tgl_sim_thread *warp, unsigned lanes);

/* Whether a thread waits at a barrier of its block or its cluster. */
bool tgl_is_at_barrier(const tgl_sim_thread *thread);

/* Called when all threads of the running block have stopped and `waiting` is at a barrier of the
 * block or cluster. Releases the threads if all are at this barrier; else reports the error. */
void tgl_block_barrier_open(tgl_machine *machine, const tgl_sim_thread *waiting);

/* Makes the threads of the running block ready that wait at a named barrier or a warpgroup
 * instruction, if all threads that take part have reached it. False: no thread was made ready. */
bool tgl_meetings_open(tgl_machine *machine);

/* Reports a deadlock: what this thread waits for, and where the other threads wait. */
void tgl_meetings_fault_stuck(tgl_machine *machine, const tgl_sim_thread *thread);

#endif
