/* SPDX-License-Identifier: Apache-2.0
 *
 * Promotion in gemm/wgmma.cu: adds the sums of a stage, 128 of K, to the FP32 sums of the unit (a
 * tile, or a part of its K). If A and B have block scale factors (lib/block_scales.h), the sums of
 * the stage are multiplied by them first.
 *
 * The factors of a stage lie in shared memory beside its tiles: for each operand one factor per row
 * or column of the tile, or one per block of 128 that the tile touches. One thread copies them:
 * factors of lines by TMA, and those of blocks by cp.async. TMA needs addresses and sizes that are
 * multiples of 16 bytes: without them a warp copies all by cp.async. Consumers load the factors of
 * a stage while the last wgmmas of the stage before run, so that no wgmma waits for them; factors
 * of single columns of the right operand are read by promote(). When consumers loaded factors from
 * global memory, 4096 cubed took 1.55 times as long as with constants in their place
 * (docs/notes/2026-11-28-gpu.md).
 *
 * Of each 64 x 8 sums a thread holds two rows and two columns. A tile may begin at any multiple of
 * 8. Tiles of groups of rows may begin at any row, but then A has no blocks of 128 rows.
 */
#ifndef TGL_WGMMA_SCALES_H
#define TGL_WGMMA_SCALES_H

#include "lib/async_copy.h"
#include "lib/block_scales.h"
#include "lib/tma.h"
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
#define RIGHT_BLOCKS    (IN_ONE_BLOCK(RIGHT_KIND, BN) ? 1 : BLOCKS_OF(BN))
/* Factors of an operand in a stage with SCALE_BLOCK: its blocks, padded to 16 bytes. */
#define BLOCKS_MAX 4
#if BLOCKS_OF(BM) > BLOCKS_MAX || BLOCKS_OF(BN) > BLOCKS_MAX
#error "BM, BN: a tile touches more than BLOCKS_MAX blocks of 128 rows or columns"
#endif
/* A copy of factors of lines begins at a line that is a multiple of 4, and so at a multiple of 16
 * bytes. If a tile begins at another line, its first factor is therefore at index SHIFT_OF(line).
 * Only tiles of groups begin there. */
#define SHIFT_OF(line)         (GROUPED == 1 ? (line) % 4 : 0)
#define SHIFT_MAX              (GROUPED == 1 ? 4 : 0)
#define FACTORS_OF(kind, edge) ((kind) == SCALE_BLOCK ? BLOCKS_MAX : (edge) + SHIFT_MAX)

/* The factors of a stage's tiles. */
struct stage_factors {
    __align__(16) float left[FACTORS_OF(LEFT_KIND, BM)];
    __align__(16) float right[FACTORS_OF(RIGHT_KIND, BN)];
};

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Whether all factors of lines of an operand can be copied 16 bytes at a time. lines: rows or
 * columns of a matrix. stride: from the factors of a group's matrix to those of the next. */
static __device__ __forceinline__ bool is_on_16_bytes(const struct block_scales *scales,
                                                      const int kind, int lines, long long stride)
{
    return kind == SCALE_BLOCK ||
           ((unsigned long long)scales->factors % 16 == 0 && scales->ld % 4 == 0 &&
            lines % 4 == 0 && (!GROUPED || stride % 4 == 0));
}

/* Whether one thread copies the factors of a stage, those of lines by TMA. Otherwise all threads of
 * a warp do. */
static __device__ __forceinline__ bool has_bulk_factors(const struct tgl_gemm_args *args)
{
    const struct block_scales a = scales_of_a(args, 0), b = scales_of_b(args, 0);
    return is_on_16_bytes(&a, SCALE_A, args->m, args->stride_scale_a) &&
           is_on_16_bytes(&b, SCALE_B, args->n, args->stride_scale_b);
}

/* Arrivals of the warp that copies factors at a stage's `full` barrier. */
static __device__ __forceinline__ int factor_fills(const struct tgl_gemm_args *args)
{
    return has_bulk_factors(args) ? 2 : 32;
}

/* Called by all threads of the block, before a barrier: sets all factors to 0. Copies leave those
 * out that do not exist. */
static __device__ __forceinline__ void clear_factors(struct stage_factors *factors)
{
    enum { COUNT = STAGES * (int)sizeof *factors / (int)sizeof(float) };
    for (int i = (int)threadIdx.x; i < COUNT; i += THREADS)
        ((float *)factors)[i] = 0;
    fence_proxy_async();
}

/* The factors of a tile's rows or columns for a block of K. */
struct factor_source {
    const float *from; /* the first factor to copy: that of the first block, or of the line that
                          lies SHIFT_OF() lines before the first one */
    int count;         /* number of factors to copy, at most to the end of the matrix. With factors
                          of lines and GROUPED == 1 it may include up to 4 factors behind the
                          tile */
};

/* The source for the lines of a tile from `first` on, of which those before `end` exist, for block
 * q of K. */
static __device__ __forceinline__ struct factor_source
find_factors(const struct block_scales *scales, const int kind, const int edge, int first, int end,
             int q)
{
    const int from = kind == SCALE_BLOCK ? first : first - SHIFT_OF(first);
    const int to = first + edge < end ? first + edge : end;
    const int blocks = (to - 1) / SCALE_EDGE - first / SCALE_EDGE + 1;
    const int lines = end - from < FACTORS_OF(kind, edge) ? end - from : FACTORS_OF(kind, edge);
    const struct factor_source found = {block_factor(scales, kind, from, q),
                                        kind == SCALE_BLOCK ? blocks : lines};
    return found;
}

/* Moves the source to the next block of K. */
static __device__ __forceinline__ void
next_factors(struct factor_source *source, const struct block_scales *scales, const int kind)
{
    source->from += kind == SCALE_BLOCK ? 1 : scales->ld;
}

/* Called by all threads of a warp: copies the factors of one operand's tile that exist. */
static __device__ __forceinline__ void copy_factors(float *to, const struct factor_source *source,
                                                    const struct block_scales *scales,
                                                    const int kind)
{
#pragma unroll 1
    for (int i = (int)threadIdx.x % 32; i < source->count; i += 32)
        async_copy_float(&to[i], source->from + (kind == SCALE_BLOCK ? i * scales->ld : i), true);
}

/* As copy_factors(), called by one thread. Factors of lines are a copy by TMA. */
static __device__ __forceinline__ void bulk_copy_factors(float *to,
                                                         const struct factor_source *source,
                                                         const struct block_scales *scales,
                                                         const int kind, mbarrier *full)
{
    if (kind != SCALE_BLOCK)
        bulk_load(to, source->from, source->count * 4, full);
    else
        for (int i = 0; i < source->count; i++)
            async_copy_float(&to[i], source->from + i * scales->ld, true);
}

/* Bytes that bulk_copy_factors() copies by TMA. */
static __device__ __forceinline__ unsigned bulk_bytes(const struct factor_source *source,
                                                      const int kind)
{
    return kind == SCALE_BLOCK ? 0 : (unsigned)source->count * 4;
}

/* Called by all threads of a warp, or by one thread if is_bulk: copies the factors of all stages of
 * a unit. */
static __device__ __forceinline__ void copy_unit_factors(struct stage_factors *factors,
                                                         struct ring *ring, struct ring_place *at,
                                                         const struct tgl_gemm_args *args,
                                                         const struct unit *u, bool is_bulk)
{
    const struct block_scales left = LEFT_SCALES(args, u->batch);
    const struct block_scales right = RIGHT_SCALES(args, u->batch);
    struct factor_source left_source =
        find_factors(&left, LEFT_KIND, BM, u->left, left_extent(args), u->first);
    struct factor_source right_source =
        find_factors(&right, RIGHT_KIND, BN, u->right, right_extent(args), u->first);
    const unsigned bytes =
        bulk_bytes(&left_source, LEFT_KIND) + bulk_bytes(&right_source, RIGHT_KIND);
#pragma unroll 1
    for (int step = 0; step < u->steps; step++) {
        struct stage_factors *to = &factors[at->stage];
        mbarrier *full = &ring->full[at->stage];
        mbarrier_wait(&ring->empty[at->stage], at->parity ^ 1);
        if (is_bulk) {
            mbarrier_arrive_and_expect(full, bytes);
            bulk_copy_factors(to->left, &left_source, &left, LEFT_KIND, full);
            bulk_copy_factors(to->right, &right_source, &right, RIGHT_KIND, full);
        } else {
            copy_factors(to->left, &left_source, &left, LEFT_KIND);
            copy_factors(to->right, &right_source, &right, RIGHT_KIND);
        }
        async_arrive(full);
        next_factors(&left_source, &left, LEFT_KIND);
        next_factors(&right_source, &right, RIGHT_KIND);
        advance(at);
    }
}

/* ---- Promotion ------------------------------------------------------------------------------- */

/* The factors of a thread's rows. If all columns have one factor, they are multiplied by it. If
 * columns have factors of several blocks, right[] has these. */
struct thread_factors {
    float left[M_STEPS][2];
    float right[RIGHT_BLOCKS];
};

/* The factor of row `row` of the left tile. */
static __device__ __forceinline__ float left_factor(const struct stage_factors *of,
                                                    const struct unit *u, int row)
{
    if (IN_ONE_BLOCK(LEFT_KIND, BM)) return of->left[0];
    return of->left[LEFT_KIND == SCALE_BLOCK ? (u->left % SCALE_EDGE + row) / SCALE_EDGE
                                             : SHIFT_OF(u->left) + row];
}

/* Loads the factors of a stage for the consumer's rows. */
static __device__ __forceinline__ void load_factors(struct thread_factors *to,
                                                    const struct stage_factors *of,
                                                    const struct unit *u, int group)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4;
    const int row = CONSUMER_ROW(group) + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < M_STEPS * 2; i++)
        to->left[i / 2][i % 2] = left_factor(of, u, row + i / 2 * PART_ROWS + i % 2 * 8) *
                                 (IN_ONE_BLOCK(RIGHT_KIND, BN) ? of->right[0] : 1);
#pragma unroll
    for (int j = 0; j < RIGHT_BLOCKS && RIGHT_KIND == SCALE_BLOCK; j++)
        to->right[j] = of->right[j];
}

/* acc += the sums `part` of a stage, for 64 rows, times their factors. i: the number of the 64
 * rows. */
static __device__ __forceinline__ void promote(accumulate_t *acc, const accumulate_t *part,
                                               const struct thread_factors *own, const int i,
                                               const struct stage_factors *of, const struct unit *u)
{
#if IN_ONE_BLOCK(RIGHT_KIND, BN)
    (void)of, (void)u;
#pragma unroll
    for (int j = 0; j < ACC; j++)
        acc[j] = fmaf(part[j], own->left[i][j / 2 % 2], acc[j]);
#elif RIGHT_KIND == SCALE_BLOCK
    const int in_block = u->right % SCALE_EDGE; /* columns of the block that precede the tile */
    float both[RIGHT_BLOCKS][2];
    (void)of;
#pragma unroll
    for (int j = 0; j < RIGHT_BLOCKS * 2; j++)
        both[j / 2][j % 2] = own->left[i][j % 2] * own->right[j / 2];
#pragma unroll
    for (int j = 0; j < ACC; j++) {
        const int column = in_block + j / 4 * 8, row = j / 2 % 2;
        float factor = column < SCALE_EDGE ? both[0][row] : both[1][row];
#if RIGHT_BLOCKS > 2
        if (column >= 2 * SCALE_EDGE) factor = both[2][row];
#endif
        acc[j] = fmaf(part[j], factor, acc[j]);
    }
#else
    const int column = SHIFT_OF(u->right) + (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < ACC; j++)
        acc[j] =
            fmaf(part[j], own->left[i][j / 2 % 2] * of->right[column + j / 4 * 8 + j % 2], acc[j]);
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
                                                    const struct unit *u, int group)
{
    (void)to, (void)of, (void)u, (void)group;
}

/* acc += the sums `part` of a stage, for 64 rows. */
static __device__ __forceinline__ void promote(accumulate_t *acc, const accumulate_t *part,
                                               const struct thread_factors *own, const int i,
                                               const struct stage_factors *of, const struct unit *u)
{
    (void)own, (void)i, (void)of, (void)u;
#pragma unroll
    for (int j = 0; j < ACC; j++)
        acc[j] += part[j];
}

#define PROMOTE_READS_STAGE 0

#endif

#endif
