/* SPDX-License-Identifier: Apache-2.0
 *
 * The shadow of the result and of the workspace.
 */
#ifndef TGL_SIM_SHADOW_GLOBAL_H
#define TGL_SIM_SHADOW_GLOBAL_H

#include "sim/machine.h"

bool tgl_global_start_run(tgl_machine *machine);
bool tgl_global_start_launch(tgl_machine *machine, size_t clusters);
void tgl_global_start_cluster(tgl_machine *machine);
void tgl_global_end_cluster(tgl_machine *machine);
/* Helpers (host_threads.c) have shadows of their own for a launch.
 * copy: the helper's shadow becomes a copy of the machine's. False: no memory.
 * has_conflict: whether two helpers have accessed the same word, and one of them has written it; or
 * whether a cluster has executed an atomic.
 * merge: adds what the helper's clusters have written and read to the machine's shadow. */
bool tgl_global_copy(tgl_machine *helper, const tgl_machine *machine);
bool tgl_global_has_conflict(tgl_machine *const *helpers, int count);
void tgl_global_merge(tgl_machine *machine, const tgl_machine *helper);

void tgl_global_free(tgl_global_shadow *shadow);

/* Whether a launch may write to the region: D, the counters or the scratch. These have a shadow. */
bool tgl_global_has_shadow(int region);

/* Checks and records an access by the current thread; does nothing if the region has no shadow. */
void tgl_global_access(tgl_machine *machine, int region, uintptr_t address, unsigned bytes,
                       bool is_write, bool is_atomic, const void *pc);

/* Records that these threads of the running block pass a named barrier together. */
void tgl_global_meet(tgl_machine *machine, tgl_sim_thread *const *threads, unsigned count);

/* A fence by the current thread. */
void tgl_global_fence(tgl_machine *machine, const void *pc);

#endif
