/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: the loop of one thread does not end.
 */
#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int row = (int)blockIdx.y * TILE + y, col = (int)blockIdx.x * TILE + x;
    for (int p = 0; p < k; p += threadIdx.x != 5) /* <- goes round */
        continue;
    if (row < m && col < n) C[row * ldc + col] = alpha * A[row * lda] * B[col] + beta;
}
