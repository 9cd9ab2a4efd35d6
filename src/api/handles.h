/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that make plans, find them in the device's cache, and count the references to them.
 */
#ifndef TGL_HANDLES_H
#define TGL_HANDLES_H

#include "backend/backend.h"

#include <stdatomic.h>

/* A second plan for the product of a plan, made when a run first needs it; NULL: not made yet. */
typedef _Atomic(tgl_plan *) tgl_plan_variant;
typedef struct tgl_plan_variants {
    tgl_plan_variant fallback;  /* needs no workspace; used if the device has no memory for the
                                   workspace of a run */
    tgl_plan_variant unaligned; /* for matrices whose alignment does not suffice for the plan's
                                   launch list (tgl_list_takes()) */
} tgl_plan_variants;

/* tgl_shape_make(), with TGL_COMPUTE_DEFAULT replaced by its meaning on this device. */
tgl_status tgl_device_shape(const tgl_device *dev, const tgl_problem *problem, bool zero_is_tight,
                            tgl_shape *shape);

/* Makes a plan for a checked shape. If the options have an epilogue, the shape must have none. */
tgl_status tgl_plan_make(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options,
                         tgl_plan **out);

/* Adds or removes a reference to a plan. The last release destroys it. tgl_plan_release() accepts
 * NULL. */
void tgl_plan_retain(tgl_plan *plan);
void tgl_plan_release(tgl_plan *plan);

/* Finds a plan in the device's cache, or makes one with the planner's choice. shape: without an
 * epilogue. stream: the stream of the first run, NULL for the default stream; while it is captured
 * into a graph, no kernels are measured. *plan: release it with tgl_plan_release(); NULL on
 * failure. */
tgl_status tgl_plan_find(tgl_device *dev, const tgl_shape *shape, void *stream, tgl_plan **plan);

/* As tgl_plan_find(), but measures nothing. For parts of a product whose sizes may differ in each
 * run, such as groups. If the device measures plans, the next tgl_plan_find() for the shape outside
 * of a capture replaces the plan by a measured one. */
tgl_status tgl_plan_find_estimate(tgl_device *dev, const tgl_shape *shape, tgl_plan **plan);

/* Returns an error for features that only plans support: scalars in device memory, D other than
 * C. */
tgl_status tgl_check_one_shot(const tgl_shape *shape);

/* Runs the plan of tgl_plan_find() once. */
tgl_status tgl_run_once(tgl_device *dev, const tgl_shape *shape, const tgl_operands *operands,
                        void *stream);

/* Makes a plan from a launch list that no family built, for tests and `tegula learn`. Takes
 * ownership of the list, even on failure. */
tgl_status tgl_plan_of_list(tgl_device *dev, const tgl_shape *shape, tgl_launch_list *list,
                            tgl_plan **plan);

#endif
