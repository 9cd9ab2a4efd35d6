/* SPDX-License-Identifier: Apache-2.0
 *
 * mbarriers: phases, arrivals, and the TMA copies that they count.
 */
#ifndef TGL_SIM_MBARRIERS_H
#define TGL_SIM_MBARRIERS_H

#include "sim/machine.h"

/* Discards the mbarriers of a block, before the block starts and when the machine is freed. */
void tgl_mbarriers_free(tgl_sim_block *block);

void tgl_mbarrier_init(tgl_machine *machine, const void *barrier, int arrivals, const void *pc);
void tgl_mbarrier_fence(tgl_machine *machine);
void tgl_mbarrier_arrive(tgl_machine *machine, const void *barrier, unsigned bytes, const void *pc);
void tgl_mbarrier_arrive_at(tgl_machine *machine, const void *barrier, int rank, const void *pc);
void tgl_mbarrier_wait(tgl_machine *machine, const void *barrier, unsigned parity, const void *pc);

/* Finds an mbarrier in a block of the cluster, and reports an error unless its initialisation is
 * ordered before this access of the current thread. */
tgl_mbarrier *tgl_mbarrier_use(tgl_machine *machine, tgl_sim_block *block, const void *barrier,
                               const void *pc);

/* Adds a TMA copy to the current phase. The copy completes together with the phase. */
void tgl_mbarrier_add_copy(tgl_machine *machine, tgl_mbarrier *b, const tgl_tma_copy *copy);

/* Whether the phase that a thread of the running block waits for can complete now. */
bool tgl_mbarrier_is_open(const tgl_machine *machine, const tgl_sim_thread *thread);

/* Reports a TMA copy that is still in flight after all threads of the block have finished. */
void tgl_mbarriers_check_end(tgl_machine *machine);

/* Writes to `text` the arrivals and bytes that are missing for the phase that a thread waits
 * for. */
void tgl_mbarrier_describe_wait(const tgl_machine *machine, const tgl_sim_block *block,
                                const tgl_sim_thread *thread, char *text, size_t size);

#endif
