/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns: the consumers of a block, warpgroups 0 to CONSUMERS - 1, issue their wgmmas in the order
 * 0, 1, ..., 0, 1, ... Each consumer has an mbarrier, at which the four warps of its predecessor
 * arrive when they pass the turn.
 */
#ifndef TGL_WGMMA_TURNS_H
#define TGL_WGMMA_TURNS_H

#include "lib/mbarrier.h"

struct turns {
    mbarrier of[CONSUMERS];
};

/* Called by one thread, before make_barriers(): initialises the mbarriers of all consumers. */
static __device__ __forceinline__ void make_turns(struct turns *turns)
{
    for (int i = 0; i < CONSUMERS; i++)
        mbarrier_init(&turns->of[i], 4); /* arrivals: the 4 warps of the consumer before */
}

/* The parity that take_turn() waits for first. Consumer 0 asks for the phase before the first one,
 * which counts as complete: it does not wait. */
static __device__ __forceinline__ unsigned first_turn(int consumer)
{
    return consumer == 0;
}

/* Waits for the consumer's turn. *parity: the parity of this turn's phase, then of the next
 * turn's. */
static __device__ __forceinline__ void take_turn(struct turns *turns, int consumer,
                                                 unsigned *parity)
{
    mbarrier_wait(&turns->of[consumer], *parity);
    *parity ^= 1;
}

/* Called by all threads of a consumer: lets the next consumer issue its wgmmas. */
static __device__ __forceinline__ void pass_turn(struct turns *turns, int consumer)
{
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&turns->of[(consumer + 1) % CONSUMERS]);
}

#endif
