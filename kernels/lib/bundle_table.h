/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundle: products of unrelated sizes that one launch computes, in kernels with the macro BUNDLE
 * (tgl_grouped_list() of include/tegula/tegula.h). The table of the bundle travels in the
 * parameters of the launch, so that the host needs no memory that outlives the call. The host
 * includes this file as well. gemm_args.h must be included before.
 */
#ifndef TGL_BUNDLE_TABLE_H
#define TGL_BUNDLE_TABLE_H

/* With this number the parameters fit in 4096 bytes, the limit of a launch before CUDA 12.1 (CUDA
 * programming guide, "__global__ function parameters"). */
#define TGL_BUNDLE_MAX 52

/* A product of a bundle: the members of tgl_gemm_args that differ between products. */
struct tgl_bundle_member {
    const void *A, *B; /* NULL if k is 0 */
    void *D;
    union tgl_scalar alpha, beta;
    int m, n, k; /* k is also 0 if alpha is 0 */
    int lda, ldb, ldd;
    int first_tile; /* the number in the launch of the product's first tile */
};

struct tgl_bundle_table {
    int count; /* number of products, at most TGL_BUNDLE_MAX */
    int tiles; /* number of tiles of all products, which is gridDim.x */
    struct tgl_bundle_member members[TGL_BUNDLE_MAX];
};

/* The parameters of a kernel with BUNDLE. */
struct tgl_bundle_args {
    struct tgl_gemm_args args; /* what all products have in common */
    struct tgl_bundle_table bundle;
};

#endif
