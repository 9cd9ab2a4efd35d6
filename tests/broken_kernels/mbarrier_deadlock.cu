/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: the mbarrier expects two arrivals, and only one comes.
 */
#include "lib/mbarrier.h"

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    __shared__ mbarrier bar;
    if (threadIdx.x == 0) mbarrier_init(&bar, 2);
    __syncthreads();
    if (threadIdx.x == 0) mbarrier_arrive(&bar);
    mbarrier_wait(&bar, 0); /* <- waits */
}
