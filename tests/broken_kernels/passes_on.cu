/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks store partial results in the workspace and increment a counter; the last block reads all
 * results. Without macros this is correct. Each macro changes or removes a part of the
 * synchronisation, or adds a read.
 */
#ifdef NAMED_BARRIERS
#include "lib/named_barrier.h"
#define BARRIER() named_barrier(1, 256)
#else
#define BARRIER() __syncthreads()
#endif
#ifdef BARRIER_AND_FENCE_BY_ALL
#define FENCE_OF_ALL() __threadfence()
#else
#define FENCE_OF_ALL() ((void)0)
#endif

__global__ void __launch_bounds__(256)
    passes_on(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
              long long ldb, float beta, float *C, long long ldc, float *scratch,
              unsigned *counters)
{
    __shared__ bool is_last;
    const int thread = (int)threadIdx.x;
    int blocks = (int)(gridDim.x * gridDim.y);
    const int block = (int)(blockIdx.y * gridDim.x + blockIdx.x);
    scratch[block * 256 + thread] = A[thread % k];

    FENCE_OF_ALL();
#ifndef NO_BARRIER_BEFORE
    BARRIER();
#endif
    if (thread == 0) {
#if !defined(NO_FENCE_BEFORE) && !defined(BARRIER_AND_FENCE_BY_ALL)
        __threadfence();
#endif
#ifdef NO_ATOMIC
        const unsigned count = counters[0]++;
#else
        const unsigned count = atomicAdd(counters, 1u);
#endif
        is_last = count + 1 == (unsigned)blocks;
#ifndef NO_RESET
        if (is_last) counters[0] = 0;
#endif
#if !defined(NO_FENCE_AFTER) && !defined(NO_BARRIER_AFTER) && !defined(BARRIER_AND_FENCE_BY_ALL)
        __threadfence();
#endif
    }
    BARRIER();
    if (!is_last) return;
#ifdef NO_BARRIER_AFTER
    if (thread == 0) __threadfence();
#endif
    FENCE_OF_ALL();
    float sum = 0.0f;
#ifdef READS_MORE
    blocks += 1;
#endif
    for (int i = 0; i < blocks; i++)
        sum += scratch[i * 256 + thread];
    if (thread < n) C[thread] = alpha * sum + (beta != 0.0f ? beta * C[thread] : 0.0f);
}
