/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cuda.so (see fake_cuda.h): streams and captures. Work in a stream is executed at once or,
 * if the stream is being captured, becomes a node of the graph.
 */
#include "fake_state.h"

#include <stdlib.h>
#include <string.h>

enum { STREAMS_MAX = FAKE_STREAMS_MAX, RELAXED = 2 };

/* Entries are never reused, so that an allocation can store a pointer to its stream. */
static struct CUstream_st streams[STREAMS_MAX];
static atomic_int stream_count;
static _Atomic uint64_t ids;
static _Thread_local struct CUstream_st thread_stream; /* CU_STREAM_PER_THREAD */
static _Thread_local int mode;                         /* capture mode of the thread; 0: global */

/* Handles of destroyed streams are reused: a new stream gets the handle of the stream that was
 * destroyed last. */
static CUstream handles[STREAMS_MAX]; /* the stream that a handle currently denotes */
static int free_handle = -1;

static CUstream init(CUstream stream, bool is_blocking)
{
    if (stream->id == 0) stream->id = ++ids;
    stream->is_live = true;
    stream->is_blocking = is_blocking;
    return stream;
}

static CUstream default_stream(void)
{
    pthread_mutex_lock(&fake_lock);
    CUstream stream = init(&fake_current()->default_stream, false);
    pthread_mutex_unlock(&fake_lock);
    return stream;
}

CUstream fake_stream(CUstream handle)
{
    if (fake_current() == NULL) return NULL;
    if ((uintptr_t)handle <= 1) return default_stream();
    if ((uintptr_t)handle == 2) return init(&thread_stream, true);
    const ptrdiff_t index = (CUstream *)handle - handles;
    if (index < 0 || index >= stream_count || handles[index] == NULL) {
        fake_misuse("%p is no stream", (void *)handle);
        return NULL;
    }
    return handles[index];
}

/* A handle is the address of its row in `handles`. */
FAKE_CUDA_API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    BEGIN();
    pthread_mutex_lock(&fake_lock);
    CUstream made = init(&streams[stream_count++], flags != CU_STREAM_NON_BLOCKING);
    const int index = free_handle >= 0 ? free_handle : stream_count - 1;
    free_handle = -1;
    handles[index] = made;
    pthread_mutex_unlock(&fake_lock);
    *stream = (CUstream)&handles[index];
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuStreamDestroy_v2(CUstream stream)
{
    BEGIN();
    CUstream own = fake_stream(stream);
    if (own == NULL) return INVALID_HANDLE;
    pthread_mutex_lock(&fake_lock);
    own->is_live = false;
    free_handle = (int)((CUstream *)stream - handles);
    handles[free_handle] = NULL;
    pthread_mutex_unlock(&fake_lock);
    return CUDA_SUCCESS;
}

#ifndef FAKE_CUDA_OLD
FAKE_CUDA_API CUresult cuStreamGetId(CUstream stream, uint64_t *id)
{
    BEGIN();
    CUstream own = fake_stream(stream);
    if (own == NULL) return INVALID_HANDLE;
    if (own->capture != 0) { /* driver 580 invalidates the capture too */
        own->capture = 2;
        return CAPTURE_UNSUPPORTED;
    }
    *id = own->id;
    return CUDA_SUCCESS;
}
#endif

FAKE_CUDA_API CUresult cuStreamSynchronize(CUstream stream)
{
    BEGIN();
    UNSAFE();
    CUstream own = fake_stream(stream);
    if (own == NULL) return INVALID_HANDLE;
    fake_raise(&own->waited, own->latest_work);
    fake_host_waits_for_stream(own);
    return CUDA_SUCCESS;
}

/* Adds a stream to a capture, because it waits for captured work. */
static void join_capture(CUstream stream, CUevent event)
{
    stream->graph = event->graph;
    stream->capture_id = event->capture_id;
    stream->capture = 1;
}

FAKE_CUDA_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    BEGIN();
    CUstream own = fake_stream(stream);
    if (own == NULL || event->context != fake_current() || flags != 0) return INVALID_HANDLE;
    if (event->is_captured && own->capture == 0) join_capture(own, event);
    fake_order_wait(own, event);
    return CUDA_SUCCESS;
}

/* ---- Captures -------------------------------------------------------------------------------- */

FAKE_CUDA_API CUresult cuThreadExchangeStreamCaptureMode(int *exchanged)
{
    const int before = mode;
    mode = *exchanged;
    *exchanged = before;
    return CUDA_SUCCESS;
}

/* Ends all captures in progress or, if blocking_only, those of blocking streams. Returns their
 * number. */
static int end_captures(bool blocking_only)
{
    int count = 0;
    for (int i = 0; i < stream_count; i++)
        if (streams[i].capture == 1 && (streams[i].is_blocking || !blocking_only)) {
            streams[i].capture = 2;
            count++;
        }
    return count;
}

CUresult fake_unsafe(const char *function, bool always)
{
    if (mode == RELAXED && !always) return CUDA_SUCCESS;
    if (end_captures(false) == 0) return CUDA_SUCCESS;
    fake_misuse("%s ends a capture", function);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static bool is_blocked(CUstream stream)
{
    if (stream != &fake_current()->default_stream) return false;
    for (int i = 0; i < stream_count; i++)
        if (streams[i].capture == 1 && streams[i].is_blocking) return true;
    return false;
}

FAKE_CUDA_API CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    BEGIN();
    CUstream own = fake_stream(stream);
    if (own == NULL) return INVALID_HANDLE;
    if (is_blocked(own)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = own->capture;
    return CUDA_SUCCESS;
}

CUresult fake_give_work(const char *function, CUstream *stream, CUgraph *graph)
{
    CUstream own = fake_stream(*stream);
    *graph = NULL;
    if (own == NULL) return INVALID_HANDLE;
    *stream = own;
    if (is_blocked(own)) {
        end_captures(true);
        fake_misuse("%s on the default stream ends a capture", function);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (own->capture == 2) return CAPTURE_INVALIDATED;
    if (own->capture == 1)
        *graph = own->graph;
    else
        fake_order_work(own);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id,
                                                 CUgraph *graph, const void **dependencies,
                                                 size_t *dependency_count)
{
    BEGIN();
    CUstream own = fake_stream(stream);
    if (own == NULL) return INVALID_HANDLE;
    if (dependencies != NULL || dependency_count != NULL) return INVALID_VALUE;
    if (is_blocked(own)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = own->capture;
    if (own->capture != 1) return CUDA_SUCCESS;
    *id = own->capture_id;
    *graph = own->graph;
    return CUDA_SUCCESS;
}

/* Begins a capture into an existing graph, which may have nodes. */
FAKE_CUDA_API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                                   const void *dependencies, const void *edges,
                                                   size_t dependency_count, int capture_mode)
{
    static _Atomic uint64_t captures;
    BEGIN();
    CUstream own = fake_stream(stream);
    if (own == NULL || own->capture != 0 || dependencies != NULL || edges != NULL ||
        dependency_count != 0)
        return INVALID_VALUE;
    own->graph = graph;
    own->capture_id = ++captures;
    own->capture = 1;
    own->capture_mode = capture_mode;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuStreamBeginCapture_v2(CUstream stream, int capture_mode)
{
    BEGIN();
    CUgraph graph = fake_new_graph();
    CUresult result = cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, capture_mode);
    if (result != CUDA_SUCCESS) cuGraphDestroy(graph);
    return result;
}

FAKE_CUDA_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    BEGIN();
    CUstream own = fake_stream(stream);
    if (own == NULL || own->capture == 0) return INVALID_VALUE;
    const bool is_whole = own->capture == 1;
    *graph = is_whole ? own->graph : NULL;
    if (!is_whole) cuGraphDestroy(own->graph);
    own->capture = 0;
    for (int i = 0; i < stream_count; i++) /* also streams that have joined the capture */
        if (streams[i].capture_id == own->capture_id) streams[i].capture = 0;
    return is_whole ? CUDA_SUCCESS : CAPTURE_INVALIDATED;
}
