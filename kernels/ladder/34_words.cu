/* SPDX-License-Identifier: Apache-2.0
 *
 * Rungs 34 to 36, chapter 3 of the ladder: FP32 from tensor cores. C := alpha*A*B + beta*C in FP32,
 * by products of TF32 words. TF32 has the 11-bit significand of f16 and the exponent of FP32, so no
 * scaling is needed. TF32 has half the rate of f16. Rung 34 restarts from the loop of rung 28 (one
 * stage, mma.sync) to show the arithmetic alone.
 *
 *     34 words_one         PRODUCTS = 1               each factor is rounded to one word
 *     35 words_three       PRODUCTS = 3               each factor is two words, hi and lo
 *     36 words_promoted    PRODUCTS = 3, PROMOTE = 1  partial sums are added in FP32
 *
 * A partial sum is that of a tile: BK = 32 steps of K, three products each.
 *
 *     x    24 bits         1.xxxxxxxxxxxx xxxxxxxxxxx
 *     hi   11 bits         1.xxxxxxxxxx               x rounded to nearest: |x - hi| <= 2^-11 |x|
 *     lo   11 bits                      1.xxxxxxxxxx  x - hi is exact; rounded: 2^-23 |x| remains
 *
 *     a * b = (a_hi + a_lo) * (b_hi + b_lo) = a_hi*b_hi + a_hi*b_lo + a_lo*b_hi + (a_lo*b_lo)
 *
 * One product is wrong by up to 2^-10 of itself: 2^-11 by each factor. Three products together are
 * wrong by up to 2^-22 + 2 * 2^-23 = 2^-21: by a_lo*b_lo, which is left out, and by the rounding of
 * the two lo words. But the tensor cores of Hopper truncate when they add to their accumulator
 * (src/sim/tensor_cores.h), always towards zero, so that the error of the sum grows with K in one
 * direction. Promotion adds each tile's sum, which began with zero, to the FP32 sum, with rounding
 * to nearest.
 *
 * The production kernel (gemm/accurate.cu) uses f16 words, which are multiplied at twice the rate.
 * They have less range, so it scales the rows of A and the columns of B.
 *
 *     fragments of mma.m16n8k8, g = lane / 4, t = lane % 4; a register holds one word
 *
 *     A, 16 x 8       k t     k t+4       B, 8 x 8   column g       sums as in rung 28
 *         row g       a[0]    a[2]            k t       b[0]
 *         row g+8     a[1]    a[3]            k t+4     b[1]
 *
 * The rows of A's tile are padded by 4 floats, so that the banks of a load of a[i] are 4*g + t, and
 * those of B's by 8, so that they are 8*t + g: all different.
 *
 * An element whose sum is not finite is computed again by FFMA: Inf has no lo word, and a number
 * near the greatest has an infinite hi word. Numbers below 2^-113 lose bits of their lo word.
 *
 * Promotion needs 64 more values per thread. With 228 registers instead of 128 (sm_90a) only one
 * block fits on an SM, so that at large sizes rung 36 has about half of the speed of rung 35.
 *
 * Look at: the error, which `tegula ladder --chapter 3` prints, and with ncu --metrics
 *     sm__inst_executed_pipe_tensor_op_hmma.sum (three times that of rung 34)
 *     smsp__inst_executed.sum
 */
#include "lib/load_store.h"
#include "lib/mma.h"

#ifndef PRODUCTS
#define PRODUCTS 3 /* 1 or 3 */
#endif
#ifndef PROMOTE
#define PROMOTE 1 /* 1: the sum of each tile is added in FP32, rounded to nearest */
#endif
#define BM      128 /* rows of C that a block computes */
#define BN      128 /* columns */
#define BK      32  /* depth of a tile in shared memory */
#define WM      64  /* rows of C that a warp computes */
#define WN      32  /* columns */
#define THREADS (BM / WM * (BN / WN) * 32)
#define MT      (WM / 16) /* MT, NT: the numbers of mma.sync along M and along N of a warp tile */
#define NT      (WN / 8)

#if PRODUCTS != 1 && PRODUCTS != 3
#error "PRODUCTS: 1 or 3"
#endif

/* words[0] := hi, words[stride] := lo. */
static __device__ __forceinline__ void split(unsigned *words, const int stride, float x)
{
    words[0] = round_to_tf32(__float_as_uint(x));
    words[stride] = round_to_tf32(__float_as_uint(x - __uint_as_float(words[0])));
}

/* acc += the product of the tiles over k = p to p + 7. row, col: the warp's first ones. */
static __device__ __forceinline__ void multiply(float (*acc)[NT][4], float (*As)[BK + 4],
                                                float (*Bs)[BN + 8], int row, int col, int p)
{
    enum { HI, LO };
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    unsigned a[2][MT][4], b[2][NT][2];
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            split(&a[HI][i][e], MT * 4, As[row + i * 16 + g + e % 2 * 8][p + t + e / 2 * 4]);
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
        for (int e = 0; e < 2; e++)
            split(&b[HI][j][e], NT * 2, Bs[p + t + e * 4][col + j * 8 + g]);
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++) {
#if PRODUCTS == 3
            mma_tf32(acc[i][j], a[LO][i], b[HI][j]); /* small products first */
            mma_tf32(acc[i][j], a[HI][i], b[LO][j]);
#endif
            mma_tf32(acc[i][j], a[HI][i], b[HI][j]);
        }
}

/* One element of A*B, by FFMA. a: its row of A, b: its column of B. */
static __device__ __forceinline__ float dot(const float *a, const float *b, long long ldb, int k)
{
    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += a[p] * b[p * ldb];
    return sum;
}

static __device__ __forceinline__ bool is_finite(float x)
{
    return (__float_as_uint(x) & 0x7f800000) != 0x7f800000;
}

__global__ void __launch_bounds__(THREADS)
    sgemm_words(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[BM][BK + 4];
    __shared__ __align__(16) float Bs[BK][BN + 8];

    const int tid = (int)threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    /* The warp's first row and column in the block's tile. */
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;
    const bool a_aligned = rows_are_aligned(A, lda), b_aligned = rows_are_aligned(B, ldb);

    float acc[MT][NT][4] = {{{0.0f}}};
    for (int tile = 0; tile < k; tile += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK / 4; i += THREADS) {
            const int r = (i + tid) / (BK / 4), p = (i + tid) % (BK / 4) * 4;
            const int count = block_row + r < m ? k - (tile + p) : 0;
            *(float4 *)&As[r][p] =
                load_float4(&A[(block_row + r) * lda + tile + p], count, a_aligned);
        }
#pragma unroll
        for (int i = 0; i < BK * BN / 4; i += THREADS) {
            const int p = (i + tid) / (BN / 4), c = (i + tid) % (BN / 4) * 4;
            const int count = tile + p < k ? n - (block_col + c) : 0;
            *(float4 *)&Bs[p][c] =
                load_float4(&B[(tile + p) * ldb + block_col + c], count, b_aligned);
        }
        __syncthreads();

#if PROMOTE
        float part[MT][NT][4] = {{{0.0f}}};
#pragma unroll
        for (int p = 0; p < BK; p += 8)
            multiply(part, As, Bs, row, col, p);
#pragma unroll
        for (int i = 0; i < MT * NT * 4; i++)
            acc[i / 4 / NT][i / 4 % NT][i % 4] += part[i / 4 / NT][i / 4 % NT][i % 4];
#else
#pragma unroll
        for (int p = 0; p < BK; p += 8)
            multiply(acc, As, Bs, row, col, p);
#endif
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < MT * NT * 4; i++) {
        const int r = block_row + row + i / 4 / NT * 16 + lane / 4 + i / 2 % 2 * 8;
        const int c = block_col + col + i / 4 % NT * 8 + lane % 4 * 2 + i % 2;
        float sum = acc[i / 4 / NT][i / 4 % NT][i % 4];
        if (r >= m || c >= n) continue;
        if (!is_finite(sum)) sum = dot(&A[r * lda], &B[c], ldb, k);
        store_float(&C[r * ldc + c], sum, alpha, beta);
    }
}
