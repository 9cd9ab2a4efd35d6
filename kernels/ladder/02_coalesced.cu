/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 2: coalesced.
 *
 * Changed: adjacent threads compute adjacent elements of a row of C.
 *
 *          A                B                            C
 *     all> a . . .      t0 t1 t2 ... t31     row p       t0 t1 t2 ... t31
 *                       one line, 4 sectors              one line, 4 sectors
 *
 * Why: the 32 floats of B that a warp loads are now one line of 128 bytes, four sectors, and all
 * lanes load the same element of A.
 * Look at: sectors per request, the first metric over the second: 4 for B, 1 for A, 2.5 on
 * average. For ncu --metrics:
 *     l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
 *     l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
 */
#include "lib/load_store.h"

#ifndef BM
#define BM 8 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 32 /* columns, one per thread of a warp */
#endif
#define THREADS (BM * BN)

#if THREADS > 1024 || BN % 32
#error "BM * BN threads: at most 1024, and a warp lies in one row"
#endif

__global__ void __launch_bounds__(THREADS)
    sgemm_coalesced(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                    long long ldb, float beta, float *C, long long ldc)
{
    const int row = (int)blockIdx.y * BM + (int)threadIdx.x / BN;
    const int col = (int)blockIdx.x * BN + (int)threadIdx.x % BN;
    if (row >= m || col >= n) return;

    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += A[row * lda + p] * B[p * ldb + col];

    store_float(&C[row * ldc + col], sum, alpha, beta);
}
