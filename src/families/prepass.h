/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch that the pre-passes repack, decompose and groups have in common.
 */
#ifndef TGL_PREPASS_H
#define TGL_PREPASS_H

#include "families/cost.h"

/* The launch of a pre-pass, a kernel that converts operands before the main kernel. It has `blocks`
 * blocks for the whole batch, which write only to the workspace. A run without a product skips
 * it. */
tgl_launch tgl_prepass_launch(const tgl_partition *of, const tgl_kernel *kernel, double blocks,
                              int threads);

#endif
