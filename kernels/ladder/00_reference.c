/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 0: reference. The triple loop of the definition, in C on the CPU, which the other rungs are
 * checked against: `tegula ladder` compiles it in.
 *
 * A product of two floats is exact in double, which has more than twice their bits, and a sum of k
 * of them in double is off by at most k units of 2^-53: next to what a float can tell, nothing. The
 * sum of magnitudes beside it is the measure of a result's error: u*|A||B|, with u = 2^-24, is what
 * one rounding to float in a sum of these terms may cost.
 * The loops run in the order i, p, j: the innermost one over neighbours in rows of B and of the
 * result, of which the compiler makes vectors. In the order i, j, p it would stride through B.
 */
#include "reference.h"

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
