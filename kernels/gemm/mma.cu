/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM on the tensor cores by mma.sync, sm_80 and later: f16 and bf16 with sums in FP32, e4m3 and
 * e5m2 converted to f16, FP32 rounded to tf32, f64, int8 with sums of int32 modulo 2^32. All
 * transposes, any shape, alignment down to an element.
 *
 * A block computes a BM x BN tile of D, a warp WM x WN of it. STAGES tiles of op(A) and op(B), BK
 * deep, arrive by cp.async. lib/mma_tiles.h has their layout in shared memory and the fragments,
 * whose loads have no bank conflicts. A step is MMA_K of K, the depth of one mma.sync. While a
 * thread multiplies, it loads the fragments of the next step or of the next 16 rows (FRAGMENTS).
 *
 *   slices        If tiles are small and few, SLICES groups of warps divide the steps of a tile
 *                 among them, and add their sums through shared memory.
 *   edges         Elements outside of the matrices are zeros in shared memory.
 *   block order   Bands of `raster` rows of tiles, so that concurrent blocks share operands in L2.
 *   split-K       Each tile from number tiles_whole on is computed by `splits` blocks. Each block
 *                 multiplies k_chunk of K, and the last one the rest of K. The blocks leave their
 *                 sums in the workspace, and the last block to finish adds them, always in the same
 *                 order.
 *   epilogue      A warp's results pass through shared memory: lib/mma_store.h.
 *   block scales  The sums of each 128 of K are scaled before they are added: lib/mma_scales.h.
 *   groups        Grouped GEMM (GROUPED): a tile has rows of one group, or K of one group:
 *                 lib/group_tiles.h.
 *   bundles       A launch computes products of several sizes (BUNDLE): lib/bundle_tiles.h.
 *
 * Grid: x = tiles_whole + splits * (tiles - tiles_whole), y = 1, z = batch.
 */
#define ASYNC_COPY_L2 ".L2::128B" /* a miss loads 128 bytes into L2 */
#include "lib/bundle_tiles.h"
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/launch_order.h"
#include "lib/operands.h"

#ifndef BM
#define BM 128 /* rows of D that a block computes */
#endif
#ifndef BN
#define BN 128 /* columns */
#endif
#ifndef BK
#define BK 16 /* depth of a tile in shared memory, in elements */
#endif
#ifndef WM
#define WM 64 /* rows of D that a warp computes */
#endif
#ifndef WN
#define WN 32 /* columns */
#endif
#ifndef STAGES
#define STAGES 4 /* tiles in shared memory: one is multiplied while the others arrive */
#endif
#ifndef SLICES
#define SLICES 1 /* groups of warps that divide the K of a tile among them */
#endif
#ifndef FRAGMENTS
/* Fragments that a thread holds in registers. 2: all of A and B for two steps. 1: A's for 32 rows,
 * B's for two steps. 0: A's for 32 rows, B's for one step. */
#define FRAGMENTS 2
#endif

#include "lib/group_tiles.h"

#define WARPS_M       (BM / WM)
#define SLICE_THREADS (WARPS_M * (BN / WN) * 32)
#define THREADS       (SLICE_THREADS * SLICES)

#include "lib/mma_tiles.h"

#define STEPS (BK / MMA_K / SLICES) /* steps that a slice multiplies in each tile */
#define SUMS  (MT * NT * 4)         /* accumulators of a thread */

#define RESULTS    (SLICE_THREADS / 32 * 16 * PITCH)
#define SLICE_SUMS ((SLICES - 1) * BM * BN)
#define SUMS_BYTES                                                                                 \
    ((RESULTS > SLICE_SUMS ? RESULTS : SLICE_SUMS) * (ACCUMULATE == TYPE_F64 ? 8 : 4))
#define SHARED_BYTES (STAGES * STAGE_BYTES > SUMS_BYTES ? STAGES * STAGE_BYTES : SUMS_BYTES)

#if (BM & (BM - 1)) || (BN & (BN - 1)) || (BK & (BK - 1)) || (SLICES & (SLICES - 1))
#error "BM, BN, BK, SLICES: powers of two"
#endif
#if STEPS % 2 || STEPS < 2 || STAGES < 3
#error "BK / SLICES: an even number of steps of mma.sync; STAGES: at least 3"
#endif

#define PLACES_MAX                                                                                 \
    (PLACES_OF_THREAD(BM, 1) > PLACES_OF_THREAD(BN, 1) ? PLACES_OF_THREAD(BM, 1)                   \
                                                       : PLACES_OF_THREAD(BN, 1))
#if SIZE == 1
#include "lib/mma_gathered_copies.h"
#else
#include "lib/mma_register_copies.h"
#endif
#include "lib/mma_scales.h"
#include "lib/mma_store.h"
#include "lib/shuffle.h"
#include "lib/slice_sums.h"
#include "lib/split_k.h"

#if SIZE == 1
#if (TRANS_A && !IS_PLAIN(VEC_A)) || (!TRANS_B && !IS_PLAIN(VEC_B))
#error "VEC_A, VEC_B: 8-bit operands that are not K-major are copied through registers"
#endif
#elif (IS_PLAIN(VEC_A) && !IS_IN_COLUMNS(BM, A_K_MAJOR)) ||                                        \
    (IS_PLAIN(VEC_B) && !IS_IN_COLUMNS(BN, B_K_MAJOR))
#error "VEC_A, VEC_B: copies through registers need lines of at most THREADS / 8 times 16 bytes"
#endif

/* ---- Fragments ------------------------------------------------------------------------------- */

/* A_GROUPS: 16-row fragments of A in a thread's registers. B_STEPS: steps whose fragments of B are
 * in its registers. */
#define A_GROUPS (FRAGMENTS == 2 ? 2 * MT : 2)
#define B_STEPS  (FRAGMENTS == 0 ? 1 : 2)
struct mma_fragments {
    fragment_t a[A_GROUPS][FRAGMENT], b[B_STEPS][NT / 2][FRAGMENT];
};

/* Loads A's fragment for 16 rows of a step. group: step * MT + row / 16, where steps are numbered
 * on from one tile to the next. */
static __device__ __forceinline__ void mma_load_a(struct mma_fragments *to, const char *stage,
                                                  const struct mma_lane_source *a, const int group)
{
    const int in_tile = group % (STEPS * MT);
    mma_load_fragment(to->a[group % A_GROUPS], stage, a, in_tile % MT * 16, in_tile / MT * MMA_K,
                      BM, A_K_MAJOR, true);
}

/* Loads B's fragments for a step: pairs number first to last - 1, each of 2 x 8 columns. */
static __device__ __forceinline__ void mma_load_b(struct mma_fragments *to, const char *stage,
                                                  const struct mma_lane_source *b, const int step,
                                                  const int first, const int last)
{
#pragma unroll
    for (int j = first; j < last; j++)
        mma_load_fragment(to->b[step % B_STEPS][j], stage + A_BYTES, b, j * 16,
                          step % STEPS * MMA_K, BN, B_K_MAJOR, false);
}

/* acc[row] += a * b for one step and 16 rows of the warp tile. If `row` is odd, the columns come in
 * reverse order: the last mma.sync of one row and the first of the next then share B's fragment. */
static __device__ __forceinline__ void
mma_multiply(accumulate_t (*acc)[NT][4], struct mma_fragments *of, const int step, const int row)
{
    const int group = (step * MT + row) % A_GROUPS;
    round_fragments(&of->a[group], 1);
#pragma unroll
    for (int t = 0; t < NT; t++) {
        const int j = row % 2 ? NT - 1 - t : t;
        MMA(acc[row][j], of->a[group], &of->b[step % B_STEPS][j / 2][j % 2 * (FRAGMENT / 2)]);
    }
}

/* ---- Main loop ------------------------------------------------------------------------------- */

/* ORIGIN_OF: where the thread finds the tile of operand X that begins at X[begin] in global memory.
 * k_major: whether X is K-major in global memory. */
#if SIZE == 1
#define ORIGIN_OF(X, ld, begin, edge_left, edge, vec, k_major)                                     \
    (IS_PLAIN(vec) ? gathered_origin_of(X, ld, begin, edge_left, k_major)                          \
                   : mma_origin_of(X, ld, begin, edge_left, edge, vec, k_major))
#else
#define ORIGIN_OF(X, ld, begin, edge_left, edge, vec, k_major)                                     \
    mma_origin_of(X, ld, begin, edge_left, edge, vec, k_major)
#endif

/* The next tile to copy from global to shared memory. */
struct mma_arrival {
    char *stage;
    struct mma_origin A, B;
    int k_left; /* K from the tile on; not positive: there is no tile, and zeros are copied */
};

/* END_A, BEGIN_B, END_B: the steps of a tile in which the copies of the next tile are issued and
 * stored. cp.async: A's copies are issued at the start of step 0, B's in the middle of step 0.
 * Copies through registers: A is loaded at the start of step 0 and stored after step END_A; B is
 * loaded in step BEGIN_B and stored after step END_B. If registers are scarce (FRAGMENTS < 2), A is
 * stored before B is loaded.
 */
#define END_A   (FRAGMENTS == 2 ? STEPS - 1 : (STEPS - 1) / 2)       /* step that stores A */
#define BEGIN_B (FRAGMENTS == 2 || !IS_PLAIN(VEC_B) ? 0 : STEPS / 2) /* step that loads B */
#define END_B   (STEPS - 1)                                          /* step that stores B */

static __device__ __forceinline__ void begin_A(struct loaded *in, const struct mma_arrival *next)
{
    if (IS_PLAIN(VEC_A))
        load_places(in, next->stage, &next->A, next->k_left, BM, !TRANS_A);
    else
        copy_places(next->stage, &next->A, next->k_left, BM, VEC_A, A_K_MAJOR, TAIL_A);
}

static __device__ __forceinline__ void end_A(const struct loaded *in,
                                             const struct mma_arrival *next)
{
    if (IS_PLAIN(VEC_A)) store_places(next->stage, in, &next->A, next->k_left, BM, !TRANS_A);
}

static __device__ __forceinline__ void begin_B(struct loaded *in, const struct mma_arrival *next)
{
    if (IS_PLAIN(VEC_B))
        load_places(in, next->stage + A_BYTES, &next->B, next->k_left, BN, TRANS_B);
    else
        copy_places(next->stage + A_BYTES, &next->B, next->k_left, BN, VEC_B, B_K_MAJOR, TAIL_B);
}

static __device__ __forceinline__ void end_B(const struct loaded *in,
                                             const struct mma_arrival *next)
{
    if (IS_PLAIN(VEC_B))
        store_places(next->stage + A_BYTES, in, &next->B, next->k_left, BN, TRANS_B);
}

static __device__ __forceinline__ void to_next_tile(struct mma_arrival *next)
{
    next->A.from += next->A.tile;
    next->B.from += next->B.tile;
    next->k_left -= BK;
}

/* The registers to which mma.sync adds: with block scales, the sums of one block of K. */
#if HAS_BLOCK_SCALES
#define SUMS_OF_BLOCK part
#else
#define SUMS_OF_BLOCK acc
#endif

/* acc += op(A) * op(B) over next->k_left of K. next: the first tile to copy. source_a, source_b:
 * where the lane reads its fragments in a stage. */
static __device__ __forceinline__ void mma_multiply_tiles(accumulate_t (*acc)[NT][4], char *stages,
                                                          struct mma_arrival *next,
#if HAS_BLOCK_SCALES
                                                          struct scaled_place *at,
#endif
                                                          const struct mma_lane_source *source_a,
                                                          const struct mma_lane_source *source_b)
{
    struct loaded in_a, in_b;
    struct mma_fragments of;
    int left = (next->k_left + BK - 1) / BK;
#if HAS_BLOCK_SCALES
    accumulate_t part[MT][NT][4] = {{{0}}};
    struct block_factors factors;
#endif
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        next->stage = stages + s * STAGE_BYTES;
        begin_A(&in_a, next);
        if (FRAGMENTS < 2) end_A(&in_a, next);
        begin_B(&in_b, next);
        if (FRAGMENTS == 2) end_A(&in_a, next);
        end_B(&in_b, next);
        async_commit();
        to_next_tile(next);
    }
    ASYNC_WAIT(STAGES - 2);
    __syncthreads();
    int read = 0, write = (STAGES - 1) * STAGE_BYTES;
#pragma unroll
    for (int i = 0; i < A_GROUPS / 2; i++)
        mma_load_a(&of, stages, source_a, i);
    if (B_STEPS == 2) mma_load_b(&of, stages, source_b, 0, 0, NT / 2);
    for (; left > 0; left--) {
        next->stage = stages + write;
#if HAS_BLOCK_SCALES
        load_factors(&factors, at);
#endif
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const bool is_last = step == STEPS - 1;
#pragma unroll
            for (int i = 0; i < MT; i++) {
                /* All fragments of the current tile have been loaded: wait for the next tile. */
                if (is_last && i == (FRAGMENTS == 2 ? 0 : MT - 1)) {
                    async_commit();
                    ASYNC_WAIT(STAGES - 2);
                    __syncthreads(); /* the next tile has arrived, and all threads have read the
                                        current one */
                    write = read;
                    read = read == (STAGES - 1) * STAGE_BYTES ? 0 : read + STAGE_BYTES;
                }
                if (FRAGMENTS == 0) {
                    if (i == 0) mma_load_b(&of, stages + read, source_b, step, 0, NT / 2);
                    mma_load_a(&of, stages + read, source_a, step * MT + i + 1);
                } else if (FRAGMENTS == 1) {
                    mma_load_a(&of, stages + read, source_a, step * MT + i + 1);
                    const int first = is_last ? 0 : i * (NT / 2) / MT;
                    const int last = is_last && i < MT - 1 ? 0 : (i + 1) * (NT / 2) / MT;
                    mma_load_b(&of, stages + read, source_b, step + 1, first, last);
                } else if (i == 0) {
#pragma unroll
                    for (int r = 0; r < MT; r++)
                        mma_load_a(&of, stages + read, source_a, (step + 1) * MT + r);
                    mma_load_b(&of, stages + read, source_b, step + 1, 0, NT / 2);
                }
                if (step == 0 && i == 0) begin_A(&in_a, next);
                if (i == 0) round_fragments(of.b[step % B_STEPS], NT / 2);
                if (step == BEGIN_B && i == MT / 2) begin_B(&in_b, next);
                mma_multiply(SUMS_OF_BLOCK, &of, step, i);
            }
            if (step == END_A) end_A(&in_a, next);
            if (step == END_B) end_B(&in_b, next);
        }
        to_next_tile(next);
#if HAS_BLOCK_SCALES
        if (left == 1 || (at->k + BK) / SCALE_EDGE != at->k / SCALE_EDGE)
            promote(acc, part, &factors);
        at->k += BK;
#endif
    }
    ASYNC_WAIT(0); /* the copies issued past the last tile write zeros: wait for them */
    __syncthreads();
}

/* ---- The kernel ------------------------------------------------------------------------------ */

/* *row, *col := the first row and column of tile number `tile`. Tiles are numbered band by band,
 * and within a band column by column. */
static __device__ __forceinline__ void mma_place_tile(const struct tgl_gemm_args *args, int tile,
                                                      int *row, int *col)
{
    const int tiles_m = (args->m + BM - 1) / BM, tiles_n = (args->n + BN - 1) / BN;
    const int band = tile / (args->raster * tiles_n);
    const int in_band = tile - band * args->raster * tiles_n;
    const int height = min(args->raster, tiles_m - band * args->raster);
    *row = (band * args->raster + in_band % height) * BM;
    *col = in_band / height * BN;
}

/* __launch_bounds__ with a minimum of one block per SM lets ptxas use all registers; without a
 * minimum ptxas spills. */
__global__ void __launch_bounds__(THREADS, 1) gemm_mma(GEMM_PARAMETERS)
{
    GEMM_ARGUMENTS;
    DYNAMIC_SHARED(char, shared, SHARED_BYTES);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();

    int tile = FIRST_TILE, first = 0, k = DEPTH_OF(&args);
    const int item = tile - args.tiles_whole;
    int split_tiles = 0, split_tile = 0, split = 0;
    if (item >= 0) {
        split_tiles = ((int)gridDim.x - args.tiles_whole) / args.splits;
        split_tile = item % split_tiles;
        split = item / split_tiles;
        tile = args.tiles_whole + split_tile;
        if (k > 0) {
            first = split * args.k_chunk;
            k = split < args.splits - 1 ? args.k_chunk : k - first;
        }
    }
    int block_row, block_col, batch = (int)blockIdx.z;
#if GROUPED == 1
    if (!group_rows(&args, tile)) return;
#endif
    mma_place_tile(&args, tile, &block_row, &block_col);
#if GROUPED == 1
    batch = group_of_rows(&args, &block_row);
#elif GROUPED == 2
    const struct tgl_group_span span = group_table(&args)->spans[batch];
    batch = span.group;
    first = span.first;
    k = k > 0 ? span.end - span.first : 0;
#endif

    const int warp = uniform((int)threadIdx.x / 32);
    const int slice = warp / (SLICE_THREADS / 32), in_slice = warp % (SLICE_THREADS / 32);
    const int warp_row = in_slice % WARPS_M * WM, warp_col = in_slice / WARPS_M * WN;

    accumulate_t acc[MT][NT][4] = {{{0}}};
    if (k > 0) {
        struct mma_arrival next = {
            shared,
            ORIGIN_OF(A_OF(&args, batch), args.lda,
                      TRANS_A ? block_row + first * args.lda : block_row * args.lda + first,
                      args.m - block_row, BM, VEC_A, !TRANS_A),
            ORIGIN_OF(B_OF(&args, batch), args.ldb,
                      TRANS_B ? block_col * args.ldb + first : block_col + first * args.ldb,
                      args.n - block_col, BN, VEC_B, TRANS_B),
            k,
        };
        const int depth = slice * STEPS * MMA_K;
        const struct mma_lane_source a = mma_lane_source(warp_row, depth, BM, A_K_MAJOR, true);
        const struct mma_lane_source b = mma_lane_source(warp_col, depth, BN, B_K_MAJOR, false);
#if HAS_BLOCK_SCALES
        struct scaled_place at = {&args, block_row + warp_row, block_col + warp_col, batch,
                                  first + depth};
        mma_multiply_tiles(acc, shared, &next, &at, &a, &b);
#else
        mma_multiply_tiles(acc, shared, &next, &a, &b);
#endif
    }
#if SLICES > 1
    add_slices(&acc[0][0][0], (accumulate_t *)shared, (int)threadIdx.x / SLICE_THREADS);
#endif
    if (item >= 0 &&
        !sum_over_blocks(&args, &acc[0][0][0], batch * split_tiles + split_tile, split, slice > 0))
        return;
    if (slice > 0) return;
    struct epilogue_operands with = epilogue_operands(&args, D_OF(&args, batch), batch);
#if AMAX
    unsigned amax = 0;
    with.amax = &amax;
#endif
    store_results(&args, &with, (accumulate_t *)shared + in_slice * 16 * PITCH, acc,
                  block_row + warp_row, block_col + warp_col);
#if AMAX
    epilogue_add_amax(&args, amax);
#endif
}
