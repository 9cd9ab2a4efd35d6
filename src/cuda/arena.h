/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace of runs. There are four sources:
 *   - the caller
 *   - an arena, which a device keeps for each stream. Runs in one stream are ordered, so all plans
 *     share it. It grows when a plan needs more
 *   - the shared arena, for runs that need more than TGL_STREAM_BYTES or find no room for an arena
 *     of their stream, and for drivers that cannot identify streams. A run in it waits, on the GPU,
 *     for the previous run in it, whatever its stream
 *   - for a captured run: memory that the graph holds (graph_memory.h), else a memory node
 *
 * Arenas are not allocated by cuMemAllocAsync() because of a problem of driver 580. In a process
 * with memory from that function, a thread never ends if its default stream (CU_STREAM_PER_THREAD)
 * has work. Every later call of the driver then waits for that thread
 * (docs/notes/2026-11-26-per-thread-stream.md).
 *
 * An arena has two memories. The counters are zero before and after each list, and are cleared if a
 * launch fails. The content of the scratch is undefined.
 *
 * There are limits, so that the device keeps what the largest product needs once, not once for each
 * stream. Number: at most TGL_ARENAS_MAX arenas of streams. Bytes of all arenas of streams: at most
 * TGL_STREAMS_BYTES and at most an eighth of the device's memory. Bytes of all arenas with the
 * shared one: at most a quarter of the device's memory. If a stream needs room, arenas of streams
 * that were not used in the latest TGL_ARENA_AGE runs are evicted. Such a stream may no longer
 * exist, so its memory is freed after all work of the context.
 *
 * Memory is not freed after a run: cuMemFree() waits for all streams, which the caller has not
 * asked for. It is freed by tgl_device_trim(), and if an allocation of the device fails.
 */
#ifndef TGL_CUDA_ARENA_H
#define TGL_CUDA_ARENA_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

enum {
    TGL_ARENAS_MAX = 64,
    TGL_ARENA_AGE = 256,
    TGL_STREAM_BYTES = 32 << 20, /* limit of one arena: what cuBLAS keeps per stream on Hopper */
    TGL_STREAMS_BYTES = 64 << 20,
};

/* The workspace of one run. */
typedef struct tgl_workspace {
    char *counters, *scratch;
    struct tgl_arena *arena; /* its lock is held; NULL: none */
    CUdeviceptr own;         /* freed in stream order; NULL: none */
    bool is_of_graph;        /* memory of a graph */
} tgl_workspace;

/* NULL: no memory. */
struct tgl_arenas *tgl_arenas_create(const tgl_cuda *cuda);

/* Frees all arenas. No work that uses them may be running. cuda->arenas may be NULL. */
void tgl_arenas_destroy(tgl_cuda *cuda);

/* Frees the memory of all arenas that no thread uses. Called in the device's context and in relaxed
 * capture mode. */
void tgl_arenas_trim(const tgl_cuda *cuda);

/* Gets workspace for one run of the list. Its counters are zero when the stream's next work starts.
 * After success, call tgl_workspace_give_back(). Called in the device's context. Errors:
 * TGL_NO_MEMORY; TGL_UNSUPPORTED (the run is captured and the driver cannot allocate in graphs);
 * TGL_DRIVER. */
tgl_status tgl_workspace_take(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                              CUstream stream, tgl_workspace *space);

/* Gives back what tgl_workspace_take() has returned. Call this function after the list's last
 * launch. status: the result of the launches; a failure is returned unchanged. */
tgl_status tgl_workspace_give_back(tgl_device *dev, tgl_workspace *space, CUstream stream,
                                   tgl_status status);

#endif
