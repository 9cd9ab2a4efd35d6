/* SPDX-License-Identifier: Apache-2.0
 *
 * Broken on purpose: the second block may exit before the first one has read its shared memory.
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
    if (rank == 0 && cluster_load(&s[x], 1) == 1e30f) C[0] = alpha;
}
