/* SPDX-License-Identifier: Apache-2.0
 *
 * One product with weights of 8 or 4 bits: random operands, a reference in double that is computed
 * from the very elements the device reads, and a comparison of D with an error bound. Works on any
 * device.
 */
#ifndef TGL_WEIGHTS_CASE_H
#define TGL_WEIGHTS_CASE_H

#include "tegula/tegula.h"

#include <stdbool.h>

typedef struct weights_case {
    tgl_problem problem; /* all leading dimensions are set; strides if the batch is > 1 */
    double alpha, beta;
    tgl_bias bias;      /* of F32 */
    const char *kernel; /* a kernel string; NULL: the planner's choice */
    bool is_exact; /* factors are powers of two, so that rounding a weight does not change it */
    int skip_a, skip_b; /* elements of A and bytes of B by which the matrices are misaligned */
    unsigned seed;
} weights_case;

/* Runs the case. fault: what went wrong, with the case; empty if nothing did. */
tgl_status weights_case_run(tgl_device *dev, const weights_case *c, char fault[512]);

/* A problem with A of type_a and weights of type_b, row-major, with minimum leading dimensions and
 * factors for groups (0: for columns). */
tgl_problem weights_problem(tgl_type type_a, tgl_type type_b, int64_t m, int64_t n, int64_t k,
                            int group);

/* A random case: types, sizes up to these, order, transposes, leading dimensions, alignment,
 * factors, zero points, scalars, D, batch. */
weights_case weights_random_case(unsigned seed, int64_t m, int64_t n, int64_t k);

#endif
