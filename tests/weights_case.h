/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one product with weights of 8 or 4 bits on any device. The operands are random. A reference
 * is computed in double from the same stored elements, and D is compared with it within an error
 * bound.
 */
#ifndef TGL_WEIGHTS_CASE_H
#define TGL_WEIGHTS_CASE_H

#include "tegula/tegula.h"

#include <stdbool.h>

typedef struct weights_case {
    tgl_problem problem; /* all leading dimensions are set; strides if the batch is > 1 */
    double alpha, beta;
    tgl_bias bias;      /* its elements are F32 */
    const char *kernel; /* a kernel string; NULL: the planner's choice */
    bool is_exact; /* factors are powers of two, so that rounding a weight does not change it */
    int skip_a, skip_b; /* A begins `skip_a` elements after an aligned address, B `skip_b` bytes */
    unsigned seed;
} weights_case;

/* Runs the case. fault: the fault and the case; empty: the result is right. */
tgl_status weights_case_run(tgl_device *dev, const weights_case *c, char fault[512]);

/* A row-major problem with A of type_a and weights of type_b, with minimum leading dimensions.
 * group: k of a group with its own factors; 0: a factor for each column. */
tgl_problem weights_problem(tgl_type type_a, tgl_type type_b, int64_t m, int64_t n, int64_t k,
                            int group);

/* A case in which everything is random; m, n and k are the maximum sizes. */
weights_case weights_random_case(unsigned seed, int64_t m, int64_t n, int64_t k);

#endif
