/* SPDX-License-Identifier: Apache-2.0
 *
 * C := alpha*A*B + beta*C, row-major: one thread an element of C, neighbouring threads in a column.
 */
#ifndef BM
#define BM 32 /* rows of C that a block computes: neighbouring threads */
#endif
#ifndef BN
#define BN 8 /* columns */
#endif
#define THREADS (BM * BN)

__global__ void __launch_bounds__(THREADS)
    sgemm_naive(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
                long long ldb, float beta, float *C, long long ldc)
{
    const int row = (int)blockIdx.y * BM + (int)threadIdx.x % BM;
    const int col = (int)blockIdx.x * BN + (int)threadIdx.x / BM;
    if (row >= m || col >= n) return;

    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += A[row * lda + p] * B[p * ldb + col];

    float *c = &C[row * ldc + col];
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
}
