/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 11: register prefetch.
 *
 * Changed: two sets of fragments, which are the values of A and B that a thread has in registers.
 * While one set is multiplied, the other is loaded with the values for the next step along K.
 *
 *     step p       load set 1 (p + 1)   multiply set 0 (p)
 *     step p + 1   load set 0 (p + 2)   multiply set 1 (p + 1)
 *
 * Why: a load from shared memory takes some thirty cycles; now the FFMAs of a step do not need a
 * load that was issued just before them. But there is no gain: the BK steps are unrolled, so ptxas
 * moves the loads of rung 10 ahead in the same way. Both loops have the same 605 instructions
 * except for the order of a few (sm_90a). The compiler cannot move loads across a barrier, which
 * is where rung 16 needs the second set.
 * Look at: the distance in the SASS from an LDS.128 to the FFMA that needs it, in both rungs, and
 * with ncu --metrics
 *     smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio
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

/* Loads a thread's fragments for one step along K. A_row, B_row: where the fragments begin in
 * shared memory. */
static __device__ __forceinline__ void load_fragments(float *a, float *b, const float *A_row,
                                                      const float *B_row)
{
#pragma unroll
    for (int i = 0; i < TM; i += 4)
        load_fragment(&a[i], &A_row[i / 4 * ROW_STEP]);
#pragma unroll
    for (int j = 0; j < TN; j += 4)
        load_fragment(&b[j], &B_row[j / 4 * COL_STEP]);
}

/* acc += a * b^T. In odd rows of acc the columns come in reverse order, so that consecutive FFMAs
 * share a register. */
static __device__ __forceinline__ void multiply(float (*acc)[TN], const float *a, const float *b)
{
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int s = 0; s < TN; s++) {
            const int j = i % 2 ? TN - 1 - s : s;
            acc[i][j] += a[i] * b[j];
        }
}

__global__ void __launch_bounds__(THREADS)
    sgemm_register_prefetch(int m, int n, int k, float alpha, const float *A, long long lda,
                            const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[BK][BM + 4]; /* transposed and padded */
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

        float a[2][TM], b[2][TN];
        load_fragments(a[0], b[0], &As[0][row], &Bs[0][col]);
#pragma unroll
        for (int p = 0; p < BK; p++) {
            if (p + 1 < BK)
                load_fragments(a[(p + 1) % 2], b[(p + 1) % 2], &As[p + 1][row], &Bs[p + 1][col]);
            multiply(acc, a[p % 2], b[p % 2]);
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
