/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: blocks of a launch access each other's elements of C, or execute an atomic.
 */
#define TILE 16

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    const int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    const int row = (int)blockIdx.y * TILE + y, col = (int)blockIdx.x * TILE + x;
    const bool is_first = blockIdx.x == 0 && blockIdx.y == 0;
    const bool is_second = blockIdx.x == 1 && blockIdx.y == 0;
    if (row >= m || col >= n) return;
    float sum = beta * C[row * ldc + col];
#if READS_BEFORE_WRITTEN /* not reported: the first block reads what others write later */
    if (is_first && threadIdx.x == 0)
        for (int i = TILE; i < n; i += TILE)
            sum += C[i] + C[(m - 1) * ldc + i];
#elif READS_AFTER_WRITTEN
    if (is_second) sum += C[row * ldc]; /* <- reads */
#elif WRITES_TWICE
    if (is_second) C[row * ldc] = sum; /* <- writes */
#elif HAS_ATOMIC /* the atomic orders no other accesses in this kernel */
    if (is_second && threadIdx.x == 0) atomicAdd((unsigned *)&C[row * ldc + col], 0);
#endif
    for (int p = 0; p < k; p++)
        sum += alpha * A[row * lda + p] * B[p * ldb + col];
    C[row * ldc + col] = sum;
}
