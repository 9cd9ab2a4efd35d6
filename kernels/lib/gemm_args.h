/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of the production GEMM kernels, one struct by value: plain C, shared by the host
 * that fills it and the kernels that read it.
 *
 * Row-major: C (m x n) := epilogue(alpha * op(A) (m x k) * op(B) (k x n), beta * C). A column-major
 * problem is the row-major one with A and B, m and n exchanged: the host does that.
 * All strides in elements.
 */
#ifndef TGL_GEMM_ARGS_H
#define TGL_GEMM_ARGS_H

#if !defined(__CUDACC__) && !defined(TGL_SIM)
#include <stdbool.h>
#endif

struct tgl_gemm_args {
    const float *A, *B;
    float *C;
    long long lda, ldb, ldc;
    /* A batch is gridDim.z problems: at these distances (0 is legal for A and B), or, where the
     * arrays are given, wherever those point. */
    long long stride_a, stride_b, stride_c;
    const float *const *A_array;
    const float *const *B_array;
    float *const *C_array;
    int m, n, k;
    float alpha, beta;

    int raster;         /* tiles of C are taken in bands of this many rows of tiles, for L2 */
    int tiles_whole;    /* so many tiles are computed by one block each; */
    int splits;         /* each other tile by this many blocks, */
    int cluster;        /* which add up in clusters of this many, */
    int k_chunk;        /* each k_chunk deep (a multiple of BK; the first of them takes the rest) */
    float *workspace;   /* partial sums: batch * split tiles * (splits / cluster) * BM * BN */
    unsigned *counters; /* batch * split tiles * cluster: zero before and after a launch */

    bool overlaps;     /* the next launch may start early: this one leaves it room */
    bool waits_at_end; /* gemm/skinny.cu, matvec.cu: it has begun early and depends on nothing that
                          still runs; what follows it depends on the launch before, too */

    int batch;          /* gemm/small_batch.cu, whose grid does not tell */
    bool small_along_k; /* skinny.cu, matvec.cu: how the operand that is not the big one lies */

    const float *bias;     /* m or n of them; NULL where the epilogue has none */
    const float *residual; /* m x n, added last */
    long long ld_residual, stride_residual, stride_bias; /* strides: 0 is legal */
};

#endif
