/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 28: explicit fragments.
 *
 * Changed: mma.sync.m16n8k16 in place of wmma: 16 x 16 of A by 16 x 8 of B. PTX specifies which
 * lane holds which element, so each lane loads its elements itself, and stores its sums to C
 * without shared memory.
 *
 * With g = lane / 4 and t = lane % 4; a register holds two f16, neighbours in K, or one float:
 *
 *     A, 16 x 16                    B, 16 x 8                   sums, 16 x 8
 *             k 2t,2t+1  2t+8,2t+9          column g                    column 2t   2t+1
 *     row g      a[0]      a[2]     k 2t,2t+1    b[0]           row g        acc[0]  acc[1]
 *     row g+8    a[1]      a[3]     k 2t+8,2t+9  b[1]           row g+8      acc[2]  acc[3]
 *
 *     lanes and their a[0], rows 0..7:  k 0 1   2 3   4 5   6 7
 *                                row 0  l0      l1    l2    l3
 *                                row 1  l4      l5    l6    l7
 *                                ...
 *                                row 7  l28     l29   l30   l31
 *
 * Why: the sums no longer go through shared memory. And because the fragment layout is known, tiles
 * may have any layout in shared memory. B shows the cost: its rows in shared memory are rows of K,
 * so the two neighbours in K of a register are two 16-bit loads, which PRMT combines. The next rung
 * loads both with one ldmatrix.
 * Look at: LDS.U16 and PRMT in the SASS, and with ncu --metrics
 *     smsp__inst_executed_op_shared_ld.sum (increases, as it did not count the LDSM of wmma.load)
 *     smsp__inst_executed_op_ldsm.sum (0)
 *     smsp__inst_executed_op_shared_st.sum (decreases)
 */
#include "lib/load_store_half.h"
#include "lib/mma.h"

#define BM      128 /* rows of C that a block computes */
#define BN      128 /* columns */
#define BK      64  /* depth of a tile in shared memory */
#define WM      64  /* rows of C that a warp computes */
#define WN      32  /* columns */
#define THREADS (BM / WM * (BN / WN) * 32)

__global__ void __launch_bounds__(THREADS)
    hgemm_fragments(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                    const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc)
{
    __shared__ __align__(16) struct f16 As[BM][BK];
    __shared__ __align__(16) struct f16 Bs[BK][BN];

    const int tid = (int)threadIdx.x, warp = tid / 32;
    const int g = tid % 32 / 4, t = tid % 4;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    /* The warp's first row and column in the block's tile. */
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;
    const bool a_aligned = half_rows_are_aligned(A, lda, 16);
    const bool b_aligned = half_rows_are_aligned(B, ldb, 16);
    const bool c_aligned = half_rows_are_aligned(C, ldc, 4);

    float acc[WM / 16][WN / 8][4] = {{{0.0f}}};
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
            unsigned a[WM / 16][4], b[WN / 8][2];
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    a[i][e] =
                        *(const unsigned *)&As[row + i * 16 + g + e % 2 * 8][p + 2 * t + e / 2 * 8];
#pragma unroll
            for (int j = 0; j < WN / 8; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int q = p + 2 * t + e * 8, c = col + j * 8 + g;
                    b[j][e] = Bs[q][c].bits | (unsigned)Bs[q + 1][c].bits << 16;
                }
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int j = 0; j < WN / 8; j++)
                    mma_f16(acc[i][j], a[i], b[j]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < WM / 16; i++)
#pragma unroll
        for (int j = 0; j < WN / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e += 2) {
                const int r = block_row + row + i * 16 + g + e * 4;
                const int c = block_col + col + j * 8 + 2 * t;
                if (r < m)
                    store_half_pair(&C[r * ldc + c], &acc[i][j][e], alpha, beta, n - c, c_aligned);
            }
}
