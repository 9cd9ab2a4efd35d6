/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise shared_tile: the solution.
 *
 * Why: an element of A is loaded once for 32 columns of C instead of once for each, an element of B
 * once for 32 rows. At 64 x 64 x 64 each of A and B is loaded twice, and (2 + 2) / 3 = 1.33 of the
 * bytes of A, B and C. The first barrier says that the tile is complete, the second that all
 * threads have read it. Elements outside are zero, so that the loop over p needs no condition.
 */
#include "lib/load_store.h"

#define TILE    32 /* rows, columns, and depth of a tile */
#define THREADS (TILE * TILE)

__global__ void __launch_bounds__(THREADS)
    shared_tile(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                long long ldb, float beta, float *C, long long ldc)
{
    const int r = (int)threadIdx.x / TILE, c = (int)threadIdx.x % TILE; /* within the block */
    const int row = (int)blockIdx.y * TILE + r, col = (int)blockIdx.x * TILE + c;
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];

    float sum = 0.0f;
    for (int tile = 0; tile < k; tile += TILE) {
        As[r][c] = row < m && tile + c < k ? A[row * lda + tile + c] : 0.0f;
        Bs[r][c] = tile + r < k && col < n ? B[(tile + r) * ldb + col] : 0.0f;
        __syncthreads(); /* the tile is complete */
        for (int p = 0; p < TILE; p++)
            sum += As[r][p] * Bs[p][c];
        __syncthreads(); /* all threads have read the tile */
    }

    if (row < m && col < n) store_float(&C[row * ldc + col], sum, alpha, beta);
}
