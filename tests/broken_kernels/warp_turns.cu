/* SPDX-License-Identifier: Apache-2.0
 *
 * The result depends on the order of warps: C[i] is the number of warps that ran before warp i.
 */
__global__ void __launch_bounds__(256)
    warp_turns(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
               long long ldb, float beta, float *C, long long ldc, float *scratch,
               unsigned *counters)
{
    if (threadIdx.x % 32 == 0) C[threadIdx.x / 32] = (float)atomicAdd(counters, 1u);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        counters[0] = 0;
    }
}
