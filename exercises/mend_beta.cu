/* SPDX-License-Identifier: Apache-2.0
 *
 * Exercise mend_beta: another broken kernel.
 *
 * With beta = 0, C need not be set: BLAS does not read it. The kernel multiplies whatever is there
 * by 0. Its results are right until C has an infinity or a NaN from its last use, because 0 * NaN
 * is NaN.
 *
 * To do: run the check. Then make the kernel read C only if it must, and write it in any case.
 *
 * Goal: right results, whatever is in C.
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

    C[row * ldc + col] = alpha * sum + beta * C[row * ldc + col];
}
