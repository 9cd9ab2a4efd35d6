/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise register_tile: the solution.
 *
 * Why: 4 + 4 loads serve 4 * 4 FFMAs: half a load an FFMA instead of two. A tile of 8 x 8 would
 * have a quarter. A loop over i and j with constant bounds is unrolled, so that a, b and acc are
 * registers.
 */
#include "lib/load_store.h"

#define BM      64 /* rows of C that a block computes */
#define BN      64 /* columns */
#define BK      16 /* depth of a tile in shared memory */
#define THREADS 256

__global__ void __launch_bounds__(THREADS)
    register_tile(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                  long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float As[BM][BK], Bs[BK][BN];
    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / 16,
              col = tid % 16; /* the thread has rows row + 16*i, columns col + 16*j */

    float acc[4][4] = {{0.0f}};
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

        for (int p = 0; p < BK; p++) {
            float a[4], b[4];
            for (int i = 0; i < 4; i++)
                a[i] = As[row + 16 * i][p];
            for (int j = 0; j < 4; j++)
                b[j] = Bs[p][col + 16 * j];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = block_row + row + 16 * i, c = block_col + col + 16 * j;
            if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j], alpha, beta);
        }
}
