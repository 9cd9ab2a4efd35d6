/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise one_barrier: a double buffer with one barrier.
 *
 * The kernel has two barriers for each tile along K: one after the tile is stored, one after it is
 * read. With two buffers, a tile can be stored into one while the other is read, and one barrier
 * does both.
 *
 * To do: make As and Bs arrays of two tiles. Before the loop, store the first tile and wait. In the
 * loop, store the next tile, if there is one, into the other buffer, multiply, and then wait.
 *
 * Goal: at most 9 barriers a block for 8 tiles.
 */
#include "lib/load_store.h"

#define BM      64 /* rows of C that a block computes */
#define BN      64 /* columns */
#define BK      8  /* depth of a tile in shared memory */
#define THREADS 256

/* Stores the tile of A (transposed) and of B that begins at column and row `tile` of them. */
static __device__ __forceinline__ void load_tile(float (*As)[BM + 4], float (*Bs)[BN], int m, int n,
                                                 int k, const float *A, long long lda,
                                                 const float *B, long long ldb, int tile)
{
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    for (int i = (int)threadIdx.x; i < BM * BK; i += THREADS) {
        const int r = block_row + i / BK, p = tile + i % BK;
        As[i % BK][i / BK] = r < m && p < k ? A[r * lda + p] : 0.0f;
    }
    for (int i = (int)threadIdx.x; i < BK * BN; i += THREADS) {
        const int p = tile + i / BN, c = block_col + i % BN;
        Bs[i / BN][i % BN] = p < k && c < n ? B[p * ldb + c] : 0.0f;
    }
}

/* acc += the product of the thread's four rows and four columns of the tiles. */
static __device__ __forceinline__ void multiply(float (*acc)[4], float (*As)[BM + 4],
                                                float (*Bs)[BN], int row, int col)
{
    for (int p = 0; p < BK; p++) {
        float a[4], b[4];
        load_fragment(a, &As[p][row]);
        load_fragment(b, &Bs[p][col]);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++)
                acc[i][j] += a[i] * b[j];
    }
}

__global__ void __launch_bounds__(THREADS)
    one_barrier(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[BK][BM + 4], Bs[BK][BN]; /* As is transposed */
    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / 16 * 4, col = tid % 16 * 4; /* first of the thread's 4 x 4 elements */

    float acc[4][4] = {{0.0f}};
    for (int tile = 0; tile < k; tile += BK) {
        load_tile(As, Bs, m, n, k, A, lda, B, ldb, tile);
        __syncthreads(); /* the tile is complete */
        multiply(acc, As, Bs, row, col);
        __syncthreads(); /* all threads have read the tile */
    }

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = block_row + row + i, c = block_col + col + j;
            if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j], alpha, beta);
        }
}
