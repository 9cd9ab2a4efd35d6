/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: the wait allows one group to be unfinished, and this group is read next.
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
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int p = 0; p < k; p++) {
        async_copy_float(&As[y][x], &A[row * lda + p], true); /* <- issued */
        async_commit();
        ASYNC_WAIT(1);
        sum += As[y][x] * B[p * ldb + col]; /* <- reads */
    }
    if (row < m && col < n)
        C[row * ldc + col] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[row * ldc + col];
}
