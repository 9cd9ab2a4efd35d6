/* SPDX-License-Identifier: Apache-2.0
 *
 * The global memory that a launch of a plan may access: the partitions (rectangles) of the operands
 * that it needs, the workspace, and prepared operands.
 */
#ifndef TGL_SIM_LAUNCH_REGIONS_H
#define TGL_SIM_LAUNCH_REGIONS_H

#include "backend/backend.h"
#include "plan/bundle.h"
#include "sim/machine.h"

/* The extent of a launch: it computes a partition of D, in the products [first, first + count) of
 * the batch. */
typedef struct tgl_launch_extent {
    tgl_rectangle part;
    int64_t first, count;
} tgl_launch_extent;

/* Fills regions[TGL_SIM_REGIONS] with the global memory that the launch may access: one region for
 * each operand and each part of the workspace. memory: the workspace of the run. */
void tgl_launch_regions(const tgl_plan *plan, const tgl_run *run, const tgl_sim_memory *memory,
                        const tgl_launch_extent *of, tgl_sim_region *regions);

/* The regions of the matrices of a bundle. */
typedef struct tgl_bundle_regions {
    tgl_sim_region a[TGL_BUNDLE_MAX], b[TGL_BUNDLE_MAX], d[TGL_BUNDLE_MAX];
} tgl_bundle_regions;

/* As tgl_launch_regions(), for a launch of a bundle. members: receives the regions of its
 * matrices, to which regions[] points. */
void tgl_launch_bundle_regions(const tgl_shape *shape, const struct tgl_bundle_table *bundle,
                               tgl_bundle_regions *members, tgl_sim_region *regions);

#endif
