/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise bank_conflicts: the solution.
 *
 * Why: a row of As has 4 words more, so As[p][row] is in bank (4*p + row) % 32. A warp stores 8
 * values of p in 4 rows: 32 different banks. Four words, not one, because load_fragment needs
 * multiples of 16 bytes.
 */
#include "lib/load_store.h"

#define BM      64 /* rows of C that a block computes */
#define BN      64 /* columns */
#define BK      8  /* depth of a tile in shared memory */
#define THREADS 256

__global__ void __launch_bounds__(THREADS)
    bank_conflicts(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                   long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[BK][BM + 4]; /* transposed and padded */
    __shared__ __align__(16) float Bs[BK][BN];
    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / 16 * 4, col = tid % 16 * 4; /* first of the thread's 4 x 4 elements */

    float acc[4][4] = {{0.0f}};
    for (int tile = 0; tile < k; tile += BK) {
        for (int i = tid; i < BM * BK; i += THREADS) {
            const int r = block_row + i / BK, p = tile + i % BK;
            As[i % BK][i / BK] = r < m && p < k ? A[r * lda + p] : 0.0f;
        }
        for (int i = tid; i < BK * BN; i += THREADS) {
            const int p = tile + i / BN, c = block_col + i % BN;
            Bs[i / BN][i % BN] = p < k && c < n ? B[p * ldb + c] : 0.0f;
        }
        __syncthreads();
        for (int p = 0; p < BK; p++) {
            float a[4], b[4];
            load_fragment(a, &As[p][row]);
            load_fragment(b, &Bs[p][col]);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = block_row + row + i, c = block_col + col + j;
            if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j], alpha, beta);
        }
}
