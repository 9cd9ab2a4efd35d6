/* SPDX-License-Identifier: Apache-2.0
 *
 * One product of 8-bit types with scales: random operands, a reference in double that is computed
 * from the very elements the device reads, and a comparison of D with an error bound. Elements of D
 * that are no results, such as rows that no group has, must stay as they are. Works on any device.
 */
#ifndef TGL_SCALED_CASE_H
#define TGL_SCALED_CASE_H

#include "group_spans.h"

#include <stdbool.h>

typedef struct scaled_case {
    tgl_problem
        problem; /* with leading dimensions and types; strides are set if the batch is > 1 */
    double alpha, beta;
    tgl_bias bias;             /* of F32 */
    tgl_activation activation; /* NONE or RELU */
    const char *kernel;        /* a kernel string; NULL: the planner's choice */
    double error;              /* of a sum, relative to the sum of the magnitudes of its products */
    bool is_positive;          /* elements of A and B are not negative */
    bool has_amax;             /* the run stores the largest magnitude of D, which is compared */
    const group_list *list;    /* the groups of a problem with a grouping; else NULL */
    unsigned seed;
} scaled_case;

/* Runs the case. fault: what went wrong, with the case; empty if nothing did. *worst: NULL, or the
 * largest error of a result in units of c->error. */
tgl_status scaled_case_run(tgl_device *dev, const scaled_case *c, char fault[512], double *worst);

/* The value of an element. Also the result of rounding x to the type, with ties to even; 8-bit
 * types saturate. */
double scaled_load(tgl_type type, const void *memory, int64_t i);
double scaled_round(tgl_type type, double x);

/* A problem of these types, row-major, with minimum leading dimensions. type_d: of C and D. */
tgl_problem scaled_problem(tgl_type type_a, tgl_type type_b, tgl_type type_d, int64_t m, int64_t n,
                           int64_t k);

#endif
