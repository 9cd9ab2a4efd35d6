/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 22: remainder first.
 *
 * Changed: the copies in the loop test neither rows nor columns nor depth. The K remainder is
 * copied first, padded with zeros; every later tile is BK deep. Rows and columns outside the
 * matrices repeat the last one inside; their results are not stored.
 *
 *     K = 20, BK = 8       tile 0   k 0..3, then zeros        rung 21     k 0..7
 *                          tile 1   k 4..11                               k 8..15
 *                          tile 2   k 12..19                              k 16..19, then zeros
 *
 * Why: rung 21 compares rows, columns and depth with their limits for every copy. Here the copies
 * of all tiles but the first share one condition, that there is a next tile, and their pointers
 * only advance. A tile may now begin at any k. A float4 along a row of A could then be unaligned,
 * but A is copied as scalars, which need no alignment. In B the next k is the next row, so the
 * alignment of a float4 does not change.
 * Look at: ISETP in the loop of the SASS, and with ncu --metrics
 *     smsp__inst_executed.sum (decreases)
 *     smsp__inst_executed_pipe_fma.sum (unchanged)
 */
#include "lib/async_copy.h"
#include "lib/load_store.h"

#ifndef BM
#define BM 128 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 256 /* columns */
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
#define TM 16 /* rows of C that a thread computes */
#endif
#ifndef TN
#define TN 8 /* columns */
#endif
#define THREADS (BM / WM * (BN / WN) * 32)
#define LANES_M (WM / TM) /* the lanes of a warp, as a grid */
#define LANES_N (WN / TN)

#if BM % WM || BN % WN || LANES_M != 4 || LANES_N != 8
#error "a block is a grid of warps, a warp a grid of 4 x 8 threads"
#endif
#if TM % 4 || TN % 4 || BK % 4
#error "TM, TN and BK are multiples of four"
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

/* acc := A*B for the block, k > 0. row, col: the thread's first row and column in the block's tile.
 * width: floats per copy of B: 1 or 4, a constant in each call. Tile 0 has the remainder of k. */
static __device__ __forceinline__ void multiply_tiles(float (*acc)[TN], struct tile *tiles,
                                                      const float *A, long long lda, const float *B,
                                                      long long ldb, int rows, int cols, int k,
                                                      int row, int col, const int width)
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

    float a[2][TM] = {{0.0f}}, b[2][TN] = {{0.0f}}; /* step 0 multiplies zeros */
    ASYNC_WAIT(0);
    __syncthreads();
    for (int t = 0; t < count; t++) {
        const struct tile *tile = &tiles[t % 2];
#pragma unroll
        for (int p = 0; p < BK; p++) {
            load_fragments(a[p % 2], b[p % 2], &tile->A[p][row], &tile->B[p][col]);
            if (p == 2) copy_tile(&tiles[(t + 1) % 2], &from, width, t + 1 < count);
            multiply(acc, a[(p + 1) % 2], b[(p + 1) % 2]); /* multiplies the previous step */
        }
        async_commit();
        advance(&from, BK);
        ASYNC_WAIT(0);
        __syncthreads(); /* the next tile has arrived, and all threads have read the current one */
    }
    multiply(acc, a[1], b[1]);
}

__global__ void __launch_bounds__(THREADS, 1)
    sgemm_remainder_first(int m, int n, int k, float alpha, const float *A, long long lda,
                          const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) struct tile tiles[2];

    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    /* The lanes of a warp are a grid of 4 x 8: see the head of 20_warp_tiles.cu. */
    const int lane_m = lane / 2 % 4, lane_n = lane / 8 * 2 + lane % 2;
    const int row = warp / (BN / WN) * WM + lane_m * 4; /* the thread's first row */
    const int col = warp % (BN / WN) * WN + lane_n * 4;
    const bool b_aligned = rows_are_aligned(B, ldb) && n % 4 == 0;
    const bool c_aligned = rows_are_aligned(C, ldc);

    float acc[TM][TN] = {{0.0f}};
    A += block_row * lda;
    B += block_col;
    if (k > 0 && b_aligned)
        multiply_tiles(acc, tiles, A, lda, B, ldb, m - block_row, n - block_col, k, row, col, 4);
    else if (k > 0)
        multiply_tiles(acc, tiles, A, lda, B, ldb, m - block_row, n - block_col, k, row, col, 1);
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int r = block_row + row + i / 4 * ROW_STEP + i % 4,
                      c = block_col + col + j / 4 * COL_STEP;
            if (r < m) store_float4(&C[r * ldc + c], &acc[i][j], alpha, beta, n - c, c_aligned);
        }
}
