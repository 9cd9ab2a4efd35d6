/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mend_barrier: a broken kernel to mend.
 *
 * The kernel multiplies tiles from shared memory, and its results are right in most runs on a GPU:
 * the warps of a block keep about the same pace. Sometimes they do not.
 *
 * To do: run the check. It names two source lines that access the same word, one of which writes
 * it, and says what is missing between them. Find out which of the two iterations each line belongs
 * to.
 *
 * Goal: no race.
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
    }

    if (row < m && col < n) store_float(&C[row * ldc + col], sum, alpha, beta);
}
