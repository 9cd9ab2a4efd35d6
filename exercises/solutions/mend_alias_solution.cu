/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mend_alias: the solution.
 *
 * Why: a row of A's tile takes BM + 4 words, so the tile takes BK * (BM + 4). The tile of B began
 * at BK * BM, within the last row of A's tile. Two arrays, or a struct, would let the compiler
 * count.
 */
#include "lib/load_store.h"

#define BM      64 /* rows of C that a block computes */
#define BN      64 /* columns */
#define BK      8  /* depth of a tile in shared memory */
#define THREADS 256

#define PITCH (BM + 4) /* words from row to row of A's tile */

__global__ void __launch_bounds__(THREADS)
    mend_alias(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
               long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float memory[BK * PITCH + BK * BN];
    float *As = memory, *Bs = memory + BK * PITCH;
    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / 16 * 4, col = tid % 16 * 4; /* first of the thread's 4 x 4 elements */

    float acc[4][4] = {{0.0f}};
    for (int tile = 0; tile < k; tile += BK) {
        for (int i = tid; i < BM * BK; i += THREADS) {
            const int r = block_row + i / BK, p = tile + i % BK;
            As[i % BK * PITCH + i / BK] = r < m && p < k ? A[r * lda + p] : 0.0f;
        }
        for (int i = tid; i < BK * BN; i += THREADS) {
            const int p = tile + i / BN, c = block_col + i % BN;
            Bs[i] = p < k && c < n ? B[p * ldb + c] : 0.0f;
        }
        __syncthreads();
        for (int p = 0; p < BK; p++) {
            float a[4], b[4];
            load_fragment(a, &As[p * PITCH + row]);
            load_fragment(b, &Bs[p * BN + col]);
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
