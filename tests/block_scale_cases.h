/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of e4m3 and e5m2 with factors of blocks, for any device: see test_block_scales.c and
 * test_sim_block_scales.c.
 */
#ifndef TGL_BLOCK_SCALE_CASES_H
#define TGL_BLOCK_SCALE_CASES_H

#include "scaled_case.h"

enum { BLOCK_SCALE_KINDS = 4 };

/* A product whose layout, types, kinds of factors, ld_scale, alpha, beta and epilogue follow from
 * `number`; 8 layouts times BLOCK_SCALE_KINDS times types. kernel, error: of scaled_case. */
scaled_case block_scale_case(unsigned number, const int64_t size[3], const char *kernel,
                             double error);

/* Factors of 0, Inf and NaN act on their rows, columns and blocks of k only. */
void check_special_factors(tgl_device *dev, const char *kernel);

#endif
