/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mend_barrier: the solution.
 *
 * Why: the barrier after the loads says that the tile is complete. Nothing said that all threads
 * had read it: a fast warp stored the next tile while a slow one still multiplied the last. The
 * second barrier ends each iteration for all.
 */
#include "lib/load_store.h"

#define TILE    16 /* rows, columns, and depth of a tile */
#define THREADS (TILE * TILE)

__global__ void __launch_bounds__(THREADS)
    mend_barrier(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                 long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    const int r = (int)threadIdx.x / TILE, c = (int)threadIdx.x % TILE;
    const int row = (int)blockIdx.y * TILE + r, col = (int)blockIdx.x * TILE + c;

    float sum = 0.0f;
    for (int tile = 0; tile < k; tile += TILE) {
        As[r][c] = row < m && tile + c < k ? A[row * lda + tile + c] : 0.0f;
        Bs[r][c] = tile + r < k && col < n ? B[(tile + r) * ldb + col] : 0.0f;
        __syncthreads();
        for (int p = 0; p < TILE; p++)
            sum += As[r][p] * Bs[p][c];
        __syncthreads(); /* all threads have read the tile */
    }

    if (row < m && col < n) store_float(&C[row * ldc + col], sum, alpha, beta);
}
