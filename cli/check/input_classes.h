/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of F32 inputs that are hard for sums of products, one table row each: ordinary numbers,
 * wide exponents, cancellation, extremes, Inf and NaN, integers, and inputs made to defeat kernels
 * of the family accurate. Those split each scaled element x into two words, which are f16 numbers
 * hi and lo with hi + 2^-11*lo close to x. docs/accuracy.md describes the classes. A line is a row
 * of A or a column of B.
 */
#ifndef CLI_INPUT_CLASSES_H
#define CLI_INPUT_CLASSES_H

#include "random.h"

/* Operands of D := alpha*A*B + beta*C, row-major and tight: A is m x k, B is k x n, C is m x n. */
typedef struct class_inputs {
    int64_t m, n, k;
    double alpha, beta;
    float *A, *B, *C;
} class_inputs;

/* Flags of a class: the checks of its results in addition to the limits of the greatest error
 * (check_classes.c). */
enum {
    CLASS_IN_MEAN = 1, /* its products with k >= 1024 count in the geometric mean of (Tegula's RMS
                          error / RMS error of a loop of FMAs), which may be at most 1/2 */
    CLASS_DEPTHS = 2,  /* it is run with several values of k */
    CLASS_EXACT = 4,   /* the result must be exact */
};

typedef struct input_class {
    const char *name;
    int flags;
    double (*draw)(random_state *r, double parameter); /* elements of A and B */
    double parameter;                                  /* second argument of draw() */
    void (*change)(class_inputs *x, int argument); /* changes the drawn elements; NULL: no change */
    int argument;
    double alpha, beta;
} input_class;

/* The class with this index, from 0 on; NULL: there is no such class. */
const input_class *input_class_at(int index);

/* Fills A, B and C and sets alpha and beta. The caller sets the sizes and allocates the memory. */
void input_class_fill(const input_class *c, random_state *r, class_inputs *x);

#endif
