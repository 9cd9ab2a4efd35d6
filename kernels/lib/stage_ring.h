/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring of stages between a producer, which fills them by TMA and cp.async, and the consumers.
 * Each stage has two mbarriers: `full` completes when the tiles, and scale factors if there are
 * any, have arrived, and `empty` when all consumers that read the stage have released it. Producer
 * and consumers begin at place {0, 0}, or slice s of gemm/dmma.cu at stage s. The producer waits at
 * `empty` for parity ^ 1: in a new ring that is the phase before the first, which counts as
 * complete.
 */
#ifndef TGL_STAGE_RING_H
#define TGL_STAGE_RING_H

#include "lib/mbarrier.h"

#ifndef STAGES
#define STAGES 4
#endif

struct ring {
    mbarrier full[STAGES], empty[STAGES];
};

/* A place in the ring. */
struct ring_place {
    int stage;
    unsigned parity; /* parity of the phase to wait for at `full` */
};

static __device__ __forceinline__ void advance(struct ring_place *at)
{
    if (++at->stage == STAGES) {
        at->stage = 0;
        at->parity ^= 1;
    }
}

/* Initialises the mbarriers. fills, releases: how many arrivals fill and release a stage. Called by
 * one thread. Other threads may use the ring after a barrier. */
static __device__ __forceinline__ void make_ring(struct ring *ring, int fills, int releases)
{
    for (int i = 0; i < STAGES; i++) {
        mbarrier_init(&ring->full[i], fills);
        mbarrier_init(&ring->empty[i], releases);
    }
    mbarrier_init_fence();
}

#endif
