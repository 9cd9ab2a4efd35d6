/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cuda.so (see fake_cuda.h): handles of memory of other processes, copies between devices,
 * and waits for words of memory. Threads stand for processes, so a handle contains the address of
 * the memory. If a stream waits for a word of memory, the thread that enqueues the wait blocks
 * until another stream has written the word. It is a misuse if none does.
 */
#include "fake_state.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

FAKE_CUDA_API CUresult cuDeviceGetUuid(unsigned char uuid[16], CUdevice device)
{
    TOLD();
    memset(uuid, 0, 16);
    uuid[0] = (unsigned char)(fake_setting("FAKE_CUDA_SAME_GPU", 0) ? 1 : 1 + device);
    return CUDA_SUCCESS;
}

/* ---- Handles --------------------------------------------------------------------------------- */

typedef struct fake_handle {
    void *memory;
    char pad[56];
} fake_handle;

/* handle: may be misaligned, because the driver's type is an array of char. */
FAKE_CUDA_API CUresult cuIpcGetMemHandle(void *handle, CUdeviceptr memory)
{
    const fake_handle made = {.memory = memory};
    BEGIN();
    memcpy(handle, &made, sizeof made);
    return CUDA_SUCCESS;
}

static atomic_int opened;

FAKE_CUDA_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *memory, fake_handle handle,
                                             unsigned flags)
{
    BEGIN();
    if (flags != 1) return INVALID_VALUE;
    opened++;
    *memory = handle.memory;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuIpcCloseMemHandle(CUdeviceptr memory)
{
    (void)memory;
    BEGIN();
    opened--;
    return CUDA_SUCCESS;
}

fake_number_function fake_cuda_mapped;

/* The number of handles that are open. */
FAKE_CUDA_API int fake_cuda_mapped(void)
{
    return opened;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

typedef struct fake_copy2d {
    size_t source_x, source_y;
    int source_type;
    const void *source_host;
    const char *source;
    void *source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    int target_type;
    void *target_host;
    char *target;
    void *target_array;
    size_t target_pitch;
    size_t width, height;
} fake_copy2d;

FAKE_CUDA_API CUresult cuMemcpy2DAsync_v2(const fake_copy2d *c, CUstream stream)
{
    enum { DEVICE = 2 };
    CUgraph graph;
    BEGIN();
    CUresult result = fake_give_work(__func__, &stream, &graph);
    if (result != CUDA_SUCCESS) return result;
    if (graph != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (c->source_type != DEVICE || c->target_type != DEVICE || c->source_pitch < c->width ||
        c->target_pitch < c->width || c->height == 0)
        return INVALID_VALUE;
    fake_access(c->target, (c->height - 1) * c->target_pitch + c->width, true, stream);
    fake_access(c->source, (c->height - 1) * c->source_pitch + c->width, false, stream);
    for (size_t i = 0; i < c->height; i++)
        fake_copy(c->target + i * c->target_pitch, c->source + i * c->source_pitch, c->width,
                  stream);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count,
                                        CUstream stream)
{
    CUgraph graph;
    BEGIN();
    CUresult result = fake_give_work(__func__, &stream, &graph);
    if (result != CUDA_SUCCESS) return result;
    for (size_t i = 0; i < count; i++)
        atomic_store((_Atomic uint32_t *)dst + i, value);
    return CUDA_SUCCESS;
}

/* ---- Words that streams wait for ------------------------------------------------------------- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags);

FAKE_CUDA_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    (void)priority;
    BEGIN();
    return cuStreamCreate(stream, flags);
}

FAKE_CUDA_API CUresult cuStreamQuery(CUstream stream)
{
    BEGIN();
    UNSAFE();
    CUstream own = fake_stream(stream);
    if (own == NULL) return INVALID_HANDLE;
    fake_raise(&own->waited, own->latest_work);
    fake_host_waits_for_stream(own);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value,
                                               unsigned flags)
{
    CUgraph graph;
    BEGIN();
    CUresult result = fake_give_work(__func__, &stream, &graph);
    if (result != CUDA_SUCCESS || graph != NULL || flags != 0) return INVALID_VALUE;
    fake_order_signal(address, stream);
    atomic_store((_Atomic uint32_t *)address, value);
    return CUDA_SUCCESS;
}

static CUresult wait_for_value(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags)
{
    enum { EQUAL = 1, SECONDS = 20 };
    CUgraph graph;
    CUresult result = fake_give_work("cuStreamBatchMemOp", &stream, &graph);
    if (result != CUDA_SUCCESS || graph != NULL || flags != EQUAL) return INVALID_VALUE;
    const time_t end = time(NULL) + SECONDS;
    while (atomic_load((_Atomic uint32_t *)address) != value && time(NULL) < end)
        sched_yield();
    if (atomic_load((_Atomic uint32_t *)address) != value)
        fake_misuse("stream %d waits for a word that no stream writes", (int)stream->id);
    fake_order_await(stream, address);
    return CUDA_SUCCESS;
}

typedef struct fake_operation {
    int kind; /* 1: wait, 2: write */
    void *address;
    uint64_t value;
    unsigned flags;
    uint64_t pad[2];
} fake_operation;

FAKE_CUDA_API CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count,
                                             const fake_operation *list, unsigned flags)
{
    CUresult result = flags == 0 ? CUDA_SUCCESS : INVALID_VALUE;
    BEGIN();
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        result =
            list[i].kind == 1
                ? wait_for_value(stream, list[i].address, (uint32_t)list[i].value, list[i].flags)
                : cuStreamWriteValue32_v2(stream, list[i].address, (uint32_t)list[i].value,
                                          list[i].flags);
    return result;
}
