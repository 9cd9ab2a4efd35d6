/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a cluster of the launch that a machine has started.
 */
#ifndef TGL_SIM_MACHINE_RUN_H
#define TGL_SIM_MACHINE_RUN_H

#include "sim/machine.h"

/* Runs cluster number `cluster` of the launch to its end or first error. After an error
 * machine->status is not TGL_OK. */
void tgl_machine_run_cluster(tgl_machine *machine, uint32_t cluster);

#endif
