/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one product of 8-bit types with scale factors on any device. The operands are random. A
 * reference is computed in double from the same stored elements, and D is compared with it within
 * an error bound. Elements of D that are not results, such as rows that no group has, must not
 * change.
 */
#ifndef TGL_SCALED_CASE_H
#define TGL_SCALED_CASE_H

#include "group_spans.h"

#include <stdbool.h>

typedef struct scaled_case {
    tgl_problem
        problem; /* all leading dimensions and types are set; strides too if the batch is > 1 */
    double alpha, beta;
    tgl_bias bias;             /* its elements are F32 */
    tgl_activation activation; /* NONE or RELU */
    const char *kernel;        /* a kernel string; NULL: the planner's choice */
    double error;              /* bound of the error of a sum, relative to the sum of the magnitudes
                                  of its products */
    bool is_positive;          /* elements of A and B are not negative */
    bool has_amax;             /* the run stores the largest magnitude of D, which is compared */
    const group_list *list;    /* the groups of a problem with a grouping; else NULL */
    unsigned seed;
} scaled_case;

/* Runs the case. fault: the fault and the case; empty: the result is right. *worst := the largest
 * error of a result in units of c->error; worst may be NULL. */
tgl_status scaled_case_run(tgl_device *dev, const scaled_case *c, char fault[512], double *worst);

/* scaled_load(): the value of element i. scaled_round(): x rounded to the type, ties to even; 8-bit
 * types saturate. */
double scaled_load(tgl_type type, const void *memory, int64_t i);
double scaled_round(tgl_type type, double x);

/* A row-major problem of these types with minimum leading dimensions. type_d: the type of C and D.
 */
tgl_problem scaled_problem(tgl_type type_a, tgl_type type_b, tgl_type type_d, int64_t m, int64_t n,
                           int64_t k);

#endif
