/* SPDX-License-Identifier: Apache-2.0
 *
 * Split-K by wgmma: adds the sums of the units of a tile, through the workspace or, with
 * CLUSTER_SPLITS, through the shared memory of a cluster.
 */
#ifndef TGL_WGMMA_SPLIT_K_H
#define TGL_WGMMA_SPLIT_K_H

#include "lib/cluster.h"
#include "lib/named_barrier.h"
#include "lib/wgmma_tiles.h"
#include "lib/wgmma_units.h"

/* A barrier of all consumers. */
#define ALL_CONSUMERS_BARRIER() named_barrier(1, CONSUMER_THREADS)

/* ---- In the workspace ------------------------------------------------------------------------ */

#define LAST_BLOCK_BARRIER() ALL_CONSUMERS_BARRIER()
#include "lib/last_block.h"

/* Leaves the unit's sums in the workspace. Returns true in the last unit of a tile to finish: acc
 * is then the sum of all units of the tile, in the order of K. */
static __device__ __forceinline__ bool
wgmma_add_splits(float (*acc)[ACC], const struct tgl_gemm_args *args, const struct unit *u)
{
    float4 *sums =
        (float4 *)args->workspace + (long long)u->tile * u->splits * (BM * BN / 4) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i += 4) {
        const float *from = &acc[i / ACC][i % ACC];
        sums[(u->split * (M_STEPS * ACC / 4) + i / 4) * CONSUMER_THREADS] =
            make_float4(from[0], from[1], from[2], from[3]);
    }
    if (!is_last_block(&args->counters[u->tile], u->splits)) return false;
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++)
        acc[i / ACC][i % ACC] = 0.0f;
#pragma unroll 1
    for (int split = 0; split < u->splits; split++) {
        const float4 *from = &sums[split * (M_STEPS * ACC / 4) * CONSUMER_THREADS];
#pragma unroll
        for (int i = 0; i < M_STEPS * ACC; i += 4) {
            const float4 v = __ldcg(&from[i / 4 * CONSUMER_THREADS]);
            float *to = &acc[i / ACC][i % ACC];
            to[0] += v.x, to[1] += v.y, to[2] += v.z, to[3] += v.w;
        }
    }
    return true;
}

/* ---- In the shared memory of a cluster ------------------------------------------------------- */

/* The columns of the tile that a block of the cluster adds up and stores. */
#define BLOCK_COLUMNS (BN / CLUSTER_SPLITS)

#if CLUSTER_SPLITS > 1
#if BLOCK_COLUMNS % 32 != 0 && BLOCK_COLUMNS != 16
#error "BN / CLUSTER_SPLITS, the columns that a block stores: 16 or a multiple of 32"
#endif

/* acc := the sum over the cluster's blocks, in the order of K, in the columns of this block. sums:
 * shared memory for the sums of the block, in place of the stages. Each block leaves there the sums
 * that the other blocks need. */
static __device__ __forceinline__ void add_cluster(float (*acc)[ACC], float *sums, int rank)
{
    float *own = sums + threadIdx.x;
    ALL_CONSUMERS_BARRIER(); /* the other consumer has read its last stage */
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++)
        if (i % ACC / (BLOCK_COLUMNS / 2) != rank)
            own[i * CONSUMER_THREADS] = acc[i / ACC][i % ACC];
    cluster_sync();
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++) {
        if (i % ACC / (BLOCK_COLUMNS / 2) != rank) continue;
        float sum = 0.0f;
#pragma unroll
        for (int split = 0; split < CLUSTER_SPLITS; split++)
            sum += split == rank ? acc[i / ACC][i % ACC]
                                 : cluster_load(&own[i * CONSUMER_THREADS], split);
        acc[i / ACC][i % ACC] = sum;
    }
}

/* Whether another block of the cluster stores this column of the tile. */
#define IS_STORED_BY_OTHERS(column, u) ((column) / BLOCK_COLUMNS != (u)->split)
#else
#define IS_STORED_BY_OTHERS(column, u) false
#endif

#endif
