/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 1: naive. C := alpha*A*B + beta*C, all row-major, one thread per element of C.
 *
 * Adjacent threads of a warp compute adjacent elements of a column of C. Each of their loads of A
 * then touches 32 rows. Memory is accessed in sectors of 32 bytes, so every 4 bytes of A cost a
 * whole sector.
 *
 *          A                B               C
 *     t0 > a . . .      b . . . . .      t0
 *     t1 > a . . .      . . . . . .      t1       one load of A by a warp touches 32 rows:
 *     t2 > a . . .      . . . . . .      t2       32 sectors for 32 floats, 7/8 of them unused
 *     ...                                ...
 *
 * Look at: sectors per request. Loads (the first metric over the second): 32 for A, 1 for B (the
 * same element for all lanes), 16.5 on average. Stores of C (the third metric over the fourth): 32.
 * For ncu --metrics:
 *     l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
 *     l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
 *     l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum
 *     l1tex__t_requests_pipe_lsu_mem_global_op_st.sum
 */
#include "lib/load_store.h"

#ifndef BM
#define BM 32 /* rows of C that a block computes, one per thread of a warp */
#endif
#ifndef BN
#define BN 8 /* columns */
#endif
#define THREADS (BM * BN)

#if THREADS > 1024 || BM % 32
#error "BM * BN threads: at most 1024, and a warp lies in one column"
#endif

__global__ void __launch_bounds__(THREADS)
    sgemm_naive(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                long long ldb, float beta, float *C, long long ldc)
{
    const int row = (int)blockIdx.y * BM + (int)threadIdx.x % BM;
    const int col = (int)blockIdx.x * BN + (int)threadIdx.x / BM;
    if (row >= m || col >= n) return;

    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += A[row * lda + p] * B[p * ldb + col];

    store_float(&C[row * ldc + col], sum, alpha, beta);
}
