/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: at the edge the tile is not written, but it is read.
 */
#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int row = (int)blockIdx.y * TILE + y, col = (int)blockIdx.x * TILE + x;
    __shared__ float As[TILE][TILE];
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        if (row < m && first + x < k) As[y][x] = A[row * lda + first + x];
        __syncthreads();
        for (int p = 0; p < TILE && first + p < k + 1; p++) {
            const float a = As[y][p]; /* <- reads */
            if (first + p < k && col < n) sum += a * B[(first + p) * ldb + col];
        }
        __syncthreads();
    }
    if (row < m && col < n)
        C[row * ldc + col] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[row * ldc + col];
}
