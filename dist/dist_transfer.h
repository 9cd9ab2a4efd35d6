/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves a matrix from one distribution to another, panel by panel. Each rank works out from the two
 * distributions which rectangles it sends to whom, and which it gets.
 */
#ifndef DIST_TRANSFER_H
#define DIST_TRANSFER_H

#include "dist_spread.h"

#include <stddef.h>

/* The buffers of a step. Two slots: one step's data move while another step is computed. */
typedef struct dist_slot {
    void *packed, *staged; /* copies of what is sent and received */
    tgl_dist_message *messages;
    void *group; /* the transport's group of messages; NULL: none is under way */
} dist_slot;

typedef struct dist_transfer {
    const dist_spread *from, *to;
    int64_t ld_from, ld_to; /* leading dimensions of this rank's parts */
    tgl_type type;
    size_t element; /* bytes */
    bool adds; /* several ranks send the same element: it is added to the target, in the order of
                  ranks */
    bool keeps_own;                    /* what a rank has itself is already where it belongs */
    bool at_once;                      /* nothing is computed between begin and finish */
    bool stages;                       /* the target is not memory into which other ranks send */
    size_t packed_bytes, staged_bytes; /* of a slot */
    dist_slot slot[2];
} dist_transfer;

/* Sets packed_bytes and staged_bytes, the most of steps 0 .. steps-1. */
void dist_transfer_measure(dist_transfer *transfer, int rank, int ranks, int64_t steps);

/* Begins to move the panel of a step. source: this rank's part; target: where its new part goes.
 * The elements that the rank has itself are copied, unless adds is set. target NULL: the rank needs
 * only elements that it has itself, and uses them in place. */
tgl_status dist_transfer_begin(dist_transfer *transfer, const tgl_dist_transport *transport,
                               int64_t step, const void *source, void *target);

/* Waits for the transfer that dist_transfer_begin() began with the same arguments, and completes
 * the target. */
tgl_status dist_transfer_finish(dist_transfer *transfer, const tgl_dist_transport *transport,
                                int64_t step, const void *source, void *target);

#endif
