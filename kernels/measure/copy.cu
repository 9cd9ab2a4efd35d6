/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the bandwidth of global memory: each access moves 16 bytes per thread, and each thread
 * has DEPTH loads in flight. count: the number of float4 to copy.
 */
#define DEPTH 4

__global__ void __launch_bounds__(512) measure_copy(const float4 *src, float4 *dst, long long count)
{
    const long long threads = (long long)gridDim.x * blockDim.x;
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; at + (DEPTH - 1) * threads < count; at += DEPTH * threads) {
        float4 x[DEPTH];
#pragma unroll
        for (int i = 0; i < DEPTH; i++)
            x[i] = src[at + i * threads];
#pragma unroll
        for (int i = 0; i < DEPTH; i++)
            dst[at + i * threads] = x[i];
    }
    for (; at < count; at += threads)
        dst[at] = src[at];
}
