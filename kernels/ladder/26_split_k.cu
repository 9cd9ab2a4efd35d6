/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 26: split-K.
 *
 * Changed: `splits` blocks compute one tile of C, each over k_chunk of K. They leave their sums in
 * device memory, and the last one to finish adds them.
 *
 *     split 0   k 0 .. k_chunk - 1             sums -> workspace     counter 0 -> 1
 *     split 1   k k_chunk .. 2 k_chunk - 1     sums -> workspace     counter 1 -> 2
 *     split 2   ...                            sums -> workspace     counter 2 -> 3: the last one
 *               sum of splits 0 + 1 + 2, in this order -> C          counter 3 -> 0
 *
 * Why: 512 x 512 is 64 tiles of 64 x 64 for 132 SMs, and K is the only dimension left to divide.
 * The host (src/families/ladder_geometry.c) chooses splits = 2 * SMs / tiles, rounded down: twice
 * the SMs, because two blocks fit on an SM. It chooses at most k / 128 splits, rounded up. The
 * order of the additions does not depend on which block is the last, so that the result is bitwise
 * the same in every run. With atomicAdd() on C the code would be shorter, but the result would
 * vary. On an H200 this rung is slower than rung 25 at 256 and 512 cubed: splits of such a short K
 * spend much of their time in filling the ring and adding sums. The rung is for few tiles and a
 * long K.
 * Look at: ncu --metrics
 *     launch__grid_size (increases at small sizes)
 *     launch__waves_per_multiprocessor
 *     lts__t_sectors_op_write.sum (the sums; increases)
 */
#include "lib/async_copy.h"
#include "lib/last_block.h"
#include "lib/load_store.h"

#ifndef BM
#define BM 64 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 64 /* columns */
#endif
#ifndef BK
#define BK 16 /* depth of a tile in shared memory */
#endif
#ifndef WM
#define WM 32 /* rows of C that a warp computes */
#endif
#ifndef WN
#define WN 64 /* columns */
#endif
#ifndef TM
#define TM 8 /* rows of C that a thread computes */
#endif
#ifndef TN
#define TN 8 /* columns */
#endif
#ifndef STAGES
#define STAGES 3 /* tiles in shared memory: one is multiplied while the others arrive */
#endif
#ifndef BAND
#define BAND 8 /* rows of tiles in a band, whose tiles are taken column by column */
#endif
#ifndef SLICES
#define SLICES 4 /* groups of warps that divide the K of each tile among them */
#endif
#define SLICE_THREADS (BM / WM * (BN / WN) * 32)
#define THREADS       (SLICE_THREADS * SLICES)
#define STEPS         (BK / SLICES) /* steps along K of a slice in a tile */
#define LANES_M       (WM / TM)     /* the lanes of a warp, as a grid */
#define LANES_N       (WN / TN)

#if BM % WM || BN % WN || LANES_M != 4 || LANES_N != 8
#error "a block is a grid of warps, a warp a grid of 4 x 8 threads"
#endif
#if TM % 4 || TN % 4 || BK % 4 || STAGES < 2
#error "TM, TN and BK are multiples of four, STAGES is at least 2"
#endif
#if BK % SLICES || STEPS % 2 || STEPS < 4
#error "a slice has an even number of steps of a tile, at least four"
#endif
#if STAGES * BK * (BM + 4 + BN) < BM * BN
#error "the sums of a slice take the place of the tiles"
#endif
#if THREADS % BK || BM % (THREADS / BK) || THREADS % BN || BK % (THREADS * 4 / BN)
#error "every copy must be made by the whole block: whole rows of A's tile and of B's"
#endif

/* A thread's results are in TM/4 groups of four adjacent rows and TN/4 groups of four adjacent
 * columns. ROW_STEP, COL_STEP: the distance between the first rows or columns of successive
 * groups. */
#define ROW_STEP (4 * LANES_M)
#define COL_STEP (4 * LANES_N)
#define A_ROWS   (THREADS / BK) /* rows of A that the block copies at once, as scalars */
#define A_COPIES (BM / A_ROWS)
/* rows of B that the block copies at once, `width` floats per thread */
#define B_ROWS(width)   (THREADS * (width) / BN)
#define B_COPIES(width) (BK / B_ROWS(width))

struct tile {
    float A[BK][BM + 4]; /* transposed and padded */
    float B[BK][BN];
};

/* Copies the first tile: `depth` of K, then zeros. A, B: the block's first elements. rows, cols:
 * how many rows of A and columns of B exist from there on. */
static __device__ __forceinline__ void copy_first_tile(struct tile *to, const float *A,
                                                       long long lda, const float *B, long long ldb,
                                                       int rows, int cols, int depth)
{
#pragma unroll
    for (int i = 0; i < A_COPIES; i++) {
        const int r = (int)threadIdx.x / BK + i * A_ROWS, p = (int)threadIdx.x % BK;
        async_copy_float_or_zero(&to->A[p][r], &A[min(r, rows - 1) * lda + p], p < depth);
    }
#pragma unroll
    for (int i = 0; i < B_COPIES(1); i++) {
        const int p = (int)threadIdx.x / BN + i * B_ROWS(1), c = (int)threadIdx.x % BN;
        async_copy_float_or_zero(&to->B[p][c], &B[p * ldb + min(c, cols - 1)], p < depth);
    }
}

/* The addresses in A and B of a thread's copies of the next tile. */
struct source {
    const float *a[A_COPIES];
    const float *b; /* source of the first copy; each further one is B_ROWS rows below */
    long long ldb;
};

static __device__ __forceinline__ void copy_tile(struct tile *to, const struct source *from,
                                                 const int width, bool active)
{
#pragma unroll
    for (int i = 0; i < A_COPIES; i++)
        async_copy_float(&to->A[threadIdx.x % BK][threadIdx.x / BK + i * A_ROWS], from->a[i],
                         active);
#pragma unroll
    for (int i = 0; i < B_COPIES(width); i++) {
        float *b = &to->B[threadIdx.x * width / BN + i * B_ROWS(width)][threadIdx.x * width % BN];
        if (width == 4)
            async_copy_float4(b, from->b + i * B_ROWS(width) * from->ldb, active);
        else
            async_copy_float(b, from->b + i * B_ROWS(width) * from->ldb, active);
    }
}

static __device__ __forceinline__ void advance(struct source *from, int depth)
{
#pragma unroll
    for (int i = 0; i < A_COPIES; i++)
        from->a[i] += depth;
    from->b += depth * from->ldb;
}

/* Loads a thread's fragments for one step along K. A_row, B_row: where the fragments begin in
 * shared memory. */
static __device__ __forceinline__ void load_fragments(float *a, float *b, const float *A_row,
                                                      const float *B_row)
{
#pragma unroll
    for (int i = 0; i < TM; i += 4)
        load_fragment(&a[i], &A_row[i / 4 * ROW_STEP]);
#pragma unroll
    for (int j = 0; j < TN; j += 4)
        load_fragment(&b[j], &B_row[j / 4 * COL_STEP]);
}

/* acc += a * b^T. In odd rows of acc the columns come in reverse order, so that consecutive FFMAs
 * share a register. */
static __device__ __forceinline__ void multiply(float (*acc)[TN], const float *a, const float *b)
{
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int s = 0; s < TN; s++) {
            const int j = i % 2 ? TN - 1 - s : s;
            acc[i][j] += a[i] * b[j];
        }
}

/* acc := the slice's part of A*B for the block, k > 0. row, col: the thread's first row and column
 * in the block's tile. first: the slice's first step of a tile. width: floats per copy of B: 1 or
 * 4, a constant in each call. Tile 0 has the remainder of k. */
static __device__ __forceinline__ void multiply_tiles(float (*acc)[TN], struct tile *tiles,
                                                      const float *A, long long lda, const float *B,
                                                      long long ldb, int rows, int cols, int k,
                                                      int row, int col, int first, const int width)
{
    const int count = (k + BK - 1) / BK, depth = k - (count - 1) * BK; /* of tile 0: 1 to BK */
    struct source from;
    from.ldb = ldb;
#pragma unroll
    for (int i = 0; i < A_COPIES; i++) {
        const int r = (int)threadIdx.x / BK + i * A_ROWS;
        from.a[i] = &A[min(r, rows - 1) * lda + threadIdx.x % BK];
    }
    const int c = (int)threadIdx.x * width % BN;
    from.b = &B[threadIdx.x * width / BN * ldb + min(c, cols - width)];

    copy_first_tile(&tiles[0], A, lda, B, ldb, rows, cols, depth);
    async_commit();
    advance(&from, depth);
#pragma unroll
    for (int t = 1; t < STAGES - 1; t++) {
        copy_tile(&tiles[t], &from, width, t < count);
        async_commit(); /* the group may be empty: the waits count groups */
        advance(&from, BK);
    }

    float a[2][TM] = {{0.0f}}, b[2][TN] = {{0.0f}}; /* step 0 multiplies zeros */
    int read = 0, write = STAGES - 1;
    ASYNC_WAIT(STAGES - 2);
    __syncthreads();
    for (int t = 0; t < count; t++) {
#pragma unroll
        for (int p = 0; p < STEPS; p++) {
            load_fragments(a[p % 2], b[p % 2], &tiles[read].A[first + p][row],
                           &tiles[read].B[first + p][col]);
            if (p == 1) copy_tile(&tiles[write], &from, width, t + STAGES - 1 < count);
            multiply(acc, a[(p + 1) % 2], b[(p + 1) % 2]); /* multiplies the previous step */
        }
        async_commit();
        advance(&from, BK);
        write = read;
        read = read + 1 < STAGES ? read + 1 : 0;
        ASYNC_WAIT(STAGES - 2);
        __syncthreads(); /* the next tile has arrived, and all threads have read the current one */
    }
    multiply(acc, a[1], b[1]);
}

/* In slice 0, acc += the sums of slices 1, 2, ..., in this order. sums: shared memory of the tiles,
 * which are no longer needed. */
static __device__ __forceinline__ void add_slices(float (*acc)[TN], float *sums, int slice)
{
    const int t = (int)threadIdx.x % SLICE_THREADS;
    for (int s = 1; s < SLICES; s++) {
        __syncthreads(); /* the tiles, or the previous sums, have been read */
#pragma unroll
        for (int i = 0; i < TM * TN; i++)
            if (slice == s) sums[i * SLICE_THREADS + t] = acc[i / TN][i % TN];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TM * TN; i++)
            if (slice == 0) acc[i / TN][i % TN] += sums[i * SLICE_THREADS + t];
    }
}

/* *row, *col := the first row and column of tile number `tile`. Tiles are numbered band by band. */
static __device__ __forceinline__ void find_tile(int tile, int m, int n, int *row, int *col)
{
    const int rows = (m + BM - 1) / BM, columns = (n + BN - 1) / BN;
    const int band = tile / (BAND * columns), in_band = tile % (BAND * columns);
    const int band_rows = min(rows - band * BAND, BAND); /* the last band may have fewer */
    *row = (band * BAND + in_band % band_rows) * BM;
    *col = in_band / band_rows * BN;
}

/* GROUPS, BLOCK_GROUPS: the number of float4 of a thread, and of a block, in the workspace. */
#define GROUPS       (TM * TN / 4)
#define BLOCK_GROUPS (GROUPS * SLICE_THREADS)

/* Stores the sums of slice 0 in the workspace. to: the thread's first float4 there. */
static __device__ __forceinline__ void leave_sums(float4 *to, float (*acc)[TN])
{
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        const float *from = &acc[g / (TN / 4)][g % (TN / 4) * 4];
        to[g * SLICE_THREADS] = make_float4(from[0], from[1], from[2], from[3]);
    }
}

/* sum[0..3] := the thread's float4 number g, summed over the splits in the order of K. from: the
 * thread's first float4 of split 0. */
static __device__ __forceinline__ void add_splits(float *sum, const float4 *from, int g, int splits)
{
    sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
#pragma unroll 1
    for (int s = 0; s < splits; s++) {
        const float4 v = __ldcg(&from[s * BLOCK_GROUPS + g * SLICE_THREADS]);
        sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
    }
}

__global__ void __launch_bounds__(THREADS, 2)
    sgemm_split_k(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                  long long ldb, float beta, float *C, long long ldc, int splits, int k_chunk,
                  float *workspace, unsigned *counters)
{
    __shared__ __align__(16) struct tile tiles[STAGES];

    const int tiles_of_c = (int)gridDim.x / splits;
    const int tile = (int)blockIdx.x % tiles_of_c, split = (int)blockIdx.x / tiles_of_c;
    const int depth = min(k_chunk, k - split * k_chunk); /* K of this block */
    int block_row, block_col;
    find_tile(tile, m, n, &block_row, &block_col);
    const int slice = (int)threadIdx.x / SLICE_THREADS;
    const int warp = (int)threadIdx.x % SLICE_THREADS / 32, lane = (int)threadIdx.x % 32;
    /* The lanes of a warp are a grid of 4 x 8: see the head of 20_warp_tiles.cu. */
    const int lane_m = lane / 2 % 4, lane_n = lane / 8 * 2 + lane % 2;
    const int row = warp / (BN / WN) * WM + lane_m * 4; /* the thread's first row */
    const int col = warp % (BN / WN) * WN + lane_n * 4;
    const bool b_aligned = rows_are_aligned(B, ldb) && n % 4 == 0;
    const bool c_aligned = rows_are_aligned(C, ldc);

    float acc[TM][TN] = {{0.0f}};
    A += block_row * lda + (long long)split * k_chunk;
    B += (long long)split * k_chunk * ldb + block_col;
    if (depth > 0 && b_aligned)
        multiply_tiles(acc, tiles, A, lda, B, ldb, m - block_row, n - block_col, depth, row, col,
                       slice * STEPS, 4);
    else if (depth > 0)
        multiply_tiles(acc, tiles, A, lda, B, ldb, m - block_row, n - block_col, depth, row, col,
                       slice * STEPS, 1);
    add_slices(acc, (float *)tiles, slice);
    float4 *sums =
        (float4 *)workspace + (long long)tile * splits * BLOCK_GROUPS + threadIdx.x % SLICE_THREADS;
    if (splits > 1) {
        if (slice == 0) leave_sums(&sums[split * BLOCK_GROUPS], acc);
        if (!is_last_block(&counters[tile], splits)) return;
    }
    if (slice != 0) return;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int r = block_row + row + i / 4 * ROW_STEP + i % 4,
                      c = block_col + col + j / 4 * COL_STEP;
            if (splits > 1) add_splits(&acc[i][j], sums, i * (TN / 4) + j / 4, splits);
            if (r < m) store_float4(&C[r * ldc + c], &acc[i][j], alpha, beta, n - c, c_aligned);
        }
}
