/* SPDX-License-Identifier: Apache-2.0
 *
 * Collective operations of NCCL in the stream of the products, as in PyTorch's sequence of a
 * product and a collective. The transport's own communicator is a nonblocking one, for which NCCL
 * starts a thread at each call. Collective operations therefore have a second communicator, whose
 * calls only enqueue a kernel. It is made at the first operation, when all ranks have just agreed
 * to run a plan. A communicator of the caller is used as it is.
 */
#include "dist_error.h"
#include "transport_nccl.h"

/* What rank 0 tells the other ranks. */
typedef struct offer {
    ncclResult_t result;
    ncclUniqueId id;
} offer;

static tgl_status join(nccl_transport *t, const offer *first)
{
    ncclConfig config = {.size = sizeof config,
                         .magic = NCCL_CONFIG_MAGIC,
                         .version = NCCL_CONFIG_VERSION,
                         .blocking = 1};
    DIST_TRY(nccl_settle(t, first->result));
    return nccl_settle(
        t, t->nccl.ncclCommInitRankConfig(&t->collecting, t->ranks, first->id, t->rank, &config));
}

static tgl_status open_collecting(nccl_transport *t)
{
    if (!t->owns_comm) {
        t->collecting = t->comm;
        return TGL_OK;
    }
    offer own = {.result = ncclSuccess};
    if (t->rank == 0) own.result = t->nccl.ncclGetUniqueId(&own.id);
    _Static_assert(sizeof own <= NCCL_ROOM, "room for what rank 0 tells");
    DIST_TRY(nccl_gather(t, &own, t->room, sizeof own));
    return join(t, t->room);
}

static int nccl_type(tgl_type type)
{
    switch (type) {
    case TGL_F16:
        return ncclFloat16;
    case TGL_BF16:
        return ncclBfloat16;
    case TGL_F32:
        return ncclFloat32;
    case TGL_F64:
        return ncclFloat64;
    default:
        return ncclInt32;
    }
}

tgl_status nccl_collect(nccl_transport *t, tgl_dist_collective operation, tgl_type type,
                        const void *from, void *to, size_t count)
{
    if (t->collecting == NULL) DIST_TRY(open_collecting(t));
    const nccl_library *nccl = &t->nccl;
    if (operation == TGL_DIST_ALL_GATHER)
        return nccl_settle(t, nccl->ncclAllGather(from, to, count * tgl_type_size(type), ncclChar,
                                                  t->collecting, t->stream));
    return nccl_settle(
        t, (operation == TGL_DIST_ALL_REDUCE ? nccl->ncclAllReduce : nccl->ncclReduceScatter)(
               from, to, count, nccl_type(type), ncclSum, t->collecting, t->stream));
}
