/* SPDX-License-Identifier: Apache-2.0
 *
 * What one product of f32 matrices should have been, for judging many results of it.
 *
 * Up to a thousand cubed, every element is computed in double precision. Beyond, that takes too
 * long: all elements of some rows and of some columns are, with the first, the last and those at
 * the edge of the last tile among them; and every other element is compared with the first result
 * that these have shown to be right.
 */
#ifndef CLI_TRUTH_H
#define CLI_TRUTH_H

#include "timed_operands.h"

typedef struct truth truth;

/* What judging one result says. */
typedef struct verdict {
    bool right;
    double max_error, rms_error; /* in the units of reference.h, over the elements in `exact` */
    int64_t exact;               /* elements compared with double precision */
    char why[160];               /* what is wrong */
} verdict;

/* NULL: no memory. The operands must outlive it. */
truth *truth_make(const operands *o);
void truth_free(truth *t);

/* True if every element is known in double precision. */
bool truth_is_whole(const truth *t);

/* Whose result the elements that are not known are compared with: NULL before the first. */
const char *truth_peer(const truth *t);

/* Seconds that computing it took, on one thread. */
double truth_seconds(const truth *t);

/* Judges a result on the host. NaN never passes. */
verdict truth_judge(truth *t, const char *name, const float *C);

#endif
