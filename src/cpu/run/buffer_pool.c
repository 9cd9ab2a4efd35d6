/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace buffers. When a plan is made, a buffer of its size is allocated unless there is one. A
 * run takes the smallest idle buffer that is large enough, or allocates one if there is none, and
 * gives it back for later runs. The total size of the idle buffers is limited, so that a process
 * that has once computed many or large products at the same time gets the memory back.
 *
 * There is no lock: the thread that sets a slot's `in_use` owns the slot. If the process forks
 * while another thread owns a slot, the child never gets that slot back, but has the others.
 */
#include "cpu/run/buffer_pool.h"
#include "cpu/plan/cpu_plan.h"

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
    /* Huge pages save TLB misses, because a packed block spans hundreds of small pages. If
     * madvise() fails, the buffer still works. */
    if (memory != NULL && alignment == huge_page) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

static size_t size_of_slot(const cpu_buffer_pool *pool, int slot)
{
    return atomic_load_explicit(&pool->slots[slot].bytes, memory_order_relaxed);
}

static bool claim(cpu_buffer_pool *pool, int slot)
{
    return !atomic_exchange_explicit(&pool->slots[slot].in_use, true, memory_order_acquire);
}

static void release(cpu_buffer_pool *pool, int slot)
{
    atomic_store_explicit(&pool->slots[slot].in_use, false, memory_order_release);
}

/* The idle slot with the smallest buffer of at least `bytes` bytes; -1: there is none. */
static int find_idle(const cpu_buffer_pool *pool, size_t bytes)
{
    int best = -1;
    for (int i = 0; i < CPU_BUFFER_SLOTS; i++)
        if (size_of_slot(pool, i) >= bytes &&
            !atomic_load_explicit(&pool->slots[i].in_use, memory_order_relaxed) &&
            (best < 0 || size_of_slot(pool, i) < size_of_slot(pool, best)))
            best = i;
    return best;
}

/* Stores a buffer in an idle slot, and claims the slot for the caller. Prefers an empty slot; else
 * it takes a slot with a smaller buffer, and frees that buffer. Returns -1 if there is neither. */
static int keep(cpu_buffer_pool *pool, void *memory, size_t bytes)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < CPU_BUFFER_SLOTS; i++) {
            const size_t limit = pass == 0 ? 1 : bytes;
            if (size_of_slot(pool, i) >= limit || !claim(pool, i)) continue;
            if (size_of_slot(pool, i) < limit) {
                free(pool->slots[i].memory);
                pool->slots[i].memory = memory;
                atomic_store_explicit(&pool->slots[i].bytes, bytes, memory_order_relaxed);
                return i;
            }
            release(pool, i); /* another thread has filled the slot meanwhile */
        }
    return -1;
}

/* Frees the buffer of a slot that the calling thread has claimed. */
static void empty(cpu_buffer_pool *pool, int slot)
{
    free(pool->slots[slot].memory);
    pool->slots[slot].memory = NULL;
    atomic_store_explicit(&pool->slots[slot].bytes, 0, memory_order_relaxed);
}

void tgl_buffer_pool_trim(cpu_buffer_pool *pool)
{
    for (int i = 0; i < CPU_BUFFER_SLOTS; i++) {
        if (size_of_slot(pool, i) == 0 || !claim(pool, i)) continue;
        empty(pool, i);
        release(pool, i);
    }
}

void tgl_buffer_pool_close(cpu_buffer_pool *pool)
{
    for (int i = 0; i < CPU_BUFFER_SLOTS; i++)
        if (claim(pool, i)) free(pool->slots[i].memory);
}

/* Sum of the bytes of all idle buffers. */
static size_t idle_bytes(const cpu_buffer_pool *pool)
{
    size_t bytes = 0;
    for (int i = 0; i < CPU_BUFFER_SLOTS; i++)
        if (!atomic_load_explicit(&pool->slots[i].in_use, memory_order_relaxed))
            bytes += size_of_slot(pool, i);
    return bytes;
}

bool tgl_buffer_pool_reserve(cpu_buffer_pool *pool, size_t bytes)
{
    if (bytes == 0) return true;
    for (int i = 0; i < CPU_BUFFER_SLOTS; i++)
        if (size_of_slot(pool, i) >= bytes) return true;
    const cpu_buffer buffer = tgl_buffer_pool_take(pool, bytes);
    if (buffer.memory == NULL) return false;
    tgl_buffer_pool_give(pool, buffer);
    return true;
}

cpu_buffer tgl_buffer_pool_take(cpu_buffer_pool *pool, size_t bytes)
{
    int slot;
    while ((slot = find_idle(pool, bytes)) >= 0) {
        if (!claim(pool, slot)) continue;
        if (size_of_slot(pool, slot) >= bytes) return (cpu_buffer){pool->slots[slot].memory, slot};
        release(pool, slot);
    }
    void *memory = allocate(bytes);
    return (cpu_buffer){memory, memory != NULL ? keep(pool, memory, bytes) : -1};
}

void tgl_buffer_pool_give(cpu_buffer_pool *pool, cpu_buffer buffer)
{
    if (buffer.slot < 0) {
        free(buffer.memory);
        return;
    }
    const size_t own = size_of_slot(pool, buffer.slot);
    if (pool->most > 0 && (own > pool->most || idle_bytes(pool) > pool->most - own))
        empty(pool, buffer.slot);
    release(pool, buffer.slot);
}
