/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring of stages of a kernel that multiplies by wgmma. The consumers are warpgroups. In a
 * cluster those of all its blocks release a stage, because each block fills a part of the right
 * tile of all.
 */
#ifndef TGL_WGMMA_RING_H
#define TGL_WGMMA_RING_H

#include "lib/cluster.h"
#include "lib/stage_ring.h"
#include "lib/wgmma_tiles.h"

/* Past `steps` stages, which another consumer reads. */
static __device__ __forceinline__ void skip(struct place *at, int steps)
{
    at->stage += steps;
    at->parity ^= (unsigned)(at->stage / STAGES) & 1;
    at->stage %= STAGES;
}

/* Arrivals of a consumer for a stage at a block: one of each warp if threads load from the stage,
 * else one of the warpgroup. */
#define RELEASES (WGMMA_LEFT_IN_REGISTERS ? 4 : 1)

/* Initialises the mbarriers of the cluster's blocks. All threads of the block call it first. */
static __device__ __forceinline__ void make_barriers(struct ring *ring)
{
    if (threadIdx.x == 0) make_ring(ring, (ALTERNATE ? 1 : CONSUMERS) * RELEASES * CLUSTER);
#if CLUSTER > 1
    cluster_sync();
#else
    __syncthreads();
#endif
}

/* By all threads of a consumer, after the wait for the wgmmas that read the stage: arrives at
 * `empty` of all blocks of the cluster, because each of them fills a part of the right tile. The
 * first threads of warp 0 arrive for the warpgroup, one for each block. As CUTLASS, we rely on a
 * wgmma completing for all four warps together. If threads load from the stage, each
 * warp arrives after its own loads. */
static __device__ __forceinline__ void release(struct ring *ring, int stage)
{
    const int number = (int)threadIdx.x % (128 / RELEASES);
#if WGMMA_LEFT_IN_REGISTERS
    __syncwarp();
#endif
    if (number >= CLUSTER) return;
#if CLUSTER > 1
    mbarrier_arrive_at(&ring->empty[stage], number);
#else
    mbarrier_arrive(&ring->empty[stage]);
#endif
}

#endif
