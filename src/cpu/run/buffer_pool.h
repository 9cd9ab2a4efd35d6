/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for packing. A run takes a buffer and gives it back.
 */
#ifndef TGL_CPU_BUFFER_POOL_H
#define TGL_CPU_BUFFER_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { CPU_BUFFER_SLOTS = 32 };

/* Buffers that are kept from run to run. All zero at first. */
typedef struct cpu_buffer_pool {
    size_t most; /* limit of the bytes of idle buffers that are kept; 0: no limit */
    struct {
        atomic_bool in_use;  /* the thread that sets it owns the slot */
        atomic_size_t bytes; /* 0: the slot is empty */
        void *memory;
    } slots[CPU_BUFFER_SLOTS];
} cpu_buffer_pool;

typedef struct cpu_buffer {
    void *memory;
    int slot; /* -1: the buffer is freed when it is given back */
} cpu_buffer;

/* close: frees all buffers, which must be idle. trim: frees the buffers that are idle. */
void tgl_buffer_pool_close(cpu_buffer_pool *pool);
void tgl_buffer_pool_trim(cpu_buffer_pool *pool);

/* Makes sure that a buffer of this size exists. False: there is no memory. */
bool tgl_buffer_pool_reserve(cpu_buffer_pool *pool, size_t bytes);

/* take: returns a buffer whose memory is NULL if the system has none. give: frees the buffer if the
 * idle buffers would exceed `most`. */
cpu_buffer tgl_buffer_pool_take(cpu_buffer_pool *pool, size_t bytes);
void tgl_buffer_pool_give(cpu_buffer_pool *pool, cpu_buffer buffer);

#endif
