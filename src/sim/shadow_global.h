/* SPDX-License-Identifier: Apache-2.0
 *
 * The shadow of the result and of the workspace: for each element of D, and each 4 bytes of the
 * counters and the scratch, who wrote and read it last. With this shadow, races between blocks and
 * between launches are found.
 */
#ifndef TGL_SIM_SHADOW_GLOBAL_H
#define TGL_SIM_SHADOW_GLOBAL_H

#include "sim/machine.h"

/* The machine calls these functions at the start of a run, at the start of a launch, and at the
 * start and the end of a cluster. False: out of memory. */
bool tgl_global_start_run(tgl_machine *machine);
bool tgl_global_start_launch(tgl_machine *machine, size_t clusters);
void tgl_global_start_cluster(tgl_machine *machine);
void tgl_global_end_cluster(tgl_machine *machine);

/* Helpers (host_threads.c) have their own shadows during a launch, which these functions copy,
 * compare and merge.
 * copy: makes the helper's shadow a copy of the machine's. False: out of memory.
 * has_conflict: whether two helpers accessed the same word and one of them wrote it, or whether a
 * cluster executed an atomic.
 * merge: adds the reads and writes of the helper's clusters to the machine's shadow. */
bool tgl_global_copy(tgl_machine *helper, const tgl_machine *machine);
bool tgl_global_has_conflict(tgl_machine *const *helpers, int count);
void tgl_global_merge(tgl_machine *machine, const tgl_machine *helper);

void tgl_global_free(tgl_global_shadow *shadow);

/* Whether the region has a shadow: D, the counters and the scratch, to which launches may write. */
bool tgl_global_has_shadow(int region);

/* Checks an access by the current thread for races and records it. Does nothing if the region has
 * no shadow. */
void tgl_global_access(tgl_machine *machine, int region, uintptr_t address, unsigned bytes,
                       bool is_write, bool is_atomic, const void *pc);

/* Records that these threads of the running block pass a named barrier together. */
void tgl_global_meet(tgl_machine *machine, tgl_sim_thread *const *threads, unsigned count);

/* Records a fence by the current thread. */
void tgl_global_fence(tgl_machine *machine, const void *pc);

#endif
