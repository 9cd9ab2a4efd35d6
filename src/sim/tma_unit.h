/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of boxes between global and shared memory by TMA.
 */
#ifndef TGL_SIM_TMA_UNIT_H
#define TGL_SIM_TMA_UNIT_H

#include "sim/machine.h"

void tgl_tma_load(tgl_machine *machine, void *shared, const void *map, const int *at, int rank,
                  const void *barrier, unsigned mask, const void *pc);
void tgl_tma_store(tgl_machine *machine, const void *map, const void *shared, const int *at,
                   int rank, const void *pc);
void tgl_tma_store_commit(tgl_machine *machine);
void tgl_tma_store_wait(tgl_machine *machine, int pending, int is_read_only);

/* Completes the TMA stores of the current thread, because it ends. */
void tgl_tma_end_thread(tgl_machine *machine);

/* Frees the TMA stores of a thread that an error has stopped. */
void tgl_tma_forget_stores(tgl_sim_thread *thread);

#endif
