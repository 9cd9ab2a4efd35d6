/* SPDX-License-Identifier: Apache-2.0
 *
 * The shadow of shared memory. It is used to check bounds, to find races, and to track asynchronous
 * copies in flight.
 */
#ifndef TGL_SIM_SHADOW_SHARED_H
#define TGL_SIM_SHADOW_SHARED_H

#include "sim/machine.h"

/* Prepares the shadow of shared memory for a launch, and for each block. */
bool tgl_shared_start_launch(tgl_machine *machine);
void tgl_shared_start_block(tgl_machine *machine);

/* Describes an offset in shared memory: "As + 128 bytes". */
tgl_where tgl_shared_where(const tgl_sim_module *module, size_t offset);

/* Whether an address is in shared memory or at most OVERRUN bytes (shadow_shared.c) behind it. */
bool tgl_shared_has(const tgl_sim_module *module, uintptr_t address);

/* Reports an access that is not within one __shared__ array, or not within the part of the array
 * that the launch gives (tgl_sim_launch.shared_limit). Returns the array's index. */
int tgl_shared_check_bounds(tgl_machine *machine, size_t offset, size_t bytes, bool is_write,
                            const void *pc);

/* Checks an access by the current thread for races and records it. */
void tgl_shared_access_words(tgl_machine *machine, size_t offset, unsigned bytes, bool is_write,
                             uint32_t site, const void *pc);

/* Loads a float from the shared memory of another block of the cluster: from the copy that `block`
 * keeps while it is suspended. */
float tgl_shared_remote_load(tgl_machine *machine, tgl_sim_block *block, size_t offset,
                             uint32_t site, const void *pc);

/* Records that the current thread issues an asynchronous copy to these bytes in the shared memory
 * of a block of its cluster. bytes: a multiple of 4. */
void tgl_shared_await(tgl_machine *machine, tgl_sim_block *block, size_t offset, size_t bytes,
                      tgl_awaited kind, uint32_t site, const void *pc);

/* Completes an asynchronous copy: records its write as `access`. */
void tgl_shared_arrive(tgl_machine *machine, size_t offset, size_t bytes,
                       const tgl_shared_access *access);

/* Records the start of an asynchronous read of these bytes. The read lasts until its group has been
 * waited for. access: the entry that records the read (reader, time, instruction). clock: the
 * vector clock (clocks.h) of the thread or warpgroup that issues it. */
void tgl_shared_read_async(tgl_machine *machine, size_t offset, size_t bytes,
                           const tgl_shared_access *access, const uint32_t *clock, const void *pc);

/* Whether an access in the shared memory of a block of the cluster is ordered before the current
 * thread: it was the same thread, or a barrier, a warp barrier or an mbarrier is in between. */
bool tgl_shared_is_before(const tgl_machine *machine, const tgl_sim_block *block,
                          const tgl_shared_access *x);

#endif
