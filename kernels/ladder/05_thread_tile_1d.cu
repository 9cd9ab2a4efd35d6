/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 5: one-dimensional thread tile.
 *
 * Changed: a thread computes TM = 8 elements of a column of C, from the tiles in shared memory.
 * With 512 threads the block's tile is 64 x 64 instead of 32 x 32, and BK is 8 instead of 32, so
 * that every thread loads one element of each tile.
 *
 *                  b                 one step along K: 8 + 1 values, 8 FFMAs
 *            a     x
 *            a     x
 *            ...   ...
 *            a     x
 *
 * Why: each loaded value of B is used in TM FFMAs. Shared loads per FFMA drop from 2 to 1 + 1/TM =
 * 1.125 in the source, and from 1.25 to 0.375 in the machine code, where ptxas merges the loads
 * along the rows of A's tile: 16 LDS.128 and 8 LDS for 64 FFMAs.
 * Look at: shared loads per FFMA, the first metric over 1/32 of the second. For ncu --metrics:
 *     smsp__inst_executed_op_shared_ld.sum
 *     smsp__sass_thread_inst_executed_op_ffma_pred_on.sum
 *     smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio
 */
#include "lib/load_store.h"

#ifndef BM
#define BM 64 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 64 /* columns, one per thread of a warp */
#endif
#ifndef BK
#define BK 8 /* depth of a tile in shared memory */
#endif
#ifndef TM
#define TM 8 /* rows of C that a thread computes */
#endif
#define THREADS (BM / TM * BN)

#if THREADS > 1024 || BM % TM || BN % 32 || BM * BK % THREADS || BK * BN % THREADS
#error "at most 1024 threads, a warp in one row, and every load made by the whole block"
#endif

__global__ void __launch_bounds__(THREADS)
    sgemm_thread_tile_1d(int m, int n, int k, float alpha, const float *A, long long lda,
                         const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];

    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / BN * TM, col = tid % BN; /* in the block's tile */

    float acc[TM] = {0.0f};
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
            const float b = Bs[p][col];
#pragma unroll
            for (int i = 0; i < TM; i++)
                acc[i] += As[row + i][p] * b;
        }
        __syncthreads(); /* all threads have read the tiles */
    }

    if (block_col + col >= n) return;
#pragma unroll
    for (int i = 0; i < TM; i++)
        if (block_row + row + i < m)
            store_float(&C[(block_row + row + i) * ldc + block_col + col], acc[i], alpha, beta);
}
