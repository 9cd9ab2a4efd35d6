/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: all threads read a word, and then thread 255 writes it without a barrier in
 * between. The write races with the reads of the other threads.
 */
__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int row = (int)blockIdx.y * 16 + (int)threadIdx.x / 16;
    const int col = (int)blockIdx.x * 16 + (int)threadIdx.x % 16;
    __shared__ float s[1];
    if (threadIdx.x == 0) s[0] = A[0];
    __syncthreads();
    float sum = s[0];                 /* <- reads */
    if (threadIdx.x == 255) s[0] = 2; /* <- writes */
    (void)B, (void)ldb, (void)beta, (void)k, (void)lda;
    if (row < m && col < n) C[row * ldc + col] = alpha * sum;
}
