/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory that other processes can map: the buffers of plans. A block that a plan releases is
 * kept for the next plan, because other processes may still have it mapped. The pool frees its
 * blocks at the end, after the other processes have unmapped them; unused blocks that no process
 * has mapped it also frees when the GPU is out of memory.
 */
#ifndef GPU_POOL_H
#define GPU_POOL_H

#include "rendezvous.h"

#include <stdbool.h>

typedef struct gpu_block {
    char *memory;
    size_t bytes;
    bool is_used, has_handle;
    CUipcMemHandle handle;
} gpu_block;

typedef struct gpu_pool {
    const gpu_driver *driver;
    gpu_block *blocks;
    int count, room;
} gpu_pool;

/* *memory := a block of at least `bytes` bytes; NULL for 0 bytes. The GPU's context must be
 * current. Returns TGL_OK, TGL_NO_MEMORY or TGL_DRIVER. */
tgl_status gpu_pool_take(gpu_pool *pool, size_t bytes, void **memory);
void gpu_pool_return(gpu_pool *pool, void *memory);
/* Frees the pool. keeps_memory: other processes may still have its blocks mapped, so the blocks are
 * not freed. */
void gpu_pool_free(gpu_pool *pool, bool keeps_memory);

/* Describes memory of the pool for another process, which can map it then. False: the memory is not
 * in the pool, or the driver gives no IPC handle for it. */
bool gpu_pool_describe(gpu_pool *pool, const void *memory, size_t bytes, rendezvous_buffer *buffer);

#endif
