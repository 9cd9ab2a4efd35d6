/* SPDX-License-Identifier: Apache-2.0
 *
 * Split-K by wgmma: adds the sums of the units of a tile, each of which covers a part of K, through
 * the workspace or, with CLUSTER_SPLITS, through the shared memory of a cluster.
 */
#ifndef TGL_WGMMA_SPLIT_K_H
#define TGL_WGMMA_SPLIT_K_H

#include "lib/cluster.h"
#include "lib/named_barrier.h"
#include "lib/wgmma_tiles.h"
#include "lib/wgmma_units.h"

/* A barrier of all consumers. */
#define ALL_CONSUMERS_BARRIER() named_barrier(1, CONSUMER_THREADS)

/* Macros that lib/split_units.h needs. Its sum_over_units() adds the sums in the workspace. */
#define SUMS        (M_STEPS * ACC)
#define SUM_THREADS CONSUMER_THREADS
#define SUM_SLICES  1
#if CONSUMERS > 1
#define SUM_ROOM CONSUMER_REGISTERS
#endif
#define LAST_BLOCK_BARRIER() ALL_CONSUMERS_BARRIER()
#include "lib/split_units.h"

/* The number of columns of the tile that each block of the cluster adds up and stores. */
#define BLOCK_COLUMNS (BN / CLUSTER_SPLITS)

#if CLUSTER_SPLITS > 1
#if BLOCK_COLUMNS % 32 != 0 && BLOCK_COLUMNS != 16
#error "BN / CLUSTER_SPLITS, the columns that a block stores: 16 or a multiple of 32"
#endif

#if ACCUMULATE == TYPE_I32
#define LOAD_SUM(sums, rank) __float_as_uint(cluster_load((const float *)(sums), rank))
#else
#define LOAD_SUM(sums, rank) cluster_load(sums, rank)
#endif

/* acc := the sum over the cluster's blocks, in the order of K, for the columns of this block. sums:
 * shared memory in place of the stages, where each block leaves its sums of the other columns. */
static __device__ __forceinline__ void add_cluster(accumulate_t (*acc)[ACC], accumulate_t *sums,
                                                   int rank)
{
    accumulate_t *own = sums + threadIdx.x;
    ALL_CONSUMERS_BARRIER(); /* all consumers have read their last stage; sums may overwrite it */
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++)
        if (i % ACC / (BLOCK_COLUMNS / 2) != rank)
            own[i * CONSUMER_THREADS] = acc[i / ACC][i % ACC];
    cluster_sync();
#pragma unroll
    for (int i = 0; i < M_STEPS * ACC; i++) {
        if (i % ACC / (BLOCK_COLUMNS / 2) != rank) continue;
        accumulate_t sum = 0;
#pragma unroll
        for (int split = 0; split < CLUSTER_SPLITS; split++)
            sum +=
                split == rank ? acc[i / ACC][i % ACC] : LOAD_SUM(&own[i * CONSUMER_THREADS], split);
        acc[i / ACC][i % ACC] = sum;
    }
}

/* Whether another block of the cluster stores this column of the tile. */
#define IS_STORED_BY_OTHERS(column, u) ((column) / BLOCK_COLUMNS != (u)->split)
#else
#define IS_STORED_BY_OTHERS(column, u) false
#endif

#endif
