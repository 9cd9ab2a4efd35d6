/* SPDX-License-Identifier: Apache-2.0
 *
 * Block scaling (lib/block_scales.h) in gemm/mma.cu. A warp sums the products of a block of K, 128
 * deep, in separate registers. At the end of the block it adds these sums, multiplied by the
 * factors, to its accumulators of D. The part of a tile's K that a warp multiplies lies in one
 * block of K. The warp's rows lie in one block of 128 rows, and its columns in one block of 128
 * columns. The reason is that all these sizes are powers of two up to 128.
 */
#ifndef TGL_MMA_SCALES_H
#define TGL_MMA_SCALES_H

#include "lib/block_scales.h"

#if HAS_BLOCK_SCALES

#if STEPS * MMA_K > SCALE_EDGE || WM > SCALE_EDGE || WN > SCALE_EDGE
#error "BK / SLICES, WM, WN: at most 128 with factors of blocks"
#endif

#define A_FACTORS (SCALE_A == SCALE_BLOCK ? 1 : 2 * MT)
#define B_FACTORS (SCALE_B == SCALE_BLOCK ? 1 : 2 * NT)

/* The factors of a lane for one block of K. */
struct block_factors {
    float a[A_FACTORS]; /* SCALE_BLOCK: one for all rows of the warp; else one for each of the
                           lane's rows, in order */
    float b[B_FACTORS];
};

/* The first row and column of D that a warp computes, the number of the problem or group, and the k
 * that the warp multiplies next. */
struct scaled_place {
    const struct tgl_gemm_args *args;
    int row, col, batch, k;
};

static __device__ __forceinline__ void load_factors(struct block_factors *to,
                                                    const struct scaled_place *at)
{
    const struct block_scales a = scales_of_a(at->args, at->batch);
    const struct block_scales b = scales_of_b(at->args, at->batch);
    const int lane = (int)threadIdx.x % 32, q = at->k / SCALE_EDGE;
    const int row = at->row + lane / 4, last_row = at->args->m - 1;
    const int col = at->col + lane % 4 * 2, last_col = at->args->n - 1;
    /* A slice (a warp's part of a tile's K) may begin past the end of K. Its sums are 0 then, and
     * no factor is read: none exists there, and 0 * Inf would be NaN.
     */
    const bool exists = SLICES == 1 || at->k < at->args->k;
#pragma unroll
    for (int i = 0; i < A_FACTORS; i++)
        to->a[i] = exists ? *block_factor(&a, SCALE_A, min(row + i * 8, last_row), q) : 0;
#pragma unroll
    for (int j = 0; j < B_FACTORS; j++)
        to->b[j] =
            exists ? *block_factor(&b, SCALE_B, min(col + j / 2 * 8 + j % 2, last_col), q) : 0;
}

/* acc += the sums `part` of a block of K, times their factors; part := 0. */
static __device__ __forceinline__ void
promote(accumulate_t (*acc)[NT][4], accumulate_t (*part)[NT][4], const struct block_factors *of)
{
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float a = of->a[A_FACTORS == 1 ? 0 : 2 * i + e / 2];
                const float b = of->b[B_FACTORS == 1 ? 0 : 2 * j + e % 2];
                acc[i][j][e] = fmaf(part[i][j][e], a * b, acc[i][j][e]);
                part[i][j][e] = 0;
            }
}

#endif

#endif
