/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: the kernel has more than 48 KB of static shared memory, the limit of all GPUs.
 */
__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float s[48 * 256 + 1];
    (void)B, (void)ldb, (void)beta, (void)k, (void)lda, (void)m, (void)n, (void)ldc;
    s[threadIdx.x] = alpha * A[0];
    C[0] = s[threadIdx.x];
}
