/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a distributed product: the division, the transfers, and the memory of a run.
 */
#ifndef DIST_PLAN_H
#define DIST_PLAN_H

#include "dist_comm.h"
#include "dist_planner.h"
#include "dist_product.h"
#include "dist_transfer.h"

struct tgl_dist_plan {
    tgl_dist *dist;
    dist_task task;
    dist_choice choice;
    int32_t *start; /* dist_spread.start */

    dist_spread needed[OPERANDS];     /* panels of A and B; partial sums of C */
    int64_t ld[OPERANDS];             /* of the buffers */
    void *buffer[OPERANDS][2];        /* of two steps; NULL: not needed, or one is enough */
    dist_transfer transfer[OPERANDS]; /* of A and B to the panels; of partial sums to C */

    /* Where sums over ranks are made: by the owners of C; if each rank has all of C, by shards of
     * rows, which are then copied to the others (`copies`). first_row: of this rank's shard. */
    dist_spread owned;
    int64_t first_row;
    bool has_copies;
    dist_transfer copies;

    /* The sums of this rank's part of C, where they cannot be in C: it has 16 bits, or an epilogue
     * follows. */
    bool has_sums;
    void *sums;
    int64_t ld_sums;

    double memory_bytes; /* beside the matrices */
    dist_products products;
};

/* Whether A, B or the partial sums of C have another panel in each step. */
bool dist_plan_loops(const tgl_dist_plan *plan, int operand);

/* The number of steps in which an operand moves: the panels, or 1. */
int64_t dist_plan_steps(const tgl_dist_plan *plan, int operand);

/* Whether the panel of A or B of a step lies in this rank's part; *offset := where, in elements. */
bool dist_plan_in_place(const tgl_dist_plan *plan, int operand, int64_t step, int64_t *offset);

#endif
