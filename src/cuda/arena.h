/* SPDX-License-Identifier: Apache-2.0
 *
 * Arenas: the workspace that a device keeps for each stream. Runs in one stream are ordered, so all
 * plans share its arena. It grows when a plan needs more. The shared arena is for runs that need
 * more than TGL_STREAM_BYTES or find no room for an arena of their stream, and for drivers that
 * cannot identify streams. A run in it waits, on the GPU, for the previous run in it, whatever its
 * stream.
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

/* NULL: no memory. */
struct tgl_arenas *tgl_arenas_create(const tgl_cuda *cuda);

/* Frees all arenas. No work that uses them may be running. cuda->arenas may be NULL. */
void tgl_arenas_destroy(tgl_cuda *cuda);

/* Frees the memory of all arenas that no thread uses. Called in the device's context and in relaxed
 * capture mode. */
void tgl_arenas_trim(const tgl_cuda *cuda);

/* Memory of an arena for one run. */
typedef struct tgl_arena_space {
    char *counters, *scratch;
    struct tgl_arena *arena; /* its lock is held */
} tgl_arena_space;

/* Takes the arena of the stream, or the shared one, for one run of the list. The counters are zero
 * when the stream's next work starts. Called in the device's context. Errors: TGL_NO_MEMORY;
 * TGL_DRIVER. */
tgl_status tgl_arena_take(tgl_device *dev, const tgl_launch_list *list, const tgl_run *run,
                          CUstream stream, tgl_arena_space *space);

/* Call this function after the list's last launch. has_failed: a launch failed. */
CUresult tgl_arena_give_back(const tgl_cuda *cuda, struct tgl_arena *arena, CUstream stream,
                             bool has_failed);

#endif
