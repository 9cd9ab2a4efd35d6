/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: one half of a block waits at a barrier of the cluster, the other at one of the
 * block.
 */
#include "lib/cluster.h"

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float s[256];
    const int x = (int)threadIdx.x, rank = (int)blockIdx.x % 2;
    s[x] = A[x % k];
    if (x < 128) /* <- waits for the cluster */
        cluster_sync();
    else
        __syncthreads(); /* <- waits for the block */
}
