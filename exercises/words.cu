/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise words: FP32 by products of TF32 words.
 *
 * Tensor cores multiply TF32, which has the exponent of FP32 and 11 bits of its 24. The kernel
 * rounds each element to one TF32 word. Small integers stay exact, so the results of the check are
 * right, but other numbers lose half of their bits.
 *
 * To do: make two words of each element x: hi is x rounded to TF32, lo is x - hi, rounded as well.
 * Then a * b is a_hi*b_hi + a_hi*b_lo + a_lo*b_hi, except for a_lo*b_lo, at most 2^-22 of it. Add
 * the small products first.
 *
 * Goal: an error of at most 16 units of 2^-24 |A||B|, with three mma.sync for each one of TF32.
 */
#include "lib/load_store.h"
#include "lib/mma.h"

#define BM      64 /* rows of C that a block computes: 2 x 2 warps */
#define BN      64 /* columns */
#define BK      32 /* depth of a tile in shared memory */
#define THREADS 128

/* acc += the product of the tiles at depth p, 8 deep. */
static __device__ __forceinline__ void multiply(float (*acc)[4][4], float (*As)[BK + 4],
                                                float (*Bs)[BN + 8], int row, int col, int p, int g,
                                                int t)
{
    unsigned a[2][4], b[4][2];
    for (int i = 0; i < 2; i++)
        for (int e = 0; e < 4; e++)
            a[i][e] =
                round_to_tf32(__float_as_uint(As[row + i * 16 + g + e % 2 * 8][p + t + e / 2 * 4]));
    for (int j = 0; j < 4; j++)
        for (int e = 0; e < 2; e++)
            b[j][e] = round_to_tf32(__float_as_uint(Bs[p + t + e * 4][col + j * 8 + g]));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            mma_tf32(acc[i][j], a[i], b[j]);
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
