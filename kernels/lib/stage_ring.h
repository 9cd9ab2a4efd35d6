/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring of stages between a producer, which fills them by TMA, and consumers. For each stage
 * there are two mbarriers: `full` completes when the tiles have arrived, `empty` when all consumers
 * have released the stage. Both sides begin at place {0, 0}. The producer waits for `empty` with
 * the other parity: the stages of a new ring are empty.
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

/* The place in the ring of stages. parity: of the phase of its barriers. */
struct ring_place {
    int stage;
    unsigned parity;
};

static __device__ __forceinline__ void advance(struct ring_place *at)
{
    if (++at->stage == STAGES) {
        at->stage = 0;
        at->parity ^= 1;
    }
}

/* Initialises the mbarriers of the block. releases: arrivals that release a stage. One thread calls
 * it, and a barrier of the threads that use the ring follows. */
static __device__ __forceinline__ void make_ring(struct ring *ring, int releases)
{
    for (int i = 0; i < STAGES; i++) {
        mbarrier_init(&ring->full[i], 1);
        mbarrier_init(&ring->empty[i], releases);
    }
    mbarrier_init_fence();
}

#endif
