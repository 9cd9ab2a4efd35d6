/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pre-passes of repack.c and decompose.c have in common.
 */
#ifndef TGL_PREPASS_H
#define TGL_PREPASS_H

#include "families/cost.h"

/* A launch of a pre-pass, which a run without a product skips: `blocks` blocks for the whole batch,
 * which write only workspace. */
tgl_launch tgl_prepass_launch(const tgl_partition *of, const tgl_kernel *kernel, double blocks,
                              int threads);

#endif
