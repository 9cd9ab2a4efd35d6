/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 0: reference. The triple loop of the definition, in C on the CPU. `tegula ladder` contains
 * it and compares the results of the other rungs with it.
 *
 * The product of two floats is exact in double, and a sum of k products in double has an error of
 * at most k units of 2^-53, which is negligible relative to the precision of float. The sum of
 * magnitudes, |A||B|, is the scale for the error of a result: u*|A||B| with u = 2^-24 is the error
 * that one rounding to float in a sum of these terms can cause.
 *
 * The loops run in the order i, p, j: the innermost loop accesses adjacent elements of rows of B
 * and of the result, so the compiler vectorises it. In the order i, j, p it would stride through B.
 */
#include "00_reference.h"

#include <math.h>

void reference_product(int64_t m, int64_t n, int64_t k, const float *A, int64_t lda, const float *B,
                       int64_t ldb, double *restrict sum, double *restrict magnitude)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            sum[i * n + j] = magnitude[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++) {
                const double product = (double)A[i * lda + p] * B[p * ldb + j];
                sum[i * n + j] += product;
                magnitude[i * n + j] += fabs(product);
            }
    }
}
