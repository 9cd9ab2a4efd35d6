/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs launches on the simulated GPU: one SM that runs a grid cluster by cluster (usually clusters
 * of one block), with a fiber for each thread, and checks every access. It runs one launch at a
 * time. The launches of a run share the result and the workspace.
 */
#ifndef TGL_SIM_MACHINE_RUN_H
#define TGL_SIM_MACHINE_RUN_H

#include "sim/machine.h"

bool tgl_machine_init(tgl_machine *machine);
void tgl_machine_free(tgl_machine *machine);

/* Starts a run: D and the scratch count as not written, and the counters are zero. TGL_NO_MEMORY.
 */
tgl_status tgl_machine_begin(tgl_machine *machine, const tgl_sim_memory *memory);

/* Runs a launch to its end or to the first error: TGL_OK, TGL_KERNEL_FAULT or TGL_NO_MEMORY. The
 * counts stay in machine->tally until the next launch. */
tgl_status tgl_machine_run(tgl_machine *machine, const tgl_sim_launch *launch);

/* Ends a run: TGL_KERNEL_FAULT if a counter is not zero. */
tgl_status tgl_machine_end(tgl_machine *machine);

#endif
