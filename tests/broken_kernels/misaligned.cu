/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: float4 loads from rows that are not aligned to 16 bytes.
 */
#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int row = (int)blockIdx.y * TILE + y, col = (int)blockIdx.x * TILE + x;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int p = 0; p + 4 <= k; p += 4) {
        const float4 a = *(const float4 *)&A[row * lda + p]; /* <- reads */
        sum += a.x * B[p * ldb + col] + a.y * B[(p + 1) * ldb + col];
        sum += a.z * B[(p + 2) * ldb + col] + a.w * B[(p + 3) * ldb + col];
    }
    if (row < m && col < n)
        C[row * ldc + col] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[row * ldc + col];
}
