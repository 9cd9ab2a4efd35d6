/* SPDX-License-Identifier: Apache-2.0
 *
 * Bundles (lib/bundle_table.h) in kernels whose blocks compute one tile each. With BUNDLE the grid
 * has the tiles of all products, one product after the other. A block finds its product in the
 * table and computes a tile of it as in a launch of this product alone.
 *
 * GEMM_PARAMETERS declares the parameter of the kernel. GEMM_ARGUMENTS, the first line of the
 * kernel, declares args, the arguments of the block's product. With GROUPED args is a copy of the
 * parameter that the block may change. Without BUNDLE and GROUPED args is the parameter itself, and
 * GEMM_ARGUMENTS does nothing. FIRST_TILE is the number of the block's tile in its product.
 */
#ifndef TGL_BUNDLE_TILES_H
#define TGL_BUNDLE_TILES_H

#include "lib/element.h"
#include "lib/gemm_args.h"

#ifndef BUNDLE
#define BUNDLE 0
#endif

#if BUNDLE
#include "lib/bundle_table.h"

/* __grid_constant__: the compiler need not copy the table to local memory, although its index is a
 * variable. */
#define GEMM_PARAMETERS const __grid_constant__ struct tgl_bundle_args given

/* The arguments of the product to which tile number *tile of the launch belongs. *tile := its
 * number in the product. */
static __device__ __forceinline__ struct tgl_gemm_args
args_of_member(const struct tgl_bundle_args *given, int *tile)
{
    const struct tgl_bundle_member *members = given->bundle.members;
    struct tgl_gemm_args args = given->args;
    int low = 0, high = given->bundle.count - 1;
    while (low < high) { /* the last product that begins at this tile or before it */
        const int middle = (low + high + 1) / 2;
        if (members[middle].first_tile <= *tile)
            low = middle;
        else
            high = middle - 1;
    }
    args.A = members[low].A;
    args.B = members[low].B;
    args.D = members[low].D;
    args.lda = members[low].lda;
    args.ldb = members[low].ldb;
    args.ldd = members[low].ldd;
    args.m = members[low].m;
    args.n = members[low].n;
    args.k = members[low].k;
    args.alpha = members[low].alpha;
    args.beta = members[low].beta;
    *tile -= members[low].first_tile;
    return args;
}

#define GEMM_ARGUMENTS                                                                             \
    int tile_of_member = (int)blockIdx.x;                                                          \
    struct tgl_gemm_args args = args_of_member(&given, &tile_of_member)
#define FIRST_TILE tile_of_member

#else
#define FIRST_TILE (int)blockIdx.x
#if GROUPED
#define GEMM_PARAMETERS const struct tgl_gemm_args given
#define GEMM_ARGUMENTS  struct tgl_gemm_args args = given
#else
#define GEMM_PARAMETERS const struct tgl_gemm_args args
#define GEMM_ARGUMENTS  (void)0
#endif
#endif

#endif
