/* SPDX-License-Identifier: Apache-2.0
 *
 * The global memory that a launch of a plan may access: the partitions of the operands that it
 * needs, the workspace, and prepared operands.
 */
#ifndef TGL_SIM_LAUNCH_REGIONS_H
#define TGL_SIM_LAUNCH_REGIONS_H

#include "backend/backend.h"
#include "sim/machine.h"

/* The products of the batch that a launch computes, and its partition of D. */
typedef struct tgl_launch_extent {
    tgl_rectangle part;
    int64_t first, count;
} tgl_launch_extent;

/* Fills regions[TGL_SIM_REGIONS] with the global memory that the launch may access: a region for
 * each operand and for the workspace. memory: the simulated memory of the run. */
void tgl_launch_regions(const tgl_plan *plan, const tgl_run *run, const tgl_sim_memory *memory,
                        const tgl_launch_extent *of, tgl_sim_region *regions);

#endif
