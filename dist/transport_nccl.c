/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport between GPUs.
 *
 * Between the processes of one host, the copy engine of the sender writes into the memory of the
 * receiver. The host threads only exchange the addresses (rendezvous.h): a receiver announces its
 * buffer in a slot, one of RENDEZVOUS_SLOTS for each pair of ranks. The GPUs wait for each other by
 * flags: words of device memory that streams write and wait for. Each slot has two, `ready` and
 * `arrived`.
 *
 *     receiver                                       sender
 *     announces the buffer                           takes the announcement
 *     ready := 1, when its stream is at begin()  --> waits for ready == 1, ready := 0
 *                                                    copies
 *     waits for arrived == 1, arrived := 0       <-- arrived := 1
 *
 * Each wait resets its flag to 0, so that a run that is captured in a CUDA graph can be repeated.
 *
 * Between hosts, or if a rank cannot map the memory of another, NCCL sends and receives.
 */
#include "transport_nccl.h"

#include "dist_error.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPU_TRY(t, call) DIST_TRY(gpu_driver_check(&(t)->driver, (t)->driver.call, #call))

/* ---- The context ----------------------------------------------------------------------------- */

static tgl_status enter(nccl_transport *t)
{
    return gpu_driver_check(&t->driver, t->driver.cuCtxPushCurrent(t->context),
                            "cuCtxPushCurrent()");
}

static tgl_status leave(nccl_transport *t, tgl_status status)
{
    CUcontext popped;
    t->driver.cuCtxPopCurrent(&popped);
    return status;
}

/* ---- Failures -------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool is_idle(nccl_transport *t)
{
    return t->driver.cuStreamQuery(t->stream) != CUDA_ERROR_NOT_READY &&
           t->driver.cuStreamQuery(t->sending) != CUDA_ERROR_NOT_READY;
}

/* After a rank was lost: ends all work on this GPU that waits for it. ncclCommAbort() ends NCCL's
 * kernels. A stream continues when the flag for which it waits is 1; as it may then wait for
 * another flag, all flags are set again and again until the streams are idle, at most SECONDS. */
void nccl_lose(nccl_transport *t)
{
    enum { SECONDS = 10 };
    if (t->is_lost) return;
    t->is_lost = true;
    if (t->meeting != NULL)
        rendezvous_give_up(t->meeting); /* first, so that no rank uses the invalid data with which
                                           the streams continue */
    if (t->collecting != NULL && t->collecting != t->comm) t->nccl.ncclCommAbort(t->collecting);
    if (t->comm != NULL) t->nccl.ncclCommAbort(t->comm);
    t->comm = t->collecting = NULL;
    const double deadline = now() + SECONDS;
    while (t->flags != NULL && !is_idle(t) && now() < deadline) {
        t->driver.cuMemsetD32Async((CUdeviceptr)t->flags, 1, nccl_flag_count(t), t->rescuing);
        sched_yield();
    }
}

/* Leaves the context after an operation of a run. After a failure this rank takes no part in later
 * operations (nccl_lose()). */
static tgl_status finish(nccl_transport *t, tgl_status status)
{
    if (status != TGL_OK) nccl_lose(t);
    return leave(t, status);
}

static tgl_status lose(nccl_transport *t, const char *why)
{
    nccl_lose(t);
    return dist_fail(TGL_COMMUNICATION, "%s; the communicator can only be closed", why);
}

ncclResult_t nccl_finish(nccl_transport *t, ncclResult_t result)
{
    const double deadline = now() + t->timeout_s;
    while (result == ncclInProgress && now() < deadline && t->comm != NULL) {
        sched_yield();
        if (t->nccl.ncclCommGetAsyncError(t->comm, &result) != ncclSuccess)
            result = ncclRemoteError;
    }
    return result;
}

tgl_status nccl_settle(nccl_transport *t, ncclResult_t result)
{
    result = nccl_finish(t, result);
    if (result == ncclSuccess) return TGL_OK;
    return lose(t, result == ncclInProgress ? "a rank did not answer within the timeout"
                                            : t->nccl.ncclGetErrorString(result));
}

/* The error that NCCL reports for the communicators; ncclSuccess: none. */
static ncclResult_t nccl_error(nccl_transport *t)
{
    ncclComm_t const comms[] = {t->comm, t->collecting};
    for (int i = 0; i < 2; i++) {
        ncclResult_t error = ncclSuccess;
        if (comms[i] != NULL && t->nccl.ncclCommGetAsyncError(comms[i], &error) == ncclSuccess &&
            error != ncclSuccess && error != ncclInProgress)
            return error;
    }
    return ncclSuccess;
}

/* Waits until a stream is idle. Fails after the timeout, after an error of NCCL, and if a rank has
 * given up. */
static tgl_status wait_for_stream(nccl_transport *t, CUstream stream)
{
    const double deadline = now() + t->timeout_s;
    for (;;) {
        const CUresult result = t->driver.cuStreamQuery(stream);
        const tgl_status met = t->meeting != NULL ? rendezvous_check(t->meeting) : TGL_OK;
        if (met != TGL_OK) {
            nccl_lose(t);
            return met;
        }
        if (result != CUDA_ERROR_NOT_READY)
            return gpu_driver_check(&t->driver, result, "cuStreamQuery()");
        const ncclResult_t error = nccl_error(t);
        if (error != ncclSuccess) return lose(t, t->nccl.ncclGetErrorString(error));
        if (now() > deadline) return lose(t, "a rank did not answer within the timeout");
        sched_yield();
    }
}

void nccl_wait_for_work(nccl_transport *t)
{
    CUstream const streams[] = {t->stream, t->sending};
    for (int i = 0; i < 2 && !t->is_lost; i++)
        (void)wait_for_stream(t, streams[i]);
}

/* ---- Agreements ------------------------------------------------------------------------------ */

/* One round of an all-gather of at most NCCL_ROUND_BYTES per rank, through device memory. stride:
 * bytes from rank to rank in `all`. */
static tgl_status gather_round(nccl_transport *t, const char *mine, char *all, size_t stride,
                               size_t bytes)
{
    const size_t total = bytes * (size_t)t->ranks;
    char *own = t->round_device + NCCL_ROUND_BYTES * (size_t)t->ranks;
    memcpy(t->round_host, mine, bytes);
    GPU_TRY(t, cuMemcpyHtoDAsync(own, t->round_host, bytes, t->sending));
    DIST_TRY(nccl_settle(
        t, t->nccl.ncclAllGather(own, t->round_device, bytes, ncclChar, t->comm, t->sending)));
    DIST_TRY(wait_for_stream(t, t->sending));
    GPU_TRY(t, cuMemcpyDtoHAsync(t->round_host, t->round_device, total, t->sending));
    DIST_TRY(wait_for_stream(t, t->sending));
    for (int rank = 0; rank < t->ranks && all != NULL; rank++)
        memcpy(all + (size_t)rank * stride, t->round_host + (size_t)rank * bytes, bytes);
    return TGL_OK;
}

tgl_status nccl_gather(nccl_transport *t, const void *mine, void *all, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += NCCL_ROUND_BYTES) {
        const size_t count = bytes - at < NCCL_ROUND_BYTES ? bytes - at : NCCL_ROUND_BYTES;
        char *to = all != NULL ? (char *)all + at : NULL;
        DIST_TRY(gather_round(t, (const char *)mine + at, to, bytes, count));
    }
    return TGL_OK;
}

static tgl_status transport_gather(void *state, const void *mine, void *all, size_t bytes)
{
    nccl_transport *t = state;
    DIST_TRY(enter(t));
    return finish(t, t->meeting != NULL ? rendezvous_gather(t->meeting, mine, all, bytes)
                                        : nccl_gather(t, mine, all, bytes));
}

/* ---- Copy engines ---------------------------------------------------------------------------- */

/* The address of a flag among the flags of one rank: for each other rank and each slot there is one
 * `ready` (arrived = false) and one `arrived`. */
static uint32_t *flag(uint32_t *flags, int rank, int slot, bool arrived)
{
    return flags + ((size_t)rank * RENDEZVOUS_SLOTS + (size_t)slot) * 2 + (arrived ? 1 : 0);
}

static tgl_status raise_flag(nccl_transport *t, CUstream stream, int rank, int slot, bool arrived)
{
    GPU_TRY(t,
            cuStreamWriteValue32(stream, flag(t->peers[rank].flags, t->rank, slot, arrived), 1, 0));
    return TGL_OK;
}

static tgl_status await_flag(nccl_transport *t, CUstream stream, int rank, int slot, bool arrived)
{
    uint32_t *own = flag(t->flags, rank, slot, arrived);
    CUmemoryOperation two[2] = {{.kind = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                 .address = own,
                                 .value = 1,
                                 .flags = CU_STREAM_WAIT_VALUE_EQ},
                                {.kind = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = own}};
    GPU_TRY(t, cuStreamBatchMemOp(stream, 2, two, 0));
    return TGL_OK;
}

/* *at := address in this process of a receive buffer of another rank. Maps the block that contains
 * the buffer at its first use. */
static tgl_status map_buffer(nccl_transport *t, int rank, const rendezvous_buffer *buffer,
                             char **at)
{
    nccl_peer *peer = &t->peers[rank];
    const int block = (int)buffer->block;
    if (block >= peer->room) {
        const int room = 2 * block + 16;
        CUdeviceptr *mapped = realloc(peer->mapped, sizeof *mapped * (size_t)room);
        if (mapped == NULL) return dist_fail(TGL_NO_MEMORY, "no memory for %d mappings", room);
        for (int i = peer->room; i < room; i++)
            mapped[i] = NULL;
        peer->mapped = mapped;
        peer->room = room;
    }
    if (peer->mapped[block] == NULL)
        GPU_TRY(t, cuIpcOpenMemHandle(&peer->mapped[block], buffer->handle,
                                      CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    *at = (char *)peer->mapped[block] + buffer->offset;
    return TGL_OK;
}

/* Announces a receive buffer. It is ready when `stream` gets there. */
static tgl_status announce(nccl_transport *t, const tgl_dist_message *m, nccl_group *g,
                           CUstream stream)
{
    rendezvous_buffer buffer;
    int slot;
    if (!gpu_pool_describe(&t->pool, m->receive, m->bytes, &buffer))
        return dist_fail(TGL_DRIVER, "a receive buffer cannot be mapped by other processes");
    DIST_TRY(rendezvous_post(t->meeting, m->rank, &buffer, &slot));
    g->received[g->count++] = (nccl_received){m->rank, slot};
    return raise_flag(t, stream, m->rank, slot, false);
}

static tgl_status send(nccl_transport *t, const tgl_dist_message *m, CUstream stream)
{
    rendezvous_buffer buffer;
    char *target = NULL;
    int slot;
    DIST_TRY(rendezvous_take(t->meeting, m->rank, &buffer, &slot));
    if (buffer.bytes != m->bytes)
        return dist_fail(TGL_COMMUNICATION, "rank %d expects %llu bytes, and %zu are sent", m->rank,
                         (unsigned long long)buffer.bytes, m->bytes);
    DIST_TRY(map_buffer(t, m->rank, &buffer, &target));
    DIST_TRY(await_flag(t, stream, m->rank, slot, false));
    GPU_TRY(t, cuMemcpyDtoDAsync(target, (CUdeviceptr)m->send, m->bytes, stream));
    return raise_flag(t, stream, m->rank, slot, true);
}

/* Announces all receive buffers, then sends, in `stream`, by copy engines. All announcements come
 * before the first wait, on the host and on the GPU: otherwise two ranks could wait for each other.
 * begin() uses the stream `sending`: in the stream of the products each flag would delay the next
 * product (docs/distributed.md). */
static tgl_status begin_copies(nccl_transport *t, const tgl_dist_message *messages, int count,
                               nccl_group *g, CUstream stream)
{
    for (int i = 0; i < count; i++)
        if (messages[i].receive != NULL) DIST_TRY(announce(t, &messages[i], g, stream));
    for (int i = 0; i < count; i++)
        if (messages[i].send != NULL) DIST_TRY(send(t, &messages[i], stream));
    return TGL_OK;
}

static tgl_status await_copies(nccl_transport *t, const nccl_group *g)
{
    for (int i = 0; i < g->count; i++)
        DIST_TRY(await_flag(t, t->stream, g->received[i].rank, g->received[i].slot, true));
    return TGL_OK;
}

/* ---- NCCL ------------------------------------------------------------------------------------ */

static tgl_status begin_nccl(nccl_transport *t, const tgl_dist_message *messages, int count,
                             CUstream stream)
{
    DIST_TRY(nccl_settle(t, t->nccl.ncclGroupStart()));
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < count; i++) {
        const tgl_dist_message *m = &messages[i];
        const ncclResult_t one =
            m->send != NULL
                ? t->nccl.ncclSend(m->send, m->bytes, ncclChar, m->rank, t->comm, stream)
                : t->nccl.ncclRecv(m->receive, m->bytes, ncclChar, m->rank, t->comm, stream);
        if (one != ncclSuccess && one != ncclInProgress) result = one;
    }
    const ncclResult_t end = t->nccl.ncclGroupEnd();
    return nccl_settle(t, result != ncclSuccess ? result : end);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Finds an unused group for `count` messages. */
static tgl_status take_group(nccl_transport *t, int count, nccl_group **taken)
{
    nccl_group *g = t->groups;
    while (g < t->groups + NCCL_GROUPS && g->is_used)
        g++;
    if (g == t->groups + NCCL_GROUPS || count > 2 * t->ranks)
        return dist_fail(TGL_NO_MEMORY, "more than %d groups of messages, or %d messages in one",
                         NCCL_GROUPS, 2 * t->ranks);
    g->count = 0;
    g->is_used = true;
    *taken = g;
    return TGL_OK;
}

static tgl_status begin(nccl_transport *t, const tgl_dist_message *messages, int count,
                        void **begun)
{
    nccl_group *g = NULL;
    DIST_TRY(take_group(t, count, &g));
    GPU_TRY(t, cuEventRecord(t->before, t->stream));
    GPU_TRY(t, cuStreamWaitEvent(t->sending, t->before, 0));
    DIST_TRY(t->meeting != NULL ? begin_copies(t, messages, count, g, t->sending)
                                : begin_nccl(t, messages, count, t->sending));
    GPU_TRY(t, cuEventRecord(g->sent, t->sending));
    *begun = g;
    return TGL_OK;
}

static tgl_status transport_begin(void *state, const tgl_dist_message *messages, int count,
                                  void **begun)
{
    nccl_transport *t = state;
    DIST_TRY(enter(t));
    return finish(t, begin(t, messages, count, begun));
}

static tgl_status wait(nccl_transport *t, nccl_group *g)
{
    DIST_TRY(await_copies(t, g));
    GPU_TRY(t, cuStreamWaitEvent(t->stream, g->sent, 0));
    g->is_used = false;
    return TGL_OK;
}

static tgl_status transport_wait(void *state, void *group)
{
    nccl_transport *t = state;
    DIST_TRY(enter(t));
    return finish(t, wait(t, group));
}

/* Sends, receives and waits in the stream of the products. There is no product with which the
 * messages could overlap, and events between two streams would take time. */
static tgl_status exchange(nccl_transport *t, const tgl_dist_message *messages, int count)
{
    nccl_group *g = NULL;
    if (t->meeting == NULL) return begin_nccl(t, messages, count, t->stream);
    DIST_TRY(take_group(t, count, &g));
    DIST_TRY(begin_copies(t, messages, count, g, t->stream));
    g->is_used = false;
    return await_copies(t, g);
}

static tgl_status transport_exchange(void *state, const tgl_dist_message *messages, int count)
{
    nccl_transport *t = state;
    DIST_TRY(enter(t));
    return finish(t, exchange(t, messages, count));
}

static tgl_status transport_collect(void *state, tgl_dist_collective operation, tgl_type type,
                                    const void *from, void *to, size_t count)
{
    nccl_transport *t = state;
    DIST_TRY(enter(t));
    return finish(t, nccl_collect(t, operation, type, from, to, count));
}

static void transport_set_stream(void *state, void *stream)
{
    nccl_transport *t = state;
    t->stream = stream;
    t->sums.stream = stream;
}

static tgl_status transport_synchronize(void *state)
{
    nccl_transport *t = state;
    int capture = 0;
    DIST_TRY(enter(t));
    tgl_status status = gpu_driver_check(
        &t->driver, t->driver.cuStreamIsCapturing(t->stream, &capture), "cuStreamIsCapturing()");
    if (status == TGL_OK && capture != 0)
        status = dist_fail(TGL_UNSUPPORTED, "the stream is being captured");
    if (status == TGL_OK) status = wait_for_stream(t, t->stream);
    return leave(t, status);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tgl_status transport_allocate(void *state, size_t bytes, void **memory)
{
    nccl_transport *t = state;
    DIST_TRY(enter(t));
    return leave(t, gpu_pool_take(&t->pool, bytes, memory));
}

static void transport_release(void *state, void *memory)
{
    nccl_transport *t = state;
    gpu_pool_return(&t->pool, memory);
}

static tgl_status copy(nccl_transport *t, void *target, size_t target_stride, const void *source,
                       size_t source_stride, int64_t lines, size_t bytes)
{
    if (lines == 1 || (target_stride == bytes && source_stride == bytes)) {
        GPU_TRY(t,
                cuMemcpyDtoDAsync(target, (CUdeviceptr)source, (size_t)lines * bytes, t->stream));
        return TGL_OK;
    }
    const CUmemcpy2D lines_copy = {.source_type = CU_MEMORYTYPE_DEVICE,
                                   .source = source,
                                   .source_pitch = source_stride,
                                   .target_type = CU_MEMORYTYPE_DEVICE,
                                   .target = target,
                                   .target_pitch = target_stride,
                                   .width_bytes = bytes,
                                   .height = (size_t)lines};
    GPU_TRY(t, cuMemcpy2DAsync(&lines_copy, t->stream));
    return TGL_OK;
}

static tgl_status transport_copy(void *state, void *target, size_t target_stride,
                                 const void *source, size_t source_stride, int64_t lines,
                                 size_t bytes)
{
    nccl_transport *t = state;
    if (lines == 0 || bytes == 0) return TGL_OK;
    DIST_TRY(enter(t));
    return finish(t, copy(t, target, target_stride, source, source_stride, lines, bytes));
}

static tgl_status transport_add(void *state, tgl_type type, void *target, int64_t target_stride,
                                const void *source, int64_t source_stride, int64_t lines,
                                int64_t count)
{
    nccl_transport *t = state;
    return gpu_add(&t->sums, type, target, target_stride, source, source_stride, lines, count);
}

/* ---- The table ------------------------------------------------------------------------------- */

static void transport_close(void *state)
{
    nccl_transport_close(state);
}

tgl_dist_transport nccl_transport_table(nccl_transport *t)
{
    return (tgl_dist_transport){.size = sizeof(tgl_dist_transport),
                                .name = "nccl",
                                .rank = t->rank,
                                .ranks = t->ranks,
                                .state = t,
                                .stream = t->stream,
                                .gather = transport_gather,
                                .begin = transport_begin,
                                .wait = transport_wait,
                                .exchange = transport_exchange,
                                .collect = transport_collect,
                                .copy = transport_copy,
                                .add = transport_add,
                                .allocate = transport_allocate,
                                .release = transport_release,
                                .set_stream = transport_set_stream,
                                .synchronize = transport_synchronize,
                                .close = transport_close};
}
