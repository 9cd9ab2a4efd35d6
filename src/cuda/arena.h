/* SPDX-License-Identifier: Apache-2.0
 *
 * Arenas: the workspace (counters and scratch of a launch list, plan/launch_list.h) that a device
 * keeps for each stream. Runs in one stream are ordered, so all plans share the stream's arena. An
 * arena grows when a plan needs more. The shared arena is for runs that need more than
 * TGL_STREAM_BYTES or find no room for an arena of their stream, and for drivers that cannot
 * identify streams. A run in the shared arena waits, on the GPU, for the previous run in this
 * arena, whatever its stream.
 *
 * Arenas are not allocated by cuMemAllocAsync() because of a problem of driver 580. In a process
 * with memory from that function, a thread never ends if its default stream (CU_STREAM_PER_THREAD)
 * has work. Every later call of the driver then waits for that thread
 * (docs/notes/2026-11-26-per-thread-stream.md).
 *
 * An arena has two blocks of memory. One holds the counters: they are zero before and after each
 * list, and are cleared if a launch fails. The other is the scratch, whose content is undefined.
 *
 * Without limits the device would keep the workspace of its largest product once for each stream.
 * There are at most TGL_ARENAS_MAX arenas of streams. Together they have at most TGL_STREAMS_BYTES
 * bytes and at most an eighth of the device's memory. All arenas, including the shared one, have at
 * most a quarter of the device's memory. If a stream needs room, arenas of streams that were not
 * used in the latest TGL_ARENA_AGE runs are evicted. The stream of an evicted arena may no longer
 * exist, so the library cannot wait for this stream. The library therefore waits for all work of
 * the context before it frees the arena.
 *
 * Memory is not freed after a run: cuMemFree() waits for all streams, and the caller of a run does
 * not expect such a wait. Only a run for which an arena has to grow may wait. The arenas are freed
 * by tgl_device_trim(), and, if the device's memory is exhausted, by tgl_alloc() and by runs.
 */
#ifndef TGL_CUDA_ARENA_H
#define TGL_CUDA_ARENA_H

#include "cuda/cuda_state.h"
#include "plan/launch_list.h"

enum {
    TGL_ARENAS_MAX = 64,
    /* an arena of a stream may be evicted if the latest 256 runs in arenas did not use it */
    TGL_ARENA_AGE = 256,
    TGL_STREAM_BYTES = 32 << 20, /* limit of one stream's arena in bytes: as much as cuBLAS keeps
                                    per stream on Hopper */
    /* limit of the arenas of all streams together, in bytes */
    TGL_STREAMS_BYTES = 64 << 20,
};

/* Creates the table of arenas, which have no memory yet. NULL: out of memory. */
struct tgl_arenas *tgl_arenas_create(const tgl_cuda *cuda);

/* Frees all arenas. No work that uses them may be running. cuda->arenas may be NULL. */
void tgl_arenas_destroy(tgl_cuda *cuda);

/* Frees the memory of all arenas that no thread uses. Must be called in the device's context and in
 * relaxed capture mode. */
void tgl_arenas_trim(const tgl_cuda *cuda);

/* Memory of an arena for one run. */
typedef struct tgl_arena_space {
    char *counters, *scratch;
    struct tgl_arena *arena; /* the arena that the memory belongs to; its lock is held */
} tgl_arena_space;

/* Takes the arena of the stream, or the shared one, for one run of the list. The counters are zero
 * when the stream's next work starts. Must be called in the device's context. Errors:
 * TGL_NO_MEMORY; TGL_DRIVER. */
tgl_status tgl_arena_take(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                          CUstream stream, tgl_arena_space *space);

/* Ends the use of an arena that tgl_arena_take() returned. Call this function after the list's last
 * launch. has_failed: a launch failed, so that the counters must be cleared before the next run.
 * For the shared arena, returns the driver's result of recording the end of the run; otherwise
 * CUDA_SUCCESS. */
CUresult tgl_arena_give_back(const tgl_cuda *cuda, struct tgl_arena *arena, CUstream stream,
                             bool has_failed);

#endif
