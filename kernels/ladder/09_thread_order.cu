/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 9: thread order.
 *
 * Changed: a thread's TM x TN results are no longer adjacent. They are groups of 4 x 4,
 * distributed over the block's tile, so that adjacent threads load adjacent float4.
 *
 *     columns of a row of threads; each entry is one group of 4 columns
 *     rung 7: t0 t0 t1 t1 t2 t2 ... t15 t15            lanes are 8 floats apart
 *     rung 9: t0 t1 t2 ... t15 | t0 t1 t2 ... t15      lanes are 4 floats apart
 *
 * Why: shared memory has 32 banks of four bytes, and accesses to different words of one bank are
 * serialised. A float4 load is served for 8 lanes at a time. In rung 7 these read 8 groups at a
 * distance of 8 floats, which lie in half of the banks: two wavefronts instead of one.
 * Look at: ncu --metrics
 *     l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum (about 0)
 *     l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum (unchanged; the next rung)
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

#if BM % TM || BN % TN || TM % 4 || TN % 4 || BK % 4 || THREADS > 1024
#error "a block is a grid of at most 1024 threads; TM, TN and BK are multiples of four"
#endif
#if BM * BK / 4 % THREADS || BK * BN / 4 % THREADS
#error "every load of four floats must be made by the whole block"
#endif

/* A thread's results are in TM/4 groups of four adjacent rows and TN/4 groups of four adjacent
 * columns. ROW_STEP, COL_STEP: the distance between the first rows or columns of successive
 * groups. */
#define ROW_STEP (BM / (TM / 4))
#define COL_STEP (BN / (TN / 4))

__global__ void __launch_bounds__(THREADS)
    sgemm_thread_order(int m, int n, int k, float alpha, const float *A, long long lda,
                       const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[BK][BM]; /* transposed */
    __shared__ __align__(16) float Bs[BK][BN];

    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    /* The thread's first row and column in the block's tile. */
    const int row = tid / (BN / TN) * 4, col = tid % (BN / TN) * 4;
    const bool a_aligned = rows_are_aligned(A, lda), b_aligned = rows_are_aligned(B, ldb);
    const bool c_aligned = rows_are_aligned(C, ldc);

    float acc[TM][TN] = {{0.0f}};
    for (int tile = 0; tile < k; tile += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK / 4; i += THREADS) {
            const int r = (i + tid) / (BK / 4), p = (i + tid) % (BK / 4) * 4;
            const int count = block_row + r < m ? k - (tile + p) : 0;
            float a[4];
            unpack(a, load_float4(&A[(block_row + r) * lda + tile + p], count, a_aligned));
#pragma unroll
            for (int q = 0; q < 4; q++)
                As[p + q][r] = a[q];
        }
#pragma unroll
        for (int i = 0; i < BK * BN / 4; i += THREADS) {
            const int p = (i + tid) / (BN / 4), c = (i + tid) % (BN / 4) * 4;
            const int count = tile + p < k ? n - (block_col + c) : 0;
            *(float4 *)&Bs[p][c] =
                load_float4(&B[(tile + p) * ldb + block_col + c], count, b_aligned);
        }
        __syncthreads(); /* the tiles are complete */

#pragma unroll
        for (int p = 0; p < BK; p++) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                load_fragment(&a[i], &As[p][row + i / 4 * ROW_STEP]);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                load_fragment(&b[j], &Bs[p][col + j / 4 * COL_STEP]);
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int s = 0; s < TN; s++) {
                    const int j = i % 2 ? TN - 1 - s : s;
                    acc[i][j] += a[i] * b[j];
                }
        }
        __syncthreads(); /* all threads have read the tiles */
    }

#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int r = block_row + row + i / 4 * ROW_STEP + i % 4,
                      c = block_col + col + j / 4 * COL_STEP;
            if (r < m) store_float4(&C[r * ldc + c], &acc[i][j], alpha, beta, n - c, c_aligned);
        }
}
