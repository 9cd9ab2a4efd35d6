/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 4: shared tile.
 *
 * Changed: one thread per element again. The threads of a block first load a BM x BK tile of A and
 * a BK x BN tile of B into shared memory, and then multiply from there.
 *
 *          A                  B                   C
 *     . . . . . . .      . . # # . .         . . . . . .
 *     # # > > > . .      . . # # . .         . . # # . .     for each pair of tiles:
 *     # # > > > . .      . . v v . .         . . # # . .     load, barrier,
 *     . . . . . . .      . . v v . .         . . . . . .     multiply, barrier
 *
 *     #: the current pair of tiles, and the tile of C     > v: the tiles of the next iterations
 *
 * Why: an element of A is loaded from global memory once for BN columns instead of once per
 * column, and an element of B once for BM rows. But each FFMA needs two values from shared memory,
 * so the rung before, with its tile in registers, may still be faster. The source has two shared
 * loads per FFMA. ptxas merges four adjacent loads along a row of A's tile into one LDS.128, so
 * that the machine code has 1.25: 32 LDS and 8 LDS.128 for 32 FFMAs.
 * Look at: sectors of global loads, fewer than in rung 2; shared loads per FFMA, the second metric
 * over 1/32 of the third; and stalls at the queue of shared loads. For ncu --metrics:
 *     l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
 *     smsp__inst_executed_op_shared_ld.sum
 *     smsp__sass_thread_inst_executed_op_ffma_pred_on.sum
 *     smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio
 */
#include "lib/load_store.h"

#ifndef BM
#define BM 32 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 32 /* columns, one per thread of a warp */
#endif
#ifndef BK
#define BK 32 /* depth of a tile in shared memory */
#endif
#define THREADS (BM * BN)

#if THREADS > 1024 || BN % 32 || BM * BK % THREADS || BK * BN % THREADS
#error "at most 1024 threads, a warp in one row, and every load made by the whole block"
#endif

__global__ void __launch_bounds__(THREADS)
    sgemm_shared_tile(int m, int n, int k, float alpha, const float *A, long long lda,
                      const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN];

    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / BN, col = tid % BN; /* in the block's tile */

    float sum = 0.0f;
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
        for (int p = 0; p < BK; p++)
            sum += As[row][p] * Bs[p][col];
        __syncthreads(); /* all threads have read the tiles */
    }

    if (block_row + row < m && block_col + col < n)
        store_float(&C[(block_row + row) * ldc + block_col + col], sum, alpha, beta);
}
