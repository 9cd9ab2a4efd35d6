/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the sums of gemm/simt.cu to D. A slice is a group of warps that sums a part of the K of a
 * tile. The sums of slices are added through shared memory. The sums of split-K are added through
 * the shared memory of clusters, and through the workspace if a tile has several clusters. The
 * order of additions is fixed.
 */
#ifndef TGL_SIMT_RESULTS_H
#define TGL_SIMT_RESULTS_H

#include "lib/cluster.h"
#include "lib/epilogue.h"
#include "lib/last_block.h"
#include "lib/simt_copies.h"

/* The position of a thread's results. */
struct simt_place {
    struct epilogue_operands with;
    int row, col;             /* the first result is D[row][col] */
    int first_row, first_col; /* results in rows above or columns left of these are stored by
                                 another block */
    bool aligned;             /* ROWS_ARE_ON_16_BYTES(), and col is a multiple of 4 */
};

/* Stores four adjacent elements, starting at (i, j) of the thread's tile. */
static __device__ __forceinline__ void store4(const struct tgl_gemm_args *args,
                                              const struct simt_place *at, const float *sum, int i,
                                              int j)
{
    const int row = at->row + i / 4 * 4 * LANES_M + i % 4, col = at->col + j * LANES_N;
    if (row >= at->first_row && row < args->m)
        epilogue_store4(args, &at->with, sum, row, col, at->first_col - col, args->n - col,
                        at->aligned);
}

/* A part is PART elements of a thread's tile. Partial sums are added one part at a time, and the
 * slices of all blocks of a cluster take the parts in turn. The loads of AT_ONCE blocks' or
 * clusters' sums are issued together, so that a thread has 32 loads in flight. */
enum { PART = TM * TN >= 128 ? 16 : TM * TN >= 32 ? 8 : 4, AT_ONCE = 32 / PART };

/* Stores the results of part number `part` of a thread's tile. sums: the complete sums of this
 * part. */
static __device__ __forceinline__ void store_part(const struct tgl_gemm_args *args,
                                                  const struct simt_place *at, const float *sums,
                                                  int part)
{
#pragma unroll
    for (int e = 0; e < PART; e += 4)
        store4(args, at, &sums[e], (part * PART + e) / TN, (part * PART + e) % TN);
}

/* sums[] := part number `part` of a thread's tile, added over the tile's `count` clusters. Each
 * cluster has BM * BN floats in the workspace. */
static __device__ __forceinline__ void add_groups(float *sums, const float *workspace, int part,
                                                  int count)
{
#pragma unroll
    for (int e = 0; e < PART; e++)
        sums[e] = 0.0f;
#pragma unroll AT_ONCE
    for (int g = 0; g < count; g++)
#pragma unroll
        for (int e = 0; e < PART; e++)
            sums[e] +=
                __ldcg(&workspace[(long long)g * (BM * BN) + (part * PART + e) * SLICE_THREADS]);
}

/* Stores this thread's sums in shared memory, in place of the tiles of A and B: BM * BN floats of
 * each slice. Element e of a thread is all[e * SLICE_THREADS]. The stores are scalar: float4 stores
 * would force the accumulators into aligned groups of four registers, also in the main loop, where
 * acc[i][j] must be in another register bank than b[j]. */
static __device__ __forceinline__ void leave_sums(float *all, float (*acc)[TN])
{
    ASYNC_WAIT(0);   /* the copies issued past the last tile write zeros: wait for them */
    __syncthreads(); /* the tiles have been read */
#pragma unroll
    for (int e = 0; e < TM * TN; e++)
        all[SLICE * (BM * BN) + e * SLICE_THREADS] = acc[e / TN][e % TN];
}

#if SLICES > 1
/* Adds the slices' sums of a tile that is not split, and stores the results. */
static __device__ __forceinline__ void add_slices_and_store(const struct tgl_gemm_args *args,
                                                            float *shared, float (*acc)[TN],
                                                            const struct simt_place *at)
{
    const float *all = shared + THREAD;
    leave_sums(shared + THREAD, acc);
    __syncthreads();
    for (int part = SLICE; part < TM * TN / PART; part += SLICES) {
        float sums[PART] = {0.0f};
#pragma unroll
        for (int s = 0; s < SLICES; s++)
#pragma unroll
            for (int e = 0; e < PART; e++)
                sums[e] += all[s * (BM * BN) + (part * PART + e) * SLICE_THREADS];
        store_part(args, at, sums, part);
    }
}
#endif

/* Adds the sums of a split tile's blocks and stores the results. If a tile has several clusters,
 * they leave their sums in the workspace, and the last one to finish adds them. tile: its number
 * among the split tiles of the whole batch. split: the number of this block in the tile. */
static __device__ __forceinline__ void reduce_and_store(const struct tgl_gemm_args *args,
                                                        float *shared, float (*acc)[TN], int tile,
                                                        int split, const struct simt_place *at)
{
    const int cluster = args->cluster, rank = split % cluster;
    const int groups = args->splits / cluster, group = split / cluster;
    const int first = rank * SLICES + SLICE, sharers = cluster * SLICES; /* slices of the cluster */
    float *all = shared + THREAD, sums[PART];
    leave_sums(all, acc);
    cluster_sync();

    float *workspace = (float *)args->workspace + (long long)tile * groups * (BM * BN) + THREAD;
    for (int part = first; part < TM * TN / PART; part += sharers) {
#pragma unroll
        for (int e = 0; e < PART; e++)
            sums[e] = 0.0f;
#pragma unroll AT_ONCE
        for (int s = 0; s < sharers; s++)
#pragma unroll
            for (int e = 0; e < PART; e++)
                sums[e] += cluster_load(
                    &all[s % SLICES * (BM * BN) + (part * PART + e) * SLICE_THREADS], s / SLICES);
#pragma unroll
        for (int e = 0; e < PART; e++)
            if (groups > 1)
                workspace[(long long)group * (BM * BN) + (part * PART + e) * SLICE_THREADS] =
                    sums[e];
            else if (e % 4 == 0)
                store4(args, at, &sums[e], (part * PART + e) / TN, (part * PART + e) % TN);
    }
    cluster_sync(); /* no block exits while others read its shared memory */
    if (groups == 1) return;

    if (!is_last_block(&args->counters[tile * cluster + rank], groups)) return;
    for (int part = first; part < TM * TN / PART; part += sharers) {
        add_groups(sums, workspace, part, groups);
        store_part(args, at, sums, part);
    }
}

#endif
