/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring of stages of kernels that multiply by wgmma. The consumers are warpgroups. The blocks in
 * a row of a cluster have the same left tile: each copies a part of it to all blocks of the row.
 * The blocks in a column have the same right tile, and copy it in parts, too. A consumer therefore
 * releases a stage at all blocks of its row and of its column.
 */
#ifndef TGL_WGMMA_RING_H
#define TGL_WGMMA_RING_H

#include "lib/block_scales.h"
#include "lib/cluster.h"
#include "lib/stage_ring.h"
#include "lib/wgmma_tiles.h"

/* Moves *at past `steps` stages. With ALTERNATE a consumer skips the stages of a tile that the
 * other consumer multiplies. */
static __device__ __forceinline__ void skip(struct ring_place *at, int steps)
{
    at->stage += steps;
    at->parity ^= (unsigned)(at->stage / STAGES) & 1;
    at->stage %= STAGES;
}

/* Arrivals at a stage's `full` barrier: one for TMA, and those of the warp that copies block scale
 * factors (lib/wgmma_scales.h). */
#if HAS_BLOCK_SCALES
#define FILLS(args) (1 + factor_fills(args))
#else
#define FILLS(args) 1
#endif
/* Whether the consumer's threads read data of the stage: elements of the left operand or block
 * scale factors. Otherwise only wgmma does. */
#define THREADS_READ (WGMMA_LEFT_IN_REGISTERS || HAS_BLOCK_SCALES)
/* Arrivals of one consumer at a stage's `empty` barrier in one block: one per warp if threads read
 * the stage themselves, else one for the warpgroup. */
#define RELEASES (THREADS_READ ? 4 : 1)

/* The number of blocks in this block's row and column of the cluster, itself included. */
#define SHARERS (CLUSTER_ROWS + CLUSTER_COLUMNS - 1)

/* Returns the rank in the cluster of sharer number `number`, where a sharer is a block of this
 * block's column or row. The blocks of the column have the first numbers. */
static __device__ __forceinline__ int sharer(int number)
{
    const int other = number - CLUSTER_ROWS;
    if (other < 0) return COLUMN_IN_CLUSTER * CLUSTER_ROWS + number;
    return (other + (other >= COLUMN_IN_CLUSTER)) * CLUSTER_ROWS + ROW_IN_CLUSTER;
}

/* Initialises the mbarriers. All threads of the cluster call it before they use the ring. */
static __device__ __forceinline__ void make_barriers(struct ring *ring, int fills)
{
    if (threadIdx.x == 0) make_ring(ring, fills, (ALTERNATE ? 1 : CONSUMERS) * RELEASES * SHARERS);
#if CLUSTER > 1
    cluster_sync();
#else
    __syncthreads();
#endif
}

/* Called by all threads of a consumer, after the wait for the wgmmas that read the stage: arrives
 * at `empty` of all blocks that fill a part of the stage. The first threads of warp 0 arrive for
 * the warpgroup, one thread for each block: like CUTLASS, this relies on a wgmma completing for all
 * four warps together. If threads load from the stage, each warp arrives after its own loads. */
static __device__ __forceinline__ void wgmma_release(struct ring *ring, int stage)
{
    const int number = (int)threadIdx.x % (128 / RELEASES);
#if THREADS_READ
    __syncwarp();
#endif
    if (number >= SHARERS) return;
#if CLUSTER > 1
    mbarrier_arrive_at(&ring->empty[stage], sharer(number));
#else
    mbarrier_arrive(&ring->empty[stage]);
#endif
}

#endif
