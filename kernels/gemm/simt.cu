/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 GEMM with IEEE arithmetic (FFMA), all transposes, any shape and alignment, sm_75 on.
 *
 * A block computes a BM x BN tile of C, a warp WM x WN of it, a thread TM x TN, as the ladder's
 * last rung does: STAGES tiles of op(A) and op(B), BK deep, come by cp.async, and every thread
 * keeps two fragments, one being loaded while the other is multiplied. What differs:
 *
 *   transposes    Shared memory holds both operands as [BK][edge]. An operand contiguous along its
 *                 edge is copied as it is, VEC floats at once; one contiguous along k is transposed
 *                 by the copies, single floats, for which any alignment will do. Its groups of four
 *                 are rotated by an amount that depends on k, so that the floats of one copy go to
 *                 different banks.
 *   indices       A thread's copies have addresses that move along k, if they are few; else offsets
 *                 within a tile, which fit 32 bits (WIDE_OFFSETS 0) and never change, while the
 *                 tile's address moves. Stages are distances in bytes: what is multiplied in the
 *                 loop, if only by four, takes FFMAs' place.
 *   slices        A small tile has work for few warps, if each thread is to have results enough.
 *                 Then SLICES groups of warps compute the same tile: of every BK * SLICES of k each
 *                 has BK, and at the end they add up what they have through shared memory.
 *   edges         A tile that would reach past the last row or column begins so much earlier, and
 *                 what it shares with its neighbour is stored by that one; warps that have nothing
 *                 else only copy. Where the matrix has less than a tile, others of its rows and
 *                 columns stand in for those outside. The ragged part of k comes first, padded with
 *                 zeros.
 *   block order   Bands of `raster` rows of tiles, so that blocks at work at once share operands;
 *                 tiles at the last column and row come last, when blocks that have little to do
 *                 are most welcome.
 *   split k       Tiles from number tiles_whole on are computed by `splits` blocks each, of which
 *                 `cluster` at a time add up what they have through each other's shared memory,
 *                 every block a part of the tile. Where there are more, the clusters leave those
 *                 sums in the workspace, and the last to finish adds them up; the first of blocks
 *                 without clusters, if it comes last, to what it has in registers. The order is
 *                 always the same: a result is bitwise the same every run. The first cluster of
 *                 all tiles comes before the second of all: where the first takes more of k than
 *                 the others, small pieces are left for multiprocessors that find no large one.
 *                 Where nothing is split, the same code is no slower: ptxas places registers
 *                 better with it.
 *   rows of C     that begin anywhere (LINES_OF_C) are stored line by line.
 *   batch         gridDim.z problems.
 *
 * Grid: x = tiles_whole + splits * (tiles - tiles_whole), y = 1, z = batch; clusters of `cluster`
 * blocks along x, of which tiles_whole and splits are multiples.
 */
#define ASYNC_COPY_L2 ".L2::128B" /* what a copy misses comes with its neighbours */
#include "lib/async_copy.h"
#include "lib/block_barrier.h"
#include "lib/cluster.h"
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/last_block.h"
#include "lib/launch_order.h"
#include "lib/load_ahead.h"
#include "lib/operands.h"

#ifndef BM
#define BM 128 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 128 /* columns */
#endif
#ifndef BK
#define BK 8 /* depth of a tile in shared memory */
#endif
#ifndef WM
#define WM 64 /* rows of C that a warp computes */
#endif
#ifndef WN
#define WN 64 /* columns */
#endif
#ifndef TM
#define TM 16 /* rows of C that a thread computes, in groups of four */
#endif
#ifndef TN
#define TN 8 /* columns, likewise */
#endif
#ifndef STAGES
#define STAGES 3 /* tiles in shared memory: one is multiplied while the others arrive */
#endif
#ifndef SLICES
#define SLICES 1 /* groups of warps that share k, each with tiles in shared memory of its own */
#endif
#ifndef TRANS_A
#define TRANS_A 0 /* 0: A is m x k; 1: k x m */
#endif
#ifndef TRANS_B
#define TRANS_B 0 /* 0: B is k x n; 1: n x k */
#endif
#ifndef VEC_A
#define VEC_A 1 /* floats to a copy, TRANS_A only: divides A's alignment, lda and m */
#endif
#ifndef VEC_B
#define VEC_B 1 /* likewise B's, ldb and n, not TRANS_B */
#endif
#ifndef LINES_OF_C
#define LINES_OF_C 0 /* 1: rows of C begin anywhere; its tiles are stored line by line */
#endif
#ifndef WIDE_OFFSETS
#define WIDE_OFFSETS 0 /* 1: a tile spans 4 GB or more of A or B */
#endif
#ifndef INSIDE
#define INSIDE 0 /* 1: m >= BM and n >= BN, so that no tile reaches outside */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* blocks a multiprocessor must hold, which bounds the registers */
#endif
/* When, while a tile is multiplied, the next is requested and the next fragments are loaded: the
 * first copy after COPY_FROM rows of a thread's FFMAs (TN each, TM to a step of k), then one every
 * COPY_EVERY rows (0: all at once); of a step the first load after LOAD_FROM FFMAs, then one every
 * LOAD_EVERY. Copies in single floats, of which there are many, hold up loads that come right
 * behind them: they are spread over most of a large tile. */
#define SPREADS_COPIES (TM * TN >= 64 && (VEC_A == 1 || VEC_B == 1))
#ifndef COPY_FROM
#define COPY_FROM ((SPREADS_COPIES ? 1 : TM * TN >= 128 ? 3 : 0) * TM)
#endif
#ifndef COPY_EVERY
#define COPY_EVERY (SPREADS_COPIES ? 3 * (BK - 2) * TM / (4 * (A_COPIES + B_COPIES)) : 0)
#endif
#ifndef LOAD_FROM
#define LOAD_FROM 0
#endif
#ifndef LOAD_EVERY
#define LOAD_EVERY 4
#endif
#ifndef COLUMN_ORDER
#define COLUMN_ORDER 0 /* of a step's FFMAs: 0: columns 0 2 1 3 of each four; 1: 0 1 2 3 */
#endif
#ifndef NAME
#define NAME sgemm_simt
#endif

#define WARPS_M       (BM / WM)
#define SLICE_THREADS (WARPS_M * (BN / WN) * 32)
#define THREADS       (SLICE_THREADS * SLICES)
#define STEP          (BK * SLICES) /* of k, of all slices */
#define LANES_M       (WM / TM)     /* the lanes of a warp, as a grid */
#define LANES_N       (WN / TN)
#define PAD           4 /* a transposing copy's lanes in different banks, rows on 16 bytes */
/* Of a thread. */
#define COPIES(edge, vec) ((BK * (edge) / (vec) + SLICE_THREADS - 1) / SLICE_THREADS)
#define A_ALONG_K         (!TRANS_A)
#define B_ALONG_K         TRANS_B
#define A_COPIES          COPIES(BM, VEC_A)
#define B_COPIES          COPIES(BN, VEC_B)
#define LOADS             ((TM + TN) / 4) /* of fours, for a thread's fragments */

/* This thread's slice, and its number there. */
#if SLICES > 1
#define SLICE  ((int)threadIdx.x / SLICE_THREADS)
#define THREAD (threadIdx.x % SLICE_THREADS)
#else
#define SLICE  0
#define THREAD threadIdx.x
#endif

#if TYPE_A != TYPE_F32 || TYPE_B != TYPE_F32 || ACCUMULATE != TYPE_F32
#error "this kernel multiplies FP32"
#endif
#if BM % WM || BN % WN || TM % 4 || TN % 4 || WM % TM || WN % TN
#error "a block is a grid of warps, a warp a grid of threads, a thread a grid of 4 x 4"
#endif
#if LANES_M * LANES_N != 32 || LANES_M < 2 || LANES_N < 2
#error "a warp is 2 x 16, 4 x 8, 8 x 4 or 16 x 2 threads"
#endif
#if BK % 4 || SLICE_THREADS % BK || STAGES < 2 || SLICES < 1
#error "BK: a multiple of 4, that divides a slice's threads; STAGES: at least 2"
#endif
#if (A_ALONG_K && VEC_A != 1) || (B_ALONG_K && VEC_B != 1) || BM % VEC_A || BN % VEC_B
#error "an operand that lies along k is copied in single floats"
#endif
#if COPY_FROM + (A_COPIES + B_COPIES - 1) * COPY_EVERY >= (BK - 1) * TM
#error "all copies are issued before the last step of a tile"
#endif
#if LOAD_FROM + (LOADS - 1) * LOAD_EVERY >= TM * TN
#error "all loads are issued within a step"
#endif

#include "lib/simt_copies.h"

/* Four neighbours at depth p, a constant: one LDS.128. */
static __device__ __forceinline__ void load4(float *fragment, const float *at, const int p,
                                             const bool along_k)
{
    const int r = (int)rotation((unsigned)p, along_k);
    const float4 v = *(const float4 *)at;
    fragment[(4 - r) % 4] = v.x;
    fragment[(5 - r) % 4] = v.y;
    fragment[(6 - r) % 4] = v.z;
    fragment[(7 - r) % 4] = v.w;
}

/* A thread's rows and columns of a stage, at depth 0. By way of in_stage() ptxas would arrive at
 * another order of the main loop, which the schedules are not for. */
struct source {
    const float *A, *B;
};

static __device__ __forceinline__ struct source source_of(const struct stage *stages, int stage,
                                                          int row, int col)
{
    const struct source source = {(const float *)((const char *)&stages->A[0][row] + stage),
                                  (const float *)((const char *)&stages->B[0][col] + stage)};
    return source;
}

/* Load number i of a thread's fragments at depth p: first those of B, then those of A. */
static __device__ __forceinline__ void load_part(int i, float *a, float *b,
                                                 const struct source *from, const int p)
{
    const int j = i * 4, k = (i - TN / 4) * 4;
    if (i < TN / 4)
        load4(&b[j], &from->B[p * (BN + PAD) + j * LANES_N], p, B_ALONG_K);
    else
        load4(&a[k], &from->A[p * (BM + PAD) + k * LANES_M], p, A_ALONG_K);
}

/* The number of what is due at this turn, if one is every `every` turns from `from` on; else -1. */
static __device__ __forceinline__ int due(int turn, const int from, const int every)
{
    return turn >= from && (turn - from) % every == 0 ? (turn - from) / every : -1;
}

/* The copy of the next tile that is due before a row of a thread's FFMAs, of all of a tile. */
static __device__ __forceinline__ void copy_at(int row, const struct arrival *next)
{
#if COPY_EVERY > 0
    const int copy = due(row, COPY_FROM, COPY_EVERY);
    if (copy >= 0 && copy < A_COPIES) copy_of_A(next, copy);
    if (copy >= A_COPIES && copy < A_COPIES + B_COPIES) copy_of_B(next, copy - A_COPIES);
#endif
}

/* acc += a * b^T at depth p of a tile, while the next fragments are loaded, from depth `next_p` of
 * `from`, and copies of the next tile are issued. Odd rows go backwards, so that neighbouring
 * FFMAs share a register; in most configurations columns 0 2 1 3 of each four are what ptxas makes
 * the fewest reads of one register bank at once from. */
static __device__ __forceinline__ void multiply(float (*acc)[TN], const float *a, const float *b,
                                                const int p, bool loads, float *next_a,
                                                float *next_b, const struct source *from,
                                                const int next_p, const struct arrival *next)
{
#pragma unroll
    for (int i = 0; i < TM; i++) {
        copy_at(p * TM + i, next);
#pragma unroll
        for (int t = 0; t < TN; t++) {
            const int turn = i % 2 ? TN - 1 - t : t;
            const int j = COLUMN_ORDER == 1 ? turn
                          : turn % 4 == 1   ? turn + 1
                          : turn % 4 == 2   ? turn - 1
                                            : turn;
            const int load = due(i * TN + t, LOAD_FROM, LOAD_EVERY);
            if (load >= 0 && load < LOADS && loads) load_part(load, next_a, next_b, from, next_p);
            acc[i][j] += b[j] * a[i];
        }
    }
}

/* Closes the group of copies, and returns when the next tile to be multiplied has come and nobody
 * needs the last one any more. */
static __device__ __forceinline__ void await_tile(void)
{
    async_commit();
    ASYNC_WAIT(STAGES - 2);
    block_barrier();
}

/* acc := op(A) * op(B), k deep. A, B: the block's tiles; rows, cols: what exists from there on;
 * row, col: the thread's place in the block. A warp that is idle only copies. */
static __device__ __forceinline__ void multiply_tiles(float (*acc)[TN], struct stage *stages,
                                                      const float *A, long long lda, const float *B,
                                                      long long ldb, int rows, int cols, int k,
                                                      int row, int col, bool is_idle)
{
    const int tiles = (k + STEP - 1) / STEP, depth = k - (tiles - 1) * STEP; /* of all slices */
    struct origin from_A, from_B;
    locate_copies(&from_A, A_COPIES, A, lda, rows, BM, VEC_A, A_ALONG_K);
    locate_copies(&from_B, B_COPIES, B, ldb, cols, BN, VEC_B, B_ALONG_K);

    const int own_depth = depth - SLICE * BK;
    copy_first_tile(&stages[0].A[0][0], &from_A, A_COPIES, BM, VEC_A, A_ALONG_K, own_depth);
    copy_first_tile(&stages[0].B[0][0], &from_B, B_COPIES, BN, VEC_B, B_ALONG_K, own_depth);
    async_commit();
    const long long a_line = (A_ALONG_K ? 1 : lda) * 4, b_line = (B_ALONG_K ? 1 : ldb) * 4;
    move_copies(&from_A, A_COPIES, (depth - STEP) * a_line); /* so that all tiles begin alike */
    move_copies(&from_B, B_COPIES, (depth - STEP) * b_line);
#pragma unroll
    for (int s = 1; s < STAGES - 1; s++) {
        const struct arrival next = {stages, s * STAGE_BYTES, &from_A, &from_B, s < tiles};
        move_copies(&from_A, A_COPIES, STEP * a_line);
        move_copies(&from_B, B_COPIES, STEP * b_line);
        copy_tile(&next);
        async_commit();
    }
    ASYNC_WAIT(STAGES - 2);
    __syncthreads();

    int read = 0, write = (STAGES - 1) * STAGE_BYTES;
    if (is_idle) {
        for (int left = tiles; left > 0; left--) {
            const struct arrival next = {
                stages, write, &from_A, &from_B, left >= STAGES,
            };
            move_copies(&from_A, A_COPIES, STEP * a_line);
            move_copies(&from_B, B_COPIES, STEP * b_line);
            copy_tile(&next);
            await_tile();
            write = stage_after(write);
        }
        return;
    }

    float a[2][TM], b[2][TN]; /* fragments: one is multiplied while the other is loaded */
    struct source from = source_of(stages, read, row, col);
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        load_part(i, a[0], b[0], &from, 0);
    for (int left = tiles; left > 0; left--) {
        const struct arrival next = {
            stages, write, &from_A, &from_B, left >= STAGES,
        };
        move_copies(&from_A, A_COPIES, STEP * a_line);
        move_copies(&from_B, B_COPIES, STEP * b_line);
#pragma unroll
        for (int p = 0; p < BK; p++) {
            if (p == BK - 1) {
                await_tile();
                write = read;
                read = stage_after(read);
                from = source_of(stages, read, row, col);
            }
#if COPY_EVERY == 0
            if (p == COPY_FROM / TM) copy_tile(&next);
#endif
            multiply(acc, a[p % 2], b[p % 2], p, LOADS_AHEAD(p < BK - 1 || left > 1),
                     a[(p + 1) % 2], b[(p + 1) % 2], &from, (p + 1) % BK, &next);
        }
    }
}

/* Where a thread's results go: its first one is C[row][col], and those above first_row or left of
 * first_col are the neighbouring block's. */
struct place {
    struct epilogue_operands with;
    int row, col, first_row, first_col;
    bool aligned; /* rows of C start on 16 bytes, and col is a multiple of 4 */
};

/* Stores four neighbours, from (i, j) of the thread's tile on. */
static __device__ __forceinline__ void
store4(const struct tgl_gemm_args *args, const struct place *at, const float *sum, int i, int j)
{
    const int row = at->row + i / 4 * 4 * LANES_M + i % 4, col = at->col + j * LANES_N;
    if (row >= at->first_row && row < args->m)
        epilogue_store4(args, &at->with, sum, row, col, at->first_col - col, args->n - col,
                        at->aligned);
}

/* Elements of a thread's tile that are summed together: such parts are dealt out among the slices
 * of a cluster's blocks. And so many partial sums at once, to have 32 loads under way. */
enum { PART = TM * TN >= 128 ? 16 : TM * TN >= 32 ? 8 : 4, AT_ONCE = 32 / PART };

/* sums[] := the sum over `count` of them of part `part` in workspaces that are BM * BN apart. */
static __device__ __forceinline__ void add_groups(float *sums, const float *workspace, int part,
                                                  int count)
{
#pragma unroll
    for (int e = 0; e < PART; e++)
        sums[e] = 0.0f;
#pragma unroll AT_ONCE
    for (int g = 0; g < count; g++)
#pragma unroll
        for (int e = 0; e < PART; e++)
            sums[e] +=
                __ldcg(&workspace[(long long)g * (BM * BN) + (part * PART + e) * SLICE_THREADS]);
}

/* Leaves this thread's sums in shared memory, in the place of tiles of A and B: BM * BN floats for
 * each slice, which hold element e of a thread at e * SLICE_THREADS from `all` on: as single
 * floats, since fours would tie the accumulators to aligned groups of four registers, in the main
 * loop too, where acc[i][j] must lie in another register bank than b[j]. */
static __device__ __forceinline__ void leave_sums(float *all, float (*acc)[TN])
{
    ASYNC_WAIT(0);   /* zeros still come after the last tile */
    __syncthreads(); /* the tiles are done with */
#pragma unroll
    for (int e = 0; e < TM * TN; e++)
        all[SLICE * (BM * BN) + e * SLICE_THREADS] = acc[e / TN][e % TN];
}

static __device__ __forceinline__ void
store_part(const struct tgl_gemm_args *args, const struct place *at, const float *sums, int part)
{
#pragma unroll
    for (int e = 0; e < PART; e += 4)
        store4(args, at, &sums[e], (part * PART + e) / TN, (part * PART + e) % TN);
}

#if SLICES > 1
/* Adds up the slices' sums of a tile that no other block shares, and stores the results. */
static __device__ __forceinline__ void add_slices_and_store(const struct tgl_gemm_args *args,
                                                            float *shared, float (*acc)[TN],
                                                            const struct place *at)
{
    const float *all = shared + THREAD;
    leave_sums(shared + THREAD, acc);
    __syncthreads();
    for (int part = SLICE; part < TM * TN / PART; part += SLICES) {
        float sums[PART] = {0.0f};
#pragma unroll
        for (int s = 0; s < SLICES; s++)
#pragma unroll
            for (int e = 0; e < PART; e++)
                sums[e] += all[s * (BM * BN) + (part * PART + e) * SLICE_THREADS];
        store_part(args, at, sums, part);
    }
}
#endif

#if LINES_OF_C
#define WARPS_N (BN / WN)

/* Lines that a warp stores at a time, and pieces of a line, 32 neighbours each, of which all but
 * the first begin on 128 bytes. */
enum { LINES_OF_WARP = 4 * LANES_M / WARPS_N, PIECES = BN / 32 + 1 };

#if 4 * LANES_M * WARPS_M * (BN + PAD) > STAGES * STAGE_FLOATS || 4 * LANES_M % WARPS_N || BN % 32
#error "lines of C take the place of the tiles of A and B; all warps have as many, in pieces of 32"
#endif

/* Stores a tile of which this block has the whole sums. Where rows of C begin anywhere, fours of
 * theirs are stored as single floats, and a store of a warp then spans as many sectors as one of
 * fours: four times those that hold the results. So lines go through shared memory, in the place of
 * the tiles of A and B, four of a thread at a time, and a warp stores what lies in the same 128
 * bytes. What a line has in shared memory and in C is loaded before its first store, which the
 * compiler moves no load across. */
static __device__ __forceinline__ void store_lines(const struct tgl_gemm_args *args, float *shared,
                                                   float (*acc)[TN], const struct place *at,
                                                   int row, int col)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int tile_row = at->row - row, tile_col = at->col - col, own_line = row % WM;
    const int col_from = max(0, at->first_col - tile_col), col_to = min(BN, args->n - tile_col);
    /* Shifted, so that threads below one another write to other banks. */
    float *to_shared =
        shared + (row / WM * 4 * LANES_M + own_line) * (BN + PAD) + own_line / 4 % PAD + col;
    ASYNC_WAIT(0); /* zeros still come after the last tile */
#pragma unroll
    for (int i = 0; i < TM; i += 4) {
        __syncthreads(); /* the tiles, or the lines before, are done with */
#pragma unroll
        for (int e = 0; e < 4 * TN; e++)
            to_shared[e / TN * (BN + PAD) + e % TN / 4 * 4 * LANES_N + e % 4] =
                acc[i + e / TN][e % TN];
        __syncthreads();
#pragma unroll 1
        for (int l = 0; l < LINES_OF_WARP; l++) {
            const int line = warp % WARPS_N * LINES_OF_WARP + l;
            const int to_row = tile_row + warp / WARPS_N * WM + i * LANES_M + line;
            if (to_row < at->first_row || to_row >= args->m) continue;
            const float *from = &shared[(warp / WARPS_N * 4 * LANES_M + line) * (BN + PAD) +
                                        (unsigned)line / 4 % PAD];
            element_d *to = &at->with.D[to_row * args->ldd + tile_col];
            const element_c *c_row = BESIDE(args, &at->with, to, to_row, tile_col);
            const int first = lane - (int)((unsigned long long)to / sizeof(element_d) % 32);
            accumulate_t sums[PIECES], old[PIECES];
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const int c = first + 32 * p;
                sums[p] = from[min(max(c, 0), BN - 1)];
                old[p] =
                    BETA(args, &at->with) != 0 && c >= col_from && c < col_to ? from_c(c_row[c]) : 0;
            }
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const int c = first + 32 * p;
                if (c >= col_from && c < col_to)
                    to[c] = to_d(epilogue(args, &at->with, sums[p], old[p], to_row, tile_col + c));
            }
        }
    }
}
#endif

/* Adds up a tile's partial sums and stores the results. tile: among those that are split, of the
 * whole batch; split: which of its blocks this is. */
static __device__ __forceinline__ void reduce_and_store(const struct tgl_gemm_args *args,
                                                        float *shared, float (*acc)[TN], int tile,
                                                        int split, const struct place *at)
{
    const int cluster = args->cluster, rank = split % cluster;
    const int groups = args->splits / cluster, group = split / cluster;
    const int first = rank * SLICES + SLICE, sharers = cluster * SLICES; /* of the tile's parts */
    float *all = shared + THREAD, sums[PART];
    leave_sums(all, acc);
    cluster_sync();

    float *workspace =
        (float *)args->workspace + (long long)tile * groups * (BM * BN) + THREAD;
    for (int part = first; part < TM * TN / PART; part += sharers) {
#pragma unroll
        for (int e = 0; e < PART; e++)
            sums[e] = 0.0f;
#pragma unroll AT_ONCE
        for (int s = 0; s < sharers; s++)
#pragma unroll
            for (int e = 0; e < PART; e++)
                sums[e] += cluster_load(
                    &all[s % SLICES * (BM * BN) + (part * PART + e) * SLICE_THREADS], s / SLICES);
#pragma unroll
        for (int e = 0; e < PART; e++)
            if (groups > 1)
                workspace[(long long)group * (BM * BN) + (part * PART + e) * SLICE_THREADS] =
                    sums[e];
            else if (e % 4 == 0)
                store4(args, at, &sums[e], (part * PART + e) / TN, (part * PART + e) % TN);
    }
    cluster_sync(); /* nobody leaves while others read what it has */
    if (groups == 1) return;

    if (!is_last_block(&args->counters[tile * cluster + rank], groups)) return;
    for (int part = first; part < TM * TN / PART; part += sharers) {
        add_groups(sums, workspace, part, groups);
        store_part(args, at, sums, part);
    }
}

#if SLICES == 1
/* acc := the sum of what the blocks have that share a tile, where no two of them are a cluster. All
 * leave theirs in the workspace, but for the first if it finds itself to be the last, as it will
 * if it has most to do. False: others have yet to come, and the last of them goes on. tile, split:
 * as for reduce_and_store(). */
static __device__ __forceinline__ bool add_splits(const struct tgl_gemm_args *args,
                                                  float (*acc)[TN], int tile, int split)
{
    unsigned *counter = &args->counters[tile];
    float *from =
        (float *)args->workspace + (long long)tile * args->splits * (BM * BN) + THREAD;
    if (!others_have_come(split == 0, counter, args->splits)) {
        float *own = from + (long long)split * (BM * BN);
#pragma unroll
        for (int e = 0; e < TM * TN; e++)
            own[e * THREADS] = acc[e / TN][e % TN];
        if (!comes_last(counter, args->splits)) return false;
    }
    take_sums(counter);
    if (split > 0)
#pragma unroll
        for (int e = 0; e < TM * TN; e++)
            acc[e / TN][e % TN] = __ldcg(&from[e * THREADS]);
#pragma unroll 1
    for (int s = 1; s < args->splits; s++) {
        from += BM * BN;
#pragma unroll
        for (int e = 0; e < TM * TN; e++)
            acc[e / TN][e % TN] += __ldcg(&from[e * THREADS]);
    }
    return true;
}
#endif

/* The first row and column of a tile: first those that are whole, in bands, then the last column,
 * then the last row. */
static __device__ __forceinline__ void place_tile(const struct tgl_gemm_args *args, int tile,
                                                  int *row, int *col)
{
    const int full_m = args->m / BM, full_n = args->n / BN;
    const int ragged = args->n % BN > 0 ? full_m : 0; /* tiles of the last column */
    int tile_m, tile_n;
    if (tile < full_m * full_n) {
        const int band = tile / (args->raster * full_n);
        const int in_band = tile - band * args->raster * full_n;
        const int height = min(args->raster, full_m - band * args->raster);
        tile_m = band * args->raster + in_band % height;
        tile_n = in_band / height;
    } else if (tile - full_m * full_n < ragged) {
        tile_m = tile - full_m * full_n;
        tile_n = full_n;
    } else {
        tile_m = full_m;
        tile_n = tile - full_m * full_n - ragged;
    }
    *row = tile_m * BM;
    *col = tile_n * BN;
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const struct tgl_gemm_args args)
{
    DYNAMIC_SHARED(struct stage, stages, SLICES * STAGES_HELD);
    wait_for_earlier_launches();
    if (args.overlaps) let_later_launches_start();

    int tile = (int)blockIdx.x, first = 0, k = args.k;
    const int item = tile - args.tiles_whole;
    int split_tiles = 0, split_tile = 0, split = 0;
    if (item >= 0) {
        const int cluster = item / args.cluster;
        split_tiles = ((int)gridDim.x - args.tiles_whole) / args.splits;
        split_tile = cluster % split_tiles;
        split = cluster / split_tiles * args.cluster + item % args.cluster;
        tile = args.tiles_whole + split_tile;
        k -= (args.splits - 1) * args.k_chunk; /* of the first */
        if (split > 0) first = k + (split - 1) * args.k_chunk, k = args.k_chunk;
    }
    int block_row, block_col;
    place_tile(&args, tile, &block_row, &block_col);
    const int tile_row = max(0, min(block_row, args.m - BM)); /* what the block computes */
    const int tile_col = max(0, min(block_col, args.n - BN));

    const int batch = (int)blockIdx.z;
    const element_a *A = A_OF(&args, batch);
    const element_b *B = B_OF(&args, batch);
    element_d *D = D_OF(&args, batch);
    first += SLICE * BK;
    A += TRANS_A ? tile_row + first * args.lda : tile_row * args.lda + first;
    B += TRANS_B ? tile_col * args.ldb + first : tile_col + first * args.ldb;

    /* Neighbouring warps, which different schedulers have, lie below one another: where columns
     * are missing, all schedulers have less to do. The shuffle tells the compiler that a warp's
     * threads agree, so that barriers after a branch on it need not bring them together. */
    const int warp = __shfl_sync(0xffffffffu, (int)THREAD / 32, 0), lane = (int)threadIdx.x % 32;
    const int warp_row = warp % WARPS_M * WM, warp_col = warp / WARPS_M * WN;
    const int lane_m = lane / 2 % LANES_M, lane_n = lane / (2 * LANES_M) * 2 + lane % 2;
    const int row = warp_row + lane_m * 4, col = warp_col + lane_n * 4; /* in the block */
    const bool is_idle = tile_row + warp_row + WM <= block_row || tile_row + warp_row >= args.m ||
                         tile_col + warp_col + WN <= block_col || tile_col + warp_col >= args.n;

    float acc[TM][TN] = {{0.0f}};
    if (k > 0 && has_product(&args))
        multiply_tiles(acc, stages + SLICE * STAGES, A, args.lda, B, args.ldb, args.m - tile_row,
                       args.n - tile_col, k, row, col, is_idle);
    const struct epilogue_operands with = epilogue_operands(&args, D, batch);
    const struct place at = {
        with,
        tile_row + row,
        tile_col + col,
        block_row,
        block_col,
        ROWS_ARE_ON_16_BYTES(&args, &with) && tile_col % 4 == 0,
    };
    if (item >= 0) {
        const int shared_tile = batch * split_tiles + split_tile;
#if SLICES == 1
        if (args.cluster == 1 && !add_splits(&args, acc, shared_tile, split)) return;
        if (args.cluster > 1)
#endif
        {
            reduce_and_store(&args, &stages[0].A[0][0], acc, shared_tile, split, &at);
            return;
        }
    }
#if SLICES > 1
    add_slices_and_store(&args, &stages[0].A[0][0], acc, &at);
#elif LINES_OF_C
    store_lines(&args, &stages[0].A[0][0], acc, &at, row, col);
#else
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(&args, &at, &acc[i][j], i, j);
#endif
}
