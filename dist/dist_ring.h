/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM + reduce-scatter and GEMM + all-reduce, between devices that can move data while they
 * compute products. A and B stay where they are, k is divided over all ranks, and each rank gets a
 * shard of rows or columns of C. The products themselves add up the partial sums of the ranks: sums
 * of 16 bits as a residual in the epilogue (but as C before an activation), others as C.
 *
 * A shard is cut into chunks, which go around the ranks. The chunk of rank r begins at rank r+1.
 * Each rank adds its own product to the chunk that it has received, and sends the sum to the next
 * rank. After the last step the sum is complete:
 *
 *                 rank 0            rank 1            rank 2
 *     step 1      2's chunks        0's chunks        1's chunks      product
 *     step 2      1's chunks        2's chunks        0's chunks      product + received
 *     step 3      0's chunks        1's chunks        2's chunks      C := activation(sum + bias)
 *
 * While a chunk is multiplied, the chunk before it moves. Each chunk's product reads all of B (all
 * of A if shards are columns). If C has few rows, this takes longer than the overlap saves. Then
 * there are no chunks: each rank computes a single product for all of C, receives its shard of the
 * other ranks' products, and adds these in the order of the ranks. In an all-reduce, each rank
 * receives the other ranks' whole products and adds up all of C.
 */
#ifndef DIST_RING_H
#define DIST_RING_H

#include "dist_plan.h"

/* The arguments of a run. A and B are those of dist_task, which exchanges the matrices of the
 * caller if the problem is column-major. */
typedef struct dist_ring_call {
    double alpha, beta;
    const void *A, *B, *bias;
    void *C;
    tgl_status product; /* first failure of this rank's products and additions, else TGL_OK */
} dist_ring_call;

/* Allocates plan->ring. plan->owned and plan->has_copies must be set. */
tgl_status dist_ring_allocate(tgl_dist_plan *plan);
void dist_ring_free(tgl_dist_plan *plan);

/* Runs a product in a ring. If a product or an addition of this rank fails, sets call->product to
 * its status and goes on to send and receive. Returns the status of the communication. */
tgl_status dist_ring_run(tgl_dist_plan *plan, dist_ring_call *call);

#endif
