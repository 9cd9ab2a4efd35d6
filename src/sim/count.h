/* SPDX-License-Identifier: Apache-2.0
 *
 * What the memory system of a GPU makes of one access by a warp: sectors of global memory, and
 * wavefronts of shared memory. Pure functions of the addresses.
 */
#ifndef TGL_SIM_COUNT_H
#define TGL_SIM_COUNT_H

#include <stdint.h>

/* One instruction, executed by the lanes in the mask. */
typedef struct tgl_warp_access {
    uint32_t lanes;        /* bit i: lane i takes part */
    uint32_t bytes;        /* a lane: 1, 2, 4, 8 or 16, and address[i] is a multiple of it */
    uintptr_t address[32]; /* only those of the lanes in the mask mean anything */
} tgl_warp_access;

/* Distinct 32-byte sectors. A coalesced float a lane takes 4. */
int tgl_count_sectors(const tgl_warp_access *access);

/* Passes over the 32 banks of 4 bytes. *least: what the access would take without bank conflicts;
 * the difference is the conflicts. docs/simulator.md has the rules. */
int tgl_count_wavefronts(const tgl_warp_access *access, int *least);

#endif
