/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise words: the solution.
 *
 * Why: x - hi is exact, and lo has the next 11 bits: what remains is 2^-23 of x. The three products
 * of words are exact in the tensor core; what is left out is 2^-22 of a product. The error of the
 * sum is then mostly that of the additions: Hopper truncates when it adds to acc. The ladder's rung
 * words_promoted adds the sums of tiles in FP32 instead.
 */
#include "lib/load_store.h"
#include "lib/mma.h"

#define BM      64 /* rows of C that a block computes: 2 x 2 warps */
#define BN      64 /* columns */
#define BK      32 /* depth of a tile in shared memory */
#define THREADS 128

/* *hi + *lo := x, two words of TF32. */
static __device__ __forceinline__ void split(unsigned *hi, unsigned *lo, float x)
{
    *hi = round_to_tf32(__float_as_uint(x));
    *lo = round_to_tf32(__float_as_uint(x - __uint_as_float(*hi)));
}

/* acc += the product of the tiles at depth p, 8 deep. */
static __device__ __forceinline__ void multiply(float (*acc)[4][4], float (*As)[BK + 4],
                                                float (*Bs)[BN + 8], int row, int col, int p, int g,
                                                int t)
{
    unsigned a_hi[2][4], a_lo[2][4], b_hi[4][2], b_lo[4][2];
    for (int i = 0; i < 2; i++)
        for (int e = 0; e < 4; e++)
            split(&a_hi[i][e], &a_lo[i][e], As[row + i * 16 + g + e % 2 * 8][p + t + e / 2 * 4]);
    for (int j = 0; j < 4; j++)
        for (int e = 0; e < 2; e++)
            split(&b_hi[j][e], &b_lo[j][e], Bs[p + t + e * 4][col + j * 8 + g]);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            mma_tf32(acc[i][j], a_lo[i], b_hi[j]); /* the small products first */
            mma_tf32(acc[i][j], a_hi[i], b_lo[j]);
            mma_tf32(acc[i][j], a_hi[i], b_hi[j]);
        }
}

__global__ void __launch_bounds__(THREADS)
    words(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
          long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float As[BM][BK + 4];
    __shared__ float Bs[BK][BN + 8];
    const int tid = (int)threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int g = lane / 4, t = lane % 4;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = warp / 2 * 32, col = warp % 2 * 32; /* first of the warp's 32 x 32 elements */

    float acc[2][4][4] = {{{0.0f}}};
    for (int tile = 0; tile < k; tile += BK) {
        for (int i = tid; i < BM * BK; i += THREADS) {
            const int r = block_row + i / BK, p = tile + i % BK;
            As[i / BK][i % BK] = r < m && p < k ? A[r * lda + p] : 0.0f;
        }
        for (int i = tid; i < BK * BN; i += THREADS) {
            const int p = tile + i / BN, c = block_col + i % BN;
            Bs[i / BN][i % BN] = p < k && c < n ? B[p * ldb + c] : 0.0f;
        }
        __syncthreads();
        for (int p = 0; p < BK; p += 8)
            multiply(acc, As, Bs, row, col, p, g, t);
        __syncthreads();
    }

    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                const int r = block_row + row + i * 16 + g + e / 2 * 8;
                const int c = block_col + col + j * 8 + 2 * t + e % 2;
                if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j][e], alpha, beta);
            }
}
