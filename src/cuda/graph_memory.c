/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace of captured runs: see graph_memory.h. One lock protects the list of memories. It is
 * held from the first launch of a captured run to the last, because two host threads may use one
 * stream.
 */
#include "cuda/graph_memory.h"

#include "base/integers.h"

#include <stdlib.h>

/* A memory's size is a multiple of UNIT bytes. All memories together have at most 1/SHARE of the
 * device's memory. */
enum { UNIT = 64 << 10, SHARE = 8 };

#define PER_THREAD ((CUstream)2) /* CU_STREAM_PER_THREAD */

/* States of a graph_memory. HELD: a user object of a graph holds it. UNUSED: the user object is
 * destroyed. ORPHAN: the device is closed; the destructor of the user object frees the struct. */
enum { HELD, UNUSED, ORPHAN };

typedef struct graph_memory {
    struct graph_memory *next;
    CUdeviceptr at;
    size_t bytes;
    uint64_t capture, stream; /* the memory is for runs of this capture in this stream */
    atomic_int state;
} graph_memory;

typedef struct tgl_graph_memories {
    pthread_mutex_t lock;
    graph_memory *first;
    size_t bytes, bytes_max; /* sum over all memories, and its limit */
} tgl_graph_memories;

tgl_graph_memories *tgl_graph_memories_create(const tgl_cuda *cuda)
{
    tgl_graph_memories *memories = calloc(1, sizeof *memories);
    if (memories == NULL) return NULL;
    pthread_mutex_init(&memories->lock, NULL);
    memories->bytes_max = cuda->facts.memory_bytes / SHARE;
    return memories;
}

/* The destructor of a user object, which the driver calls on any thread. */
static void mark_unused(void *data)
{
    graph_memory *it = data;
    if (atomic_exchange(&it->state, UNUSED) == ORPHAN) free(it);
}

void tgl_graph_memories_destroy(tgl_cuda *cuda)
{
    tgl_graph_memories *memories = cuda->graph_memories;
    if (memories == NULL) return;
    for (graph_memory *it = memories->first, *next; it != NULL; it = next) {
        next = it->next;
        if (!atomic_load(&cuda->is_lost)) cuda->driver.cuMemFree(it->at);
        if (atomic_exchange(&it->state, ORPHAN) == UNUSED) free(it);
    }
    pthread_mutex_destroy(&memories->lock);
    free(memories);
    cuda->graph_memories = NULL;
}

/* ---- Unused memory: the lock is held --------------------------------------------------------- */

static bool is_unused(graph_memory *it)
{
    return atomic_load(&it->state) == UNUSED;
}

/* Frees all unused memories. Returns whether there were any. Must be called in relaxed capture
 * mode. */
static bool free_unused(const tgl_cuda *cuda)
{
    tgl_graph_memories *memories = cuda->graph_memories;
    bool is_any = false;
    for (graph_memory **link = &memories->first; *link != NULL;) {
        graph_memory *it = *link;
        if (is_unused(it) && cuda->driver.cuMemFree(it->at) == CUDA_SUCCESS) {
            *link = it->next;
            memories->bytes -= it->bytes;
            free(it);
            is_any = true;
        } else {
            link = &it->next;
        }
    }
    return is_any;
}

bool tgl_graph_memories_trim(const tgl_cuda *cuda)
{
    pthread_mutex_lock(&cuda->graph_memories->lock);
    const bool is_any = free_unused(cuda);
    pthread_mutex_unlock(&cuda->graph_memories->lock);
    return is_any;
}

/* Returns an unused memory of at least `bytes`, but at most about twice that, so that a small graph
 * does not keep the memory of a large one. NULL: there is none. */
static graph_memory *find_unused(const tgl_graph_memories *memories, size_t bytes)
{
    graph_memory *it = memories->first;
    while (it != NULL && !(is_unused(it) && it->bytes >= bytes && it->bytes / 2 <= bytes))
        it = it->next;
    return it;
}

/* ---- New memory: the lock is held, the capture mode relaxed ---------------------------------- */

static bool has_room(const tgl_graph_memories *memories, size_t bytes)
{
    return memories->bytes + bytes <= memories->bytes_max;
}

/* Allocates a memory of at least `bytes`. Its size is `preferred` if that is larger than `bytes`
 * and within the limit. NULL: there is no room. */
static graph_memory *allocate(const tgl_cuda *cuda, size_t bytes, size_t preferred,
                              bool *is_exhausted)
{
    tgl_graph_memories *memories = cuda->graph_memories;
    if (preferred > bytes && has_room(memories, preferred)) bytes = preferred;
    graph_memory *it = has_room(memories, bytes) ? calloc(1, sizeof *it) : NULL;
    if (it == NULL) return NULL;
    const CUresult result = cuda->driver.cuMemAlloc(&it->at, bytes);
    *is_exhausted = result == CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(it);
        return NULL;
    }
    it->bytes = bytes;
    it->next = memories->first;
    atomic_init(&it->state, UNUSED);
    memories->first = it;
    memories->bytes += bytes;
    return it;
}

/* ---- The memory of a capture: the lock is held ----------------------------------------------- */

typedef struct capture {
    int status; /* CUstreamCaptureStatus */
    uint64_t id, stream;
    CUgraph graph;
} capture;

/* A number that is different for each stream of one capture: the stream's handle. The per-thread
 * default stream has the same handle in all threads, so pthread_self() is used for it.
 * cuStreamGetId() cannot be used, because it invalidates a capture. */
static uint64_t number_of_stream(CUstream stream)
{
    return stream == PER_THREAD ? (uintptr_t)pthread_self() : (uintptr_t)stream;
}

static CUresult read_capture(const tgl_driver *driver, CUstream stream, capture *it)
{
    it->stream = number_of_stream(stream);
    return driver->cuStreamGetCaptureInfo(stream, &it->status, &it->id, &it->graph, NULL, NULL);
}

/* Returns the largest memory that earlier runs of this capture use in this stream. NULL: there is
 * none. */
static graph_memory *find_of(const tgl_graph_memories *memories, const capture *of)
{
    graph_memory *largest = NULL;
    for (graph_memory *it = memories->first; it != NULL; it = it->next)
        if (!is_unused(it) && it->capture == of->id && it->stream == of->stream &&
            (largest == NULL || it->bytes > largest->bytes))
            largest = it;
    return largest;
}

/* Makes a user object of the graph, which holds the memory. Returns false if that fails. If the
 * graph does not take the user object, releasing it makes the driver call mark_unused(). */
static bool hold(const tgl_driver *driver, graph_memory *it, const capture *by)
{
    CUuserObject object;
    atomic_store(&it->state, HELD);
    if (driver->cuUserObjectCreate(&object, it, mark_unused, 1,
                                   CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) != CUDA_SUCCESS) {
        atomic_store(&it->state, UNUSED);
        return false;
    }
    it->capture = by->id, it->stream = by->stream;
    if (driver->cuGraphRetainUserObject(by->graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) ==
        CUDA_SUCCESS)
        return true;
    driver->cuUserObjectRelease(object, 1);
    return false;
}

/* A memory of at least `bytes` for a run in the capture's stream. NULL: there is none. If the
 * largest memory so far is too small, takes an unused one, or allocates one that is twice as large
 * if there is room, so that a graph needs few memories. The smaller ones are kept, because the
 * nodes of earlier runs contain their addresses. */
static graph_memory *memory_of(const tgl_cuda *cuda, size_t bytes, const capture *of,
                               bool *is_exhausted)
{
    const tgl_graph_memories *memories = cuda->graph_memories;
    graph_memory *largest = find_of(memories, of);
    if (largest != NULL && largest->bytes >= bytes) return largest;
    const size_t size = (size_t)tgl_round_up((int64_t)bytes, UNIT);
    graph_memory *it = find_unused(memories, size);
    if (it == NULL) {
        const int mode = tgl_cuda_relax_capture(&cuda->driver);
        free_unused(cuda);
        it = allocate(cuda, size, largest != NULL ? 2 * largest->bytes : 0, is_exhausted);
        tgl_cuda_restore_capture(&cuda->driver, mode);
    }
    return it != NULL && hold(&cuda->driver, it, of) ? it : NULL;
}

static bool has_functions(const tgl_driver *driver)
{
    return driver->cuStreamGetCaptureInfo != NULL && driver->cuUserObjectCreate != NULL &&
           driver->cuUserObjectRelease != NULL && driver->cuGraphRetainUserObject != NULL;
}

tgl_status tgl_graph_memory_take(tgl_device *dev, size_t bytes, CUstream stream,
                                 CUdeviceptr *memory, bool *is_exhausted)
{
    const tgl_cuda *cuda = dev->state;
    capture of = {.status = 0};
    *memory = NULL;
    *is_exhausted = false;
    if (!has_functions(&cuda->driver)) return TGL_OK;
    TGL_TRY(tgl_cuda_check(dev, read_capture(&cuda->driver, stream, &of),
                           "asking for a stream's graph"));
    if (of.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return TGL_OK;
    pthread_mutex_lock(&cuda->graph_memories->lock);
    const graph_memory *it = memory_of(cuda, bytes, &of, is_exhausted);
    if (it == NULL)
        pthread_mutex_unlock(&cuda->graph_memories->lock);
    else
        *memory = it->at;
    return TGL_OK;
}

void tgl_graph_memory_give_back(const tgl_cuda *cuda)
{
    pthread_mutex_unlock(&cuda->graph_memories->lock);
}
