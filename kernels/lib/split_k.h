/* SPDX-License-Identifier: Apache-2.0
 *
 * Split-K without clusters, for gemm/simt.cu, gemm/mma.cu and gemm/dequant.cu: adds the sums of the
 * blocks that compute one tile, in the workspace. The kernel defines BM, BN, SLICE_THREADS (the
 * number of threads that have sums) and SUMS (the number of sums of each of them). A split is the
 * part of K that one block sums.
 */
#ifndef TGL_SPLIT_K_H
#define TGL_SPLIT_K_H

#include "lib/element.h"
#include "lib/gemm_args.h"
#include "lib/last_block.h"

/* acc += the sums of splits 1 to splits - 1. from: this thread's first sum of split 0. */
static __device__ __forceinline__ void add_splits(accumulate_t *acc, const accumulate_t *from,
                                                  const int splits)
{
    enum { AT_ONCE = SPLITS_AT_ONCE(SUMS) };
#pragma unroll 1
    for (int first = 1; first < splits; first += AT_ONCE) {
        accumulate_t sums[AT_ONCE][SUMS];
#pragma unroll
        for (int s = 0; s < AT_ONCE; s++)
#pragma unroll
            for (int e = 0; e < SUMS; e++)
                if (first + s < splits)
                    sums[s][e] = __ldcg(&from[(first + s) * (BM * BN) + e * SLICE_THREADS]);
#pragma unroll
        for (int s = 0; s < AT_ONCE; s++)
#pragma unroll
            for (int e = 0; e < SUMS; e++)
                if (first + s < splits) acc[e] += sums[s][e];
    }
}

/* acc := the sum over the blocks of a split tile. Every block stores its sums in the workspace,
 * except the block of split 0 if it finishes last. That is the usual case if split 0 has more K
 * than the others. Returns false if other blocks have not finished yet: the last block continues.
 * tile: its number among the split tiles of the batch. split: the number of this block in the tile.
 * is_idle: the thread has no sums. */
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
    add_splits(acc, from, args->splits);
    return true;
}

#endif
