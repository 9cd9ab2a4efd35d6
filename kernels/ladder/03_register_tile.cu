/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 3: register tile.
 *
 * Changed: a thread computes TM x TN elements of C directly from global memory, four steps along K
 * at a time: it loads a float4 of A for each of its rows, and then a float4 of B for each step.
 * There is no shared memory yet.
 *
 *                  b b b b        one step along K: 4 + 4 values, 16 FFMAs
 *            a     x x x x
 *            a     x x x x
 *            a     x x x x
 *            a     x x x x
 *
 * Why: the rungs before execute two loads per FFMA. Here each value of A is used in TN FFMAs and
 * each value of B in TM.
 * Look at: global loads per FFMA, the first metric over 1/32 of the second: 2 before, (TM + TN) /
 * (4 TM TN) now; and the hits in L1, which serves the values that adjacent threads share. For ncu
 * --metrics:
 *     smsp__sass_inst_executed_op_global_ld.sum
 *     smsp__sass_thread_inst_executed_op_ffma_pred_on.sum
 *     l1tex__t_sectors_lookup_hit.sum
 */
#include "lib/load_store.h"

#ifndef TM
#define TM 4 /* rows of C that a thread computes */
#endif
#ifndef TN
#define TN 4 /* columns */
#endif
#ifndef BM
#define BM (16 * TM) /* rows of C that a block computes */
#endif
#ifndef BN
#define BN (16 * TN) /* columns */
#endif
#define THREADS (BM / TM * (BN / TN))

#if BM % TM || BN % TN || TN % 4 || THREADS > 1024
#error "a block is a grid of at most 1024 threads, each with a multiple of four columns"
#endif

__global__ void __launch_bounds__(THREADS)
    sgemm_register_tile(int m, int n, int k, float alpha, const float *A, long long lda,
                        const float *B, long long ldb, float beta, float *C, long long ldc)
{
    const int row = (int)blockIdx.y * BM + (int)threadIdx.x / (BN / TN) * TM;
    const int col = (int)blockIdx.x * BN + (int)threadIdx.x % (BN / TN) * TN;
    if (row >= m || col >= n) return;
    const bool a_aligned = rows_are_aligned(A, lda), b_aligned = rows_are_aligned(B, ldb);

    float acc[TM][TN] = {{0.0f}};
    for (int p = 0; p < k; p += 4) {
        float a[TM][4];
#pragma unroll
        for (int i = 0; i < TM;
             i++) /* the last row replaces rows past it, whose results are not stored */
            unpack(a[i], load_float4(&A[min(row + i, m - 1) * lda + p], k - p, a_aligned));
#pragma unroll
        for (int q = 0; q < 4; q++) {
            float b[TN];
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const int count = p + q < k ? n - (col + j) : 0;
                unpack(&b[j], load_float4(&B[(p + q) * ldb + col + j], count, b_aligned));
            }
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    acc[i][j] += a[i][q] * b[j];
        }
    }

    const bool c_aligned = rows_are_aligned(C, ldc);
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            if (row + i < m)
                store_float4(&C[(row + i) * ldc + col + j], &acc[i][j], alpha, beta, n - (col + j),
                             c_aligned);
}
