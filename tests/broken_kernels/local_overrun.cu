/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: a thread has as many sums as products, but the array has one element less.
 */
#define STEPS 4

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int at = (int)(blockIdx.y * gridDim.x + blockIdx.x) * 256 + (int)threadIdx.x;
    float sums[STEPS - 1] = {0};
    for (int p = 0; p < k && at < m * n; p++)
        sums[p % STEPS] += A[at / n * lda + p] * B[p * ldb + at % n]; /* <- index */
    if (at < m * n) C[at / n * ldc + at % n] = alpha * (sums[0] + sums[1] + sums[2]);
}
