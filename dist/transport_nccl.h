/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a rank of the transport between GPUs (transport_nccl.c). Flags are words of device
 * memory by which the GPUs of one host wait for each other.
 */
#ifndef TRANSPORT_NCCL_H
#define TRANSPORT_NCCL_H

#include "gpu_add.h"
#include "gpu_pool.h"
#include "nccl_library.h"

#include <stdbool.h>

enum {
    NCCL_ROUND_BYTES = 1024,
    NCCL_ROOM = 256, /* bytes per rank of the buffer for agreements of the transport itself */
    NCCL_GROUPS = 8, /* maximum number of groups of messages that are under way at the same time.
                        A, B and C in two steps need six */
};

/* A message that a copy engine of another rank writes. slot: that of its announcement
 * (rendezvous_post()). */
typedef struct nccl_received {
    int rank, slot;
} nccl_received;

typedef struct nccl_group {
    bool is_used;
    CUevent sent; /* recorded in `sending` after the group's messages */
    int count;
    nccl_received *received; /* [2 * ranks] */
} nccl_group;

/* A rank of the same host, as this process sees it. */
typedef struct nccl_peer {
    uint32_t *flags;     /* its flags, mapped into this process */
    CUdeviceptr *mapped; /* mapped blocks of that rank's pool, by number; NULL: not mapped yet */
    int room;
} nccl_peer;

/* The state. All host memory that it needs for a number of ranks is allocated before the first
 * agreement, in which a rank without memory says so: later it could no longer take part in an
 * operation for which the others wait. */
typedef struct nccl_transport {
    gpu_driver driver;
    nccl_library nccl;
    CUdevice device;
    CUcontext context; /* primary context of the GPU; NULL: not retained */
    int rank, ranks;
    double timeout_s;
    ncclComm_t comm;
    /* for nccl_collect(): a communicator whose calls block until their kernel is enqueued, or the
     * caller's comm; NULL: not made yet */
    ncclComm_t collecting;
    bool owns_comm, is_lost;
    bool has_several_hosts;

    CUstream stream; /* stream of the products */
    /* sending: for messages. rescuing: for setting flags after a rank was lost. NULL, while
     * opening: the stream could not be made, and the default stream serves agreements. */
    CUstream sending, rescuing;
    CUevent before; /* recorded in `stream` at begin(); `sending` waits for it */
    nccl_group groups[NCCL_GROUPS];

    /* buffers of gather_round(): NCCL_ROUND_BYTES for each rank, then as many for this rank's own
     * data */
    char *round_host, *round_device;
    rendezvous *meeting;     /* shared memory of the ranks; NULL: NCCL moves the data */
    uint32_t *flags;         /* this rank's flags; NULL: none */
    nccl_peer *peers;        /* [ranks] */
    nccl_received *received; /* of all groups */
    void *room;              /* NCCL_ROOM bytes per rank; NULL: no memory, while opening */
    gpu_pool pool;
    gpu_sums sums;
} nccl_transport;

static inline size_t nccl_flag_count(const nccl_transport *t)
{
    return (size_t)t->ranks * RENDEZVOUS_SLOTS * 2;
}

tgl_dist_transport nccl_transport_table(nccl_transport *t);

/* These functions need the context to be current.
 *   nccl_gather  an all-gather by NCCL; all[r*bytes]: the bytes of rank r. all NULL: those of the
 *                last round stay in round_host
 *   nccl_finish  waits for a call that returned ncclInProgress; returns NCCL's result
 *   nccl_settle  as nccl_finish, but calls nccl_lose() after a failure, and returns a status
 *   nccl_lose    after a rank was lost: ends all work on this GPU that waits for the rank
 *   nccl_collect tgl_dist_transport.collect() (nccl_collect.c) */
tgl_status nccl_gather(nccl_transport *t, const void *mine, void *all, size_t bytes);
ncclResult_t nccl_finish(nccl_transport *t, ncclResult_t result);
tgl_status nccl_settle(nccl_transport *t, ncclResult_t result);
void nccl_lose(nccl_transport *t);
tgl_status nccl_collect(nccl_transport *t, tgl_dist_collective operation, tgl_type type,
                        const void *from, void *to, size_t count);

/* Waits until the streams of the products and of the messages are idle. Gives up after a failure or
 * the timeout. */
void nccl_wait_for_work(nccl_transport *t);

/* nccl_open.c: closes a transport. */
void nccl_transport_close(nccl_transport *t);

#endif
