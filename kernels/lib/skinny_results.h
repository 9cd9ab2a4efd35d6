/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the sums of gemm/skinny.cu to D. The lanes or warps of a block that divide K among them
 * have partial sums, which the block adds. The blocks of a split tile leave the results of these
 * additions in the workspace, which has room for two tiles of each block. The last block to finish
 * adds them in the order of K.
 */
#ifndef TGL_SKINNY_RESULTS_H
#define TGL_SKINNY_RESULTS_H

#include "lib/epilogue.h"
#include "lib/last_block.h"
#include "lib/shuffle.h"
#include "lib/skinny_work.h"

/* ---- Sums of a block ------------------------------------------------------------------------- */

/* The number of adjacent results of a lane, if the big operand is MN-major. */
#define WIDTH (STRAIGHT ? ADJACENT : 4)

/* SUM_ROWS: rows of the small operand whose sums are added over the warps at a time. SUM_LINE: the
 * distance in shared memory from the sums of one result of all lanes to those of the next result.
 * It is more than 32, so that threads that read neighbouring results use different banks. */
#define SUM_ROWS (COUNT < 4 ? COUNT : 4)
#define SUM_LINE (WIDTH == 8 ? 36 : 40)
#define SUMS     (ALONG_K ? 0 : WARPS * SUM_ROWS * RESULTS * SUM_LINE) /* in shared memory */

/* Where the sums of a tile are stored: in D, or in the workspace. */
struct finisher {
    const struct tgl_gemm_args *args;
    const struct operands *o;
    accumulate_t *partial; /* the workspace, if several blocks compute the tile; else NULL */
    int tile;
};

/* Stores the result of line `at` of the big operand and line s of the small one. */
static __device__ __forceinline__ void skinny_store_result(const struct tgl_gemm_args *args,
                                                           const struct operands *o,
                                                           accumulate_t sum, int at, int s)
{
    if (at >= o->length || s >= o->count * SMALL_PARTS) return;
    const int row = ROW_OF(at, s), col = COLUMN_OF(at, s), batch = (int)blockIdx.z;
    const struct epilogue_operands with = epilogue_operands(args, D_OF(args, batch), batch);
    epilogue_store(args, &with, sum, row, col);
}

/* Stores a sum in the workspace, or the result in D. at: the result's row or column in the tile; s:
 * its row or column in the small operand. */
static __device__ __forceinline__ void skinny_finish(const struct finisher *f, accumulate_t sum,
                                                     int at, int s)
{
    if (f->partial)
        f->partial[s * TILE + at] = sum;
    else
        skinny_store_result(f->args, f->o, sum, f->tile * TILE + at, s);
}

#if ALONG_K

/* Adds sums[0..total-1] over the LANES_K lanes that divide K among them, by a butterfly reduction.
 * In each step a lane keeps half of its sums. Afterwards sums[0..*held-1] are complete. Returns the
 * index that sums[0] had. *held is 0 in a lane whose results another lane stores. */
static __device__ __forceinline__ int skinny_add_lanes(accumulate_t *sums, const int total,
                                                       int *held)
{
    const int lane = (int)threadIdx.x % 32;
    int first = 0, left = total;
    bool holder = true;
#pragma unroll
    for (int x = LANES_K / 2; x > 0; x /= 2) {
        const bool upper = lane & x * K_BIT;
        left /= 2;
#pragma unroll
        for (int i = 0; i < total / 2; i++) {
            if (i >= left) continue;
            const accumulate_t mine = upper ? sums[i + left] : sums[i];
            const accumulate_t other = upper ? sums[i] : sums[i + left];
            sums[i] = mine + shuffle_xor(other, x * K_BIT);
        }
        first += upper ? left : 0;
        if (left == 0) {
            sums[0] += shuffle_xor(sums[0], x * K_BIT);
            holder = holder && !upper;
        }
    }
    *held = !holder ? 0 : total < LANES_K ? 1 : total / LANES_K;
    return first;
}

/* For a K-major big operand: adds the sums of the lanes that divide K among them, and passes the
 * totals to skinny_finish(). Warps have different results, so there is no sum over warps. */
static __device__ __forceinline__ void
finish_tile(const struct finisher *f, accumulate_t (*acc)[RESULTS], accumulate_t *shared)
{
    accumulate_t sums[COUNT * RESULTS];
    int held;
#pragma unroll
    for (int i = 0; i < COUNT * RESULTS; i++)
        sums[i] = BIG_A ? acc[i % COUNT][i / COUNT] : acc[i / RESULTS][i % RESULTS];
    const int first = skinny_add_lanes(sums, COUNT * RESULTS, &held);
    const int at = (int)threadIdx.x / 32 * WARP_TILE + ROW_LANE;
#pragma unroll
    for (int i = 0; i < (COUNT * RESULTS + LANES_K - 1) / LANES_K; i++) {
        const int s = BIG_A ? (first + i) % COUNT : (first + i) / RESULTS;
        const int r = BIG_A ? (first + i) / COUNT : (first + i) % RESULTS;
        if (i < held) skinny_finish(f, sums[i], at + r * LANES_LENGTH, s);
    }
    (void)shared;
}

#else

/* For an MN-major big operand: adds the sums of the warps, which divide K among them, in the order
 * of the warps, and passes the totals to skinny_finish(). */
static __device__ __forceinline__ void
finish_tile(const struct finisher *f, accumulate_t (*acc)[RESULTS], accumulate_t *shared)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int warp_sums = SUM_ROWS * RESULTS * SUM_LINE;
#pragma unroll
    for (int from = 0; from < COUNT; from += SUM_ROWS) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SUM_ROWS * RESULTS; i++)
            shared[warp * warp_sums + i * SUM_LINE + lane] = acc[from + i / RESULTS][i % RESULTS];
        __syncthreads();
        for (int i = (int)threadIdx.x; i < SUM_ROWS * TILE; i += THREADS) {
            const int s = i / TILE, at = i % TILE;
            const int place = (s * RESULTS + at / (32 * WIDTH) * WIDTH + at % WIDTH) * SUM_LINE +
                              at % (32 * WIDTH) / WIDTH;
            accumulate_t sum = 0;
#pragma unroll
            for (int other = 0; other < WARPS; other++)
                sum += shared[other * warp_sums + place];
            skinny_finish(f, sum, at, from + s);
        }
    }
}

#endif

/* ---- Sums of several blocks ------------------------------------------------------------------ */

/* Where a block's sums of a split tile are in the workspace. A block has room for two tiles there:
 * a split tile is its first or its last one. */
static __device__ __forceinline__ accumulate_t *
partial_of(const struct tgl_gemm_args *args, const struct skinny_work *w, int block, int tile)
{
    const int which = first_unit(w, block) / w->per_tile == tile ? 0 : 1;
    const long long place = ((long long)blockIdx.z * gridDim.x + block) * 2 + which;
    return (accumulate_t *)args->workspace + place * (TILE * COUNT);
}

/* Four adjacent sums in the workspace. Another block has stored them, so they are read from L2. */
#if ACCUMULATE == TYPE_F64
typedef struct four_sums {
    double x, y, z, w;
} four_sums;

static __device__ __forceinline__ four_sums load_sums(const double *from)
{
    const double2 low = __ldcg((const double2 *)from), high = __ldcg((const double2 *)from + 1);
    const four_sums sums = {low.x, low.y, high.x, high.y};
    return sums;
}
#else
typedef float4 four_sums;
#define load_sums(from) __ldcg((const float4 *)(from))
#endif

/* *to += the sums of `count` blocks, of which the first is at `from`. A thread loads the sums of
 * BLOCKS_AT_ONCE blocks before it adds them: it waits for L2 once for all of them. In F64
 * BLOCKS_AT_ONCE is 1: with 2 the compiler spills registers in the main loop. */
enum { BLOCKS_AT_ONCE = ACCUMULATE == TYPE_F64 ? 1 : 4 };
static __device__ __forceinline__ void add_sums_of(four_sums *to, const accumulate_t *from,
                                                   int count)
{
#pragma unroll 1
    for (int first = 0; first < count; first += BLOCKS_AT_ONCE) {
        four_sums x[BLOCKS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < BLOCKS_AT_ONCE; i++)
            if (first + i < count) x[i] = load_sums(&from[(first + i) * (2 * TILE * COUNT)]);
#pragma unroll
        for (int i = 0; i < BLOCKS_AT_ONCE; i++)
            if (first + i < count)
                to->x += x[i].x, to->y += x[i].y, to->z += x[i].z, to->w += x[i].w;
    }
}

/* Called by all blocks of a split tile after they have stored their sums in the workspace. The last
 * block to finish adds the sums of all blocks, and stores the results. */
static __device__ __forceinline__ void add_blocks(const struct tgl_gemm_args *args,
                                                  const struct operands *o,
                                                  const struct skinny_work *w, int tile)
{
    const int from = block_of(w, tile * w->per_tile);
    const int to = block_of(w, (tile + 1) * w->per_tile - 1);
    const int tiles = (o->length - 1) / TILE + 1;
    unsigned *counter = &args->counters[(long long)blockIdx.z * tiles + tile];
    if (!is_last_block(counter, to - from + 1)) return;

    const accumulate_t *own = partial_of(args, w, from, tile);
    const accumulate_t *others = partial_of(args, w, from + 1, tile);
#pragma unroll 1
    for (int at = (int)threadIdx.x * 4; at < TILE * COUNT; at += THREADS * 4) {
        four_sums sums = load_sums(&own[at]);
        add_sums_of(&sums, &others[at], to - from);
        const accumulate_t four[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
        for (int e = 0; e < 4; e++)
            skinny_store_result(args, o, four[e], tile * TILE + at % TILE + e, at / TILE);
    }
}

#endif
