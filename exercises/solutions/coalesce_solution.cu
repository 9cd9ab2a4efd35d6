/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise coalesce: the solution.
 *
 * Why: the 32 lanes of a warp now have one row and 32 adjacent columns. Their load of A is one
 * address, one sector. Their load of B is 128 adjacent bytes, four sectors. The average is 2.5.
 */
#include "lib/load_store.h"

#define BM 32 /* rows of C that a block computes */
#define BN 32 /* columns */

__global__ void __launch_bounds__(BM *BN)
    coalesce(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
             long long ldb, float beta, float *C, long long ldc)
{
    const int row = (int)blockIdx.y * BM + (int)threadIdx.x / BN;
    const int col = (int)blockIdx.x * BN + (int)threadIdx.x % BN;
    if (row >= m || col >= n) return;

    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += A[row * lda + p] * B[p * ldb + col];

    store_float(&C[row * ldc + col], sum, alpha, beta);
}
