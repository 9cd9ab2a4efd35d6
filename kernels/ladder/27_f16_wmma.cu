/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 27: wmma. Rungs 27 to 33 are chapter 2 of the ladder, f16 on tensor cores. C := alpha*A*B +
 * beta*C, all f16 and row-major, with sums in FP32.
 *
 * Changed: the unit of work is a warp. One instruction multiplies two 16 x 16 matrices, 4096
 * multiplications, where a warp's FFMA does 32.
 *
 *     block: 128 x 128 of C, BK = 64     warp: 64 x 32 of C, in 4 x 2 matrices of 16 x 16
 *
 *              32 32 32 32                        b0   b1        one step along K, 16 deep:
 *         64   w0 w1 w2 w3                   a0   x    x         4 + 2 matrices are loaded,
 *         64   w4 w5 w6 w7                   a1   x    x         8 are multiplied
 *                                            a2   x    x
 *                                            a3   x    x
 *
 * The tiles are in shared memory, row by row. wmma.load loads a matrix from there into the
 * registers of the warp, each lane a part of it: its fragment. Which lane holds which element is
 * not specified. So at the end wmma.store stores the sums to shared memory, from where lanes load
 * the elements that they round and store to C.
 *
 * Why: a tensor core, of which an SM has four, multiplies 512 pairs of f16 per cycle on Hopper; the
 * 32 FFMA lanes beside it multiply 32. wmma and mma.sync reach about 0.63 of that rate (arXiv
 * 2501.12084), wgmma all of it.
 * The rows of the tiles are 128 and 256 bytes apart. All 32 banks together have 128 bytes, so the
 * rows of a matrix begin in the same bank: bank conflicts, which rung 29 removes.
 * Look at: HMMA in the SASS, and with ncu --metrics
 *     sm__inst_executed_pipe_tensor_op_hmma.sum
 *     smsp__inst_executed_op_ldsm.sum (wmma.load; the simulator counts the loads of rung 28)
 *     l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
 */
#include "lib/load_store_half.h"
#include "lib/wmma.h"

#define BM      128 /* rows of C that a block computes */
#define BN      128 /* columns */
#define BK      64  /* depth of a tile in shared memory */
#define WM      64  /* rows of C that a warp computes */
#define WN      32  /* columns */
#define THREADS (BM / WM * (BN / WN) * 32)

__global__ void __launch_bounds__(THREADS)
    hgemm_wmma(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
               const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc)
{
    __shared__ __align__(32) struct f16 As[BM][BK];
    __shared__ __align__(32) struct f16 Bs[BK][BN];
    __shared__ __align__(32) float sums[THREADS / 32][16][16]; /* a matrix of each warp */

    const int tid = (int)threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    /* The warp's first row and column in the block's tile. */
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;
    const bool a_aligned = half_rows_are_aligned(A, lda, 16);
    const bool b_aligned = half_rows_are_aligned(B, ldb, 16);

    wmma_sums acc[WM / 16][WN / 16] = {{{{0.0f}}}};
    for (int tile = 0; tile < k; tile += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK / 8; i += THREADS) {
            const int r = (i + tid) / (BK / 8), p = (i + tid) % (BK / 8) * 8;
            const int count = block_row + r < m ? k - (tile + p) : 0;
            *(uint4 *)&As[r][p] =
                load_half8(&A[(block_row + r) * lda + tile + p], count, a_aligned);
        }
#pragma unroll
        for (int i = 0; i < BK * BN / 8; i += THREADS) {
            const int p = (i + tid) / (BN / 8), c = (i + tid) % (BN / 8) * 8;
            const int count = tile + p < k ? n - (block_col + c) : 0;
            *(uint4 *)&Bs[p][c] =
                load_half8(&B[(tile + p) * ldb + block_col + c], count, b_aligned);
        }
        __syncthreads();

#pragma unroll
        for (int p = 0; p < BK; p += 16) {
            wmma_a a[WM / 16];
            wmma_b b[WN / 16];
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
                wmma_load_a(&a[i], &As[row + i * 16][p], BK);
#pragma unroll
            for (int j = 0; j < WN / 16; j++)
                wmma_load_b(&b[j], &Bs[p][col + j * 16], BN);
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int j = 0; j < WN / 16; j++)
                    wmma_multiply(&acc[i][j], &a[i], &b[j]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < WM / 16; i++)
#pragma unroll
        for (int j = 0; j < WN / 16; j++) {
            wmma_store(&sums[warp][0][0], &acc[i][j], 16);
            __syncwarp();
#pragma unroll
            for (int e = lane; e < 16 * 16; e += 32) {
                const int r = block_row + row + i * 16 + e / 16;
                const int c = block_col + col + j * 16 + e % 16;
                if (r < m && c < n)
                    store_half(&C[r * ldc + c], sums[warp][e / 16][e % 16], alpha, beta);
            }
            __syncwarp(); /* all lanes have read the sums */
        }
}
