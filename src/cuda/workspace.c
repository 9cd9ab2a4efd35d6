/* SPDX-License-Identifier: Apache-2.0
 *
 * The workspace of a run, from one of three sources: see workspace.h.
 */
#include "cuda/workspace.h"
#include "cuda/arena.h"
#include "cuda/graph_memory.h"

/* Bytes of workspace of a run. */
static size_t bytes_of(const tgl_launch_list *list, const tgl_run *run)
{
    return list->counter_bytes + tgl_list_scratch_of(list, run);
}

/* ---- Memory outside the arenas --------------------------------------------------------------- */

static tgl_status take_own(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                           CUstream stream, tgl_workspace *space)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    CUdeviceptr own = NULL;
    const int mode = tgl_cuda_relax_capture(driver);
    CUresult result = driver->cuMemAllocAsync(&own, bytes_of(list, run), stream);
    if (result == CUDA_SUCCESS && list->counter_bytes > 0) {
        result = driver->cuMemsetD8Async(own, 0, list->counter_bytes, stream);
        if (result != CUDA_SUCCESS) driver->cuMemFreeAsync(own, stream);
    }
    tgl_cuda_restore_capture(driver, mode);
    TGL_TRY(tgl_cuda_check(dev, result, "allocating workspace for a run"));
    *space = (tgl_workspace){own, (char *)own + list->counter_bytes, .own = own};
    return TGL_OK;
}

/* Uses memory that already exists as workspace: sets its counters to zero in the stream. */
static tgl_status take_given(tgl_device *dev, const tgl_launch_list *list, char *counters,
                             CUstream stream, tgl_workspace *space)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    *space = (tgl_workspace){counters, counters + list->counter_bytes, .arena = NULL};
    if (list->counter_bytes == 0) return TGL_OK;
    return tgl_cuda_check(dev, driver->cuMemsetD8Async(counters, 0, list->counter_bytes, stream),
                          "clearing counters");
}

/* *of_graph := memory that the graph that is being captured will own (graph_memory.h), or NULL. If
 * the device's memory is exhausted, frees the arenas (arena.h) that no thread uses, and tries
 * again. */
static tgl_status take_of_graph(tgl_device *dev, size_t bytes, CUstream stream,
                                CUdeviceptr *of_graph)
{
    const tgl_cuda *cuda = dev->state;
    bool is_exhausted;
    TGL_TRY(tgl_graph_memory_take(dev, bytes, stream, of_graph, &is_exhausted));
    if (!is_exhausted) return TGL_OK;
    const int mode = tgl_cuda_relax_capture(&cuda->driver);
    tgl_arenas_trim(cuda);
    tgl_cuda_restore_capture(&cuda->driver, mode);
    return tgl_graph_memory_take(dev, bytes, stream, of_graph, &is_exhausted);
}

/* Uses the memory of the graph into which the run is captured, or else adds an allocation node to
 * this graph. */
static tgl_status take_captured(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                                CUstream stream, tgl_workspace *space)
{
    enum { GRAPH_MEMORY_VERSION = 11040 }; /* the first driver with memory nodes in graphs */
    const tgl_cuda *cuda = dev->state;
    CUdeviceptr of_graph;
    TGL_TRY(take_of_graph(dev, bytes_of(list, run), stream, &of_graph));
    if (of_graph != NULL) {
        const tgl_status status = take_given(dev, list, of_graph, stream, space);
        space->is_of_graph = status == TGL_OK;
        if (status != TGL_OK) tgl_graph_memory_give_back(cuda);
        return status;
    }
    if (cuda->has_async_alloc && cuda->facts.driver_version >= GRAPH_MEMORY_VERSION)
        return take_own(dev, list, run, stream, space);
    return tgl_fail(TGL_UNSUPPORTED,
                    "the stream is being captured, and this driver cannot allocate workspace in a "
                    "graph: give the run a workspace of tgl_plan_workspace_size() bytes");
}

/* ---- Taking and giving back ------------------------------------------------------------------ */

tgl_status tgl_workspace_take(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                              CUstream stream, tgl_workspace *space)
{
    tgl_arena_space of_stream;
    bool captured;
    *space = (tgl_workspace){.own = NULL};
    if (bytes_of(list, run) == 0) return TGL_OK;
    if (run->workspace != NULL) return take_given(dev, list, run->workspace, stream, space);
    TGL_TRY(tgl_cuda_is_captured(dev, stream, &captured));
    if (captured) return take_captured(dev, list, run, stream, space);
    TGL_TRY(tgl_arena_take(dev, list, run, stream, &of_stream));
    *space = (tgl_workspace){of_stream.counters, of_stream.scratch, .arena = of_stream.arena};
    return TGL_OK;
}

tgl_status tgl_workspace_give_back(tgl_device *dev, tgl_workspace *space, CUstream stream,
                                   tgl_status status)
{
    const tgl_cuda *cuda = dev->state;
    const tgl_driver *driver = &cuda->driver;
    CUresult result = CUDA_SUCCESS;
    if (space->own != NULL) {
        const int mode = tgl_cuda_relax_capture(driver);
        result = driver->cuMemFreeAsync(space->own, stream);
        tgl_cuda_restore_capture(driver, mode);
    }
    if (space->is_of_graph) tgl_graph_memory_give_back(cuda);
    if (space->arena != NULL)
        result = tgl_arena_give_back(cuda, space->arena, stream, status != TGL_OK);
    return status != TGL_OK ? status : tgl_cuda_check(dev, result, "giving workspace back");
}
