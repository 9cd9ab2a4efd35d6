/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-pass of the probe family: sets a flag if A has an element beyond a threshold. With
 * REPACKS it also copies A to the workspace, with rows aligned to 16 bytes. One block per row of A.
 */
#include "lib/launch_order.h"

#ifndef REPACKS
#define REPACKS 1
#endif

#define THREADS 256

__global__ void __launch_bounds__(THREADS)
    probe_scan(int k, float threshold, const float *A, long long lda, float *packed,
               long long pitch, unsigned *flag)
{
    wait_for_earlier_launches();
    let_later_launches_start();
    const float *from = A + blockIdx.x * lda;
    bool is_beyond = false;
    for (int p = (int)threadIdx.x; p < k; p += THREADS) {
        const float a = from[p];
        if (fabsf(a) > threshold) is_beyond = true;
#if REPACKS
        packed[blockIdx.x * pitch + p] = a;
#endif
    }
    if (is_beyond) atomicOr(flag, 1u);
}
