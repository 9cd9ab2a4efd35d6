/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and counts every access of a thread to memory before it happens.
 */
#ifndef TGL_SIM_SHADOW_MEMORY_H
#define TGL_SIM_SHADOW_MEMORY_H

#include "sim/machine.h"

/* The hooks of kernels/sim/hooks.h for accesses to memory, called before each access. */
void tgl_memory_access(tgl_machine *machine, const void *pointer, unsigned bytes, int is_write,
                       const void *pc);
void tgl_memory_wide_load(tgl_machine *machine, const void *words, unsigned bytes, const void *pc);
void tgl_memory_atomic(tgl_machine *machine, const void *pointer, const void *pc);
float tgl_memory_cluster_load(tgl_machine *machine, const float *shared, int rank, const void *pc);
void tgl_memory_async_copy(tgl_machine *machine, void *shared, const void *global, int bytes,
                           int valid_bytes, const void *pc);
void tgl_memory_async_commit(tgl_machine *machine);
void tgl_memory_async_wait(tgl_machine *machine, int groups_pending);

/* Finds the region (TGL_SIM_A and so on) of an access to global memory. Reports an access that no
 * region allows, or that comes before the wait for earlier launches. Returns the region's index. */
int tgl_memory_check_region(tgl_machine *machine, uintptr_t address, unsigned bytes, bool is_write,
                            const void *pc);

#endif
