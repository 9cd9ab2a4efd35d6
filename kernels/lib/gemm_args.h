/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of the production GEMM kernels, one struct by value: plain C, shared by the host
 * that fills it and the kernels that read it. Pointers have no element type, because macros of a
 * kernel say the types (lib/element.h).
 *
 * Row-major: D (m x n) := epilogue(alpha * op(A) (m x k) * op(B) (k x n), beta * C). The host turns
 * a column-major problem into a row-major one by exchanging A and B, and m and n. All leading
 * dimensions and strides are in elements.
 *
 * Do not change the order of the members: ptxas loads two neighbouring 4-byte members at once, so
 * with another order it would order the main loops differently. The schedules of gemm/simt.cu were
 * found for this order.
 */
#ifndef TGL_GEMM_ARGS_H
#define TGL_GEMM_ARGS_H

#if !defined(__CUDACC__) && !defined(TGL_SIM)
#include <stdbool.h>
#endif

/* alpha or beta, in the type VALUE of lib/element.h. */
union tgl_scalar {
    float f32;
    double f64;
    int i32;
};

struct tgl_gemm_args {
    const void *A, *B;
    const void *C; /* read if beta is not 0; only for kernels with SEPARATE_D */
    void *D;       /* the result; without SEPARATE_D also the operand C */
    long long lda, ldb, ldc, ldd;
    /* Matrix X number i of a batch begins at X_array[i] if that array is not NULL, else at X + i *
     * stride_x elements. A stride of 0 is legal for A and B. */
    long long stride_a, stride_b, stride_c, stride_d;
    const void *const *A_array, *const *B_array, *const *C_array;
    void *const *D_array;
    int m, n, k;
    int raster;      /* rows of tiles in a band: tiles are computed band by band, for L2 */
    int tiles_whole; /* the first tiles_whole tiles are not split: one block computes each */
    int splits;      /* split-K: the number of blocks that compute each of the other tiles */
    int cluster;     /* blocks of a split tile that add their sums in one thread block cluster */
    int k_chunk;     /* K per split, a multiple of the K of a step. The last split (in gemm/simt.cu
                        the first one) takes the rest of K */
    union tgl_scalar alpha, beta;
    const void *alpha_at, *beta_at; /* with DEVICE_SCALARS: addresses of alpha and beta; beta_at
                                       NULL: beta is 0 */

    union {
        void *workspace; /* partial sums: batch * split tiles * (splits / cluster) * BM * BN; for
                            gemm/skinny.cu see lib/skinny_results.h */
        const void *left_tables; /* for gemm/accurate.cu: see lib/accurate_tiles.h */
        const void *groups;      /* with GROUPED: struct tgl_group_table of lib/group_table.h */
    };
    union {
        unsigned *counters; /* batch * split tiles * cluster: zero before and after a launch */
        const void *right_tables;
    };

    bool overlaps;     /* the next launch may start early, beside this one */
    bool waits_at_end; /* the launch is a strip (lib/launch_order.h): it runs concurrently with the
                          launch before it, and waits for that launch at its end */

    int batch;          /* problems of this launch, for kernels that loop over them */
    bool small_k_major; /* skinny.cu, gemv.cu: the small operand is K-major */

    const void *bias;     /* m or n elements; NULL if the epilogue has no bias */
    const void *residual; /* m x n elements; NULL if the epilogue has no residual */
    long long ld_residual, stride_residual, stride_bias; /* strides: 0 is legal */

    /* Scale factors of A, B and D. The macros SCALE_A, SCALE_B and SCALE_D say how many there are
     * (lib/element.h). scale_a and scale_b are NULL if the host knows that alpha is 0. */
    const float *scale_a, *scale_b, *scale_d;
    unsigned *amax; /* with AMAX: the bits of the largest magnitude of D so far, an F32 */
    long long ld_scale_a, ld_scale_b; /* leading dimensions of block scale factors
                                         (lib/block_scales.h), or those of groups of weights */
    long long stride_scale_a, stride_scale_b, stride_scale_d; /* with GROUPED, and for weights:
                                                                 factors from one matrix to the
                                                                 next */
    const void *zero_b; /* for gemm/dequant.cu: zero points of weights, with scale_b's strides */
};

#endif
