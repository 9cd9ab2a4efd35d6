/* SPDX-License-Identifier: Apache-2.0
 *
 * Promotion in gemm/wgmma.cu: adds the sums of a stage, 128 of K, to the FP32 sums of the unit (a
 * tile, or a part of its K). If A and B have block scale factors (lib/block_scales.h), the sums of
 * the stage are multiplied by them first.
 *
 * A thread has sums of two of each 64 rows of a consumer, and of two of each 8 columns. It reads
 * their factors while wgmma multiplies. With SCALE_BLOCK one factor serves 128 columns and all
 * threads. A tile may begin at any multiple of 8, so its columns belong to at most RIGHT_BLOCKS
 * such blocks. Tiles of groups of rows may begin at any row, but then A has no such blocks.
 */
#ifndef TGL_WGMMA_SCALES_H
#define TGL_WGMMA_SCALES_H

#include "lib/block_scales.h"
#include "lib/wgmma_units.h"

#if HAS_BLOCK_SCALES

#if !PROMOTE || BK != SCALE_EDGE
#error "SCALE_A, SCALE_B: factors of blocks are applied when the sums of a stage are promoted"
#endif

#if EXCHANGED
#define LEFT_KIND    SCALE_B
#define RIGHT_KIND   SCALE_A
#define LEFT_SCALES  scales_of_b
#define RIGHT_SCALES scales_of_a
#else
#define LEFT_KIND    SCALE_A
#define RIGHT_KIND   SCALE_B
#define LEFT_SCALES  scales_of_a
#define RIGHT_SCALES scales_of_b
#endif
#define RIGHT_BLOCKS  ((SCALE_EDGE - 8 + BN - 1) / SCALE_EDGE + 1)
#define RIGHT_FACTORS (RIGHT_KIND == SCALE_BLOCK ? RIGHT_BLOCKS : BN / 4)

/* The factors of a thread for one stage. */
struct stage_factors {
    float left[2]; /* of the thread's two rows in the 64 rows of the current wgmma */
    float
        right[RIGHT_FACTORS]; /* of blocks of columns, or of the thread's columns in their order */
    int in_block;             /* columns of the first block that lie before the tile */
};

static __device__ __forceinline__ void load_right_factors(struct stage_factors *to,
                                                          const struct tgl_gemm_args *args,
                                                          const struct unit *u, int q)
{
    const struct block_scales scales = RIGHT_SCALES(args, u->batch);
    const int end = right_extent(args);
    to->in_block = u->right % SCALE_EDGE;
#if RIGHT_KIND == SCALE_BLOCK
    const int first = u->right / SCALE_EDGE, last = (end - 1) / SCALE_EDGE;
#pragma unroll
    for (int i = 0; i < RIGHT_BLOCKS; i++)
        to->right[i] = *block_factor(&scales, RIGHT_KIND, min(first + i, last) * SCALE_EDGE, q);
#else
    const int column = u->right + (int)threadIdx.x % 4 * 2;
    const float *from = block_factor(&scales, RIGHT_KIND, column, q);
    if (u->right + BN <= end) {
#pragma unroll
        for (int i = 0; i < RIGHT_FACTORS; i++)
            to->right[i] = from[i / 2 * 8 + i % 2];
    } else {
#pragma unroll
        for (int i = 0; i < RIGHT_FACTORS; i++)
            to->right[i] = from[min(i / 2 * 8 + i % 2, end - 1 - column)];
    }
#endif
}

/* Loads the factors of step number `step` of the product, for the consumer's rows 64*i to 64*i +
 * 63. The factors of columns are loaded if i is 0. */
static __device__ __forceinline__ void load_factors(struct stage_factors *to,
                                                    const struct tgl_gemm_args *args,
                                                    const struct unit *u, int group, int step,
                                                    const int i)
{
    const struct block_scales scales = LEFT_SCALES(args, u->batch);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4;
    const int row = u->left + group * WM + i * 64 + warp * 16 + lane / 4;
    const int last = left_extent(args) - 1;
    to->left[0] = *block_factor(&scales, LEFT_KIND, min(row, last), step);
    to->left[1] = *block_factor(&scales, LEFT_KIND, min(row + 8, last), step);
    if (i == 0) load_right_factors(to, args, u, step);
}

/* acc += the sums `part` of a stage, for 64 rows, times their factors `of`. */
static __device__ __forceinline__ void promote(accumulate_t *acc, const accumulate_t *part,
                                               const struct stage_factors *of)
{
#if RIGHT_KIND == SCALE_BLOCK
    float both[RIGHT_BLOCKS][2];
#pragma unroll
    for (int j = 0; j < RIGHT_BLOCKS * 2; j++)
        both[j / 2][j % 2] = of->left[j % 2] * of->right[j / 2];
    if (of->in_block + BN <= SCALE_EDGE) {
#pragma unroll
        for (int j = 0; j < ACC; j++)
            acc[j] = fmaf(part[j], both[0][j / 2 % 2], acc[j]);
    } else {
#pragma unroll
        for (int j = 0; j < ACC; j++) {
            const int column = of->in_block + j / 4 * 8, row = j / 2 % 2;
            float factor = column < SCALE_EDGE ? both[0][row] : both[1][row];
#if RIGHT_BLOCKS > 2
            if (column >= 2 * SCALE_EDGE) factor = both[2][row];
#endif
            acc[j] = fmaf(part[j], factor, acc[j]);
        }
    }
#else
#pragma unroll
    for (int j = 0; j < ACC; j++)
        acc[j] = fmaf(part[j], of->left[j / 2 % 2] * of->right[j / 4 * 2 + j % 2], acc[j]);
#endif
}

#elif PROMOTE

struct stage_factors {
    char none;
};

static __device__ __forceinline__ void load_factors(struct stage_factors *to,
                                                    const struct tgl_gemm_args *args,
                                                    const struct unit *u, int group, int step,
                                                    const int i)
{
    (void)to, (void)args, (void)u, (void)group, (void)step, (void)i;
}

/* acc += the sums `part` of a stage, for 64 rows. */
static __device__ __forceinline__ void promote(accumulate_t *acc, const accumulate_t *part,
                                               const struct stage_factors *of)
{
    (void)of;
#pragma unroll
    for (int j = 0; j < ACC; j++)
        acc[j] += part[j];
}

#endif

#endif
