/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a distributed product: the division, the transfers, and the memory of a run. A run
 * goes in steps. In each step a rank multiplies one panel, a range of the division's axis `loop`
 * (dist_task.h); operands that do not have this axis move once.
 */
#ifndef DIST_PLAN_H
#define DIST_PLAN_H

#include "dist_comm.h"
#include "dist_planner.h"
#include "dist_product.h"
#include "dist_transfer.h"

/* The buffers of a ring (dist_ring.h), in which the ranks pass on partial sums of chunks of C. The
 * elements have the type dist_ring_type(), except in `staged`. In place of a ring of chunks, each
 * rank can compute one product for all of C, called the single product. */
typedef struct dist_ring {
    int slots;       /* number of buffers in `received` */
    void **received; /* partial sums from other ranks */
    void *made[2];   /* ring of chunks: the sums that this rank sends to the next one; two buffers,
                        because one is sent while the next chunk is computed. Single product: [0]
                        holds the product */
    void *scratch;   /* a chunk of beta*C */
    void **staged;   /* if chunks are used and each rank gets all of C: chunks of the result, in the
                        type of C, from the other ranks; and copies without padding of the chunks
                        that this rank sends. Else NULL */
    tgl_dist_message *messages;
} dist_ring;

struct tgl_dist_plan {
    tgl_dist *dist;
    int64_t number; /* number of the plan, from 1; the same on all ranks */
    dist_task task;
    dist_choice choice;
    int32_t *start; /* for each rank, the index of its panel in step 0 (dist_spread.start) */

    dist_spread needed[OPERANDS];     /* elements that ranks need in each step: panels of A and B,
                                         partial sums of C */
    int64_t ld[OPERANDS];             /* leading dimensions of buffer[] */
    void *buffer[OPERANDS][2];        /* for even and for odd steps; NULL: not needed */
    dist_transfer transfer[OPERANDS]; /* A and B: from the caller's layout to the panels; C: from
                                         the partial sums to the ranks that own C */

    /* The part of C that each rank adds up: its own part or, if each rank has all of C, some rows
     * of C, which `copies` then sends to the other ranks. first_row: index in C of the first row
     * that this rank adds up; 0 if the rank has only its own part. */
    dist_spread owned;
    int64_t first_row;
    bool has_copies;
    dist_transfer copies;

    /* Memory for the sums of this rank's part of C, in the accumulation type. It is needed if this
     * rank adds up several products and C cannot hold their sum: C has another type, or an epilogue
     * follows. */
    bool has_sums;
    void *sums;
    int64_t ld_sums;

    void *partial; /* RING_COLLECTIVE (one product and one call of NCCL, dist_planner.h): this
                      rank's product; NULL: C holds it */
    void *reduced; /* RING_COLLECTIVE: this rank's rows of the sum; NULL: C holds them or, in an
                      all-reduce of a padded C, `partial` */

    dist_ring ring; /* used instead of panels and transfers if choice.ring is at least 0 */

    double memory_bytes; /* bytes that the plan has allocated on this rank */
    dist_products products;
};

/* Allocates or frees device memory of the plan, to which other ranks can send. memory may be NULL
 * in dist_plan_release(). */
tgl_status dist_plan_allocate(tgl_dist_plan *plan, size_t bytes, void **memory);
void dist_plan_release(tgl_dist_plan *plan, void *memory);

/* Whether an operand (A, B, or the partial sums of C) has a new panel in each step. */
bool dist_plan_loops(const tgl_dist_plan *plan, int operand);

/* The number of steps in which an operand moves: the number of its panels; 1 without panels. */
int64_t dist_plan_steps(const tgl_dist_plan *plan, int operand);

/* Whether all of the step's panel of A or B is in this rank's own part, so that it needs no copy.
 * *offset := the panel's first element, in elements from the beginning of the part. */
bool dist_plan_in_place(const tgl_dist_plan *plan, int operand, int64_t step, int64_t *offset);

#endif
