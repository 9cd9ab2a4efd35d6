/* SPDX-License-Identifier: Apache-2.0
 *
 * FP32 GEMM with IEEE arithmetic (FFMA), all transposes, any shape and alignment, sm_75 and later.
 *
 * As in the last rung of the ladder, a block computes a BM x BN tile of D, a warp WM x WN of it,
 * and a thread TM x TN. STAGES tiles of op(A) and op(B), BK deep, are copied by cp.async. Every
 * thread holds two fragments of each: one is multiplied while the other is loaded. Additions to the
 * ladder:
 *
 *   transposes    Shared memory holds both operands as [BK][edge], MN-major. A tile of an MN-major
 *                 operand (contiguous in M or N) is copied as it is, VEC floats at once. A tile of
 *                 a K-major operand is transposed by scalar copies, which work for any alignment.
 *                 Its groups of four floats are swizzled by an amount that depends on k, so that
 *                 the floats of one copy go to different banks.
 *   indices       If a thread has few copies, each has an address in registers that advances along
 *                 K. Otherwise each has a constant 32-bit offset within the tile (64-bit with
 *                 WIDE_OFFSETS), and the address of the tile advances. Stages are numbered by their
 *                 offset in bytes: an integer multiplication in the loop, even by 4, would take an
 *                 issue slot of the FFMA pipe.
 *   slices        A small tile with enough results per thread has only few warps. With slices,
 *                 SLICES groups of warps compute the same tile. Each slice takes BK of every
 *                 BK * SLICES steps along K. At the end the sums are added through shared memory.
 *   edges         A tile that would reach past the last row or column starts earlier, so that it
 *                 ends there. Elements that two blocks compute are stored by the block before, and
 *                 warps without elements to store only copy. If the matrix is smaller than a tile,
 *                 rows and columns inside replace those outside. The K remainder comes first,
 *                 padded with zeros.
 *   block order   Bands of `raster` rows of tiles, so that concurrent blocks share operands in L2.
 *                 Partial tiles of the last column and row come last: they have the least work,
 *                 which shortens the last wave.
 *   split-K       Tiles with number tiles_whole and above are computed by `splits` blocks each. A
 *                 cluster of `cluster` blocks adds its sums through distributed shared memory, each
 *                 block a part of the tile. If a tile has several clusters, they store their sums
 *                 in the workspace, and the last one to finish adds them. Without clusters, the
 *                 block of the first split keeps its sums in registers if it finishes last. The
 *                 order of additions is fixed, so results are bitwise the same in every run. The
 *                 first clusters of all tiles come before the second ones: if the first split is
 *                 deeper than the others, the short blocks fill the SMs at the end. This code does
 *                 not slow products without split-K: ptxas allocates registers better with it.
 *   unaligned     With LINES_OF_C (ldd is not a multiple of 4), tiles of D are stored line by line.
 *   batch         gridDim.z problems.
 *
 * Grid: x = tiles_whole + splits * (tiles - tiles_whole), y = 1, z = batch; clusters of `cluster`
 * blocks along x, of which tiles_whole and splits are multiples.
 */
#define ASYNC_COPY_L2 ".L2::128B" /* a miss loads 128 bytes into L2 */
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
#include "lib/shuffle.h"

#ifndef BM
#define BM 128 /* rows of D that a block computes */
#endif
#ifndef BN
#define BN 128 /* columns */
#endif
#ifndef BK
#define BK 8 /* depth of a tile in shared memory */
#endif
#ifndef WM
#define WM 64 /* rows of D that a warp computes */
#endif
#ifndef WN
#define WN 64 /* columns */
#endif
#ifndef TM
#define TM 16 /* rows of D that a thread computes, in groups of four */
#endif
#ifndef TN
#define TN 8 /* columns, in groups of four */
#endif
#ifndef STAGES
#define STAGES 3 /* tiles in shared memory: one is multiplied while the others arrive */
#endif
#ifndef SLICES
#define SLICES 1 /* groups of warps that share K, each with its own tiles in shared memory */
#endif
#ifndef TRANS_A
#define TRANS_A 0 /* 0: A is m x k; 1: k x m */
#endif
#ifndef TRANS_B
#define TRANS_B 0 /* 0: B is k x n; 1: n x k */
#endif
#ifndef VEC_A
#define VEC_A 1 /* floats of a copy, TRANS_A only: divides A's alignment, lda and m */
#endif
#ifndef VEC_B
#define VEC_B 1 /* the same for B, ldb and n; 1 with TRANS_B */
#endif
#ifndef LINES_OF_C
#define LINES_OF_C 0 /* 1: unaligned rows of D; tiles are stored line by line */
#endif
#ifndef WIDE_OFFSETS
#define WIDE_OFFSETS 0 /* 1: a tile spans 4 GB or more of A or B */
#endif
#ifndef INSIDE
#define INSIDE 0 /* 1: m >= BM and n >= BN, so that no tile reaches outside */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* blocks that an SM must hold, which bounds the registers */
#endif
/* The schedule: when copies of the next tile and loads of the next fragments are issued while a
 * tile is multiplied. The first copy is issued after COPY_FROM rows of a thread's FFMAs (a row has
 * TN FFMAs, a step along K has TM rows), then one every COPY_EVERY rows (0: all at once). In a
 * step, the first load is issued after LOAD_FROM FFMAs, then one every LOAD_EVERY. Scalar copies
 * are many and delay the loads that follow them, so they are spread over most of a large tile. */
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
#define STEP          (BK * SLICES) /* k of one iteration, all slices */
#define LANES_M       (WM / TM)     /* the lanes of a warp, as a grid */
#define LANES_N       (WN / TN)
#define PAD           4 /* lanes of a transposing copy use different banks; rows are on 16 bytes */
/* Copies of a tile that a thread makes. */
#define COPIES(edge, vec) ((BK * (edge) / (vec) + SLICE_THREADS - 1) / SLICE_THREADS)
#define A_ALONG_K         (!TRANS_A)
#define B_ALONG_K         TRANS_B
#define A_COPIES          COPIES(BM, VEC_A)
#define B_COPIES          COPIES(BN, VEC_B)
#define LOADS             ((TM + TN) / 4) /* float4 loads of a thread's fragments */

/* The slice of this thread, and its index in the slice. */
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
#error "a K-major operand is copied by scalar copies"
#endif
#if COPY_FROM + (A_COPIES + B_COPIES - 1) * COPY_EVERY >= (BK - 1) * TM
#error "all copies are issued before the last step of a tile"
#endif
#if LOAD_FROM + (LOADS - 1) * LOAD_EVERY >= TM * TN
#error "all loads are issued within a step"
#endif

#include "lib/simt_copies.h"

/* Loads four adjacent floats at depth p, a constant: one LDS.128, with the swizzle undone. */
static __device__ __forceinline__ void load4(float *fragment, const float *at, const int p,
                                             const bool k_major)
{
    const int r = (int)swizzle((unsigned)p, k_major);
    const float4 v = *(const float4 *)at;
    fragment[(4 - r) % 4] = v.x;
    fragment[(5 - r) % 4] = v.y;
    fragment[(6 - r) % 4] = v.z;
    fragment[(7 - r) % 4] = v.w;
}

/* A thread's rows and columns in a stage, at depth 0. With in_stage() here, ptxas would order the
 * main loop differently, and the tuned schedules would not apply. */
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

/* Load number i of a thread's fragments at depth p: first those of b, then those of a. */
static __device__ __forceinline__ void load_part(int i, float *a, float *b,
                                                 const struct source *from, const int p)
{
    const int j = i * 4, k = (i - TN / 4) * 4;
    if (i < TN / 4)
        load4(&b[j], &from->B[p * (BN + PAD) + j * LANES_N], p, B_ALONG_K);
    else
        load4(&a[k], &from->A[p * (BM + PAD) + k * LANES_M], p, A_ALONG_K);
}

/* The index of the copy or load to issue at position `turn` of the schedule, if one is issued at
 * every `every`-th position from `from` on; else -1. */
static __device__ __forceinline__ int issue_at(int turn, const int from, const int every)
{
    return turn >= from && (turn - from) % every == 0 ? (turn - from) / every : -1;
}

/* Issues the copy of the next tile that the schedule has before this row of a thread's FFMAs, if
 * any. row: counted over the whole tile. */
static __device__ __forceinline__ void copy_at(int row, const struct arrival *next)
{
#if COPY_EVERY > 0
    const int copy = issue_at(row, COPY_FROM, COPY_EVERY);
    if (copy >= 0 && copy < A_COPIES) copy_of_A(next, copy);
    if (copy >= A_COPIES && copy < A_COPIES + B_COPIES) copy_of_B(next, copy - A_COPIES);
#endif
}

/* acc += a * b^T at depth p of a tile, while the next fragments are loaded from depth `next_p` of
 * `from` and copies of the next tile are issued. Odd rows run backwards, so that consecutive FFMAs
 * share a register. With the column order 0 2 1 3 in each group of four, ptxas generates the fewest
 * register bank conflicts in most configurations. */
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
            const int load = issue_at(i * TN + t, LOAD_FROM, LOAD_EVERY);
            if (load >= 0 && load < LOADS && loads) load_part(load, next_a, next_b, from, next_p);
            acc[i][j] += b[j] * a[i];
        }
    }
}

/* Commits the group of copies, and returns when the next tile to be multiplied has arrived and all
 * threads have read the last one. */
static __device__ __forceinline__ void await_tile(void)
{
    async_commit();
    ASYNC_WAIT(STAGES - 2);
    block_barrier();
}

/* acc := op(A) * op(B) over k. A, B: the first tiles of the block; rows, cols: the rows and columns
 * of the matrix from there on; row, col: the thread's position in the block. An idle warp only
 * copies. */
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
    move_copies(&from_A, A_COPIES,
                (depth - STEP) * a_line); /* after the remainder, all tiles are STEP apart */
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

    float a[2][TM], b[2][TN]; /* fragments: one is multiplied, the other loaded */
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

/* The position of a thread's results: the first one is D[row][col]. Elements above first_row or
 * left of first_col are stored by the neighbouring block. */
struct place {
    struct epilogue_operands with;
    int row, col, first_row, first_col;
    bool aligned; /* ROWS_ARE_ON_16_BYTES(), and col is a multiple of 4 */
};

/* Stores four adjacent elements, starting at (i, j) of the thread's tile. */
static __device__ __forceinline__ void
store4(const struct tgl_gemm_args *args, const struct place *at, const float *sum, int i, int j)
{
    const int row = at->row + i / 4 * 4 * LANES_M + i % 4, col = at->col + j * LANES_N;
    if (row >= at->first_row && row < args->m)
        epilogue_store4(args, &at->with, sum, row, col, at->first_col - col, args->n - col,
                        at->aligned);
}

/* Partial sums are added PART elements of a thread's tile at a time. These parts are distributed
 * round-robin over the slices of a cluster's blocks. The sums of AT_ONCE groups of blocks are
 * loaded together, to have 32 loads in flight. */
enum { PART = TM * TN >= 128 ? 16 : TM * TN >= 32 ? 8 : 4, AT_ONCE = 32 / PART };

/* sums[] := part number `part` of a thread's tile, added over `count` groups. The sums of a group
 * are BM * BN floats of the workspace. */
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

/* Stores this thread's sums in shared memory, in place of the tiles of A and B: BM * BN floats for
 * each slice. Element e of a thread is at offset e * SLICE_THREADS in `all`. The stores are scalar:
 * float4 stores would force the accumulators into aligned groups of four registers, also in the
 * main loop, where acc[i][j] must be in another register bank than b[j]. */
static __device__ __forceinline__ void leave_sums(float *all, float (*acc)[TN])
{
    ASYNC_WAIT(0);   /* zeros still arrive after the last tile */
    __syncthreads(); /* the tiles have been read */
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
/* Adds the slices' sums of a tile that is not split, and stores the results. */
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

/* The number of lines that a warp stores at a time, and the number of stores per line. A store has
 * 32 adjacent elements, aligned to 128 bytes except for the first one. */
enum { LINES_OF_WARP = 4 * LANES_M / WARPS_N, PIECES = BN / 32 + 1 };

#if 4 * LANES_M * WARPS_M * (BN + PAD) > STAGES * STAGE_FLOATS || 4 * LANES_M % WARPS_N || BN % 32
#error                                                                                             \
    "lines of D replace the tiles of A and B; warps have equally many, of a multiple of 32 floats"
#endif

/* Stores a tile with unaligned rows, of which this block has the complete sums. If each thread
 * stored its groups of four elements with scalar stores, each store of a warp would touch four
 * times the sectors that its results occupy. Therefore the lines are transposed through shared
 * memory, in place of the tiles of A and B, four lines of a thread at a time, and a warp stores
 * elements of the same 128 bytes. All elements of a line, in shared memory and in C, are loaded
 * before its first store, because the compiler does not move loads across stores. */
static __device__ __forceinline__ void store_lines(const struct tgl_gemm_args *args, float *shared,
                                                   float (*acc)[TN], const struct place *at,
                                                   int row, int col)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int tile_row = at->row - row, tile_col = at->col - col, own_line = row % WM;
    const int col_from = max(0, at->first_col - tile_col), col_to = min(BN, args->n - tile_col);
    /* The offset puts the threads of one column of the warp into different banks. */
    float *to_shared =
        shared + (row / WM * 4 * LANES_M + own_line) * (BN + PAD) + own_line / 4 % PAD + col;
    ASYNC_WAIT(0); /* zeros still arrive after the last tile */
#pragma unroll
    for (int i = 0; i < TM; i += 4) {
        __syncthreads(); /* the tiles, or the lines before, have been read */
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
                old[p] = BETA(args, &at->with) != 0 && c >= col_from && c < col_to
                             ? from_c(c_row[c])
                             : 0;
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

/* Adds a tile's partial sums and stores the results. tile: its index among the split tiles of the
 * whole batch; split: the index of this block among the splits of the tile. */
static __device__ __forceinline__ void reduce_and_store(const struct tgl_gemm_args *args,
                                                        float *shared, float (*acc)[TN], int tile,
                                                        int split, const struct place *at)
{
    const int cluster = args->cluster, rank = split % cluster;
    const int groups = args->splits / cluster, group = split / cluster;
    const int first = rank * SLICES + SLICE, sharers = cluster * SLICES; /* parts of the tile */
    float *all = shared + THREAD, sums[PART];
    leave_sums(all, acc);
    cluster_sync();

    float *workspace = (float *)args->workspace + (long long)tile * groups * (BM * BN) + THREAD;
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
    cluster_sync(); /* no block exits while others read its shared memory */
    if (groups == 1) return;

    if (!is_last_block(&args->counters[tile * cluster + rank], groups)) return;
    for (int part = first; part < TM * TN / PART; part += sharers) {
        add_groups(sums, workspace, part, groups);
        store_part(args, at, sums, part);
    }
}

#if SLICES == 1
/* acc := the sum over the blocks of a split tile, without clusters. All blocks store their sums in
 * the workspace, except for the first split if it finishes last. It usually does if it is deeper
 * than the others. False: other blocks have not finished yet, and the last of them continues. tile,
 * split: as in reduce_and_store(). */
static __device__ __forceinline__ bool add_splits(const struct tgl_gemm_args *args,
                                                  float (*acc)[TN], int tile, int split)
{
    unsigned *counter = &args->counters[tile];
    float *from = (float *)args->workspace + (long long)tile * args->splits * (BM * BN) + THREAD;
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

/* The first row and column of a tile. The order of tiles: whole tiles, in bands; then the tiles of
 * a partial last column; then those of a partial last row. */
static __device__ __forceinline__ void place_tile(const struct tgl_gemm_args *args, int tile,
                                                  int *row, int *col)
{
    const int full_m = args->m / BM, full_n = args->n / BN;
    const int ragged = args->n % BN > 0 ? full_m : 0; /* tiles of a partial last column */
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
        k -= (args.splits - 1) * args.k_chunk; /* depth of the first split */
        if (split > 0) first = k + (split - 1) * args.k_chunk, k = args.k_chunk;
    }
    int block_row, block_col;
    place_tile(&args, tile, &block_row, &block_col);
    const int tile_row =
        max(0, min(block_row, args.m - BM)); /* of the tile that the block computes */
    const int tile_col = max(0, min(block_col, args.n - BN));

    const int batch = (int)blockIdx.z;
    const element_a *A = A_OF(&args, batch);
    const element_b *B = B_OF(&args, batch);
    element_d *D = D_OF(&args, batch);
    first += SLICE * BK;
    A += TRANS_A ? tile_row + first * args.lda : tile_row * args.lda + first;
    B += TRANS_B ? tile_col * args.ldb + first : tile_col + first * args.ldb;

    /* Consecutive warps, which are on different schedulers, compute tiles of one column of D: if
     * columns are missing, all schedulers have less work. After uniform(), barriers behind a branch
     * on the value need no reconvergence. */
    const int warp = uniform((int)THREAD / 32), lane = (int)threadIdx.x % 32;
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
        with,      tile_row + row, tile_col + col,
        block_row, block_col,      ROWS_ARE_ON_16_BYTES(&args, &with) && tile_col % 4 == 0,
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
