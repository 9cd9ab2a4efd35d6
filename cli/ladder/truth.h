/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference result of one product of f32 or f16 matrices, for checking many results of it.
 *
 * If the product has at most 2^30 multiplications, every element is computed in double precision.
 * For larger products only some rows and columns are: the first, the last, those at the edge of the
 * last tile, and random ones. Every other element is compared with that of the first result that
 * was right in these rows and columns.
 */
#ifndef CLI_TRUTH_H
#define CLI_TRUTH_H

#include "timed_operands.h"

typedef struct truth truth;

/* The outcome of checking one result. */
typedef struct verdict {
    bool right;
    double max_error, rms_error; /* in units of reference.h; over `exact` elements */
    int64_t exact;               /* elements compared with double precision */
    char why[160];               /* what is wrong with the result */
} verdict;

/* Computes the reference; NULL: no memory. The operands must outlive it. */
truth *truth_make(const operands *o);
void truth_free(truth *t);

/* Whether every element is computed in double precision. */
bool truth_is_whole(const truth *t);

/* The name of the first right result, with which elements that are not computed in double precision
 * are compared; NULL: there is none yet. */
const char *truth_peer(const truth *t);

/* The seconds that the reference took, on one thread. */
double truth_seconds(const truth *t);

/* Checks a result of the problem's type in host memory. NaN never passes. */
verdict truth_judge(truth *t, const char *name, const void *result);

#endif
