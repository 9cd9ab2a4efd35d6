/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise coalesce: adjacent lanes load adjacent elements.
 *
 * C := alpha*A*B + beta*C, row-major, one thread per element of C. A block of 1024 threads computes
 * 32 rows and 32 columns. A warp is 32 threads with consecutive threadIdx.x, its lanes. It wastes
 * most of what it loads: memory is read in sectors of 32 bytes, and each lane loads another row.
 *
 * To do: choose row and col so that the lanes of a warp share a row of A and read adjacent elements
 * of B.
 *
 * Goal: at most 4 sectors a global load.
 */
#include "lib/load_store.h"

#define BM 32 /* rows of C that a block computes */
#define BN 32 /* columns */

__global__ void __launch_bounds__(BM *BN)
    coalesce(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
             long long ldb, float beta, float *C, long long ldc)
{
    /* Change these two lines. */
    const int row = (int)blockIdx.y * BM + (int)threadIdx.x % BM;
    const int col = (int)blockIdx.x * BN + (int)threadIdx.x / BM;
    if (row >= m || col >= n) return;

    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += A[row * lda + p] * B[p * ldb + col];

    store_float(&C[row * ldc + col], sum, alpha, beta);
}
