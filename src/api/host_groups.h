/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products on devices that have a planner of their own and work on host memory: the host
 * reads the sizes, and each group is a product of its own.
 */
#ifndef TGL_HOST_GROUPS_H
#define TGL_HOST_GROUPS_H

#include "backend/backend.h"

/* Whether the plan is of a grouped product that is computed as a loop over groups on the host. */
static inline bool tgl_host_has_groups(const tgl_plan *plan)
{
    return plan->shape.grouping != TGL_GROUPED_NONE && plan->dev->backend->chip == NULL &&
           !tgl_shape_is_empty(&plan->shape);
}

/* Sets plan->kernel to the kernel for a group of average size. Returns an error if the device
 * cannot compute the products of the groups. */
tgl_status tgl_host_groups_prepare(tgl_plan *plan);

/* Runs the product of each group and waits. Returns TGL_BAD_GROUPS, with nothing computed, if a
 * group has a negative size or ends beyond m or k. Groups along K are not read if k is 0. */
tgl_status tgl_host_groups_run(const tgl_plan *plan, const tgl_run *run);

#endif
