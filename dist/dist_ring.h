/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM + reduce-scatter and GEMM + all-reduce between devices whose data moves beside their
 * products: A and B stay, k is divided over all ranks, and C has a shard of rows or columns on each
 * rank. The sums over ranks are made by the products themselves, in their accumulators.
 *
 * A shard is cut into chunks, which go around the ranks. The chunk of rank r begins at rank r+1;
 * each rank adds its own product to what it has received, and sends the sum to the next one:
 *
 *                 rank 0            rank 1            rank 2
 *     step 1      2's chunks        0's chunks        1's chunks      product
 *     step 2      1's chunks        2's chunks        0's chunks      product + received
 *     step 3      0's chunks        1's chunks        2's chunks      activation(... + bias): C
 *
 * While a chunk is multiplied, the chunk before it moves. Few rows are not worth that, because each
 * product reads all of B: then there is one product, each rank receives the parts of the others of
 * what it sums, and adds them in the order of the ranks. An all-reduce has one exchange then: each
 * rank sums all of C.
 */
#ifndef DIST_RING_H
#define DIST_RING_H

#include "dist_planner.h"
#include "dist_product.h"

struct tgl_dist_plan;

enum {
    RING_CHUNKS_MOST = 8,   /* of a shard */
    RING_CHUNK_GRAIN = 128, /* longer chunks begin at multiples of it: a tile of the kernels */
};

/* The axis of C that is divided over all ranks in one block each; AXES: none. Of a replicated C the
 * rows are. */
int dist_ring_axis(const dist_task *task);

/* The numbers of a run. A, B and the bias as the task has them. */
typedef struct dist_ring_call {
    double alpha, beta;
    const void *A, *B, *bias;
    void *C;
    tgl_status product; /* of this rank's products */
} dist_ring_call;

/* The buffers, of the accumulation type. */
typedef struct dist_ring {
    int slots;       /* of `received` */
    void **received; /* chunks that come from the rank before */
    void *made[2];   /* chunks that begin here; or of the one product, all of C */
    void *scratch;   /* a chunk of beta*C */
    void **staged;   /* in a ring with copies: chunks of C of all ranks */
    tgl_dist_message *messages;
} dist_ring;

/* The faster one of dist_planner_choose() and the ring, which needs a caller who does not limit the
 * panels or the memory. Returns what dist_planner_choose() returns. */
tgl_status dist_choose(const dist_task *task, const tgl_dist_machine *machine,
                       const dist_limits *limits, dist_choice *choice);

/* With `owned` and `has_copies` of the plan complete. */
tgl_status dist_ring_allocate(struct tgl_dist_plan *plan);
void dist_ring_free(struct tgl_dist_plan *plan);

/* A failure of a product is in call->product; the returned status is that of the link. */
tgl_status dist_ring_run(struct tgl_dist_plan *plan, dist_ring_call *call);

#endif
