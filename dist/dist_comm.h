/* SPDX-License-Identifier: Apache-2.0
 *
 * The communicator, and agreements between its ranks. In an agreement, each rank tells the others a
 * few bytes by an all-gather, so that all ranks come to the same decision.
 */
#ifndef DIST_COMM_H
#define DIST_COMM_H

#include "tegula/dist.h"

#include <stdbool.h>

struct tgl_dist {
    tgl_dist_transport transport;
    tgl_device *dev;
    tgl_dist_machine machine; /* speeds that the planner assumes, with defaults filled in */
    bool is_broken;           /* the transport has failed: the communicator can only be closed */
    int64_t plans;            /* number of plans made so far, which is the same on all ranks */
    void *room;               /* DIST_ROOM bytes per rank, for the results of dist_gather() */
};

/* Bytes per rank of the buffer for agreements. It is allocated with the communicator, so that a
 * rank without free memory can still tell the others that it has none. */
enum { DIST_ROOM = 1024 };

/* dist_reserve() allocates the memory of a communicator, and returns NULL if there is none.
 * dist_fill() makes it a communicator, which owns the transport. dist_discard() frees the memory
 * but does not close the transport; NULL is accepted. */
tgl_dist *dist_reserve(int ranks);
void dist_fill(tgl_dist *reserved, const tgl_dist_transport *transport, tgl_device *dev,
               const tgl_dist_machine *machine);
void dist_discard(tgl_dist *dist);

/* A copy of *given with defaults for the members that are 0. given: NULL for all defaults. */
tgl_dist_machine dist_machine_of(const tgl_dist_machine *given);

/* Collective: if a rank's status is not TGL_OK, returns the status of the first such rank and sets
 * the error message to its message. */
tgl_status dist_agree(tgl_dist *dist, tgl_status status);

/* Collective: an all-gather of at most DIST_ROOM bytes per rank. *all := the bytes of all ranks, in
 * the order of the ranks. They are in dist->room, valid until the next agreement. */
tgl_status dist_gather(tgl_dist *dist, const void *mine, size_t bytes, const void **all);

/* What a rank tells the other ranks at the beginning of a collective function. */
typedef struct dist_call {
    int64_t plan;         /* number of the plan that the rank runs; 0: the rank creates a plan */
    int64_t status;       /* a tgl_status, the result of checking the rank's own arguments */
    uint64_t alpha, beta; /* bits of the doubles; 0 while a plan is created */
} dist_call;

/* Collective: the agreement with which functions that create or run plans begin, so that ranks
 * notice if they call different functions. Returns TGL_OK; TGL_BAD_ARGUMENT if the ranks call
 * different functions or run different plans; the status of the first rank whose status is not
 * TGL_OK; TGL_BAD_SCALAR if alpha or beta differs between ranks; the failure of the transport, such
 * as TGL_COMMUNICATION if a rank was lost. After a failure of the transport the communicator can
 * only be closed; after the other failures it can still be used. */
tgl_status dist_begin_call(tgl_dist *dist, const dist_call *mine);

/* Sends and receives a group of messages, and waits for all of them. */
tgl_status dist_exchange(tgl_dist *dist, const tgl_dist_message *messages, int count);

/* Marks the communicator as broken if `status`, the result of a transport operation, is a failure.
 * Returns `status`. */
tgl_status dist_check_link(tgl_dist *dist, tgl_status status);

#endif
