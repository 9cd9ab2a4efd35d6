/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 10: double buffer.
 *
 * Changed: two tiles in shared memory. At the start of a tile's multiplication each thread asks
 * global memory for its part of the next one, keeps it in registers, and stores it into the other
 * buffer at the end: one barrier a tile instead of two. The last step of a tile is multiplied
 * after that barrier, while the first fragments of the next tile are on their way.
 * Why: global memory answers after some six hundred cycles, all of which a block has spent waiting.
 * Look at: smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active (gone),
 * smsp__average_warps_issue_stalled_barrier_per_issue_active (halved).
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
#if BM * BK / 4 % THREADS || BK * BN / 4 % THREADS
#error "every load of four floats must be made by the whole block"
#endif

/* A thread's rows and columns come in groups of four, one group in each of TM/4 stripes of the
 * block. */
#define ROW_STEP (BM / (TM / 4))
#define COL_STEP (BN / (TN / 4))
#define A_LOADS  (BM * BK / 4 / THREADS) /* float4 that a thread brings in for a tile */
#define B_LOADS  (BK * BN / 4 / THREADS)

struct tile {
    float A[BK][BM + 4]; /* transposed and padded */
    float B[BK][BN];
};

/* What a thread carries from global to shared memory: its part of a tile. */
struct cargo {
    float4 a[A_LOADS], b[B_LOADS];
};

/* A, B: the tile's first elements, of which `rows` rows, `cols` columns and `depth` steps of K are
 * inside of the matrices; beyond is 0. */
static __device__ __forceinline__ void fetch(struct cargo *cargo, const float *A, long long lda,
                                             const float *B, long long ldb, int rows, int cols,
                                             int depth, bool aligned)
{
    const bool whole =
        aligned && rows >= BM && cols >= BN && depth >= BK; /* same for all threads */
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        const int r = ((int)threadIdx.x + i * THREADS) / (BK / 4);
        const int p = ((int)threadIdx.x + i * THREADS) % (BK / 4) * 4;
        const float *src = &A[r * lda + p];
        cargo->a[i] =
            whole ? *(const float4 *)src : load_float4(src, r < rows ? depth - p : 0, aligned);
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; i++) {
        const int p = ((int)threadIdx.x + i * THREADS) / (BN / 4);
        const int c = ((int)threadIdx.x + i * THREADS) % (BN / 4) * 4;
        const float *src = &B[p * ldb + c];
        cargo->b[i] =
            whole ? *(const float4 *)src : load_float4(src, p < depth ? cols - c : 0, aligned);
    }
}

static __device__ __forceinline__ void unload(struct tile *to, const struct cargo *cargo)
{
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        const int r = ((int)threadIdx.x + i * THREADS) / (BK / 4);
        const int p = ((int)threadIdx.x + i * THREADS) % (BK / 4) * 4;
        float a[4];
        unpack(a, cargo->a[i]);
#pragma unroll
        for (int q = 0; q < 4; q++)
            to->A[p + q][r] = a[q];
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; i++) {
        const int p = ((int)threadIdx.x + i * THREADS) / (BN / 4);
        const int c = ((int)threadIdx.x + i * THREADS) % (BN / 4) * 4;
        *(float4 *)&to->B[p][c] = cargo->b[i];
    }
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

__global__ void __launch_bounds__(THREADS)
    sgemm_double_buffer(int m, int n, int k, float alpha, const float *A, long long lda,
                        const float *B, long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) struct tile tiles[2];

    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / (BN / TN) * 4, col = tid % (BN / TN) * 4; /* of the first group of four */
    const bool aligned = rows_are_aligned(A, lda) && rows_are_aligned(B, ldb);
    const bool c_aligned = rows_are_aligned(C, ldc);
    A += block_row * lda;
    B += block_col;

    float acc[TM][TN] = {{0.0f}};
    float a[2][TM] = {{0.0f}}, b[2][TN] = {{0.0f}}; /* the first product is one of zeros */
    struct cargo cargo;
    if (k > 0) {
        fetch(&cargo, A, lda, B, ldb, m - block_row, n - block_col, k, aligned);
        unload(&tiles[0], &cargo);
        __syncthreads();
    }
    for (int left = k, now = 0; left > 0; left -= BK, now ^= 1) {
        A += BK;
        B += BK * ldb;
#pragma unroll
        for (int p = 0; p < BK; p++) {
            load_fragments(a[p % 2], b[p % 2], &tiles[now].A[p][row], &tiles[now].B[p][col]);
            if (p == 0 && left > BK)
                fetch(&cargo, A, lda, B, ldb, m - block_row, n - block_col, left - BK, aligned);
            multiply(acc, a[(p + 1) % 2], b[(p + 1) % 2]); /* of the step before */
        }
        if (left > BK) unload(&tiles[now ^ 1], &cargo);
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
