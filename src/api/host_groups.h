/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products on devices that have a planner of their own and work on host memory: the host
 * reads the sizes, and each group is a product of its own.
 */
#ifndef TGL_HOST_GROUPS_H
#define TGL_HOST_GROUPS_H

#include "backend/backend.h"

/* Whether the plan is one of these. */
static inline bool tgl_host_has_groups(const tgl_plan *plan)
{
    return plan->shape.grouping != TGL_GROUPED_NONE && plan->dev->backend->chip == NULL &&
           !tgl_shape_is_empty(&plan->shape);
}

/* Completes the plan, or returns why the device cannot compute the products. */
tgl_status tgl_host_groups_prepare(tgl_plan *plan);

/* TGL_BAD_GROUPS: a size is not possible, and nothing was computed. */
tgl_status tgl_host_groups_run(const tgl_plan *plan, const tgl_run *run);

#endif
