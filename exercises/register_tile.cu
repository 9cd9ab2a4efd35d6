/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise register_tile: a register tile.
 *
 * A block of 256 threads computes 64 x 64 elements of C from tiles in shared memory, a thread 4 x 4
 * of them, 16 rows and 16 columns apart. For each FFMA it loads two values from shared memory,
 * which can deliver one wavefront a cycle, while the SM could start four FFMAs of a warp.
 *
 * To do: at each step p, load the thread's 4 values of A and 4 values of B into registers first,
 * and then multiply them with each other.
 *
 * Goal: at most 0.6 wavefronts of shared memory an FFMA.
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

        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++)
                for (int p = 0; p < BK; p++) /* exchange these loops */
                    acc[i][j] += As[row + 16 * i][p] * Bs[p][col + 16 * j];
        __syncthreads();
    }

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = block_row + row + 16 * i, c = block_col + col + 16 * j;
            if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j], alpha, beta);
        }
}
