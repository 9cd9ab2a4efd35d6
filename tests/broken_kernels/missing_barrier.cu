/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: the second barrier is missing, so a fast thread overwrites a tile that slow
 * threads still read.
 */
#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int row = (int)blockIdx.y * TILE + y, col = (int)blockIdx.x * TILE + x;
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        As[y][x] = row < m && first + x < k ? A[row * lda + first + x] : 0.0f; /* <- writes */
        Bs[y][x] = first + y < k && col < n ? B[(first + y) * ldb + col] : 0.0f;
        __syncthreads();
        for (int p = 0; p < TILE; p++)
            sum += As[y][p] * Bs[p][x]; /* <- reads */
    }
    if (row < m && col < n)
        C[row * ldc + col] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[row * ldc + col];
}
