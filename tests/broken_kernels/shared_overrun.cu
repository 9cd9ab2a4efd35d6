/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: the last row of the tile does not exist. It is written through a pointer, so
 * that the compiler cannot compare an index with the array.
 */
#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int row = (int)blockIdx.y * TILE + y, col = (int)blockIdx.x * TILE + x;
    __shared__ float As[TILE - 1][TILE];
    float *own = &As[0][0] + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        *own = row < m && first + x < k ? A[row * lda + first + x] : 0.0f; /* <- writes */
        __syncthreads();
        for (int p = 0; p < TILE && first + p < k; p++)
            if (col < n) sum += own[p - x] * B[(first + p) * ldb + col];
        __syncthreads();
    }
    if (row < m && col < n)
        C[row * ldc + col] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[row * ldc + col];
}
