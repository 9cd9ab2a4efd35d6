/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 6: two-dimensional thread tile.
 *
 * Changed: a thread computes TM x TN elements of C. For each step along K it loads TM values of A
 * and TN of B from shared memory into registers and computes all their products. The block's tile
 * is 128 x 128 instead of 64 x 64, and a block has 256 threads instead of 512.
 *
 *                  b b b b b b b b        one step along K: 8 + 8 values, 64 FFMAs
 *            a     x x x x x x x x
 *            a     x x x x x x x x
 *            ...   ...
 *            a     x x x x x x x x
 *
 * Why: TM + TN loaded values are used in TM * TN FFMAs: a quarter of a value per FFMA for 8 x 8.
 * The block's tile is larger, too, so there are fewer accesses to global memory.
 * Look at: shared loads per FFMA, the first metric over 1/32 of the second; and bank conflicts,
 * which rungs 9 and 10 remove. For ncu --metrics:
 *     smsp__inst_executed_op_shared_ld.sum
 *     smsp__sass_thread_inst_executed_op_ffma_pred_on.sum
 *     l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
 */
#include "lib/load_store.h"

#ifndef BM
#define BM 128 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 128 /* columns */
#endif
#ifndef BK
#define BK 8 /* depth of a tile in shared memory */
#endif
#ifndef TM
#define TM 8 /* rows of C that a thread computes */
#endif
#ifndef TN
#define TN 8 /* columns */
#endif
#define THREADS (BM / TM * (BN / TN))

#if THREADS > 1024 || BM % TM || BN % TN || BM * BK % THREADS || BK * BN % THREADS
#error "a block is a grid of at most 1024 threads, and makes every load as a whole"
#endif

__global__ void __launch_bounds__(THREADS)
    sgemm_thread_tile_2d(int m, int n, int k, float alpha, const float *A, long long lda,
                         const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];

    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / (BN / TN) * TM, col = tid % (BN / TN) * TN; /* in the block's tile */

    float acc[TM][TN] = {{0.0f}};
    for (int tile = 0; tile < k; tile += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK; i += THREADS) {
            const int r = (i + tid) / BK, p = (i + tid) % BK;
            const bool inside = block_row + r < m && tile + p < k;
            As[r][p] = inside ? A[(block_row + r) * lda + tile + p] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BK * BN; i += THREADS) {
            const int p = (i + tid) / BN, c = (i + tid) % BN;
            const bool inside = tile + p < k && block_col + c < n;
            Bs[p][c] = inside ? B[(tile + p) * ldb + block_col + c] : 0.0f;
        }
        __syncthreads(); /* the tiles are complete */

#pragma unroll
        for (int p = 0; p < BK; p++) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i++)
                a[i] = As[row + i][p];
#pragma unroll
            for (int j = 0; j < TN; j++)
                b[j] = Bs[p][col + j];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    acc[i][j] += a[i] * b[j];
        }
        __syncthreads(); /* all threads have read the tiles */
    }

#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
            const int r = block_row + row + i, c = block_col + col + j;
            if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j], alpha, beta);
        }
}
