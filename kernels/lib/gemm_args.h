/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of the production GEMM kernels, one struct by value: plain C, shared by the host
 * that fills it and the kernels that read it. Element types are macros of a kernel (lib/element.h);
 * pointers carry none.
 *
 * Row-major: D (m x n) := epilogue(alpha * op(A) (m x k) * op(B) (k x n), beta * C). A column-major
 * problem is the row-major one with A and B, m and n exchanged: the host does that.
 * All leading dimensions and strides in elements.
 *
 * The order of the members matters: ptxas loads neighbours on 8 bytes at once, and with other
 * neighbours it arrives at other orders of the main loops than simt.cu's schedules were found for.
 */
#ifndef TGL_GEMM_ARGS_H
#define TGL_GEMM_ARGS_H

#if !defined(__CUDACC__) && !defined(TGL_SIM)
#include <stdbool.h>
#endif

/* alpha or beta, in the accumulation type. */
union tgl_scalar {
    float f32;
    double f64;
};

struct tgl_gemm_args {
    const void *A, *B;
    const void *C; /* read if beta is not 0; used only by kernels with SEPARATE_D */
    void *D;       /* the result; without SEPARATE_D also C */
    long long lda, ldb, ldc, ldd;
    /* A batch is gridDim.z problems: at these distances (0 is legal for A and B), or, where the
     * arrays are given, wherever those point. */
    long long stride_a, stride_b, stride_c, stride_d;
    const void *const *A_array, *const *B_array, *const *C_array;
    void *const *D_array;
    int m, n, k;
    int raster;      /* tiles of D are taken in bands of this many rows of tiles, for L2 */
    int tiles_whole; /* tiles that one block computes alone; */
    int splits;      /* each other tile is computed by this many blocks, */
    int cluster;     /* which add up in clusters of this many, */
    int k_chunk; /* each k_chunk deep (a multiple of BK; the first of them takes the rest, in mma.cu
                    the last) */
    union tgl_scalar alpha, beta;
    const void *alpha_at,
        *beta_at; /* used instead by kernels with DEVICE_SCALARS; beta_at may be NULL */

    union {
        void *workspace; /* partial sums: batch * split tiles * (splits / cluster) * BM * BN */
        const void *left_tables; /* of gemm/accurate.cu, instead; and right_tables */
    };
    union {
        unsigned *counters; /* batch * split tiles * cluster: zero before and after a launch */
        const void *right_tables;
    };

    bool overlaps;     /* the next launch may start early: this one leaves it room */
    bool waits_at_end; /* a strip: it starts early, beside the launch before it. The launch after
                          it waits for both */

    int batch;          /* problems of this launch, for kernels that loop over them */
    bool small_k_major; /* skinny.cu, gemv.cu: the small operand is K-major */

    const void *bias;     /* m or n elements; NULL where the epilogue has none */
    const void *residual; /* m x n, added last */
    long long ld_residual, stride_residual, stride_bias; /* strides: 0 is legal */
};

#endif
