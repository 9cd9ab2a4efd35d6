/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a product goes around the ranks in chunks (dist_ring.h), and in how many.
 */
#ifndef DIST_RING_CHOOSE_H
#define DIST_RING_CHOOSE_H

#include "dist_planner.h"

enum {
    RING_CHUNKS_MOST = 8,   /* maximum number of chunks of a shard */
    RING_CHUNK_GRAIN = 128, /* longer chunks are a multiple of this, the size of a kernel's tile */
};

/* The axis of C (AXIS_M or AXIS_N) along which each rank has one block, its shard; AXES: there is
 * none. If each rank has all of C, it is AXIS_M. */
int dist_ring_axis(const dist_task *task);

/* Chooses the faster one of dist_planner_choose() and a ring. A ring is considered only if the
 * caller limits neither the panels nor the memory. Returns the status of dist_planner_choose(). */
tgl_status dist_choose(const dist_task *task, const tgl_dist_machine *machine,
                       const dist_limits *limits, dist_choice *choice);

#endif
