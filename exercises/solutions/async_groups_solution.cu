/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise async_groups: the solution.
 *
 * Why: when iteration t waits, t + 2 groups are committed, and the first t + 1 of them must
 * have arrived: at most one may be unfinished. At the end there is nothing to copy, but a group is
 * committed all the same: the wait counts groups, and an empty one keeps the count. The barrier
 * says that the copies of all threads have arrived, and that all have read tile t - 1, whose buffer
 * is overwritten next.
 */
#include "lib/async_copy.h"
#include "lib/load_store.h"

#define BM      64 /* rows of C that a block computes */
#define BN      64 /* columns */
#define BK      8  /* depth of a tile in shared memory */
#define THREADS 256

#define STAGES 3

/* Stores the tile of A (transposed) and of B that begins at column and row `tile` of them. */
static __device__ __forceinline__ void load_tile(float (*As)[BM + 4], float (*Bs)[BN], int m, int n,
                                                 int k, const float *A, long long lda,
                                                 const float *B, long long ldb, int tile)
{
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    for (int i = (int)threadIdx.x; i < BM * BK; i += THREADS) {
        const int r = block_row + i / BK, p = tile + i % BK;
        async_copy_float_or_zero(&As[i % BK][i / BK], &A[r * lda + p], r < m && p < k);
    }
    for (int i = (int)threadIdx.x; i < BK * BN; i += THREADS) {
        const int p = tile + i / BN, c = block_col + i % BN;
        async_copy_float_or_zero(&Bs[i / BN][i % BN], &B[p * ldb + c], p < k && c < n);
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
    __shared__ __align__(16) float As[STAGES][BK][BM + 4],
        Bs[STAGES][BK][BN]; /* As is transposed */
    const int tid = (int)threadIdx.x;
    const int block_row = (int)blockIdx.y * BM, block_col = (int)blockIdx.x * BN;
    const int row = tid / 16 * 4, col = tid % 16 * 4; /* first of the thread's 4 x 4 elements */

    float acc[4][4] = {{0.0f}};
    for (int t = 0; t < STAGES - 1; t++) {
        if (t * BK < k) load_tile(As[t], Bs[t], m, n, k, A, lda, B, ldb, t * BK);
        async_commit();
    }
    for (int t = 0; t * BK < k; t++) {
        const int now = t % STAGES, next = (t + STAGES - 1) % STAGES;
        const int tile = (t + STAGES - 1) * BK; /* the tile to copy */
        ASYNC_WAIT(STAGES - 2);
        __syncthreads(); /* tile t has arrived, and all threads have read tile t - 1 */
        if (tile < k) load_tile(As[next], Bs[next], m, n, k, A, lda, B, ldb, tile);
        async_commit();
        multiply(acc, As[now], Bs[now], row, col);
    }

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = block_row + row + i, c = block_col + col + j;
            if (r < m && c < n) store_float(&C[r * ldc + c], acc[i][j], alpha, beta);
        }
}
