/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory that other processes can map: the receive buffers of plans. A block that is
 * released is kept for the next plan, because other processes may have mapped it. All blocks are
 * freed together, after these have unmapped them.
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

/* The context is current. 0 bytes give NULL. TGL_NO_MEMORY; TGL_DRIVER. */
tgl_status gpu_pool_take(gpu_pool *pool, size_t bytes, void **memory);
void gpu_pool_return(gpu_pool *pool, void *memory);
/* keeps_memory: other processes may still have mapped it. */
void gpu_pool_free(gpu_pool *pool, bool keeps_memory);

/* Fills *buffer for another process. false: the memory is not of the pool. */
bool gpu_pool_describe(gpu_pool *pool, const void *memory, size_t bytes, rendezvous_buffer *buffer);

#endif
