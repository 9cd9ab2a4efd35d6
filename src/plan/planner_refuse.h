/* SPDX-License-Identifier: Apache-2.0
 *
 * Why the planner refuses a product, in a sentence.
 */
#ifndef TGL_PLANNER_REFUSE_H
#define TGL_PLANNER_REFUSE_H

#include "plan/kernel_string.h"

/* TGL_UNSUPPORTED if no kernel can compute the product. asked: as the caller described it; shape:
 * the one that the families see. For a named kernel it checks what concerns all kernels. */
tgl_status tgl_planner_check(const tgl_chip *chip, const tgl_shape *asked, const tgl_shape *shape,
                             const tgl_request *request);

/* The status and the message of a choice that was rejected. asked: as the caller described it. */
tgl_status tgl_planner_refuse(const tgl_candidate *choice, const tgl_shape *asked,
                              const tgl_request *request);

#endif
