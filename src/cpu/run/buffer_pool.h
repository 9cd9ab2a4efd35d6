/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace memory, mainly for packed operands. A run (the computation of one product) takes a
 * buffer and gives it back.
 */
#ifndef TGL_CPU_BUFFER_POOL_H
#define TGL_CPU_BUFFER_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { CPU_BUFFER_SLOTS = 32 };

/* A cache of workspace buffers that runs reuse. All members are zero at first. */
typedef struct cpu_buffer_pool {
    size_t most; /* maximum sum of the bytes of idle buffers; 0: no limit */
    struct {
        atomic_bool in_use;  /* the thread that sets it to true owns the slot */
        atomic_size_t bytes; /* size of the buffer; 0: the slot is empty */
        void *memory;
    } slots[CPU_BUFFER_SLOTS];
} cpu_buffer_pool;

typedef struct cpu_buffer {
    void *memory;
    int slot; /* slot that holds the buffer; -1: none, so that giving it back frees it */
} cpu_buffer;

/* close: frees all buffers, which must be idle. trim: frees the idle buffers. */
void tgl_buffer_pool_close(cpu_buffer_pool *pool);
void tgl_buffer_pool_trim(cpu_buffer_pool *pool);

/* Makes sure that the pool has a buffer of at least `bytes` bytes, unless the idle buffers would
 * exceed `most`. False: out of memory. */
bool tgl_buffer_pool_reserve(cpu_buffer_pool *pool, size_t bytes);

/* take: returns a buffer of at least `bytes` bytes; its memory is NULL if the system has none.
 * give: returns a buffer to the pool, or frees it if the idle buffers would exceed `most`. */
cpu_buffer tgl_buffer_pool_take(cpu_buffer_pool *pool, size_t bytes);
void tgl_buffer_pool_give(cpu_buffer_pool *pool, cpu_buffer buffer);

#endif
