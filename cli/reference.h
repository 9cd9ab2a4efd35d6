/* SPDX-License-Identifier: Apache-2.0
 *
 * What a product should have been, and how far from it a result is. The error of an element is
 *
 *     e = |c - ref| / (u * (|alpha| |A||B| + |beta||C|) + d)
 *
 * with u = 2^-24 for f32 and 2^-53 for f64, and d the smallest number of the type, because results
 * among the denormals cannot be nearer. Summing k products one after another gives e <= k + 2.
 */
#ifndef CLI_REFERENCE_H
#define CLI_REFERENCE_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stdint.h>

/* One element as it should be: the value, and the sum of magnitudes that its error is measured in.
 * f32 is summed in double, in which its products are exact; f64 in long double, which has 11 bits
 * more on x86 and 60 on Arm. */
typedef struct reference_element {
    long double value, magnitude;
} reference_element;

/* One row of C: out[j] := alpha * sum_p a[p]*B[p*n+j] + beta*c[j] for 0 <= j < n, with BLAS's
 * rules: alpha == 0 reads neither a nor B, beta == 0 does not read c. */
void reference_row(tgl_type type, int64_t n, int64_t k, double alpha, const double *a,
                   const double *B, double beta, const double *c, reference_element *out);

/* kernels/ladder/00_reference.c. A is m x k, B is k x n, row-major; the sums of products and of
 * their magnitudes are m x n and tight, and may overlap with nothing. */
void reference_product(int64_t m, int64_t n, int64_t k, const float *A, int64_t lda, const float *B,
                       int64_t ldb, double *restrict sum, double *restrict magnitude);

/* One element whose factors lie apart: sum_p a[p*step_a]*b[p*step_b], of elements of `type`. */
reference_element reference_dot(tgl_type type, int64_t k, const void *a, int64_t step_a,
                                const void *b, int64_t step_b);

/* Errors gathered over many elements. */
typedef struct error_summary {
    int64_t finite;     /* elements that are finite, and right; the rest is in no sum */
    int64_t wrong;      /* elements above the bound, or not finite in the right way */
    double max;         /* the greatest e */
    double sum_squares; /* of e */
    long double difference_squares, reference_squares; /* for ||c - ref||_F / ||ref||_F */
} error_summary;

/* The greatest e that passes for a sum of k products: the bound of any order of summation, or for
 * long sums what rounding errors that go both ways do not exceed in practice. */
double error_bound(int64_t k);

/* Takes one element into the summary; false: it is wrong. *error is its e, infinite for a NaN or
 * Inf that is not where the reference has it. */
bool error_add(error_summary *summary, tgl_type type, double c, const reference_element *reference,
               double bound, double *error);

void error_merge(error_summary *into, const error_summary *from);

double error_rms(const error_summary *summary);       /* root of the mean square of e */
double error_frobenius(const error_summary *summary); /* ||c - ref||_F / ||ref||_F */

#endif
