/* SPDX-License-Identifier: Apache-2.0
 *
 * Block scaling: A and B have scale factors for blocks of 128 along K. The sum over each block of K
 * is multiplied by a factor of A and one of B before it is added to the sum of an element of D:
 *
 *     sum[row][col] = sum over q of fa(row, q) * fb(q, col) * sum[q][row][col]
 *
 * A line is a row of op(A) or a column of op(B). The factor of a line for block q of K is
 *
 * - with SCALE_LINE_128: scale[q * ld + line]
 * - with SCALE_BLOCK: scale[line / 128 * ld + q]
 *
 * The product of the two factors is rounded. One FMA multiplies it by sum[q] and adds the result to
 * the sum.
 */
#ifndef TGL_BLOCK_SCALES_H
#define TGL_BLOCK_SCALES_H

#include "lib/element.h"
#include "lib/gemm_args.h"
#include "lib/operands.h"

#define IS_BLOCKED(scale) ((scale) == SCALE_BLOCK || (scale) == SCALE_LINE_128)
#define HAS_BLOCK_SCALES  IS_BLOCKED(SCALE_A)
#define SCALE_EDGE        128 /* K, rows or columns of a block */
/* Whether tiles of `edge` rows or columns lie within one block. They then begin at multiples of
 * `edge` (lib/wgmma_units.h). */
#define IN_ONE_BLOCK(scale, edge) ((scale) == SCALE_BLOCK && SCALE_EDGE % (edge) == 0)

#if HAS_BLOCK_SCALES != IS_BLOCKED(SCALE_B)
#error "SCALE_A, SCALE_B: both have factors of blocks, or none has"
#endif

/* The factors of an operand in device memory, and their leading dimension. */
struct block_scales {
    const float *factors;
    long long ld;
};

/* batch: the number of the problem, or of the group. */
static __device__ __forceinline__ struct block_scales scales_of_a(const struct tgl_gemm_args *args,
                                                                  int batch)
{
    const struct block_scales scales = {SCALES_OF(args, a, batch), args->ld_scale_a};
    (void)batch;
    return scales;
}

static __device__ __forceinline__ struct block_scales scales_of_b(const struct tgl_gemm_args *args,
                                                                  int batch)
{
    const struct block_scales scales = {SCALES_OF(args, b, batch), args->ld_scale_b};
    (void)batch;
    return scales;
}

/* The address of the factor of a line for block q of K. kind: SCALE_BLOCK or SCALE_LINE_128. */
static __device__ __forceinline__ const float *block_factor(const struct block_scales *scales,
                                                            const int kind, int line, int q)
{
    return scales->factors +
           (kind == SCALE_BLOCK ? line / SCALE_EDGE * scales->ld + q : q * scales->ld + line);
}

#endif
