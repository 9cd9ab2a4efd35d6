/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a cluster of the launch that a machine has started.
 */
#ifndef TGL_SIM_MACHINE_RUN_H
#define TGL_SIM_MACHINE_RUN_H

#include "sim/machine.h"

/* Sets machine->status after an error. */
void tgl_machine_run_cluster(tgl_machine *machine, uint32_t cluster);

#endif
