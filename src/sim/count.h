/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of a GPU's memory system for one access by a warp: sectors of global memory and
 * wavefronts of shared memory. The functions depend only on the addresses.
 */
#ifndef TGL_SIM_COUNT_H
#define TGL_SIM_COUNT_H

#include <stdint.h>

typedef enum tgl_access_kind {
    TGL_GLOBAL_LOAD,
    TGL_GLOBAL_STORE,
    TGL_SHARED_LOAD,
    TGL_SHARED_STORE,
    TGL_ASYNC_COPY,  /* cp.async: counts as a global load and a shared store */
    TGL_TMA_LOAD,    /* TMA load of a box: counts as a global load and a shared store */
    TGL_TMA_STORE,   /* TMA store of a box, from shared to global memory */
    TGL_TENSOR_LOAD, /* loads of wgmma from shared memory */
    TGL_TENSOR_MMA,  /* mma.sync, which accesses registers only */
    TGL_ACCESS_KINDS
} tgl_access_kind;

/* The name of a kind in reports: "global load", ... "mma". */
const char *tgl_access_name(tgl_access_kind kind);

/* One memory instruction, executed by some lanes of a warp. */
typedef struct tgl_warp_access {
    uint32_t lanes;        /* bit i: lane i takes part */
    uint32_t bytes;        /* per lane: 1, 2, 4, 8 or 16; address[i] is a multiple of it */
    uintptr_t address[32]; /* address for each lane; undefined for inactive lanes */
} tgl_warp_access;

/* The number of distinct 32-byte sectors. Example: 4 if 32 lanes access consecutive, aligned
 * floats. */
int tgl_count_sectors(const tgl_warp_access *access);

/* The number of lanes whose shared memory accesses are served together: 32, 16 or 8. */
int tgl_count_lanes_together(const tgl_warp_access *access);

/* The number of wavefronts: passes over the 32 banks of 4 bytes. *least: the number that would
 * suffice without bank conflicts; the number of conflicts is the difference. The rules are in
 * docs/simulator.md. */
int tgl_count_wavefronts(const tgl_warp_access *access, int *least);

#endif
