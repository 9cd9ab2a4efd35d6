/* SPDX-License-Identifier: Apache-2.0
 *
 * The scale factors of a problem.
 */
#ifndef TGL_SCALES_H
#define TGL_SCALES_H

#include "tegula/tegula.h"

#include <stdbool.h>

enum { TGL_SCALE_BLOCK = 128 /* k, rows or columns of a block that has a factor */ };

/* Whether factors are for blocks: BLOCK or LINE_128. */
static inline bool tgl_scaling_is_blocked(tgl_scaling scaling)
{
    return scaling == TGL_SCALING_BLOCK || scaling == TGL_SCALING_LINE_128;
}

/* Checks scaling_*, type_scale and ld_scale_* of a problem whose sizes and types are valid. */
tgl_status tgl_scales_check(const tgl_problem *p);

/* ld_scale of A, or of B: what the problem says, or the minimum; 0 without factors of blocks. */
int64_t tgl_scales_ld(const tgl_problem *p, bool of_b);

#endif
