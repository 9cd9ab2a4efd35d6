/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 11: warp tiles.
 *
 * Changed: a warp owns a WM x WN part of the block's tile, its lanes a grid of 4 x 8 in z-order,
 * and a thread has 16 x 8 results instead of 8 x 8. The block's tile doubles with them.
 * Why: a warp needs WM + WN values of a step instead of a wide, flat strip's, and eight lanes in
 * turn ask for at most four different float4 of A and two of B, which shared memory serves in one
 * go each. A thread loads 24 values for 128 FFMAs, where it was 16 for 64.
 * The price is registers: one block of eight warps is all that fits a multiprocessor, and no second
 * block computes while this one moves its tiles. So they move amid the FFMAs: the next tile is
 * asked for after the first step and stored before the last two, not in a lump at the barrier.
 * Look at: l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum for each FFMA,
 * smsp__inst_executed_pipe_fma.sum / smsp__inst_executed.sum.
 */
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

#if BM % WM || BN % WN || LANES_M * LANES_N != 32 || (LANES_M != 4 && LANES_N != 4)
#error "a block is a grid of warps, a warp a grid of 4 x 8 or 8 x 4 threads"
#endif
#if TM % 4 || TN % 4 || BK % 4
#error "TM, TN and BK are multiples of four"
#endif
#if THREADS % (BK / 4) || BM % (THREADS / (BK / 4))
#error "every load must be made by the whole block: whole rows of A's tile"
#endif
#if THREADS % (BN / 4) || BK % (THREADS / (BN / 4))
#error "every load must be made by the whole block: whole rows of B's tile"
#endif

/* A thread's rows and columns come in groups of four, one group in each of TM/4 stripes of its
 * warp's tile. */
#define ROW_STEP (4 * LANES_M)
#define COL_STEP (4 * LANES_N)

/* Where a thread's first float4 lies in the tiles of A and of B, p being the step of K; how many
 * rows of a tile the block loads at once; and how many times. */
#define A_ROW   ((int)threadIdx.x / (BK / 4))
#define A_P     ((int)threadIdx.x % (BK / 4) * 4)
#define A_ROWS  (THREADS / (BK / 4))
#define A_LOADS (BM / A_ROWS)
#define B_P     ((int)threadIdx.x / (BN / 4))
#define B_COL   ((int)threadIdx.x % (BN / 4) * 4)
#define B_ROWS  (THREADS / (BN / 4))
#define B_LOADS (BK / B_ROWS)

struct tile {
    float A[BK][BM + 4]; /* transposed and padded */
    float B[BK][BN];
};

/* Where a thread's part of the next tile comes from: its first float4 of A and of B. The others lie
 * A_ROWS and B_ROWS rows further down each. */
struct source {
    const float *a, *b;
    long long lda, ldb;
    int rows, cols;            /* of the matrices, from there on */
    bool a_aligned, b_aligned; /* every row starts on 16 bytes */
    bool inside;               /* so they do, and all of the block's rows and columns exist */
};

/* What a thread carries from global to shared memory: its part of a tile. */
struct cargo {
    float4 a[A_LOADS], b[B_LOADS];
};

/* What lies outside of the matrices is 0. */
static __device__ __forceinline__ void fetch(struct cargo *cargo, const struct source *from,
                                             int depth)
{
    if (from->inside && depth >= BK) {
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            cargo->a[i] = *(const float4 *)&from->a[i * A_ROWS * from->lda];
#pragma unroll
        for (int i = 0; i < B_LOADS; i++)
            cargo->b[i] = *(const float4 *)&from->b[i * B_ROWS * from->ldb];
        return;
    }
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        const int count = i * A_ROWS < from->rows ? depth - A_P : 0;
        cargo->a[i] = load_float4(&from->a[i * A_ROWS * from->lda], count, from->a_aligned);
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; i++) {
        const int count = B_P + i * B_ROWS < depth ? from->cols : 0;
        cargo->b[i] = load_float4(&from->b[i * B_ROWS * from->ldb], count, from->b_aligned);
    }
}

static __device__ __forceinline__ void advance(struct source *from)
{
    from->a += BK;
    from->b += BK * from->ldb;
}

static __device__ __forceinline__ void unload(struct tile *to, const struct cargo *cargo)
{
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        float a[4];
        unpack(a, cargo->a[i]);
#pragma unroll
        for (int q = 0; q < 4; q++)
            to->A[A_P + q][A_ROW + i * A_ROWS] = a[q];
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; i++)
        *(float4 *)&to->B[B_P + i * B_ROWS][B_COL] = cargo->b[i];
}

/* The values that a thread multiplies at one step of K, from that row of each tile. */
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

/* acc += a * b^T, every other row backwards. */
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

__global__ void __launch_bounds__(THREADS, 1)
    sgemm_warp_tiles(int m, int n, int k, float alpha, const float *A, long long lda,
                     const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) struct tile tiles[2];

    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int warp = tid / 32, lane = tid % 32;
    const int lane_m = LANES_M == 4 ? lane / 2 % 4 : lane / 8 * 2 + lane % 2; /* z-order */
    const int lane_n = LANES_N == 4 ? lane / 2 % 4 : lane / 8 * 2 + lane % 2;
    const int row = warp / (BN / WN) * WM + lane_m * 4; /* of the first group of four */
    const int col = warp % (BN / WN) * WN + lane_n * 4;
    const bool c_aligned = rows_are_aligned(C, ldc);
    struct source from;
    from.a = &A[(block_row + A_ROW) * lda + A_P];
    from.b = &B[B_P * ldb + block_col + B_COL];
    from.lda = lda;
    from.ldb = ldb;
    from.rows = m - block_row - A_ROW;
    from.cols = n - block_col - B_COL;
    from.a_aligned = rows_are_aligned(A, lda);
    from.b_aligned = rows_are_aligned(B, ldb);
    from.inside = from.a_aligned && from.b_aligned && block_row + BM <= m && block_col + BN <= n;

    float acc[TM][TN] = {{0.0f}};
    float a[2][TM] = {{0.0f}}, b[2][TN] = {{0.0f}}; /* the first product is one of zeros */
    struct cargo cargo;
    if (k > 0) {
        fetch(&cargo, &from, k);
        unload(&tiles[0], &cargo);
        __syncthreads();
    }
    for (int left = k, now = 0; left > 0; left -= BK, now ^= 1) {
        advance(&from);
#pragma unroll
        for (int p = 0; p < BK; p++) {
            load_fragments(a[p % 2], b[p % 2], &tiles[now].A[p][row], &tiles[now].B[p][col]);
            if (p == 1 && left > BK) fetch(&cargo, &from, left - BK);
            if (p == BK - 2 && left > BK) unload(&tiles[now ^ 1], &cargo);
            multiply(acc, a[(p + 1) % 2], b[(p + 1) % 2]); /* of the step before */
        }
        __syncthreads();
    }
    multiply(acc, a[1], b[1]);

#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int r = block_row + row + i / 4 * ROW_STEP + i % 4,
                      c = block_col + col + j / 4 * COL_STEP;
            if (r < m) store_float4(&C[r * ldc + c], &acc[i][j], alpha, beta, n - c, c_aligned);
        }
}
