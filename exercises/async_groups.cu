/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise async_groups: cp.async in groups.
 *
 * A load into a register and a store to shared memory keep the thread waiting for the load.
 * cp.async copies to shared memory in the background. A thread commits its copies as a group
 * (async_commit) and later waits until at most N of its groups are unfinished (ASYNC_WAIT(N), N a
 * constant). What other threads have copied is visible after their wait and a barrier.
 *
 * To do: copy by async_copy_float_or_zero(to, from, valid) (lib/async_copy.h), with three buffers:
 * while one is multiplied, the copies of the next two tiles are under way.
 *
 * Goal: all bytes by cp.async, at most 9 barriers a block for 8 tiles.
 */
#include "lib/load_store.h"
/* #include "lib/async_copy.h" */

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
    async_groups(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                 long long ldb, float beta, float *C, long long ldc)
{
    __shared__ __align__(16) float As[2][BK][BM + 4], Bs[2][BK][BN]; /* As is transposed */
    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / 16 * 4, col = tid % 16 * 4; /* first of the thread's 4 x 4 elements */

    float acc[4][4] = {{0.0f}};
    load_tile(As[0], Bs[0], m, n, k, A, lda, B, ldb, 0);
    __syncthreads();
    for (int tile = 0, now = 0; tile < k; tile += BK, now ^= 1) {
        if (tile + BK < k) load_tile(As[now ^ 1], Bs[now ^ 1], m, n, k, A, lda, B, ldb, tile + BK);
        multiply(acc, As[now], Bs[now], row, col);
        __syncthreads(); /* the next tile is complete, and all threads have read this one */
    }

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = block_row + row + i, c = block_col + col + j;
            if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j], alpha, beta);
        }
}
