/* SPDX-License-Identifier: Apache-2.0
 *
 * Promotion in gemm/wgmma.cu: adds the sums of a stage, 128 of K, to the FP32 sums of the unit (a
 * tile, or a part of its K). If A and B have block scale factors (lib/block_scales.h), the sums of
 * the stage are multiplied by them first.
 *
 * The factors of a stage lie in shared memory beside its tiles: for each operand one factor per row
 * or column of the tile, or one per block of 128 that the tile touches. A warp copies them by
 * cp.async. When consumers loaded them from global memory, the loads took longer than the wgmmas of
 * a stage: 4096 cubed took 1.55 times as long as with constants in their place
 * (docs/notes/2026-11-28-gpu.md).
 *
 * Of each 64 x 8 sums a thread holds two rows and two columns. A tile may begin at any multiple of
 * 8. Tiles of groups of rows may begin at any row, but then A has no blocks of 128 rows.
 */
#ifndef TGL_WGMMA_SCALES_H
#define TGL_WGMMA_SCALES_H

#include "lib/async_copy.h"
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
/* Maximum number of blocks of 128 that an edge of a tile touches. */
#define BLOCKS_OF(edge) ((SCALE_EDGE - 8 + (edge)-1) / SCALE_EDGE + 1)
#define RIGHT_BLOCKS    BLOCKS_OF(BN)
/* Factors of an operand in a stage with SCALE_BLOCK: its blocks, padded to 16 bytes. */
#define BLOCKS_MAX 4
#if BLOCKS_OF(BM) > BLOCKS_MAX || BLOCKS_OF(BN) > BLOCKS_MAX
#error "BM, BN: a tile touches more than BLOCKS_MAX blocks of 128 rows or columns"
#endif
#define FACTORS_OF(kind, edge) ((kind) == SCALE_BLOCK ? BLOCKS_MAX : (edge))

/* The factors of a stage's tiles. */
struct stage_factors {
    __align__(16) float left[FACTORS_OF(LEFT_KIND, BM)];
    __align__(16) float right[FACTORS_OF(RIGHT_KIND, BN)];
};

/* The factors of a tile's rows or columns for a block of K. */
struct factor_source {
    const float *from;  /* the first one */
    long long k_stride; /* from a block of K to the next one */
    int valid;          /* factors from `from` to the end of the matrix; may exceed the tile */
    bool is_aligned;    /* valid % 4 is 0, and `from` is 16-byte aligned in every block of K */
};

/* The source for the lines from `first` on, of which those before `end` exist, for block q of K. */
static __device__ __forceinline__ struct factor_source
find_factors(const struct block_scales *scales, const int kind, int first, int end, int q)
{
    const float *from = block_factor(scales, kind, first, q);
    if (kind == SCALE_BLOCK) {
        const int blocks = (end - 1) / SCALE_EDGE - first / SCALE_EDGE + 1;
        const struct factor_source found = {from, 1, blocks, false};
        return found;
    }
    const bool is_aligned =
        (unsigned long long)from % 16 == 0 && scales->ld % 4 == 0 && (end - first) % 4 == 0;
    const struct factor_source found = {from, scales->ld, end - first, is_aligned};
    return found;
}

/* Called by all threads of a warp: copies the factors of one operand's tile, with zeros for those
 * that do not exist, and moves the source to the next block of K. Aligned factors are copied four
 * at a time. */
static __device__ __forceinline__ void copy_factors(float *to, struct factor_source *source,
                                                    const struct block_scales *scales,
                                                    const int kind, const int edge)
{
    const int lane = (int)threadIdx.x % 32;
    if (kind == SCALE_BLOCK) {
        const bool is_valid = lane < source->valid;
        const float *from = source->from + (is_valid ? lane * scales->ld : 0);
        if (lane < BLOCKS_MAX) async_copy_float_or_zero(&to[lane], from, is_valid);
    } else if (source->is_aligned) {
#pragma unroll
        for (int j = 0; j < (edge + 127) / 128; j++) {
            const int i = lane * 4 + j * 128;
            if (edge % 128 != 0 && i >= edge) break;
            async_copy_or_zero(&to[i], source->from + i, 4, i < source->valid);
        }
    } else {
#pragma unroll 1
        for (int i = lane; i < edge; i += 32)
            async_copy_float_or_zero(&to[i], source->from + i, i < source->valid);
    }
    source->from += source->k_stride;
}

/* Called by all threads of a warp: copies the factors of all stages of a unit. */
static __device__ __forceinline__ void copy_unit_factors(struct stage_factors *factors,
                                                         struct ring *ring, struct ring_place *at,
                                                         const struct tgl_gemm_args *args,
                                                         const struct unit *u)
{
    const struct block_scales left = LEFT_SCALES(args, u->batch);
    const struct block_scales right = RIGHT_SCALES(args, u->batch);
    struct factor_source left_source =
        find_factors(&left, LEFT_KIND, u->left, left_extent(args), u->first);
    struct factor_source right_source =
        find_factors(&right, RIGHT_KIND, u->right, right_extent(args), u->first);
#pragma unroll 1
    for (int step = 0; step < u->steps; step++) {
        struct stage_factors *to = &factors[at->stage];
        mbarrier_wait(&ring->empty[at->stage], at->parity ^ 1);
        copy_factors(to->left, &left_source, &left, LEFT_KIND, BM);
        copy_factors(to->right, &right_source, &right, RIGHT_KIND, BN);
        async_arrive(&ring->full[at->stage]);
        advance(at);
    }
}

/* The factors of a thread's rows, and with SCALE_BLOCK those of the blocks of columns. */
struct thread_factors {
    float left[2];
#if RIGHT_KIND == SCALE_BLOCK
    float right[RIGHT_BLOCKS];
#endif
};

/* The factor of row `row` of the left tile. */
static __device__ __forceinline__ float left_factor(const struct stage_factors *of,
                                                    const struct unit *u, int row)
{
    return of->left[LEFT_KIND == SCALE_BLOCK ? (u->left % SCALE_EDGE + row) / SCALE_EDGE : row];
}

/* Loads the factors for the consumer's rows 64*i to 64*i + 63. */
static __device__ __forceinline__ void load_factors(struct thread_factors *to,
                                                    const struct stage_factors *of,
                                                    const struct unit *u, int group, const int i)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4;
    const int row = group * WM + i * 64 + warp * 16 + lane / 4;
    to->left[0] = left_factor(of, u, row);
    to->left[1] = left_factor(of, u, row + 8);
#if RIGHT_KIND == SCALE_BLOCK
#pragma unroll
    for (int j = 0; j < RIGHT_BLOCKS; j++)
        to->right[j] = of->right[j];
#endif
}

/* Emits no instruction. Called after the wait for the wgmmas of a stage, it keeps the compiler from
 * using the factors earlier. Without it the kernel would wait for their loads before it has issued
 * all wgmmas. */
static __device__ __forceinline__ void hold_factors(struct thread_factors *own)
{
#ifndef TGL_SIM
    asm volatile("" : "+f"(own->left[0]), "+f"(own->left[1]));
#if RIGHT_KIND == SCALE_BLOCK
#pragma unroll
    for (int j = 0; j < RIGHT_BLOCKS; j++)
        asm volatile("" : "+f"(own->right[j]));
#endif
#endif
}

/* acc += the sums `part` of a stage, for 64 rows, times their factors. */
static __device__ __forceinline__ void promote(accumulate_t *acc, const accumulate_t *part,
                                               const struct thread_factors *own,
                                               const struct stage_factors *of, const struct unit *u)
{
#if RIGHT_KIND == SCALE_BLOCK
    const int in_block = u->right % SCALE_EDGE; /* columns of the block that precede the tile */
    float both[RIGHT_BLOCKS][2];
    (void)of;
#pragma unroll
    for (int j = 0; j < RIGHT_BLOCKS * 2; j++)
        both[j / 2][j % 2] = own->left[j % 2] * own->right[j / 2];
    if (in_block + BN <= SCALE_EDGE) {
#pragma unroll
        for (int j = 0; j < ACC; j++)
            acc[j] = fmaf(part[j], both[0][j / 2 % 2], acc[j]);
    } else {
#pragma unroll
        for (int j = 0; j < ACC; j++) {
            const int column = in_block + j / 4 * 8, row = j / 2 % 2;
            float factor = column < SCALE_EDGE ? both[0][row] : both[1][row];
#if RIGHT_BLOCKS > 2
            if (column >= 2 * SCALE_EDGE) factor = both[2][row];
#endif
            acc[j] = fmaf(part[j], factor, acc[j]);
        }
    }
#else
    const int column = (int)threadIdx.x % 4 * 2;
    (void)u;
#pragma unroll
    for (int j = 0; j < ACC; j++)
        acc[j] =
            fmaf(part[j], own->left[j / 2 % 2] * of->right[column + j / 4 * 8 + j % 2], acc[j]);
#endif
}

/* 1: promote() reads factors from shared memory, so the stage is released after it. */
#define PROMOTE_READS_STAGE (RIGHT_KIND != SCALE_BLOCK)

#elif PROMOTE

struct stage_factors {
    char none;
};
struct thread_factors {
    char none;
};

static __device__ __forceinline__ void load_factors(struct thread_factors *to,
                                                    const struct stage_factors *of,
                                                    const struct unit *u, int group, const int i)
{
    (void)to, (void)of, (void)u, (void)group, (void)i;
}

static __device__ __forceinline__ void hold_factors(struct thread_factors *own)
{
    (void)own;
}

/* acc += the sums `part` of a stage, for 64 rows. */
static __device__ __forceinline__ void promote(accumulate_t *acc, const accumulate_t *part,
                                               const struct thread_factors *own,
                                               const struct stage_factors *of, const struct unit *u)
{
    (void)own, (void)of, (void)u;
#pragma unroll
    for (int j = 0; j < ACC; j++)
        acc[j] += part[j];
}

#define PROMOTE_READS_STAGE 0

#endif

#endif
