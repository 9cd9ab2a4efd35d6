/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mma_fragments: the solution.
 *
 * Why: an mma.sync replaces 64 FFMAs of a warp, and the 24 loads of a step serve 8 of them. Each of
 * its registers is one word of a row of As or of Bs. The rows have 8 elements of padding, 12 words
 * more from row to row: g * 12 + t has 32 different remainders by 32, so that a load has no
 * conflicts.
 */
#include "lib/half.h"
#include "lib/load_store_half.h"
#include "lib/mma.h"

#define BM      64 /* rows of C that a block computes: 2 x 2 warps */
#define BN      64 /* columns */
#define BK      16 /* depth of a tile in shared memory */
#define THREADS 128

__global__ void __launch_bounds__(THREADS)
    mma_fragments(int m, int n, int k, float alpha, const struct f16 *A, long long lda,
                  const struct f16 *B, long long ldb, float beta, struct f16 *C, long long ldc)
{
    __shared__ __align__(16) struct f16 As[BM][BK + 8], Bs[BN][BK + 8]; /* Bs is transposed */
    const int tid = (int)threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int g = lane / 4, t = lane % 4;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = warp / 2 * 32, col = warp % 2 * 32; /* first of the warp's 32 x 32 elements */
    const struct f16 zero = {0};

    float acc[2][4][4] = {{{0.0f}}};
    for (int tile = 0; tile < k; tile += BK) {
        for (int i = tid; i < BM * BK; i += THREADS) {
            const int r = block_row + i / BK, p = tile + i % BK;
            As[i / BK][i % BK] = r < m && p < k ? A[r * lda + p] : zero;
        }
        for (int i = tid; i < BK * BN; i += THREADS) {
            const int p = tile + i / BN, c = block_col + i % BN;
            Bs[i % BN][i / BN] = p < k && c < n ? B[p * ldb + c] : zero;
        }
        __syncthreads();
        for (int i = 0; i < 2; i++) {
            const int r = row + i * 16 + g;
            unsigned a[4];
            a[0] = *(const unsigned *)&As[r][2 * t];
            a[1] = *(const unsigned *)&As[r + 8][2 * t];
            a[2] = *(const unsigned *)&As[r][2 * t + 8];
            a[3] = *(const unsigned *)&As[r + 8][2 * t + 8];
            for (int j = 0; j < 4; j++) {
                const int c = col + j * 8 + g;
                unsigned b[2];
                b[0] = *(const unsigned *)&Bs[c][2 * t];
                b[1] = *(const unsigned *)&Bs[c][2 * t + 8];
                mma_f16(acc[i][j], a, b);
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                const int r = block_row + row + i * 16 + g + e / 2 * 8;
                const int c = block_col + col + j * 8 + 2 * t + e % 2;
                if (r < m && c < n) store_half(&C[r * ldc + c], acc[i][j][e], alpha, beta);
            }
}
