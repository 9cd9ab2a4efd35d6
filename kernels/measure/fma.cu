/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the rate of fused multiply-adds of type REAL, float or double: CHAINS independent chains
 * per thread, to hide the latency of each. The host counts CHAINS * iterations * 2 operations per
 * thread.
 */
#define CHAINS 8 /* as in src/cuda/cuda_measure.c */
#define UNROLL 64

__global__ void __launch_bounds__(256) measure_fma(int iterations, REAL a, REAL b, REAL *out)
{
    REAL x[CHAINS], sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        x[i] = (REAL)((int)threadIdx.x + i);
#pragma unroll 1
    for (int t = 0; t < iterations; t += UNROLL) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < CHAINS; i++)
                x[i] = x[i] * a + b;
    }
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        sum += x[i];
    if (sum == -1) *out = sum; /* never true, but it keeps the compiler from removing the chains */
}
