/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace of runs. It comes from one of three places:
 *   - the caller
 *   - an arena, which a device keeps for each stream. Runs in one stream are ordered, so all plans
 *     share it. It grows when a plan needs more
 *   - an allocation of the run's own, made and freed in stream order: for runs that are captured
 * into a graph (nodes of the graph allocate and free it), for drivers that cannot tell streams
 * apart, and for what the bound on arenas leaves no room for
 *
 * An arena has two memories. Counters are zero before and after each list; if a launch of a list
 * fails, they are cleared before the next run. Scratch has any content.
 *
 * The bound: at most TGL_ARENAS_MAX arenas, and together at most a quarter of the device's memory,
 * so that most of it is left to the caller however many streams there are. The least recently used
 * arena gives way. Its stream may be gone by then, so it is freed after all work of the context.
 */
#ifndef TGL_CUDA_ARENA_H
#define TGL_CUDA_ARENA_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

enum { TGL_ARENAS_MAX = 64 };

/* What a run has taken. */
typedef struct tgl_workspace {
    char *counters, *scratch;
    struct tgl_arena *arena; /* whose lock is held; NULL: none */
    CUdeviceptr own;         /* to be freed in stream order; NULL: none */
} tgl_workspace;

/* NULL: no memory. */
struct tgl_arenas *tgl_arenas_create(const tgl_cuda *cuda);

/* Frees all arenas; no work is under way. NULL is destroyed silently. */
void tgl_arenas_destroy(tgl_cuda *cuda);

/* Frees the memory of all arenas that no thread uses. The context is current, the capture mode
 * relaxed. */
void tgl_arenas_trim(const tgl_cuda *cuda);

/* Workspace for one run of the list, whose counters are zero for what the stream does next. Success
 * is followed by tgl_workspace_give_back(). The context is current. TGL_NO_MEMORY; TGL_UNSUPPORTED
 * (a captured run, and the driver cannot allocate in graphs); TGL_DRIVER. */
tgl_status tgl_workspace_take(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                              CUstream stream, tgl_workspace *space);

/* After the list's last launch. status: of the launches; returned if it is a failure. */
tgl_status tgl_workspace_give_back(tgl_device *dev, tgl_workspace *space, CUstream stream,
                                   tgl_status status);

#endif
