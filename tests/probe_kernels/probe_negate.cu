/* SPDX-License-Identifier: Apache-2.0
 *
 * The last step of the probe family: negates C and clears the flag, or returns at once if the flag
 * is not set. One block per row of C; the last block clears the flag.
 */
#include "lib/launch_order.h"

#define THREADS 256

__global__ void __launch_bounds__(THREADS)
    probe_negate(int n, float *C, long long ldc, unsigned *flag, unsigned *done)
{
    wait_for_earlier_launches();
    let_later_launches_start();
    if (*flag == 0) return;
    for (int col = (int)threadIdx.x; col < n; col += THREADS)
        C[blockIdx.x * ldc + col] = -C[blockIdx.x * ldc + col];
    __syncthreads();
    if (threadIdx.x > 0) return;
    __threadfence();
    if (atomicAdd(done, 1u) + 1 < gridDim.x) return;
    *flag = 0;
    *done = 0;
}
