/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise split_k: split-K with repeatable sums.
 *
 * Few tiles of C leave most SMs idle, so several blocks share the K of a tile: block blockIdx.x has
 * split blockIdx.x / tiles. Each leaves its sums in the workspace, and the last block to finish
 * adds them (is_last_block of lib/last_block.h). It begins with its own sums, which it still has.
 * Floating-point addition is not associative, and which block is last differs from run to run: so
 * does the result.
 *
 * To do: make the result independent of the order in which the blocks finish.
 *
 * Goal: the same bits in any order of the blocks.
 */
#include "lib/last_block.h"
#include "lib/load_store.h"

#define TILE    16 /* rows and columns of C that a block computes */
#define THREADS (TILE * TILE)

__global__ void __launch_bounds__(THREADS)
    split_k(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
            long long ldb, float beta, float *C, long long ldc, int splits, int k_chunk,
            float *workspace, unsigned *counters)
{
    const int tiles = (int)gridDim.x / splits, columns = (n + TILE - 1) / TILE;
    const int tile = (int)blockIdx.x % tiles, split = (int)blockIdx.x / tiles;
    const int row = tile / columns * TILE + (int)threadIdx.x / TILE;
    const int col = tile % columns * TILE + (int)threadIdx.x % TILE;
    const bool inside = row < m && col < n;

    float sum = 0.0f;
    for (int p = split * k_chunk; inside && p < min(k, (split + 1) * k_chunk); p++)
        sum += A[row * lda + p] * B[p * ldb + col];

    if (splits > 1) {
        float *sums = &workspace[(long long)tile * splits * THREADS + threadIdx.x]; /* of split 0 */
        sums[split * THREADS] = sum;
        if (!is_last_block(&counters[tile], splits)) return;
        for (int s = 0; s < splits; s++)
            if (s != split) sum += sums[s * THREADS];
    }
    if (inside) store_float(&C[row * ldc + col], sum, alpha, beta);
}
