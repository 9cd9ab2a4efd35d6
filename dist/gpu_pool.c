/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory that other processes can map.
 */
#include "gpu_pool.h"

#include "dist_error.h"

#include <stdlib.h>

/* The smallest unused block of at least `bytes` bytes that would be at least half full; NULL:
 * none. */
static gpu_block *find_free(const gpu_pool *pool, size_t bytes)
{
    gpu_block *best = NULL;
    for (int i = 0; i < pool->count; i++) {
        gpu_block *b = &pool->blocks[i];
        if (!b->is_used && b->bytes >= bytes && b->bytes / 2 <= bytes &&
            (best == NULL || b->bytes < best->bytes))
            best = b;
    }
    return best;
}

/* Makes room for one more block in the list. */
static tgl_status extend(gpu_pool *pool)
{
    if (pool->count < pool->room) return TGL_OK;
    const int room = pool->room > 0 ? 2 * pool->room : 16;
    gpu_block *blocks = realloc(pool->blocks, sizeof *blocks * (size_t)room);
    if (blocks == NULL) return dist_fail(TGL_NO_MEMORY, "no memory for a list of %d blocks", room);
    pool->blocks = blocks;
    pool->room = room;
    return TGL_OK;
}

/* Frees unused blocks that were never described to another process. The other blocks keep their
 * indices, by which other processes know them. Returns whether any block was freed. */
static bool trim(gpu_pool *pool)
{
    bool has_freed = false;
    for (int i = 0; i < pool->count; i++) {
        gpu_block *b = &pool->blocks[i];
        if (b->is_used || b->has_handle || b->memory == NULL) continue;
        pool->driver->cuMemFree(b->memory);
        *b = (gpu_block){.memory = NULL};
        has_freed = true;
    }
    return has_freed;
}

tgl_status gpu_pool_take(gpu_pool *pool, size_t bytes, void **memory)
{
    /* Granularity in bytes of the driver's allocations. Blocks have a multiple of this size,
     * because an IPC handle gives access to a whole allocation of the driver, which must not
     * contain two blocks. */
    enum { GRAIN = 2 << 20 };
    *memory = NULL;
    if (bytes == 0) return TGL_OK;
    bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    gpu_block *block = find_free(pool, bytes);
    if (block == NULL) {
        DIST_TRY(extend(pool));
        CUdeviceptr made = NULL;
        CUresult result = pool->driver->cuMemAlloc(&made, bytes);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && trim(pool))
            result = pool->driver->cuMemAlloc(&made, bytes);
        DIST_TRY(gpu_driver_check(pool->driver, result, "cuMemAlloc()"));
        block = &pool->blocks[pool->count++];
        *block = (gpu_block){.memory = made, .bytes = bytes};
    }
    block->is_used = true;
    *memory = block->memory;
    return TGL_OK;
}

void gpu_pool_return(gpu_pool *pool, void *memory)
{
    for (int i = 0; memory != NULL && i < pool->count; i++)
        if (pool->blocks[i].memory == memory) pool->blocks[i].is_used = false;
}

void gpu_pool_free(gpu_pool *pool, bool keeps_memory)
{
    for (int i = 0; i < pool->count && !keeps_memory; i++)
        if (pool->blocks[i].memory != NULL) pool->driver->cuMemFree(pool->blocks[i].memory);
    free(pool->blocks);
    pool->blocks = NULL;
    pool->count = pool->room = 0;
}

bool gpu_pool_describe(gpu_pool *pool, const void *memory, size_t bytes, rendezvous_buffer *buffer)
{
    const char *at = memory;
    for (int i = 0; i < pool->count; i++) {
        gpu_block *b = &pool->blocks[i];
        if (at < b->memory || at >= b->memory + b->bytes) continue;
        if (!b->has_handle &&
            pool->driver->cuIpcGetMemHandle(&b->handle, b->memory) != CUDA_SUCCESS)
            return false;
        b->has_handle = true;
        *buffer = (rendezvous_buffer){(uint64_t)i, (uint64_t)(at - b->memory), bytes, b->handle};
        return true;
    }
    return false;
}
