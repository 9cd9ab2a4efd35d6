/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing buffers. A plan reserves one of its size when it is made; a run takes any that is large
 * enough and idle, and only when several runs overlap is another one allocated and kept.
 */
#include "cpu/cpu.h"

#include <stdlib.h>
#include <sys/mman.h>

static void *allocate(size_t bytes)
{
    const size_t huge_page = 2 << 20;
    const size_t alignment = bytes >= huge_page / 8 ? huge_page : CPU_ALIGNMENT;
    if (bytes > SIZE_MAX - alignment) return NULL;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    void *memory = aligned_alloc(alignment, bytes);
#ifdef MADV_HUGEPAGE
    /* A packed block spans hundreds of small pages; a refusal costs only speed. */
    if (memory != NULL && alignment == huge_page) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

void tgl_cpu_pool_open(cpu_pool *pool)
{
    pthread_mutex_init(&pool->lock, NULL);
}

void tgl_cpu_pool_close(cpu_pool *pool)
{
    for (int i = 0; i < CPU_POOL_SLOTS; i++)
        free(pool->slots[i].memory);
    pthread_mutex_destroy(&pool->lock);
}

/* The idle slot with the smallest sufficient buffer, else -1. The lock is held. */
static int find_idle(const cpu_pool *pool, size_t bytes)
{
    int best = -1;
    for (int i = 0; i < CPU_POOL_SLOTS; i++)
        if (pool->slots[i].memory != NULL && !pool->slots[i].in_use &&
            pool->slots[i].bytes >= bytes &&
            (best < 0 || pool->slots[i].bytes < pool->slots[best].bytes))
            best = i;
    return best;
}

/* Puts a buffer into a free slot, or in place of an idle smaller one; false: there is none. */
static bool keep(cpu_pool *pool, void *memory, size_t bytes, bool in_use)
{
    int slot = -1;
    for (int i = 0; i < CPU_POOL_SLOTS && slot < 0; i++)
        if (pool->slots[i].memory == NULL) slot = i;
    for (int i = 0; i < CPU_POOL_SLOTS && slot < 0; i++)
        if (!pool->slots[i].in_use && pool->slots[i].bytes < bytes) slot = i;
    if (slot < 0) return false;
    free(pool->slots[slot].memory);
    pool->slots[slot].memory = memory;
    pool->slots[slot].bytes = bytes;
    pool->slots[slot].in_use = in_use;
    return true;
}

bool tgl_cpu_pool_reserve(cpu_pool *pool, size_t bytes)
{
    bool found = bytes == 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < CPU_POOL_SLOTS && !found; i++)
        found = pool->slots[i].memory != NULL && pool->slots[i].bytes >= bytes;
    if (!found) {
        void *memory = allocate(bytes);
        found = memory != NULL;
        if (found && !keep(pool, memory, bytes, false)) free(memory);
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

void *tgl_cpu_pool_take(cpu_pool *pool, size_t bytes)
{
    void *memory = NULL;
    pthread_mutex_lock(&pool->lock);
    const int slot = find_idle(pool, bytes);
    if (slot >= 0) {
        memory = pool->slots[slot].memory;
        pool->slots[slot].in_use = true;
    }
    pthread_mutex_unlock(&pool->lock);
    if (memory != NULL) return memory;

    memory = allocate(bytes);
    if (memory == NULL) return NULL;
    pthread_mutex_lock(&pool->lock);
    keep(pool, memory, bytes, true);
    pthread_mutex_unlock(&pool->lock);
    return memory;
}

void tgl_cpu_pool_give(cpu_pool *pool, void *memory)
{
    bool kept = false;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < CPU_POOL_SLOTS && !kept; i++)
        if (pool->slots[i].memory == memory) {
            pool->slots[i].in_use = false;
            kept = true;
        }
    pthread_mutex_unlock(&pool->lock);
    if (!kept) free(memory);
}
