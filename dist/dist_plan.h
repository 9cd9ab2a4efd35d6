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

/* The buffers of a ring (dist_ring.h): partial sums, in the accumulation type. */
typedef struct dist_ring {
    int slots;       /* number of buffers in `received` */
    void **received; /* partial sums from other ranks */
    void *made[2];   /* ring: chunks for which this rank makes the first product; single product:
                        [0] is all of C */
    void *scratch;   /* a chunk of beta*C */
    void **staged;   /* ring, if each rank has all of C: chunks of C of all ranks; else NULL */
    tgl_dist_message *messages;
} dist_ring;

struct tgl_dist_plan {
    tgl_dist *dist;
    int64_t number; /* number of the plan, from 1; the same on all ranks */
    dist_task task;
    dist_choice choice;
    int32_t *start; /* dist_spread.start */

    dist_spread needed[OPERANDS];     /* what this rank works with: panels of A and B, partial sums
                                         of C */
    int64_t ld[OPERANDS];             /* leading dimensions of buffer[] */
    void *buffer[OPERANDS][2];        /* two buffers for steps in turn; NULL: not needed */
    dist_transfer transfer[OPERANDS]; /* A and B to the panels; partial sums to the owners of C */

    /* The part of C that each rank adds up: its own part or, if each rank has all of C, some rows.
     * `copies` then sends these rows to the other ranks. first_row: first of these rows on this
     * rank. */
    dist_spread owned;
    int64_t first_row;
    bool has_copies;
    dist_transfer copies;

    /* Sums for this rank's part of C. They are needed if C cannot hold them: its elements have 16
     * bits, or an epilogue follows. */
    bool has_sums;
    void *sums;
    int64_t ld_sums;

    dist_ring ring; /* used in place of panels and transfers if choice.ring is not RING_NONE */

    double memory_bytes; /* memory of this rank in bytes, without the matrices */
    dist_products products;
};

/* Allocates and frees memory of the plan. Other ranks may send messages to it. */
tgl_status dist_plan_allocate(tgl_dist_plan *plan, size_t bytes, void **memory);
void dist_plan_release(tgl_dist_plan *plan, void *memory);

/* Whether A, B or the partial sums of C (`operand`) have another panel in each step. */
bool dist_plan_loops(const tgl_dist_plan *plan, int operand);

/* The number of steps in which an operand moves: one per panel, or 1. */
int64_t dist_plan_steps(const tgl_dist_plan *plan, int operand);

/* Whether the step's panel of A or B is in this rank's own part; *offset := its first element. */
bool dist_plan_in_place(const tgl_dist_plan *plan, int operand, int64_t step, int64_t *offset);

#endif
