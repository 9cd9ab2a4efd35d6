/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 0 for its caller, `tegula ladder`.
 */
#ifndef LADDER_REFERENCE_H
#define LADDER_REFERENCE_H

#include <stdint.h>

/* Computes sums of products and of their magnitudes. A is m x k, B is k x n, row-major; sum and
 * magnitude are m x n, row-major without padding, and must not overlap another array. */
void reference_product(int64_t m, int64_t n, int64_t k, const float *A, int64_t lda, const float *B,
                       int64_t ldb, double *restrict sum, double *restrict magnitude);

#endif
