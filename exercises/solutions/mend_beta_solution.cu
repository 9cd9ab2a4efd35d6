/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mend_beta: the solution.
 *
 * Why: the condition is the same for all threads, so it costs no divergence, and the load of C is
 * saved. 0 * NaN and 0 * infinity are NaN: multiplying by zero does not forget a value.
 */
#define TILE    16 /* rows and columns of C that a block computes */
#define THREADS (TILE * TILE)

__global__ void __launch_bounds__(THREADS)
    mend_beta(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
              long long ldb, float beta, float *C, long long ldc)
{
    const int row = (int)blockIdx.y * TILE + (int)threadIdx.x / TILE;
    const int col = (int)blockIdx.x * TILE + (int)threadIdx.x % TILE;
    if (row >= m || col >= n) return;

    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += A[row * lda + p] * B[p * ldb + col];

    float *to = &C[row * ldc + col];
    *to = beta == 0.0f ? alpha * sum : alpha * sum + beta * *to;
}
