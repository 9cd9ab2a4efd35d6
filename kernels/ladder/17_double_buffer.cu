/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 17: double buffer.
 *
 * Changed: two buffers for tiles in shared memory. While the tile in one buffer is multiplied, the
 * next tile is stored into the other.
 *
 *     rung 16    multiply 0 | barrier | store 1 | barrier | multiply 1 | barrier | store 2 | ...
 *     rung 17    multiply 0 | store 1 | barrier | multiply 1 | store 2 | barrier | ...
 *
 * Why: one barrier per tile instead of two. The barrier between the last read of a tile and the
 * store of the next one is not needed if the two tiles are in different buffers. A warp stores into
 * a buffer that all warps finished reading before the last barrier. So it can store the next tile
 * before the other warps have finished this one.
 * Look at: ncu --metrics
 *     smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio (decreases)
 *     smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio (near 0)
 */
#include "lib/load_store.h"

#ifndef BM
#define BM 128 /* rows of C that a block computes */
#endif
#ifndef BN
#define BN 128 /* columns */
#endif
#ifndef BK
#define BK 8 /* depth of a tile in shared memory */
#endif
#ifndef TM
#define TM 8 /* rows of C that a thread computes */
#endif
#ifndef TN
#define TN 8 /* columns */
#endif
#define THREADS (BM / TM * (BN / TN))

#if BM % TM || BN % TN || TM % 4 || TN % 4 || BK % 4 || THREADS > 1024
#error "a block is a grid of at most 1024 threads; TM, TN and BK are multiples of four"
#endif
#if THREADS % (BK / 4) || BM % (THREADS / (BK / 4))
#error "every load must be made by the whole block: whole rows of A's tile"
#endif
#if THREADS % (BN / 4) || BK % (THREADS / (BN / 4))
#error "every load must be made by the whole block: whole rows of B's tile"
#endif

/* A thread's results are in TM/4 groups of four adjacent rows and TN/4 groups of four adjacent
 * columns. ROW_STEP, COL_STEP: the distance between the first rows or columns of successive
 * groups. */
#define ROW_STEP (BM / (TM / 4))
#define COL_STEP (BN / (TN / 4))

/* A_ROW, A_P: the row and the step along K of a thread's first float4 in A's tile. A_ROWS: rows of
 * the tile that the block loads at once. A_LOADS: float4 that a thread loads per tile. B_...: the
 * same for B. */
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

/* Where a thread's part of the next tile begins: at its first float4 of A and of B. Each further
 * float4 is A_ROWS or B_ROWS rows below the previous one. */
struct source {
    const float *a, *b;
    long long lda, ldb;
    int rows, cols;            /* rows of A left from `a` on; columns of B left from `b` on */
    bool a_aligned, b_aligned; /* every row begins at a multiple of 16 bytes */
    bool inside; /* the rows are aligned, and all rows and columns of the block's tile exist */
};

/* A thread's part of a tile, in registers on its way from global to shared memory. */
struct staged {
    float4 a[A_LOADS], b[B_LOADS];
};

/* Loads a thread's part of the next tile; zeros outside the matrices. depth: how many k exist from
 * the tile's first k on. */
static __device__ __forceinline__ void load_tile(struct staged *staged, const struct source *from,
                                                 int depth)
{
    if (from->inside && depth >= BK) {
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            staged->a[i] = *(const float4 *)&from->a[i * A_ROWS * from->lda];
#pragma unroll
        for (int i = 0; i < B_LOADS; i++)
            staged->b[i] = *(const float4 *)&from->b[i * B_ROWS * from->ldb];
        return;
    }
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        const int count = i * A_ROWS < from->rows ? depth - A_P : 0;
        staged->a[i] = load_float4(&from->a[i * A_ROWS * from->lda], count, from->a_aligned);
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; i++) {
        const int count = B_P + i * B_ROWS < depth ? from->cols : 0;
        staged->b[i] = load_float4(&from->b[i * B_ROWS * from->ldb], count, from->b_aligned);
    }
}

static __device__ __forceinline__ void advance(struct source *from)
{
    from->a += BK;
    from->b += BK * from->ldb;
}

static __device__ __forceinline__ void store_tile(struct tile *to, const struct staged *staged)
{
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        float a[4];
        unpack(a, staged->a[i]);
#pragma unroll
        for (int q = 0; q < 4; q++)
            to->A[A_P + q][A_ROW + i * A_ROWS] = a[q];
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; i++)
        *(float4 *)&to->B[B_P + i * B_ROWS][B_COL] = staged->b[i];
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

__global__ void __launch_bounds__(THREADS, 2) /* at most 128 registers */
    sgemm_double_buffer(int m, int n, int k, float alpha, const float *A, long long lda,
                        const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) struct tile tiles[2];

    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    /* The thread's first row and column in the block's tile. */
    const int row = tid / (BN / TN) * 4, col = tid % (BN / TN) * 4;
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
    float a[2][TM] = {{0.0f}}, b[2][TN] = {{0.0f}}; /* step 0 multiplies zeros */
    struct staged staged;
    if (k > 0) {
        load_tile(&staged, &from, k);
        store_tile(&tiles[0], &staged);
        __syncthreads();
    }
    for (int left = k, now = 0; left > 0; left -= BK, now ^= 1) {
        advance(&from);
#pragma unroll
        for (int p = 0; p < BK; p++) {
            load_fragments(a[p % 2], b[p % 2], &tiles[now].A[p][row], &tiles[now].B[p][col]);
            if (p == 0 && left > BK) load_tile(&staged, &from, left - BK);
            multiply(acc, a[(p + 1) % 2], b[(p + 1) % 2]); /* multiplies the previous step */
        }
        if (left > BK) store_tile(&tiles[now ^ 1], &staged);
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
