/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: a block overwrites data that the other one may still read.
 */
#include "lib/cluster.h"

__global__ void __launch_bounds__(256)
    broken(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
           long long ldb, float beta, float *C, long long ldc)
{
    __shared__ float s[256];
    const int x = (int)threadIdx.x, rank = (int)blockIdx.x % 2;
    s[x] = A[x % k];
    cluster_sync();
    const float other = cluster_load(&s[x], 1 - rank); /* <- reads */
    __syncthreads();
    s[x] = other; /* <- writes */
    cluster_sync();
}
