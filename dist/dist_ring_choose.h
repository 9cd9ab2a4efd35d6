/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses how the sum of the ranks' products is computed: by panels, a ring of chunks
 * (dist_ring.h), one exchange of messages, or one collective operation (dist_reduce.h). A shard is
 * the block of rows or columns of C that a rank owns; a chunk is a part of a shard.
 */
#ifndef DIST_RING_CHOOSE_H
#define DIST_RING_CHOOSE_H

#include "dist_planner.h"

enum {
    RING_CHUNKS_MAX = 8,    /* maximum number of chunks of a shard */
    RING_CHUNK_GRAIN = 128, /* size of a kernel's tile in rows or columns; all chunks of a shard but
                               the last have a multiple of it */
};

/* The axis of the ring: the axis of C (AXIS_M or AXIS_N) along which each rank has one block, its
 * shard; AXES: there is none. If each rank has all of C, it is AXIS_M. */
int dist_ring_axis(const dist_task *task);

/* The type of partial sums on their way from rank to rank: the accumulation type. But if the
 * transport has collective operations (GPUs) and C has 16 bits, it is C's type, as in the
 * reduce-scatter of NCCL: twice the bytes would often take longer than the products. Each rank then
 * rounds the sum that it passes on. */
tgl_type dist_ring_type(const dist_task *task, const tgl_dist_machine *machine);

/* Chooses a ring, one exchange, one collective operation, or the division that
 * dist_planner_choose() finds, whichever is the fastest. If a ring can serve the division that was
 * found, panels of that division are not considered. The ways other than that division are
 * considered only if machine->moves_alone is set (GPUs) and neither the panels nor the memory are
 * limited. Returns the status of dist_planner_choose(). */
tgl_status dist_choose(const dist_task *task, const tgl_dist_machine *machine,
                       const dist_limits *limits, dist_choice *choice);

#endif
