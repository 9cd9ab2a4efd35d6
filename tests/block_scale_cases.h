/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of e4m3 and e5m2 with factors of blocks (TGL_SCALING_BLOCK and _LINE_128), for tests on
 * any device: test_block_scales.c and test_sim_block_scales.c.
 */
#ifndef TGL_BLOCK_SCALE_CASES_H
#define TGL_BLOCK_SCALE_CASES_H

#include "scaled_case.h"

enum { BLOCK_SCALE_KINDS = 4 };

/* A product whose layout, types, kinds of factors, ld_scale, alpha, beta and epilogue depend on
 * `number`. kernel, error: members of scaled_case. */
scaled_case block_scale_case(unsigned number, const int64_t size[3], const char *kernel,
                             double error);

/* Checks that factors of 0, Inf and NaN affect only their rows, columns and blocks of k. */
void check_special_factors(tgl_device *dev, const char *kernel);

#endif
