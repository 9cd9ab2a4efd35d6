/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: there is no check that the threads of the last blocks are inside C.
 */
#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int row = (int)blockIdx.y * TILE + y, col = (int)blockIdx.x * TILE + x;
    float sum = 0.0f;
    if (row < m && col < n)
        for (int p = 0; p < k; p++)
            sum += A[row * lda + p] * B[p * ldb + col];
    C[row * ldc + col] = alpha * sum + beta; /* <- writes */
}
