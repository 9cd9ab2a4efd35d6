/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of F32 inputs that are hard for sums of products, one table row each: ordinary numbers,
 * wide exponents, cancellation, extremes, Inf and NaN, integers, and inputs made to defeat schemes
 * that split elements into words. docs/accuracy.md describes them.
 */
#ifndef CLI_INPUT_CLASSES_H
#define CLI_INPUT_CLASSES_H

#include "random.h"

/* D := alpha*A*B + beta*C, row-major and tight: A is m x k, B is k x n, C is m x n. */
typedef struct class_inputs {
    int64_t m, n, k;
    double alpha, beta;
    float *A, *B, *C;
} class_inputs;

/* How the results of a class are judged, besides the greatest error. */
enum {
    CLASS_IN_MEAN = 1,    /* its RMS error is in the geometric mean */
    CLASS_DEPTHS = 2,     /* it is tried with all depths k */
    CLASS_EXACT = 4,      /* the result must be the exact one */
    CLASS_NOT_FINITE = 8, /* A or B has Inf or NaN */
};

typedef struct input_class {
    const char *name;
    int flags;
    double (*draw)(random_state *r, double parameter); /* elements of A and B */
    double parameter;                                  /* of draw() */
    void (*change)(class_inputs *x, int argument);     /* afterwards; NULL: nothing */
    int argument;
    double alpha, beta;
} input_class;

/* Index 0, 1, ...; NULL past the last. */
const input_class *input_class_at(int index);

/* Fills A, B, C, alpha and beta; the sizes and the memory are given. */
void input_class_fill(const input_class *c, random_state *r, class_inputs *x);

#endif
