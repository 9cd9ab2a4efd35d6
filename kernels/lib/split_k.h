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

/* The number of splits whose sums a thread loads together before it adds them. With small tiles it
 * would otherwise wait for L2 once per split. */
#define SPLITS_AT_ONCE (SUMS <= 8 ? 4 : SUMS <= 16 ? 2 : 1)

/* acc += the sums of `count` splits, of which the first is at `from`. */
static __device__ __forceinline__ void add_splits(accumulate_t *acc, const accumulate_t *from,
                                                  const int count)
{
    accumulate_t sums[SPLITS_AT_ONCE][SUMS];
#pragma unroll
    for (int s = 0; s < count; s++)
#pragma unroll
        for (int e = 0; e < SUMS; e++)
            sums[s][e] = __ldcg(&from[s * (BM * BN) + e * SLICE_THREADS]);
#pragma unroll
    for (int s = 0; s < count; s++)
#pragma unroll
        for (int e = 0; e < SUMS; e++)
            acc[e] += sums[s][e];
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
    reset_counter(counter);
    if (is_idle) return true;
    if (split > 0)
#pragma unroll
        for (int e = 0; e < SUMS; e++)
            acc[e] = __ldcg(&from[e * SLICE_THREADS]);
    int s = 1;
#pragma unroll 1
    for (; SPLITS_AT_ONCE > 1 && s + SPLITS_AT_ONCE <= args->splits; s += SPLITS_AT_ONCE) {
        add_splits(acc, from + BM * BN, SPLITS_AT_ONCE);
        from += SPLITS_AT_ONCE * (BM * BN);
    }
#pragma unroll 1
    for (; s < args->splits; s++) {
        from += BM * BN;
        add_splits(acc, from, 1);
    }
    return true;
}

#endif
