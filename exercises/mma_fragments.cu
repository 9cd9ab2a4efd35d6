/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mma_fragments: fragments for mma.sync.
 *
 * f16 with sums in FP32. A warp computes 32 x 32 elements as 2 x 4 tiles of 16 x 8. mma_f16(acc, a,
 * b) (lib/mma.h) adds the product of 16 x 16 of A and 16 x 8 of B to such a tile. The elements of
 * all three are distributed over the lanes. With g = lane / 4 and t = lane % 4, a lane has these
 * 32-bit words of two f16 that are neighbours in K ("k 2t" stands for 2t and 2t + 1):
 *
 *     a[0]: row g, k 2t          a[1]: row g + 8, k 2t
 *     a[2]: row g, k 2t + 8      a[3]: row g + 8, k 2t + 8
 *     b[0]: column g, k 2t       b[1]: column g, k 2t + 8
 *
 * acc is where mma_f16 leaves it already: rows g and g + 8, columns 2t and 2t + 1.
 *
 * To do: multiply by mma_f16 instead of FFMAs. Bs is transposed, so that neighbours in K are one
 * word.
 *
 * Goal: all products by mma.sync, and at most 0.06 wavefronts of shared memory for each 32
 * products.
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
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 4; j++)
                for (int e = 0; e < 4; e++) {
                    const int r = row + i * 16 + g + e / 2 * 8, c = col + j * 8 + 2 * t + e % 2;
                    for (int p = 0; p < BK; p++)
                        acc[i][j][e] += f16_to_float(As[r][p]) * f16_to_float(Bs[c][p]);
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
