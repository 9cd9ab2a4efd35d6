/* SPDX-License-Identifier: Apache-2.0
 *
 * One of several launches that exchange data: macros select what it does, and when it waits for
 * earlier launches.
 */
#include "lib/launch_order.h"

__global__ void __launch_bounds__(32)
    in_steps(int m, int n, int k, float alpha, const float *A, long long lda, const float *B,
             long long ldb, float beta, float *C, long long ldc, float *scratch, unsigned *counters)
{
#ifdef WAITS
    wait_for_earlier_launches();
#endif
#ifdef WRITES
    scratch[threadIdx.x] = 1.0f;
#endif
#ifdef READS
    const float x = scratch[threadIdx.x];
    (void)x;
#endif
#ifdef WAITS_AT_END
    wait_for_earlier_launches();
#endif
}
