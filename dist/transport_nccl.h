/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a rank of the transport between GPUs.
 */
#ifndef TRANSPORT_NCCL_H
#define TRANSPORT_NCCL_H

#include "gpu_add.h"
#include "gpu_pool.h"
#include "nccl_library.h"

#include <stdbool.h>

enum {
    NCCL_ROUND_BYTES = 1024,
    NCCL_GROUPS = 8, /* at a time: A, B and C in two steps */
};

/* A message that comes by a copy engine. */
typedef struct nccl_received {
    int rank, slot;
} nccl_received;

typedef struct nccl_group {
    bool is_used;
    CUevent sent;
    int count, room;
    nccl_received *received;
} nccl_group;

/* Another process of the host. */
typedef struct nccl_peer {
    uint32_t *flags;     /* its flags, mapped here; of this rank: its own */
    CUdeviceptr *mapped; /* by the number of the block; NULL: not mapped yet */
    int room;
} nccl_peer;

typedef struct nccl_transport {
    gpu_driver driver;
    nccl_library nccl;
    CUdevice device;
    CUcontext context; /* the primary context; NULL: not retained */
    int rank, ranks;
    double timeout_s;
    ncclComm_t comm;
    bool owns_comm, is_lost;
    bool has_several_hosts;

    CUstream stream; /* of the products */
    CUstream sending, rescuing;
    CUevent before; /* the work in `stream` at begin() */
    nccl_group groups[NCCL_GROUPS];

    char *round_host, *round_device; /* of a gather by NCCL */
    rendezvous *meeting;             /* NULL: NCCL moves the data */
    uint32_t *flags;                 /* of this rank; NULL: none */
    nccl_peer *peers;                /* [ranks] */
    gpu_pool pool;
    gpu_sums sums;
} nccl_transport;

static inline size_t nccl_flag_count(const nccl_transport *t)
{
    return (size_t)t->ranks * RENDEZVOUS_SLOTS * 2;
}

tgl_dist_transport nccl_transport_table(nccl_transport *t);

/* With the context current: an all-gather by NCCL; the result of a call of NCCL that may go on in
 * the background, as NCCL says it and as a status; gives up what waits for a lost rank. */
tgl_status nccl_gather(nccl_transport *t, const void *mine, void *all, size_t bytes);
ncclResult_t nccl_finish(nccl_transport *t, ncclResult_t result);
tgl_status nccl_settle(nccl_transport *t, ncclResult_t result);
void nccl_lose(nccl_transport *t);

/* Waits for all streams, or gives up after the timeout. */
void nccl_wait_for_work(nccl_transport *t);

/* nccl_open.c. Takes also a transport that is not complete. */
void nccl_transport_close(nccl_transport *t);

#endif
