/* SPDX-License-Identifier: Apache-2.0
 *
 * The error messages of products for which the planner finds no kernel.
 */
#ifndef TGL_PLANNER_REFUSE_H
#define TGL_PLANNER_REFUSE_H

#include "plan/kernel_string.h"

/* Returns TGL_UNSUPPORTED if no kernel can compute the product, else TGL_OK. asked: the shape of
 * the caller; shape: the one that the families get, without complex elements or weights. If the
 * request names a kernel, only the limits of groups are checked. */
tgl_status tgl_planner_check(const tgl_chip *chip, const tgl_shape *asked, const tgl_shape *shape,
                             const tgl_request *request);

/* The status and the message of a choice that was rejected. asked: the product as the caller
 * described it. */
tgl_status tgl_planner_refuse(const tgl_chip *chip, const tgl_candidate *choice,
                              const tgl_shape *asked, const tgl_request *request);

#endif
