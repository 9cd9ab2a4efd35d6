/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise shared_tile: a tile in shared memory.
 *
 * C := alpha*A*B + beta*C, row-major, one thread per element of C. Each thread loads its whole row
 * of A and its whole column of B from global memory, although the 1024 threads of a block need the
 * same 32 rows and 32 columns.
 *
 * To do: for each 32 columns of A and 32 rows of B, let each thread load one element of A into As
 * and one of B into Bs, zero outside of the matrices. After a barrier, multiply from there. Before
 * the next elements are stored, all threads must have read these.
 *
 * Goal: at most twice the bytes that each matrix has.
 */
#include "lib/load_store.h"

#define TILE    32 /* rows, columns, and depth of a tile */
#define THREADS (TILE * TILE)

__global__ void __launch_bounds__(THREADS)
    shared_tile(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                long long ldb, float beta, float *C, long long ldc)
{
    const int r = (int)threadIdx.x / TILE, c = (int)threadIdx.x % TILE; /* within the block */
    const int row = (int)blockIdx.y * TILE + r, col = (int)blockIdx.x * TILE + c;

    float sum = 0.0f;
    /* Here: __shared__ float As[TILE][TILE], Bs[TILE][TILE]; */
    if (row < m && col < n)
        for (int p = 0; p < k; p++)
            sum += A[row * lda + p] * B[p * ldb + col];

    if (row < m && col < n) store_float(&C[row * ldc + col], sum, alpha, beta);
}
