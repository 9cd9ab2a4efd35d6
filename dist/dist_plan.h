/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a distributed product: the division, the transfers, and the memory of a run.
 */
#ifndef DIST_PLAN_H
#define DIST_PLAN_H

#include "dist_comm.h"
#include "dist_planner.h"
#include "dist_product.h"
#include "dist_ring.h"
#include "dist_transfer.h"

struct tgl_dist_plan {
    tgl_dist *dist;
    int64_t number; /* from 1; the same on all ranks */
    dist_task task;
    dist_choice choice;
    int32_t *start; /* dist_spread.start */

    dist_spread needed[OPERANDS];     /* panels of A and B; partial sums of C */
    int64_t ld[OPERANDS];             /* leading dimensions of the buffers */
    void *buffer[OPERANDS][2];        /* [1]: for every other step. NULL: not needed */
    dist_transfer transfer[OPERANDS]; /* of A and B to the panels; of partial sums to C */

    /* Which rank adds up which part of C: the owners of C; if each rank has all of C, each rank
     * adds up some rows, which `copies` then sends to the others. first_row: this rank's. */
    dist_spread owned;
    int64_t first_row;
    bool has_copies;
    dist_transfer copies;

    /* The sums of this rank's part of C, if C cannot hold them: its elements have 16 bits, or an
     * epilogue follows. */
    bool has_sums;
    void *sums;
    int64_t ld_sums;

    dist_ring ring; /* if choice.ring is not RING_NONE: instead of panels and transfers */

    double memory_bytes; /* bytes of this rank beside the matrices */
    dist_products products;
};

/* Memory of the plan, in which other ranks' messages may arrive. */
tgl_status dist_plan_allocate(tgl_dist_plan *plan, size_t bytes, void **memory);
void dist_plan_release(tgl_dist_plan *plan, void *memory);

/* Whether A, B or the partial sums of C have another panel in each step. */
bool dist_plan_loops(const tgl_dist_plan *plan, int operand);

/* The number of steps in which an operand moves: the panels, or 1. */
int64_t dist_plan_steps(const tgl_dist_plan *plan, int operand);

/* Whether the panel of A or B of a step lies in this rank's part; *offset := where, in elements. */
bool dist_plan_in_place(const tgl_dist_plan *plan, int operand, int64_t step, int64_t *offset);

#endif
