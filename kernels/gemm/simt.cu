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
 *                 by the copies, single floats, for which any alignment will do.
 *   indices       A thread's offsets within a tile fit 32 bits (WIDE_OFFSETS 0) and never change;
 *                 the tile's address moves along k and is the same for the whole block.
 *   edges         Rows and columns outside of the matrices repeat the last one inside, nobody
 *                 stores their results; the ragged part of k comes first, padded with zeros.
 *   block order   Bands of `raster` rows of tiles, so that blocks at work at once share operands.
 *   split k       Tiles from number tiles_whole on are computed by `splits` blocks each. All leave
 *                 partial sums in the workspace, and the last to finish adds them up, always in
 *                 the same order: a result is bitwise the same every run.
 *   batch         gridDim.z problems.
 *
 * Grid: x = tiles_whole + splits * (tiles - tiles_whole), y = 1, z = batch.
 */
#include "lib/async_copy.h"
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/load_ahead.h"

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
#ifndef SPLIT_K
#define SPLIT_K 0 /* 1: some tiles are shared among blocks */
#endif
#ifndef WIDE_OFFSETS
#define WIDE_OFFSETS 0 /* 1: a tile spans 4 GB or more of A or B */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* blocks a multiprocessor must hold, which bounds the registers */
#endif
#ifndef COPY_AT
#define COPY_AT 0 /* the step of a tile's BK at which the next one is requested */
#endif
#ifndef NAME
#define NAME sgemm_simt
#endif

#define WARPS_N           (BN / WN)
#define THREADS           (BM / WM * WARPS_N * 32)
#define LANES_M           (WM / TM) /* the lanes of a warp, as a grid */
#define LANES_N           (WN / TN)
#define PAD               4 /* keeps a transposing copy's lanes in different banks, and rows on 16 bytes */
#define COPIES(edge, vec) ((BK * (edge) / (vec) + THREADS - 1) / THREADS) /* a thread */
#define A_ALONG_K         (!TRANS_A)
#define B_ALONG_K         TRANS_B
#define A_COPIES          COPIES(BM, VEC_A)
#define B_COPIES          COPIES(BN, VEC_B)

#if BM % WM || BN % WN || TM % 4 || TN % 4 || WM % TM || WN % TN
#error "a block is a grid of warps, a warp a grid of threads, a thread a grid of 4 x 4"
#endif
#if LANES_M * LANES_N != 32 || LANES_M < 2 || LANES_N < 2
#error "a warp is 2 x 16, 4 x 8, 8 x 4 or 16 x 2 threads"
#endif
#if BK % 4 || STAGES < 2
#error "BK: a multiple of 4; STAGES: at least 2"
#endif
#if (A_ALONG_K && VEC_A != 1) || (B_ALONG_K && VEC_B != 1) || BM % VEC_A || BN % VEC_B
#error "an operand that lies along k is copied in single floats"
#endif

#if WIDE_OFFSETS
typedef long long tile_offset;
#else
typedef unsigned tile_offset;
#endif

struct stage {
    float A[BK][BM + PAD];
    float B[BK][BN + PAD];
};

/* Place of this thread's copy number i: the block's copies, each `vec` floats along the edge or one
 * float of an operand that lies along k, are dealt out line by line. The cases are one formula;
 * written so, all but the thread's first place are constants away from it. */
static __device__ __forceinline__ unsigned copy_line(int i, const unsigned per_line)
{
    if (THREADS % per_line == 0) return threadIdx.x / per_line + i * (THREADS / per_line);
    if (per_line % THREADS == 0) return i / (per_line / THREADS);
    return (threadIdx.x + i * THREADS) / per_line;
}

static __device__ __forceinline__ unsigned copy_in_line(int i, const unsigned per_line)
{
    if (THREADS % per_line == 0) return threadIdx.x % per_line;
    if (per_line % THREADS == 0) return threadIdx.x + i % (per_line / THREADS) * THREADS;
    return (threadIdx.x + i * THREADS) % per_line;
}

static __device__ __forceinline__ unsigned copy_edge(int i, const int edge, const int vec,
                                                     const bool along_k)
{
    return along_k ? copy_line(i, BK) : copy_in_line(i, edge / vec) * vec;
}

static __device__ __forceinline__ unsigned copy_depth(int i, const int edge, const int vec,
                                                      const bool along_k)
{
    return along_k ? copy_in_line(i, BK) : copy_line(i, edge / vec);
}

/* What this thread copies of every tile: offsets from the tile's first element. `inside`: rows or
 * columns of the tile that exist; those beyond repeat the last. */
static __device__ __forceinline__ void locate_copies(tile_offset *offsets, const int copies,
                                                     long long ld, int inside, const int edge,
                                                     const int vec, const bool along_k)
{
#pragma unroll
    for (int i = 0; i < copies; i++) {
        const int e = min((int)copy_edge(i, edge, vec, along_k), inside - vec);
        const int p = (int)copy_depth(i, edge, vec, along_k);
        offsets[i] = (tile_offset)(along_k ? e * ld + p : p * ld + e) * sizeof(float);
    }
}

/* This thread's copies of the tile whose first element is `tile`. */
static __device__ __forceinline__ void copy_units(float *shared, const float *tile,
                                                  const tile_offset *offsets, const int copies,
                                                  const int edge, const int vec, const bool along_k,
                                                  bool active)
{
#pragma unroll
    for (int i = 0; i < copies; i++) {
        const unsigned e = copy_edge(i, edge, vec, along_k);
        const unsigned p = copy_depth(i, edge, vec, along_k);
        if ((i + 1) * THREADS * vec > BK * edge) /* the last may not be everybody's */
            active = active && (threadIdx.x + i * THREADS) * vec < BK * edge;
        async_copy(&shared[p * (edge + PAD) + e], (const float *)((const char *)tile + offsets[i]),
                   vec, active);
    }
}

/* The first tile of k, `depth` deep, the rest zeros. */
static __device__ __forceinline__ void copy_first_tile(float *shared, const float *tile,
                                                       long long ld, int inside, int depth,
                                                       const int edge, const bool along_k)
{
    for (int i = (int)threadIdx.x; i < BK * edge; i += THREADS) {
        const int e = along_k ? i / BK : i % edge, p = along_k ? i % BK : i / edge;
        const long long row = min(e, inside - 1);
        const bool valid = p < depth;
        async_copy_float_or_zero(&shared[p * (edge + PAD) + e],
                                 valid ? tile + (along_k ? row * ld + p : p * ld + row) : tile,
                                 valid);
    }
}

/* `count` floats of a row of shared memory in groups of four, one LDS.128 each. */
static __device__ __forceinline__ void load_fragment(float *fragment, const float *row,
                                                     const int count, const int lanes)
{
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        const float4 v = *(const float4 *)&row[i * lanes];
        fragment[i] = v.x;
        fragment[i + 1] = v.y;
        fragment[i + 2] = v.z;
        fragment[i + 3] = v.w;
    }
}

/* acc += a * b^T, odd rows backwards, so that neighbouring FFMAs share a register. */
static __device__ __forceinline__ void multiply(float (*acc)[TN], const float *a, const float *b)
{
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
            const int col = i % 2 ? TN - 1 - j : j;
            acc[i][col] += a[i] * b[col];
        }
}

/* acc := op(A) * op(B), k deep. A, B: the block's tiles; rows, cols: how much of them exists;
 * row, col: the thread's place in the block. */
static __device__ __forceinline__ void multiply_tiles(float (*acc)[TN], struct stage *stages,
                                                      const float *A, long long lda, const float *B,
                                                      long long ldb, int rows, int cols, int k,
                                                      int row, int col)
{
    const int tiles = (k + BK - 1) / BK, depth = k - (tiles - 1) * BK;
    tile_offset a_offsets[A_COPIES], b_offsets[B_COPIES];
    locate_copies(a_offsets, A_COPIES, lda, rows, BM, VEC_A, A_ALONG_K);
    locate_copies(b_offsets, B_COPIES, ldb, cols, BN, VEC_B, B_ALONG_K);

    copy_first_tile(&stages[0].A[0][0], A, lda, rows, depth, BM, A_ALONG_K);
    copy_first_tile(&stages[0].B[0][0], B, ldb, cols, depth, BN, B_ALONG_K);
    async_commit();
    const long long a_step = A_ALONG_K ? BK : BK * lda, b_step = B_ALONG_K ? BK : BK * ldb;
    A += A_ALONG_K ? depth : depth * lda;
    B += B_ALONG_K ? depth : depth * ldb;
#pragma unroll
    for (int s = 1; s < STAGES - 1; s++) {
        copy_units(&stages[s].A[0][0], A, a_offsets, A_COPIES, BM, VEC_A, A_ALONG_K, s < tiles);
        copy_units(&stages[s].B[0][0], B, b_offsets, B_COPIES, BN, VEC_B, B_ALONG_K, s < tiles);
        async_commit();
        A += a_step;
        B += b_step;
    }
    ASYNC_WAIT(STAGES - 2);
    __syncthreads();

    float a[2][TM], b[2][TN]; /* fragments: one is multiplied while the other is loaded */
    load_fragment(a[0], &stages[0].A[0][row], TM, LANES_M);
    load_fragment(b[0], &stages[0].B[0][col], TN, LANES_N);
    int read = 0, write = STAGES - 1;
    for (int tile = 0; tile < tiles; tile++) {
        const bool more = tile + STAGES - 1 < tiles;
#pragma unroll
        for (int p = 0; p < BK; p++) {
            if (p == BK - 1) {
                async_commit();
                ASYNC_WAIT(STAGES - 2);
                __syncthreads();
                write = read;
                read = read + 1 == STAGES ? 0 : read + 1;
            }
            if (LOADS_AHEAD(p < BK - 1 || tile + 1 < tiles)) {
                load_fragment(a[(p + 1) % 2], &stages[read].A[(p + 1) % BK][row], TM, LANES_M);
                load_fragment(b[(p + 1) % 2], &stages[read].B[(p + 1) % BK][col], TN, LANES_N);
            }
            if (p == COPY_AT) {
                copy_units(&stages[write].A[0][0], A, a_offsets, A_COPIES, BM, VEC_A, A_ALONG_K,
                           more);
                copy_units(&stages[write].B[0][0], B, b_offsets, B_COPIES, BN, VEC_B, B_ALONG_K,
                           more);
            }
            multiply(acc, a[p % 2], b[p % 2]);
        }
        A += a_step;
        B += b_step;
    }
}

/* Adds up a tile's partial sums. False: this block is not the last of the tile's, and is done.
 * Single floats, not fours: those would tie the accumulators to aligned groups of four registers,
 * in the main loop too, where acc[i][j] must lie in another register bank than b[j]. */
static __device__ __forceinline__ bool reduce(const struct tgl_gemm_args *args, float (*acc)[TN],
                                              int tile, int split)
{
    __shared__ bool last;
    float *sums = args->workspace + (long long)tile * args->splits * (BM * BN) + threadIdx.x;
    float *mine = sums + (long long)split * (BM * BN);
#pragma unroll
    for (int i = 0; i < TM * TN; i++)
        mine[i * THREADS] = acc[i / TN][i % TN];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&args->counters[tile], 1u) + 1 == (unsigned)args->splits;
        if (last) args->counters[tile] = 0;
    }
    __syncthreads();
    if (!last) return false;
    __threadfence();

#pragma unroll
    for (int i = 0; i < TM * TN; i++)
        acc[i / TN][i % TN] = 0.0f;
    for (int s = 0; s < args->splits; s++, sums += BM * BN)
#pragma unroll
        for (int i = 0; i < TM * TN; i++)
            acc[i / TN][i % TN] += __ldcg(&sums[i * THREADS]);
    return true;
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const struct tgl_gemm_args args)
{
    DYNAMIC_SHARED(struct stage, stages, STAGES);

    int tile = (int)blockIdx.x, first = 0, k = args.k;
#if SPLIT_K
    const int split_item = tile - args.tiles_whole, split = split_item % args.splits;
    if (split_item >= 0) {
        tile = args.tiles_whole + split_item / args.splits;
        k -= (args.splits - 1) * args.k_chunk; /* of the first */
        if (split > 0) first = k + (split - 1) * args.k_chunk, k = args.k_chunk;
    }
#endif
    const int tiles_m = (args.m - 1) / BM + 1, tiles_n = (args.n - 1) / BN + 1;
    const int band = tile / (args.raster * tiles_n), in_band = tile - band * args.raster * tiles_n;
    const int height = min(args.raster, tiles_m - band * args.raster);
    const int block_row = (band * args.raster + in_band % height) * BM;
    const int block_col = in_band / height * BN;

    const int batch = (int)blockIdx.z;
    const float *A = args.A_array ? args.A_array[batch] : args.A + batch * args.stride_a;
    const float *B = args.B_array ? args.B_array[batch] : args.B + batch * args.stride_b;
    float *C = args.C_array ? args.C_array[batch] : args.C + batch * args.stride_c;
    A += TRANS_A ? block_row + first * args.lda : block_row * args.lda + first;
    B += TRANS_B ? block_col * args.ldb + first : block_col + first * args.ldb;

    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int lane_m = lane / 2 % LANES_M, lane_n = lane / (2 * LANES_M) * 2 + lane % 2;
    const int row = warp / WARPS_N * WM + lane_m * 4; /* of the thread, within the block */
    const int col = warp % WARPS_N * WN + lane_n * 4;

    float acc[TM][TN] = {{0.0f}};
    if (k > 0)
        multiply_tiles(acc, stages, A, args.lda, B, args.ldb, args.m - block_row,
                       args.n - block_col, k, row, col);
#if SPLIT_K
    if (split_item >= 0) {
        const int split_tiles = tiles_m * tiles_n - args.tiles_whole;
        if (!reduce(&args, acc, batch * split_tiles + split_item / args.splits, split)) return;
    }
#endif

    const bool aligned = (unsigned long long)C % 16 == 0 && args.ldc % 4 == 0;
    const struct epilogue_operands with = epilogue_operands(&args, batch);
#pragma unroll
    for (int i = 0; i < TM; i++) {
        const int c_row = block_row + row + i / 4 * 4 * LANES_M + i % 4;
        if (c_row >= args.m) continue;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int c_col = block_col + col + j * LANES_N;
            epilogue_store4(&args, &with, C, &acc[i][j], c_row, c_col, args.n - c_col, aligned);
        }
    }
}
