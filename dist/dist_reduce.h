/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM + reduce-scatter and GEMM + all-reduce with one collective operation of the transport: each
 * rank computes a single product for all of C, in the type of C, and the operation adds up the
 * products. Rank 0's product adds the bias and, in an all-reduce, beta*C. On GPUs, NCCL takes less
 * time than messages if C has few rows; the limit is higher for an all-reduce
 * (docs/distributed.md).
 */
#ifndef DIST_REDUCE_H
#define DIST_REDUCE_H

#include "dist_ring.h"

/* Allocates plan->partial and plan->reduced, each if it is needed; else it stays NULL. */
tgl_status dist_reduce_allocate(tgl_dist_plan *plan);
void dist_reduce_free(tgl_dist_plan *plan);

/* As dist_ring_run(). */
tgl_status dist_reduce_run(tgl_dist_plan *plan, dist_ring_call *call);

#endif
