/* SPDX-License-Identifier: Apache-2.0
 *
 * Rung 30: multistage copies.
 *
 * Changed: cp.async copies the tiles, STAGES - 1 ahead, as in rungs 21 to 23, with one barrier per
 * tile. Three stages are 96 KB. This must be dynamic shared memory, because a kernel can have at
 * most 48 KB of static shared memory.
 *
 *     iteration t   | wait for tile t | barrier | request tile t + 2 | multiply tile t |
 *
 *     stage 0       tile 0 ............ tile 3
 *     stage 1                tile 1 ............ tile 4
 *     stage 2                         tile 2 ............
 *
 * A thread waits for its own copies of tile t. After the barrier the copies of all threads have
 * arrived, and all threads have read tile t - 1. Tile t + 2 is copied to the stage of tile t - 1.
 *
 * The elements of a chunk that are outside the matrix become zeros. Rows that are not aligned to
 * 16 bytes cannot be copied in this way: their elements go through registers one by one, as in rung
 * 29.
 *
 * Why: a tile is multiplied in about 800 cycles (512 at the full rate of the tensor cores, of which
 * mma.sync reaches 0.63). Rung 29 loads, stores and multiplies one after the other, with one block
 * per SM (198 registers), so that nothing hides the latency of global memory.
 * Look at: LDGSTS in the SASS, and with ncu --metrics
 *     smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio (near 0)
 *     sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active (increases)
 */
#include "lib/async_copy.h"
#include "lib/dynamic_shared.h"
#include "lib/ldmatrix.h"
#include "lib/load_store_half.h"
#include "lib/mma.h"

#define BM      128 /* rows of C that a block computes */
#define BN      128 /* columns */
#define BK      64  /* depth of a tile in shared memory */
#define WM      64  /* rows of C that a warp computes */
#define WN      32  /* columns */
#define STAGES  3   /* tiles in shared memory: one is multiplied while the others arrive */
#define THREADS (BM / WM * (BN / WN) * 32)

#define A_CHUNKS (BK / 8) /* chunks of 16 bytes in a row of A's tile */
#define B_CHUNKS (BN / 8)

struct stage {
    uint4 A[BM * A_CHUNKS];
    uint4 B[BK * B_CHUNKS];
};

/* The index of a chunk of 16 bytes in a tile whose rows have `chunks` chunks, a multiple of 8. The
 * swizzle permutes the chunks of a row, so that the same chunk of 8 successive rows lies in
 * different banks. */
static __device__ __forceinline__ int place_of(int row, int chunk, const int chunks)
{
    return row * chunks + (chunk ^ row % 8);
}

/* Copies eight elements, of which `count` exist (count may be negative); the others become 0. */
static __device__ __forceinline__ void copy_chunk(uint4 *to, const struct f16 *from, int count,
                                                  bool aligned)
{
    if (aligned)
        async_copy_bytes(to, from, 16, max(0, min(count, 8)) * 2);
    else
        *to = load_half8(from, count, false);
}

/* Copies the tiles that begin at A and B. rows, cols, depth: how many rows of A, columns of B and
 * steps along K exist from there on. */
static __device__ __forceinline__ void copy_tiles(struct stage *to, const struct f16 *A,
                                                  long long lda, bool a_aligned,
                                                  const struct f16 *B, long long ldb,
                                                  bool b_aligned, int rows, int cols, int depth)
{
    const int tid = (int)threadIdx.x;
#pragma unroll
    for (int i = 0; i < BM * A_CHUNKS; i += THREADS) {
        const int r = (i + tid) / A_CHUNKS, chunk = (i + tid) % A_CHUNKS;
        copy_chunk(&to->A[place_of(r, chunk, A_CHUNKS)], &A[r * lda + chunk * 8],
                   r < rows ? depth - chunk * 8 : 0, a_aligned);
    }
#pragma unroll
    for (int i = 0; i < BK * B_CHUNKS; i += THREADS) {
        const int p = (i + tid) / B_CHUNKS, chunk = (i + tid) % B_CHUNKS;
        copy_chunk(&to->B[place_of(p, chunk, B_CHUNKS)], &B[p * ldb + chunk * 8],
                   p < depth ? cols - chunk * 8 : 0, b_aligned);
    }
}

/* acc += the product of a stage's tiles, for the warp tile that begins at row, col. */
static __device__ __forceinline__ void multiply(float (*acc)[WN / 8][4], const struct stage *from,
                                                int row, int col)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int p = 0; p < BK; p += 16) {
        unsigned a[WM / 16][4], b[WN / 16][4];
#pragma unroll
        for (int i = 0; i < WM / 16; i++)
            ldmatrix_x4(a[i],
                        &from->A[place_of(row + i * 16 + lane % 16, p / 8 + lane / 16, A_CHUNKS)]);
#pragma unroll
        for (int j = 0; j < WN / 16; j++)
            ldmatrix_x4_trans(
                b[j], &from->B[place_of(p + lane % 16, (col + j * 16) / 8 + lane / 16, B_CHUNKS)]);
#pragma unroll
        for (int i = 0; i < WM / 16; i++)
#pragma unroll
            for (int j = 0; j < WN / 8; j++)
                mma_f16(acc[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }
}

__global__ void __launch_bounds__(THREADS)
    hgemm_multistage(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                     const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc)
{
    DYNAMIC_SHARED(struct stage, stages, STAGES);

    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    /* The warp's first row and column in the block's tile. */
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;
    const bool a_aligned = half_rows_are_aligned(A, lda, 16);
    const bool b_aligned = half_rows_are_aligned(B, ldb, 16);
    const bool c_aligned = half_rows_are_aligned(C, ldc, 4);

    float acc[WM / 16][WN / 8][4] = {{{0.0f}}};
    const int rows = m - block_row, cols = n - block_col;
    A += block_row * lda;
    B += block_col;
    for (int t = 0; t < STAGES - 1; t++) {
        if (t * BK < k)
            copy_tiles(&stages[t], A + t * BK, lda, a_aligned, B + t * BK * ldb, ldb, b_aligned,
                       rows, cols, k - t * BK);
        async_commit(); /* the group may be empty: the waits count groups */
    }
    for (int t = 0; t * BK < k; t++) {
        const int next = t + STAGES - 1;
        ASYNC_WAIT(STAGES - 2);
        __syncthreads();
        if (next * BK < k)
            copy_tiles(&stages[next % STAGES], A + next * BK, lda, a_aligned, B + next * BK * ldb,
                       ldb, b_aligned, rows, cols, k - next * BK);
        async_commit();
        multiply(acc, &stages[t % STAGES], row, col);
    }

#pragma unroll
    for (int i = 0; i < WM / 16; i++)
#pragma unroll
        for (int j = 0; j < WN / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e += 2) {
                const int r = block_row + row + i * 16 + lane / 4 + e * 4;
                const int c = block_col + col + j * 8 + lane % 4 * 2;
                if (r < m)
                    store_half_pair(&C[r * ldc + c], &acc[i][j][e], alpha, beta, n - c, c_aligned);
            }
}
