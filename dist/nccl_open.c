/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and closes the transport between GPUs. The ranks introduce themselves by an all-gather of
 * NCCL. If all are processes of one host, they then share memory (rendezvous.h) and map each
 * other's flags: words of device memory by which their GPUs wait for each other. The copy engines
 * of the GPUs then move the data. If a rank cannot do this, NCCL moves the data (transport_nccl.c).
 *
 * A rank that lacks host memory, a stream or an event introduces itself, too, and says so: all
 * ranks then return its status, and none waits for it. The state of the transport is therefore on
 * the stack until it is open. A rank that fails before, and cannot take part in the all-gather,
 * leaves the others waiting until the timeout.
 */
#include "dist_comm.h"
#include "dist_error.h"
#include "gpu_machine.h"
#include "tegula/nccl.h"
#include "transport_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A transport that is being opened, and the memory that it needs when it is open. */
typedef struct opening {
    nccl_transport t;
    nccl_transport *place; /* where `t` goes; NULL: no memory */
    tgl_dist *dist;        /* not filled in; NULL: no memory */
} opening;

/* ---- The device and the communicator --------------------------------------------------------- */

/* Retains the primary context of a GPU and makes it current. */
static tgl_status open_context(nccl_transport *t, int ordinal)
{
    gpu_driver *d = &t->driver;
    DIST_TRY(gpu_driver_open(d));
    DIST_TRY(gpu_driver_check(d, d->cuDeviceGet(&t->device, ordinal), "cuDeviceGet()"));
    DIST_TRY(gpu_driver_check(d, d->cuDevicePrimaryCtxRetain(&t->context, t->device),
                              "cuDevicePrimaryCtxRetain()"));
    return gpu_driver_check(d, d->cuCtxPushCurrent(t->context), "cuCtxPushCurrent()");
}

static tgl_status open_streams(nccl_transport *t)
{
    gpu_driver *d = &t->driver;
    /* the highest stream priority, because products wait for the messages in these streams */
    enum { HIGHEST = -5 };
    CUstream *const streams[] = {&t->sending, &t->rescuing};
    for (int i = 0; i < 2; i++)
        DIST_TRY(gpu_driver_check(
            d, d->cuStreamCreateWithPriority(streams[i], CU_STREAM_NON_BLOCKING, HIGHEST),
            "cuStreamCreateWithPriority()"));
    DIST_TRY(gpu_driver_check(d, d->cuEventCreate(&t->before, CU_EVENT_DISABLE_TIMING),
                              "cuEventCreate()"));
    for (int i = 0; i < NCCL_GROUPS; i++) {
        nccl_group *g = &t->groups[i];
        DIST_TRY(gpu_driver_check(d, d->cuEventCreate(&g->sent, CU_EVENT_DISABLE_TIMING),
                                  "cuEventCreate()"));
    }
    return TGL_OK;
}

/* Uses a communicator of the caller. Gets its rank and size, and checks that it is on GPU
 * `ordinal`. */
static tgl_status take_comm(nccl_transport *t, ncclComm_t comm, int ordinal)
{
    int device = -1;
    t->comm = comm;
    DIST_TRY(nccl_settle(t, t->nccl.ncclCommCount(comm, &t->ranks)));
    DIST_TRY(nccl_settle(t, t->nccl.ncclCommUserRank(comm, &t->rank)));
    DIST_TRY(nccl_settle(t, t->nccl.ncclCommCuDevice(comm, &device)));
    if (device == ordinal) return TGL_OK;
    return dist_fail(TGL_BAD_ARGUMENT, "the communicator is of GPU %d, and the device is cuda:%d",
                     device, ordinal);
}

static tgl_status make_comm(nccl_transport *t, const tgl_nccl_options *o)
{
    ncclUniqueId id;
    ncclConfig config = {.size = sizeof config,
                         .magic = NCCL_CONFIG_MAGIC,
                         .version = NCCL_CONFIG_VERSION,
                         .blocking = 0};
    t->rank = o->rank;
    t->ranks = o->ranks;
    memcpy(id.internal, o->id, sizeof id.internal);
    ncclResult_t result = t->nccl.ncclCommInitRankConfig(&t->comm, o->ranks, id, o->rank, &config);
    t->owns_comm = t->comm != NULL;
    result = nccl_finish(t, result);
    if (result != ncclInvalidUsage) return nccl_settle(t, result);
    nccl_lose(t);
    return dist_fail(TGL_BAD_ARGUMENT, "NCCL refuses the ranks: each needs a GPU of its own");
}

static tgl_status open_comm(nccl_transport *t, const tgl_nccl_options *o, int ordinal)
{
    DIST_TRY(nccl_library_open(&t->nccl));
    DIST_TRY(o->comm != NULL ? take_comm(t, o->comm, ordinal) : make_comm(t, o));
    const size_t bytes = NCCL_ROUND_BYTES * ((size_t)t->ranks + 1);
    gpu_driver *d = &t->driver;
    DIST_TRY(gpu_driver_check(d, d->cuMemHostAlloc((void **)&t->round_host, bytes, 0),
                              "cuMemHostAlloc()"));
    return gpu_driver_check(d, d->cuMemAlloc((CUdeviceptr *)&t->round_device, bytes),
                            "cuMemAlloc()");
}

/* Allocates the host memory of a transport with a known number of ranks. */
static tgl_status allocate(opening *o)
{
    nccl_transport *t = &o->t;
    const size_t ranks = (size_t)t->ranks, in_group = 2 * ranks;
    t->peers = calloc(ranks, sizeof *t->peers);
    t->room = malloc(NCCL_ROOM * ranks);
    t->received = malloc(sizeof *t->received * NCCL_GROUPS * in_group);
    for (size_t i = 0; i < NCCL_GROUPS && t->received != NULL; i++)
        t->groups[i].received = t->received + i * in_group;
    o->place = malloc(sizeof *o->place);
    o->dist = dist_reserve(t->ranks);
    if (t->peers != NULL && t->room != NULL && t->received != NULL && o->place != NULL &&
        o->dist != NULL)
        return TGL_OK;
    return dist_fail(TGL_NO_MEMORY, "no memory for a communicator of %d ranks", t->ranks);
}

/* Makes all that the transport needs besides the communicator and the buffers of agreements. */
static tgl_status make_parts(opening *o)
{
    DIST_TRY(allocate(o));
    return open_streams(&o->t);
}

/* ---- Introductions --------------------------------------------------------------------------- */

/* What each rank tells the other ranks when the transport is opened. */
typedef struct introduction {
    char host[40]; /* boot id of the Linux kernel, which identifies the host; empty: unknown */
    CUuuid gpu;
    char meeting[RENDEZVOUS_NAME]; /* name of the shared memory that rank 0 has made; empty: none */
    int has_flags;                 /* 0: the rank has no flags, or the caller wants NCCL only */
    CUipcMemHandle flags;
    int status; /* of make_parts() */
    char message[DIST_MESSAGE_SIZE];
} introduction;

static void read_host(char host[40])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file == NULL) return;
    if (fgets(host, 40, file) == NULL) host[0] = '\0';
    fclose(file);
}

/* Allocates this rank's flags, all 0. After a failure has_flags stays 0, and NCCL is used. */
static void make_flags(nccl_transport *t, introduction *own)
{
    /* Bytes of an allocation of the driver, which allocates multiples of 2 MiB. The flags get a
     * whole allocation, because an IPC handle gives other processes access to all of it. */
    enum { BYTES = 2 << 20 };
    gpu_driver *d = &t->driver;
    CUdeviceptr flags = NULL;
    if (nccl_flag_count(t) * sizeof *t->flags > BYTES ||
        d->cuMemAlloc(&flags, BYTES) != CUDA_SUCCESS)
        return;
    t->flags = (uint32_t *)flags;
    own->has_flags = d->cuMemsetD32Async(flags, 0, nccl_flag_count(t), t->sending) == 0 &&
                     d->cuIpcGetMemHandle(&own->flags, flags) == CUDA_SUCCESS;
}

static introduction introduce(nccl_transport *t, tgl_status status, bool uses_nccl)
{
    introduction own = {.status = (int)status};
    if (status != TGL_OK) snprintf(own.message, sizeof own.message, "%s", dist_error());
    t->driver.cuDeviceGetUuid(&own.gpu, t->device);
    read_host(own.host);
    if (uses_nccl || status != TGL_OK) return own;
    make_flags(t, &own);
    if (t->rank == 0 && t->ranks > 1) {
        t->meeting = rendezvous_make(t->ranks, t->timeout_s, own.meeting);
        if (t->meeting == NULL) own.meeting[0] = '\0';
    }
    return own;
}

/* Fails if a rank has failed, with its status. */
static tgl_status check_parts(const nccl_transport *t, const introduction *all)
{
    enum { PREFIX = 30 /* characters of the rank's number, at most */ };
    for (int rank = 0; rank < t->ranks; rank++)
        if (all[rank].status != TGL_OK)
            return dist_fail((tgl_status)all[rank].status, "rank %d: %.*s", rank,
                             DIST_MESSAGE_SIZE - PREFIX, all[rank].message);
    return TGL_OK;
}

static tgl_status check_gpus(const nccl_transport *t, const introduction *all)
{
    for (int i = 0; i < t->ranks; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(&all[i].gpu, &all[j].gpu, sizeof all[i].gpu) == 0)
                return dist_fail(TGL_BAD_ARGUMENT,
                                 "ranks %d and %d have the same GPU: each needs one of its own", j,
                                 i);
    return TGL_OK;
}

static bool has_several_hosts(const nccl_transport *t, const introduction *all)
{
    for (int rank = 1; rank < t->ranks; rank++)
        if (strcmp(all[rank].host, all[0].host) != 0) return true;
    return false;
}

/* Makes, for each rank, the table of the blocks of its pool that this rank will map. A run makes a
 * table longer only if the pool has had more than BLOCKS blocks. */
static bool make_tables(nccl_transport *t)
{
    enum { BLOCKS = 512 };
    for (int rank = 0; rank < t->ranks; rank++) {
        nccl_peer *peer = &t->peers[rank];
        peer->mapped = calloc(BLOCKS, sizeof *peer->mapped);
        if (peer->mapped == NULL) return false;
        peer->room = BLOCKS;
    }
    return true;
}

/* Whether this rank can use the copy engines: all ranks are on one host, and this rank has mapped
 * the shared memory and the flags of all ranks. */
static bool meet(nccl_transport *t, const introduction *all)
{
    if (t->has_several_hosts || all[0].host[0] == '\0') return false;
    for (int rank = 0; rank < t->ranks; rank++)
        if (!all[rank].has_flags) return false;
    if (!make_tables(t)) return false;
    if (t->rank != 0) t->meeting = rendezvous_join(t->rank, t->ranks, t->timeout_s, all[0].meeting);
    if (t->meeting == NULL) return false;
    for (int rank = 0; rank < t->ranks; rank++) {
        CUdeviceptr flags = (CUdeviceptr)t->flags;
        if (rank != t->rank &&
            t->driver.cuIpcOpenMemHandle(&flags, all[rank].flags,
                                         CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS)
            return false;
        t->peers[rank].flags = (uint32_t *)flags;
    }
    return true;
}

/* Chooses copy engines if all ranks can use them, else NCCL. */
static tgl_status choose_engine(nccl_transport *t, bool can_meet)
{
    const int mine = can_meet;
    bool all_can = true;
    const int *all = t->room;
    const tgl_status status = nccl_gather(t, &mine, t->room, sizeof mine);
    for (int rank = 0; rank < t->ranks; rank++)
        all_can = all_can && all[rank];
    if (status == TGL_OK && all_can) return TGL_OK;
    rendezvous_close(t->meeting);
    t->meeting = NULL;
    return status;
}

/* parts: the status of make_parts(). */
static tgl_status introduce_all(nccl_transport *t, tgl_status parts, bool uses_nccl)
{
    _Static_assert(sizeof(introduction) <= NCCL_ROUND_BYTES, "introductions take one round");
    const introduction own = introduce(t, parts, uses_nccl);
    const introduction *all = (const introduction *)t->round_host;
    tgl_status status = nccl_gather(t, &own, NULL, sizeof own);
    if (status == TGL_OK) status = check_parts(t, all);
    if (status == TGL_OK) status = check_gpus(t, all);
    if (status == TGL_OK) {
        t->has_several_hosts = has_several_hosts(t, all);
        status = choose_engine(t, meet(t, all));
    }
    if (own.meeting[0] != '\0') rendezvous_unlink(own.meeting);
    if (status != TGL_OK) { /* so that close_memory() does not wait for the other ranks */
        rendezvous_close(t->meeting);
        t->meeting = NULL;
    }
    return status;
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void unmap_peers(nccl_transport *t)
{
    for (int rank = 0; t->peers != NULL && rank < t->ranks; rank++) {
        nccl_peer *peer = &t->peers[rank];
        for (int i = 0; i < peer->room; i++)
            if (peer->mapped[i] != NULL) t->driver.cuIpcCloseMemHandle(peer->mapped[i]);
        if (peer->flags != NULL && rank != t->rank)
            t->driver.cuIpcCloseMemHandle((CUdeviceptr)peer->flags);
        free(peer->mapped);
    }
}

/* Frees memory that other ranks have mapped, after they have unmapped it. If a rank was lost, it
 * may never unmap the memory: the memory is then not freed. */
static void close_memory(nccl_transport *t)
{
    const char mine = 0;
    unmap_peers(t);
    const bool is_free =
        !t->is_lost && (t->meeting == NULL ||
                        rendezvous_gather(t->meeting, &mine, t->room, sizeof mine) == TGL_OK);
    gpu_pool_free(&t->pool, !is_free);
    if (is_free && t->flags != NULL) t->driver.cuMemFree((CUdeviceptr)t->flags);
    if (t->round_device != NULL) t->driver.cuMemFree((CUdeviceptr)t->round_device);
    if (t->round_host != NULL) t->driver.cuMemFreeHost(t->round_host);
}

static void close_streams(nccl_transport *t)
{
    CUstream const streams[] = {t->sending, t->rescuing};
    for (int i = 0; i < NCCL_GROUPS; i++)
        if (t->groups[i].sent != NULL) t->driver.cuEventDestroy(t->groups[i].sent);
    if (t->before != NULL) t->driver.cuEventDestroy(t->before);
    for (int i = 0; i < 2; i++)
        if (streams[i] != NULL) t->driver.cuStreamDestroy(streams[i]);
}

/* Closes a transport, even one that was not opened completely, but does not free *t. */
static void close_parts(nccl_transport *t)
{
    CUcontext popped;
    if (t->context != NULL && t->driver.cuCtxPushCurrent(t->context) == CUDA_SUCCESS) {
        nccl_wait_for_work(t);
        gpu_sums_free(&t->sums);
        close_memory(t);
        if (t->collecting != NULL && t->collecting != t->comm)
            t->nccl.ncclCommDestroy(t->collecting);
        if (t->owns_comm && t->comm != NULL) t->nccl.ncclCommDestroy(t->comm);
        close_streams(t);
        t->driver.cuCtxPopCurrent(&popped);
        t->driver.cuDevicePrimaryCtxRelease(t->device);
    }
    rendezvous_close(t->meeting);
    free(t->peers);
    free(t->room);
    free(t->received);
}

void nccl_transport_close(nccl_transport *t)
{
    close_parts(t);
    free(t);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* The N of a device named "cuda:N"; -1: the device has another name. */
static int ordinal_of(const tgl_device *dev)
{
    int ordinal = -1, end = 0;
    const char *name = dev != NULL ? tgl_device_name(dev) : "";
    if (sscanf(name, "cuda:%d%n", &ordinal, &end) != 1 || name[end] != '\0') return -1;
    return ordinal;
}

static const char *argument_error(const tgl_nccl_options *o, const tgl_device *dev, tgl_dist **dist)
{
    if (dist == NULL || dev == NULL) return "the device or dist is NULL";
    if (ordinal_of(dev) < 0) return "the device is not a cuda device";
    if (o == NULL || o->size < sizeof *o) return "the options are NULL, or their size is wrong";
    if (!(o->timeout_s >= 0)) return "the timeout is negative";
    if (o->engine != TGL_NCCL_ENGINE_AUTO && o->engine != TGL_NCCL_ENGINE_NCCL)
        return "the engine is not of its enum";
    if ((o->comm == NULL) == (o->id == NULL)) return "give a communicator or an id";
    if (o->id != NULL && (o->ranks < 1 || o->rank < 0 || o->rank >= o->ranks))
        return "the rank is outside the communicator";
    return NULL;
}

/* Opens the transport. The context is current only during the call. After a failure the caller
 * calls close_parts(). */
static tgl_status open_transport(opening *made, const tgl_nccl_options *o, int ordinal)
{
    nccl_transport *t = &made->t;
    DIST_TRY(open_context(t, ordinal));
    tgl_status status = open_comm(t, o, ordinal);
    if (status == TGL_OK)
        status = introduce_all(t, make_parts(made), o->engine == TGL_NCCL_ENGINE_NCCL);
    CUcontext popped;
    t->driver.cuCtxPopCurrent(&popped);
    return status;
}

tgl_status tgl_dist_open_nccl(const tgl_nccl_options *options, tgl_device *dev, tgl_dist **dist)
{
    const char *error = argument_error(options, dev, dist);
    if (dist != NULL) *dist = NULL;
    if (error != NULL) return dist_fail(TGL_BAD_ARGUMENT, "%s", error);
    opening made = {.t = {.stream = options->stream,
                          .timeout_s = options->timeout_s > 0 ? options->timeout_s : 300,
                          .sums = {.dev = dev, .stream = options->stream}}};
    const tgl_status status = open_transport(&made, options, ordinal_of(dev));
    if (status != TGL_OK) {
        close_parts(&made.t);
        free(made.place);
        dist_discard(made.dist);
        return status;
    }
    nccl_transport *t = made.place;
    *t = made.t;
    t->pool.driver = &t->driver;
    const tgl_dist_transport table = nccl_transport_table(t);
    const tgl_dist_machine machine = gpu_machine_of(dev, t->has_several_hosts, &options->machine);
    dist_fill(made.dist, &table, dev, &machine);
    *dist = made.dist;
    return TGL_OK;
}

tgl_status tgl_dist_nccl_id(unsigned char *id)
{
    nccl_library nccl;
    ncclUniqueId made;
    DIST_TRY(nccl_library_open(&nccl));
    if (id == NULL) return TGL_OK;
    const ncclResult_t result = nccl.ncclGetUniqueId(&made);
    if (result != ncclSuccess)
        return dist_fail(TGL_COMMUNICATION, "ncclGetUniqueId() failed: %s",
                         nccl.ncclGetErrorString(result));
    memcpy(id, made.internal, TGL_NCCL_ID_BYTES);
    return TGL_OK;
}
