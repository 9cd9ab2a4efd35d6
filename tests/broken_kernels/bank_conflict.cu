/* SPDX-License-Identifier: Apache-2.0
 *
 * Correct, but slow: a warp reads a column of a 32 x 32 tile, whose elements are all in one bank.
 */
#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float As[32][32];
    __shared__ float Bs[32][8];
    const int x = (int)threadIdx.x % 32, y = (int)threadIdx.x / 32; /* y is the warp, 8 in total */
    const int row = (int)blockIdx.y * 32 + x, col = (int)blockIdx.x * 8 + y;
    float sum = 0.0f;
    for (int first = 0; first < k; first += 32) {
        for (int i = y; i < 32; i += 8) {
            const int a_row = (int)blockIdx.y * 32 + i;
            As[i][x] = a_row < m && first + x < k ? A[a_row * lda + first + x] : 0.0f;
        }
        Bs[x][y] = first + x < k && col < n ? B[(first + x) * ldb + col] : 0.0f;
        __syncthreads();
        for (int p = 0; p < 32; p++)
            sum += As[x][p] * Bs[p][y];
        __syncthreads();
    }
    if (row < m && col < n)
        C[row * ldc + col] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[row * ldc + col];
}
