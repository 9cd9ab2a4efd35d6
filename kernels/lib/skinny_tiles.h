/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of gemm/skinny.cu, the sizes that follow from them, and its two operands: the
 * small one has at most 16 rows or columns. A line of the big operand is a row of op(A) or a column
 * of op(B).
 */
#ifndef TGL_SKINNY_TILES_H
#define TGL_SKINNY_TILES_H

#include "lib/gemm_args.h"
#include "lib/operands.h"

#ifndef BIG_A
#define BIG_A 0 /* 1: A is the big operand (n <= COUNT), 0: B (m <= COUNT) */
#endif
#ifndef ALONG_K
#define ALONG_K 0 /* 1: the big operand is K-major, 0: MN-major */
#endif
#ifndef COUNT
#define COUNT 16 /* maximum rows or columns of the small operand: 1, 2, 4, 8 or 16 */
#endif
#ifndef VEC
#define VEC 4 /* elements of a load: divides the big operand's alignment, ld, and MN-major edge */
#endif
#ifndef RESULTS
#define RESULTS 4 /* a thread has RESULTS x COUNT results; a multiple of PACK unless ALONG_K */
#endif
#ifndef LANES_K
#define LANES_K 8 /* with ALONG_K: lanes of a warp that divide K among them: 4, 8, 16 or 32 */
#endif
#ifndef UNROLL
#define UNROLL 1 /* groups of GROUP_K that a thread multiplies in a step */
#endif
#ifndef STAGES
#define STAGES 3 /* stages of the ring of a warp; not used if STRAIGHT (no rings) */
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef DEPTH
#define DEPTH 512 /* K of the small operand that is in shared memory at once */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2 /* minimum resident blocks of an SM, which limits the registers */
#endif

#define LOAD_SCALAR(at) (*(at)) /* for the few elements at the end of K, without a cache hint */
#include "lib/packs.h"
#include "lib/thin_lines.h"

#define THREADS (WARPS * 32)
#define GROUP_K                                                                                    \
    (ALONG_K ? PACK : 4 * BIG_PARTS) /* K of a group: K that a thread multiplies at once */
#define STEP         (GROUP_K * (ALONG_K ? LANES_K : WARPS) * UNROLL) /* K of a block's step */
#define WARP_STEP    (ALONG_K ? STEP : GROUP_K * UNROLL)              /* K of a warp's step */
#define LANES_LENGTH (ALONG_K ? 32 / LANES_K : 32) /* lanes with different results */
#define WARP_TILE                                                                                  \
    (LANES_LENGTH * RESULTS) /* lines of the big operand of a warp; each gives COUNT results */
#define TILE     (ALONG_K ? WARPS * WARP_TILE : WARP_TILE) /* lines of a block */
#define STRAIGHT (TYPE_A != TYPE_F32 || VEC == PACK)       /* 1: loads go straight into registers */

/* ROW_LANE, K_LANE: this lane's index among the lanes that have different results, and among the
 * lanes that divide K among them. If loads go straight into registers, neighbouring lanes have
 * successive K, so that they load neighbouring elements. With rings, neighbouring lanes have
 * different results: they read the same elements of the small operand, which is faster. */
#define ROW_LANE ((int)threadIdx.x % 32 / (STRAIGHT ? LANES_K : 1) % LANES_LENGTH)
#define K_LANE   ((int)threadIdx.x % 32 / (STRAIGHT ? 1 : LANES_LENGTH) % LANES_K)
#define K_BIT    (STRAIGHT ? 1 : LANES_LENGTH) /* distance of lanes with successive K_LANE */

#if DEPTH % STEP || DEPTH % 32
#error "DEPTH: a multiple of STEP and of 32"
#endif
#if PAIRS && ALONG_K && COUNT == 1
#error "COUNT: at least 2 with PAIRS if the big operand is K-major"
#endif
#if !ALONG_K && RESULTS % PACK
#error "RESULTS: a multiple of PACK if the big operand is MN-major"
#endif

/* The operands of one problem of the batch. */
struct operands {
    const element_t *big, *small;
    long long ld; /* leading dimension of the big operand */
    /* Strides of the small operand. Complex numbers (PAIRS) have a k for each part. */
    long long small_row, small_k;
    int length; /* lines of the big operand */
    int count;  /* lines of the small operand in memory */
};

/* Numbers of an element in memory. */
#define NUMBERS (PAIRS ? 2 : 1)

/* The offset of k = p of line s from the beginning of the small operand. */
static __device__ __forceinline__ long long small_offset(const struct operands *o, int s, int p)
{
    return s * o->small_row + p / NUMBERS * o->small_k + p % NUMBERS;
}

static __device__ __forceinline__ struct operands operands_of(const struct tgl_gemm_args *args)
{
    const int batch = (int)blockIdx.z;
    const element_a *A = A_OF(args, batch);
    const element_b *B = B_OF(args, batch);
    const long long small_ld = BIG_A ? args->ldb : args->lda;
    struct operands o;
    o.big = BIG_A ? A : B;
    o.small = BIG_A ? B : A;
    o.ld = BIG_A ? args->lda : args->ldb;
    o.length = BIG_LINES(args);
    o.count = SMALL_LINES(args) / SMALL_PARTS;
    o.small_row = args->small_k_major ? small_ld : NUMBERS;
    o.small_k = args->small_k_major ? NUMBERS : small_ld;
    return o;
}

#endif
