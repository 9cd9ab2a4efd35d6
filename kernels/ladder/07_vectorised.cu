/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 7: vectorised.
 *
 * Changed: global memory is read and written as float4 where rows are aligned to 16 bytes, else as
 * scalars. The tile of A is transposed when it is stored in shared memory, so that the TM values
 * of A that a thread needs at one step along K are contiguous and are loaded as float4, like those
 * of B.
 *
 *     A in global memory (a thread: 4 floats of a row)      As[p][row]
 *     row 0   [p0 p1 p2 p3] ...                             p0: row 0, row 1, row 2, ...
 *     row 1   [p0 p1 p2 p3] ...                             p1: row 0, row 1, ...
 *
 * Why: fewer instructions for the same bytes. The price is bank conflicts: the float4 of adjacent
 * threads are 8 floats apart, and the transposing stores of a warp use the same banks. Rungs 9 and
 * 10 remove these conflicts.
 * Look at: LDG.E.128, LDS.128 and STG.E.128 in the SASS, and with ncu --metrics
 *     smsp__inst_executed.sum (decreases)
 *     l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum (increases)
 *     l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum (increases)
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

__global__ void __launch_bounds__(THREADS)
    sgemm_vectorised(int m, int n, int k, float alpha, const float *A, long long lda,
                     const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[BK][BM]; /* transposed */
    __shared__ __align__(16) float Bs[BK][BN];

    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / (BN / TN) * TM, col = tid % (BN / TN) * TN; /* in the block's tile */
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
                load_fragment(&a[i], &As[p][row + i]);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                load_fragment(&b[j], &Bs[p][col + j]);
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
        for (int j = 0; j < TN; j += 4) {
            const int r = block_row + row + i, c = block_col + col + j;
            if (r < m) store_float4(&C[r * ldc + c], &acc[i][j], alpha, beta, n - c, c_aligned);
        }
}
