/* SPDX-License-Identifier: Apache-2.0
 *
 * Vector clocks of the threads and asynchronous actors (TMA copies, wgmma) of a cluster. clocks.c
 * explains them.
 */
#ifndef TGL_SIM_CLOCKS_H
#define TGL_SIM_CLOCKS_H

#include "sim/machine.h"

/* Allocates the vector clocks of the running cluster, if it has none. They last until
 * tgl_clocks_end_cluster(). */
void tgl_clocks_need(tgl_machine *machine);
void tgl_clocks_end_cluster(tgl_machine *machine);

/* The vector clock of a thread of a block: a row with an entry for each actor of the cluster
 * (tgl_clock_column()). */
uint32_t *tgl_clock_of(const tgl_machine *machine, const tgl_sim_block *block, unsigned thread);

/* The column, the same in every clock, that belongs to a thread or an asynchronous actor of a
 * block. */
size_t tgl_clock_column(const tgl_machine *machine, const tgl_sim_block *block, unsigned actor);

/* to := max(to, from), element by element. */
void tgl_clock_join(const tgl_machine *machine, uint32_t *to, const uint32_t *from);

/* A release operation (clocks.c) of the current thread: stores the thread's time in the thread's
 * own column of its clock, and advances the time. Returns the clock. */
uint32_t *tgl_clock_release(tgl_machine *machine);

/* Records that these threads of the running block pass a barrier together: what any of them did
 * before the barrier is ordered before what each of them does next. */
void tgl_clocks_meet(tgl_machine *machine, tgl_sim_thread *const *threads, unsigned count);

/* Records that all threads of the running block (or of all blocks of the cluster) pass a barrier
 * together. */
void tgl_clocks_meet_block(tgl_machine *machine);
void tgl_clocks_meet_cluster(tgl_machine *machine);

/* Records a fence.proxy.async by the current thread. */
void tgl_clocks_fence(tgl_machine *machine);

/* Whether there is a fence.proxy.async between a thread's write and the operation with this clock.
 * True for a write by TMA, which needs no such fence. */
bool tgl_clock_is_fenced(const tgl_machine *machine, const tgl_sim_block *block,
                         const tgl_shared_access *write, const uint32_t *clock);

/* Returns the actor number (TGL_ACTOR_READER + i) of an asynchronous reader of the running block.
 * Adds the reader if it is new. is_wgmma: true for the wgmma instructions of the warpgroup whose
 * first thread is `thread`; false for the TMA stores of `thread`. */
unsigned tgl_async_reader_of(tgl_machine *machine, bool is_wgmma, unsigned thread, const void *pc);

/* Records that the current thread has waited for groups 1 to `group` of the reader. */
void tgl_async_reader_done(tgl_machine *machine, bool is_wgmma, unsigned thread, uint32_t group);

#endif
