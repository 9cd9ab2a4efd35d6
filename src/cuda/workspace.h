/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace of runs. There are three sources:
 *   - the caller
 *   - an arena (arena.h): the arena of the stream, or the shared arena
 *   - for a captured run: memory that the graph holds (graph_memory.h), else an allocation
 *     node of the graph
 */
#ifndef TGL_CUDA_WORKSPACE_H
#define TGL_CUDA_WORKSPACE_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

/* The workspace of one run. */
typedef struct tgl_workspace {
    char *counters, *scratch;
    struct tgl_arena *arena; /* the arena in use, with its lock held; NULL: none */
    CUdeviceptr own;         /* memory from cuMemAllocAsync(), freed in stream order; NULL: none */
    bool is_of_graph;        /* the memory comes from tgl_graph_memory_take() */
} tgl_workspace;

/* Gets workspace for one run of the list. Its counters are zero when the stream's next work starts.
 * After success, call tgl_workspace_give_back(). Must be called in the device's context. Errors:
 * TGL_NO_MEMORY; TGL_UNSUPPORTED (the run is captured and the driver cannot allocate in graphs);
 * TGL_DRIVER. */
tgl_status tgl_workspace_take(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                              CUstream stream, tgl_workspace *space);

/* Gives back the workspace that tgl_workspace_take() has returned. Call this function after the
 * list's last launch. status: the result of the launches; a failure is returned unchanged. */
tgl_status tgl_workspace_give_back(tgl_device *dev, tgl_workspace *space, CUstream stream,
                                   tgl_status status);

#endif
