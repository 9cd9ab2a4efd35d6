/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace of runs. There are three sources:
 *   - the caller
 *   - an arena, which a device keeps for each stream. Runs in one stream are ordered, so all plans
 *     share it. It grows when a plan needs more. A driver that cannot identify streams has one
 * arena for all, and a run waits for the run before it
 *   - memory nodes of the graph into which a run is captured
 *
 * Arenas are not allocated in stream order: where a process has such memory, driver 580 does not
 * return from the end of a thread whose default stream (CU_STREAM_PER_THREAD) has work, and every
 * later call waits for it (docs/notes/2026-11-26-per-thread-stream.md).
 *
 * An arena has two memories: counters, which are zero before and after each list and are cleared if
 * a launch fails, and scratch, whose content is undefined.
 *
 * The limit: at most TGL_ARENAS_MAX arenas with together at most a quarter of the device's memory,
 * so that most of it is left to the caller. The least recently used arena is evicted. Its stream
 * may no longer exist, so its memory is freed after all work of the context.
 */
#ifndef TGL_CUDA_ARENA_H
#define TGL_CUDA_ARENA_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

enum { TGL_ARENAS_MAX = 64 };

/* The workspace of one run. */
typedef struct tgl_workspace {
    char *counters, *scratch;
    struct tgl_arena *arena; /* its lock is held; NULL: none */
    CUdeviceptr own;         /* freed in stream order; NULL: none */
} tgl_workspace;

/* NULL: no memory. */
struct tgl_arenas *tgl_arenas_create(const tgl_cuda *cuda);

/* Frees all arenas. No work may be running. NULL is allowed. */
void tgl_arenas_destroy(tgl_cuda *cuda);

/* Frees the memory of all arenas that no thread uses. The context is current, the capture mode
 * relaxed. */
void tgl_arenas_trim(const tgl_cuda *cuda);

/* Gets workspace for one run of the list, with counters that are zero when the stream's next work
 * starts. Call tgl_workspace_give_back() after success. The context is current. TGL_NO_MEMORY;
 * TGL_UNSUPPORTED (the run is captured and the driver cannot allocate in graphs); TGL_DRIVER. */
tgl_status tgl_workspace_take(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                              CUstream stream, tgl_workspace *space);

/* Call it after the list's last launch. status: of the launches; it is returned if it is a failure.
 */
tgl_status tgl_workspace_give_back(tgl_device *dev, tgl_workspace *space, CUstream stream,
                                   tgl_status status);

#endif
