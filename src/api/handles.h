/* SPDX-License-Identifier: Apache-2.0
 *
 * Making plans, and the references that keep them.
 */
#ifndef TGL_HANDLES_H
#define TGL_HANDLES_H

#include "backend/backend.h"

#include <stdatomic.h>

/* A plan of the same product as another plan, made when a run first needs it. NULL: not made yet.
 */
typedef _Atomic(tgl_plan *) tgl_plan_variant;
typedef struct tgl_plan_variants {
    tgl_plan_variant fallback; /* without workspace, for runs that find no memory for it */
    tgl_plan_variant
        unaligned; /* for matrices that the launch list does not take (tgl_list_takes()) */
} tgl_plan_variants;

/* Whether the calling thread has the stack that opening a device and making a plan need. */
tgl_status tgl_check_stack(const tgl_backend *backend);

/* Calls tgl_shape_make() and replaces TGL_COMPUTE_DEFAULT by the compute mode that it means on this
 * device. */
tgl_status tgl_device_shape(const tgl_device *dev, const tgl_problem *problem, bool zero_is_tight,
                            tgl_shape *shape);

/* *out := a plan for a checked shape. If options has an epilogue, the shape must not have one
 * yet. */
tgl_status tgl_plan_make(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options,
                         tgl_plan **out);

/* Add and remove a reference to a plan. The last release destroys it. NULL is allowed in
 * tgl_plan_release(). */
void tgl_plan_retain(tgl_plan *plan);
void tgl_plan_release(tgl_plan *plan);

/* A plan for a shape without an epilogue, with the planner's choice, from the device's cache.
 * stream: the stream of the plan's first run, or NULL for the default stream. While it is captured
 * into a graph, no kernel is measured. Release the plan with tgl_plan_release(). On failure *plan
 * is NULL. */
tgl_status tgl_plan_find(tgl_device *dev, const tgl_shape *shape, void *stream, tgl_plan **plan);

/* Returns an error for problems that only plans support: device scalars, a D other than C. */
tgl_status tgl_check_one_shot(const tgl_shape *shape);

/* Runs the plan that tgl_plan_find() returns, and releases it. */
tgl_status tgl_run_once(tgl_device *dev, const tgl_shape *shape, const tgl_operands *operands,
                        void *stream);

/* For tests and `tegula learn`: makes a plan of a launch list that no family built. Takes over the
 * list, also on failure. */
tgl_status tgl_plan_of_list(tgl_device *dev, const tgl_shape *shape, tgl_launch_list *list,
                            tgl_plan **plan);

#endif
