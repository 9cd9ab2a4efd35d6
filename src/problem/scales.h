/* SPDX-License-Identifier: Apache-2.0
 *
 * Scale factors: the check of a problem's, and how many there are.
 */
#ifndef TGL_SCALES_H
#define TGL_SCALES_H

#include "problem/run.h"

enum { TGL_SCALE_BLOCK = 128 /* k, rows or columns of a block that has a factor */ };

/* Checks scaling_*, type_scale and ld_scale_* of a problem whose sizes and types are valid. */
tgl_status tgl_scales_check(const tgl_problem *p);

/* ld_scale of A, or of B: what the problem says, or the minimum; 0 without factors of blocks. */
int64_t tgl_scales_ld(const tgl_problem *p, bool of_b);

/* The factors of A, B or D (TGL_AT_SCALE_A, ..._B, ..._D) in memory, from the first to the last one
 * that is read. */
int64_t tgl_scales_count(const tgl_shape *s, tgl_operand operand);

#endif
