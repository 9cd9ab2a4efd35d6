/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 4: shared tile.
 *
 * Changed: back to one thread an element, but a block first brings a BM x BK tile of A and a
 * BK x BN tile of B into shared memory, together, and then multiplies from there.
 * Why: an element of A is loaded from global memory once for BN columns instead of once a column,
 * an element of B once for BM rows. What is left is one shared load and a half for each FFMA, which
 * is why the rung before, with its tile in registers, may still be the faster one.
 * Look at: l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum, down by the tile's size against rung 2;
 * smsp__average_warps_issue_stalled_mio_throttle_per_issue_active, the queue of shared loads.
 */
#include "lib/load_store.h"

#ifndef BM
#define BM 32 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 32 /* columns: neighbouring threads */
#endif
#ifndef BK
#define BK 32 /* depth of a tile in shared memory */
#endif
#define THREADS (BM * BN)

#if THREADS > 1024 || BN % 32 || BM * BK % THREADS || BK * BN % THREADS || THREADS % BK
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
    const int row = tid / BN, col = tid % BN; /* within the block */

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
        __syncthreads(); /* the tile is complete */

#pragma unroll
        for (int p = 0; p < BK; p++)
            sum += As[row][p] * Bs[p][col];
        __syncthreads(); /* everybody is done with it */
    }

    if (block_row + row < m && block_col + col < n)
        store_float(&C[(block_row + row) * ldc + block_col + col], sum, alpha, beta);
}
