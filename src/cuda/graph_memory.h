/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace of runs that are captured into CUDA graphs.
 *
 * This workspace is not allocated by nodes of the graph: a graph with memory nodes cannot be
 * cloned, be a child graph or the body of a conditional node, or have two executables. The
 * workspace is ordinary memory in blocks from cuMemAlloc(), each called a memory below. A user
 * object of the graph (CUuserObject, an object with a reference count and a destructor) holds each
 * memory. When the driver clones or instantiates a graph, it copies the references to user objects.
 * It drops the reference of an executable when the last launch of the executable has ended. So once
 * the user object is destroyed, no launch uses the memory.
 *
 * The runs that one capture records in one stream are ordered, so they share a memory. Runs in
 * another stream of the capture may run at the same time, and have a memory of their own.
 *
 * The driver destroys a user object on any thread, even in the middle of a call of the library, and
 * the destructor must not call the driver. So the destructor only marks the memory as unused,
 * without a lock. An unused memory is given to the next graph if it has a suitable size. All unused
 * memory is freed when none of it suits the next graph, when tgl_device_trim() is called, and when
 * the device's memory is exhausted.
 *
 * All memories together are at most an eighth of the device's memory. A run gets no memory if there
 * is no room, or if the driver is older than CUDA 11.3 and so has no user objects.
 */
#ifndef TGL_CUDA_GRAPH_MEMORY_H
#define TGL_CUDA_GRAPH_MEMORY_H

#include "cuda/cuda_state.h"

/* Creates an empty list of memories. NULL: out of memory. */
struct tgl_graph_memories *tgl_graph_memories_create(const tgl_cuda *cuda);

/* Frees all memories, also those of graphs that still exist. Such graphs must not be launched
 * again. cuda->graph_memories may be NULL. */
void tgl_graph_memories_destroy(tgl_cuda *cuda);

/* Frees the memory of graphs that no longer exist. Returns false if there is none. Must be called
 * in the device's context and in relaxed capture mode. */
bool tgl_graph_memories_trim(const tgl_cuda *cuda);

/* *memory := memory of at least `bytes` for a run in a stream that is being captured. Call
 * tgl_graph_memory_give_back() after the run's last launch; until then, other runs that need memory
 * of a graph wait. *memory is NULL if no memory can be had; then do not call
 * tgl_graph_memory_give_back(). *is_exhausted: whether the device's memory is exhausted. Must be
 * called in the device's context. Error: TGL_DRIVER. */
tgl_status tgl_graph_memory_take(tgl_device *dev, size_t bytes, CUstream stream,
                                 CUdeviceptr *memory, bool *is_exhausted);
void tgl_graph_memory_give_back(const tgl_cuda *cuda);

#endif
