/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise warp_sum: the solution.
 *
 * Why: a load of a warp is 128 adjacent bytes, 4 sectors that are used whole. Each warp loads b
 * again, hence 2 and not 1. After five exchanges each lane has the whole sum. A lane whose row is
 * outside does not return before them, but adds zeros.
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
    for (int p = lane; row < m && p < k; p += 32)
        sum += A[row * lda + p] * B[p * ldb];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);

    if (row < m && lane == 0) store_float(&C[row * ldc], sum, alpha, beta);
}
