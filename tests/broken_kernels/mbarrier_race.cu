/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: thread 0 writes after its arrival, so the write is not ordered before the
 * reads of the waiting threads.
 */
#include "lib/mbarrier.h"

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    __shared__ mbarrier bar;
    __shared__ float s[1];
    if (threadIdx.x == 0) mbarrier_init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_arrive(&bar);
        s[0] = A[0]; /* <- writes */
    }
    mbarrier_wait(&bar, 0);
    const float x = s[0]; /* <- reads */
    if (x > 100.0f) C[0] = x;
}
