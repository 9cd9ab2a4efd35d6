/* SPDX-License-Identifier: Apache-2.0
 *
 * Split-K without clusters, for gemm/simt.cu and gemm/mma.cu: adds the sums of the blocks that
 * share a tile, in the workspace. The kernel defines BM, BN, SLICE_THREADS, the number of threads
 * that have sums, and SUMS, the number of their sums.
 */
#ifndef TGL_SPLIT_K_H
#define TGL_SPLIT_K_H

#include "lib/element.h"
#include "lib/gemm_args.h"
#include "lib/last_block.h"

/* acc := the sum over the blocks of a split tile. All blocks store their sums in the workspace,
 * except for the first split if it finishes last. It usually does if it is deeper than the others.
 * Returns false if other blocks have not finished yet: the last block continues. tile: its number
 * among the split tiles of the batch. split: the number of this block in the tile. is_idle: the
 * thread has no sums. */
static __device__ __forceinline__ bool sum_over_blocks(const struct tgl_gemm_args *args,
                                                       accumulate_t *acc, int tile, int split,
                                                       bool is_idle)
{
    unsigned *counter = &args->counters[tile];
    accumulate_t *from =
        (accumulate_t *)args->workspace + (long long)tile * args->splits * (BM * BN) + threadIdx.x;
    if (!others_have_come(split == 0, counter, args->splits)) {
        accumulate_t *own = from + (long long)split * (BM * BN);
        if (!is_idle)
#pragma unroll
            for (int e = 0; e < SUMS; e++)
                own[e * SLICE_THREADS] = acc[e];
        if (!comes_last(counter, args->splits)) return false;
    }
    take_sums(counter);
    if (is_idle) return true;
    if (split > 0)
#pragma unroll
        for (int e = 0; e < SUMS; e++)
            acc[e] = __ldcg(&from[e * SLICE_THREADS]);
#pragma unroll 1
    for (int s = 1; s < args->splits; s++) {
        from += BM * BN;
#pragma unroll
        for (int e = 0; e < SUMS; e++)
            acc[e] += __ldcg(&from[e * SLICE_THREADS]);
    }
    return true;
}

#endif
