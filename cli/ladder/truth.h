/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference result of one product of f32 or f16 matrices, with which the results of many
 * kernels for this product are compared.
 *
 * If the product has at most 2^30 multiplications, every element is computed in double precision.
 * For larger products only some rows and columns are: the first, the last, those at the edge of the
 * last tile, and random ones. Every other element is compared with the same element of the first
 * result that was right in these rows and columns.
 */
#ifndef CLI_TRUTH_H
#define CLI_TRUTH_H

#include "timed_operands.h"

typedef struct truth truth;

/* The outcome of checking a result. */
typedef struct verdict {
    bool right;
    double max_error,
        rms_error; /* maximum and root mean square of e (reference.h) over `exact` elements */
    int64_t exact; /* number of elements compared with values in double precision */
    char why[160]; /* what is wrong with the result; set if `right` is false */
} verdict;

/* Computes the reference. The operands must outlive the truth. NULL: out of memory. */
truth *truth_make(const operands *o);
void truth_free(truth *t);

/* Whether the reference has every element of the product in double precision. */
bool truth_is_whole(const truth *t);

/* The name of the first right result. Elements that have no reference in double precision are
 * compared with it. NULL: there is no right result yet. */
const char *truth_peer(const truth *t);

/* The time in seconds, on one thread, to compute the reference. */
double truth_seconds(const truth *t);

/* Checks a result, which must have the problem's type and be in host memory. name: the kernel or
 * library that computed it, for truth_peer(); only the pointer is kept. NaN is always wrong. */
verdict truth_judge(truth *t, const char *name, const void *result);

#endif
