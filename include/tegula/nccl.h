/* SPDX-License-Identifier: Apache-2.0
 *
 * tegula/dist.h between GPUs. The functions are in libtegula_dist, which loads NCCL and the driver
 * at run time.
 *
 *     // In each process, with a GPU of its own. The id of rank 0 goes to the others: MPI_Bcast().
 *     unsigned char id[TGL_NCCL_ID_BYTES];
 *     if (rank == 0) tgl_dist_nccl_id(id);
 *     tgl_device_open("cuda:1", NULL, &dev);
 *     tgl_nccl_options options = {.size = sizeof options, .id = id, .rank = rank, .ranks = 2};
 *     tgl_dist_open_nccl(&options, dev, &dist);
 *
 * If all ranks are on one host, they move data with the copy engines of their GPUs, which write
 * into the memory of the other GPUs, so that communication occupies no SM. Otherwise NCCL moves all
 * data, also between GPUs of one host. If a product is too small to overlap with messages, NCCL's
 * all-gather, reduce-scatter or all-reduce is enqueued before or after it instead; NCCL then adds
 * in the type of C. The rule of NCCL for programs with several communicators holds: all ranks
 * enqueue their work in the same order.
 */
#ifndef TEGULA_NCCL_H
#define TEGULA_NCCL_H

#include "dist.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TGL_NCCL_ID_BYTES = 128 };

/* Which engine moves data. */
typedef enum tgl_nccl_engine {
    TGL_NCCL_ENGINE_AUTO = 0, /* copy engines if all ranks are processes of one host whose GPUs
                                 reach each other's memory, else NCCL */
    TGL_NCCL_ENGINE_NCCL = 1,
} tgl_nccl_engine;

typedef struct tgl_nccl_options {
    size_t size;             /* sizeof(tgl_nccl_options) */
    void *comm;              /* a caller's ncclComm_t, which is not closed, but is aborted after a
                                TGL_COMMUNICATION and never used again; NULL: a communicator is made
                                from `id` */
    const unsigned char *id; /* result of tgl_dist_nccl_id() on one rank, the same for all ranks;
                                NULL: `comm` is given */
    int rank, ranks;         /* this rank and the number of ranks, used with `id` */
    void *stream;            /* the stream of the products, a CUstream of the device's primary
                                context; NULL: the default stream */
    double timeout_s;        /* how long a rank waits for another one, and for its own work; 0: 300
                                seconds */
    tgl_nccl_engine engine;
    tgl_dist_machine machine; /* zeros: the defaults of the GPU */
} tgl_nccl_options;

/* id := a new unique id of NCCL, for one communicator: TGL_NCCL_ID_BYTES bytes. The process must
 * stay alive until the communicator is made: NCCL waits in a thread of it for the ranks. NULL: only
 * loads NCCL, so that a rank without it finds out before others wait for it. Returns TGL_OK;
 * TGL_UNSUPPORTED (no NCCL); TGL_COMMUNICATION. */
TGL_API tgl_status tgl_dist_nccl_id(unsigned char *id);

/* *dist := a communicator of GPUs, one for each rank. dev: a cuda device of the primary context,
 * which stays the caller's. Each rank is a process or, without copy engines, a thread. Runs of its
 * plans are asynchronous: they enqueue work in the stream, and tgl_dist_synchronize() waits for it
 * and reports what fails meanwhile. If messages go by copy engines, within a host, all ranks
 * together can capture a run into a CUDA graph. Before that, the plan must have run once with the
 * same choice of alpha being 0 or not, and beta being 0 or not, as in the captured run. If messages
 * go by NCCL, runs wait for messages and cannot be captured. Collective: if one rank fails, all
 * return its status; but if it fails before it can join NCCL's communicator (wrong arguments, no
 * driver, no NCCL), the others return TGL_COMMUNICATION after the timeout. Returns TGL_OK;
 * TGL_BAD_ARGUMENT (options; not a cuda device; two ranks have the same GPU); TGL_NO_DEVICE;
 * TGL_UNSUPPORTED (no NCCL, or an old one); TGL_NO_MEMORY; TGL_DRIVER; TGL_COMMUNICATION. */
TGL_API tgl_status tgl_dist_open_nccl(const tgl_nccl_options *options, tgl_device *dev,
                                      tgl_dist **dist);

#ifdef __cplusplus
}
#endif
#endif
