/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves a matrix from one distribution (dist_spread.h) to another, in one step per panel. Each rank
 * works out from the two distributions which rectangles it sends to which ranks, and which ones it
 * receives.
 */
#ifndef DIST_TRANSFER_H
#define DIST_TRANSFER_H

#include "dist_spread.h"

#include <stddef.h>

/* The buffers of a step. There are two slots, because the data of one step moves while the data of
 * another is used. */
typedef struct dist_slot {
    void *packed, *staged; /* packed: rectangles to send; staged: received rectangles */
    tgl_dist_message *messages;
    void *group; /* handle of the transport for the messages; NULL: none are under way */
} dist_slot;

typedef struct dist_transfer {
    const dist_spread *from, *to;
    int64_t ld_from, ld_to; /* leading dimensions of this rank's parts in `from` and `to` */
    tgl_type type;
    size_t element; /* bytes of an element */
    bool adds; /* several ranks send a value for each element; the values are added to the target
                  in the order of the ranks */
    bool keeps_own; /* elements that a rank already has are in place and need not
                       be copied */
    bool at_once;   /* between dist_transfer_begin() and dist_transfer_finish(), no
                       product is computed with which the messages could overlap */
    bool gathers;   /* one all-gather of the transport brings the only panel: in `to` each rank has
                       the whole matrix, and in `from` each rank has the same number of its rows */
    bool stages; /* messages are received into slot.staged, because other ranks can write only into
                    memory of tgl_dist_transport.allocate */
    tgl_status sum; /* first failure of an addition since the caller has set it to TGL_OK. The
                       transfer goes on, so that no other rank waits for this one */
    size_t packed_bytes, staged_bytes; /* bytes of the buffers of a slot */
    dist_slot slot[2];
} dist_transfer;

/* Sets packed_bytes and staged_bytes to the maximum over steps 0 .. steps-1. */
void dist_transfer_measure(dist_transfer *transfer, int rank, int ranks, int64_t steps);

/* Starts to move the panel of a step. source: this rank's part in `from`. target: memory for its
 * part in `to`; NULL if the rank already has all elements of this part, and uses them where they
 * are. Elements that the rank has itself are copied to the target, unless `adds` or `keeps_own` is
 * set. */
tgl_status dist_transfer_begin(dist_transfer *transfer, const tgl_dist_transport *transport,
                               int64_t step, const void *source, void *target);

/* Waits for the transfer that dist_transfer_begin() started with the same arguments. Then unpacks
 * the received data into the target or, if `adds` is set, adds the values of all ranks to it. */
tgl_status dist_transfer_finish(dist_transfer *transfer, const tgl_dist_transport *transport,
                                int64_t step, const void *source, void *target);

#endif
