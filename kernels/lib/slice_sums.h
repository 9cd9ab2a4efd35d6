/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the sums of the slices of gemm/mma.cu and gemm/dmma.cu. A slice is a group of SLICE_THREADS
 * threads that has summed a part of K. Each of its threads has SUMS sums of the same tile.
 */
#ifndef TGL_SLICE_SUMS_H
#define TGL_SLICE_SUMS_H

#include "lib/element.h"

#ifndef SLICES_BARRIER
#define SLICES_BARRIER() __syncthreads() /* a barrier of all slices */
#endif

/* In the first slice acc := the sum of acc over all slices. sums: shared memory for the sums of the
 * other slices. */
static __device__ __forceinline__ void add_slices(accumulate_t *acc, accumulate_t *sums, int slice)
{
    const int thread = (int)threadIdx.x % SLICE_THREADS;
    if (slice > 0)
#pragma unroll
        for (int e = 0; e < SUMS; e++)
            sums[((slice - 1) * SUMS + e) * SLICE_THREADS + thread] = acc[e];
    SLICES_BARRIER();
    if (slice == 0)
#pragma unroll 1
        for (int s = 0; s < SLICES - 1; s++)
#pragma unroll
            for (int e = 0; e < SUMS; e++)
                acc[e] += sums[(s * SUMS + e) * SLICE_THREADS + thread];
    SLICES_BARRIER(); /* the first slice has read the sums */
}

#endif
