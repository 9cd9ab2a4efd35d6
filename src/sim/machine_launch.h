/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs launches on the simulated GPU: one SM that runs a grid cluster by cluster (usually clusters
 * of one block), with a fiber for each thread, and checks every access. It runs one launch at a
 * time. The launches of a run share the result and the workspace.
 */
#ifndef TGL_SIM_MACHINE_LAUNCH_H
#define TGL_SIM_MACHINE_LAUNCH_H

#include "sim/machine.h"

/* Starts a run: clears the shadows of D, the counters and the scratch. The caller must have set the
 * counters to 0. Returns TGL_OK or TGL_NO_MEMORY. */
tgl_status tgl_machine_begin(tgl_machine *machine, const tgl_sim_memory *memory);

/* Starts a launch. Returns TGL_OK, TGL_UNSUPPORTED or TGL_NO_MEMORY. */
tgl_status tgl_machine_start(tgl_machine *machine, const tgl_sim_launch *launch);

/* Runs all clusters of the launch, until the end or the first error. */
void tgl_machine_run_clusters(tgl_machine *machine);

/* Ends a launch. Returns TGL_OK, TGL_KERNEL_FAULT or TGL_NO_MEMORY. The counts are in
 * machine->tally until the next launch. */
tgl_status tgl_machine_finish(tgl_machine *machine);

/* Ends a run. Returns TGL_KERNEL_FAULT if a counter of the workspace is not zero. */
tgl_status tgl_machine_end(tgl_machine *machine);

/* ---- For host_threads.c ---------------------------------------------------------------------- */

uint64_t tgl_machine_clusters(const tgl_sim_launch *launch);

/* The number of the cluster that is at `position` (from 0) in the order in which the clusters run
 * (random_order.h). */
uint32_t tgl_machine_cluster_at(const tgl_machine *machine, uint32_t position);

/* Prepares a helper (host_threads.h) to run clusters of the launch that `machine` has started.
 * launch: a copy of that launch with the helper's own module. False: out of memory. */
bool tgl_machine_start_helper(tgl_machine *helper, const tgl_machine *machine,
                              const tgl_sim_launch *launch);

#endif
