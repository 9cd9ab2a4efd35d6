/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: each thread waits for its own copies, but there is no barrier before it reads
 * data that other threads have copied.
 */
#include "lib/async_copy.h"

#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int row = (int)blockIdx.y * TILE + y, col = (int)blockIdx.x * TILE + x;
    __shared__ float As[TILE][TILE];
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        const bool valid = row < m && first + x < k;
        async_copy_float_or_zero(&As[y][x], &A[row * lda + first + x], valid); /* <- copied */
        async_commit();
        ASYNC_WAIT(0);
        for (int p = 0; p < TILE && first + p < k; p++)
            if (col < n) sum += As[y][p] * B[(first + p) * ldb + col]; /* <- reads */
        __syncthreads();
    }
    if (row < m && col < n)
        C[row * ldc + col] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[row * ldc + col];
}
