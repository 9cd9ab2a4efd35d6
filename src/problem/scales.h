/* SPDX-License-Identifier: Apache-2.0
 *
 * The scale factors of a problem. A line is a row of op(A) or a column of op(B). Factors per block
 * are for 128 x 128 blocks (TGL_SCALING_BLOCK) or for 128 elements of a line
 * (TGL_SCALING_LINE_128). weights.h has the factors of weights, per group of k.
 */
#ifndef TGL_SCALES_H
#define TGL_SCALES_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* The edge of a 128 x 128 block, and the length of a block of a line, in elements. */
enum { TGL_SCALE_BLOCK = 128 };

/* Whether factors are per block. */
static inline bool tgl_scaling_is_blocked(tgl_scaling scaling)
{
    return scaling == TGL_SCALING_BLOCK || scaling == TGL_SCALING_LINE_128;
}

/* How the scale factors of a matrix lie in memory: `rows` rows of `row` factors each, `ld` factors
 * from row to row. rows is 0 if there are no factors, and for TGL_SCALING_GROUP (weights.h). */
typedef struct tgl_scale_layout {
    int64_t rows, row, ld;
} tgl_scale_layout;

/* lines: rows of op(A), columns of op(B), or rows of D. ld: the leading dimension of factors per
 * block. */
tgl_scale_layout tgl_scales_lay_out(tgl_scaling scaling, int64_t lines, int64_t k, int64_t ld);

/* Checks scaling_*, type_scale and ld_scale_* of a problem, whose sizes and types must be valid. */
tgl_status tgl_scales_check(const tgl_problem *p);

/* The leading dimension of the scale factors of A (of_b: of B), in factors. If the problem leaves
 * it 0, it is the minimum. 0 if the factors are neither per block nor per group. */
int64_t tgl_scales_ld(const tgl_problem *p, bool of_b);

#endif
