/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise warp_sum: the sum over a warp.
 *
 * C has one column: C := alpha*A*b + beta*C. A block has 8 warps, one for each of 8 rows. Lane 0
 * alone multiplies the row, and so a load of 4 bytes moves a sector of 32.
 *
 * To do: let the lanes multiply adjacent elements of the row, 32 at a time. Then add the 32 sums:
 * __shfl_xor_sync(0xffffffffu, sum, 16) returns the sum of the lane whose number differs by 16;
 * each lane adds it to its own. Do the same with 8, 4, 2 and 1. All 32 lanes must take part. b is
 * loaded again for each row, so that the least is about 2 times the bytes.
 *
 * Goal: at most 2.5 times the bytes that A, b and C have.
 */
#include "lib/load_store.h"

#define ROWS    8 /* of C that a block computes, one for each warp */
#define THREADS (ROWS * 32)

__global__ void __launch_bounds__(THREADS)
    warp_sum(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
             long long ldb, float beta, float *C, long long ldc)
{
    const int row = (int)blockIdx.y * ROWS + (int)threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;
    (void)n;

    float sum = 0.0f;
    if (row < m && lane == 0)
        for (int p = 0; p < k; p++)
            sum += A[row * lda + p] * B[p * ldb];

    if (row < m && lane == 0) store_float(&C[row * ldc], sum, alpha, beta);
}
