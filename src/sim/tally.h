/* SPDX-License-Identifier: Apache-2.0
 *
 * Combines the accesses of single threads into accesses by warps, and counts those.
 */
#ifndef TGL_SIM_TALLY_H
#define TGL_SIM_TALLY_H

#include "sim/count.h"
#include "sim/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* Maximum number of executions of one instruction by a lane before its warp must be flushed. */
enum { TGL_TALLY_WINDOW = 256 };

typedef struct tgl_tally_group tgl_tally_group;

/* An instruction that accesses memory, and its counts. */
typedef struct tgl_site {
    const void *pc; /* its return address */
    tgl_access_kind kind;
    int target;         /* the caller's number for the memory that the first access touched */
    uint32_t cluster;   /* the cluster of the first access */
    int64_t requests;   /* executions by a warp with at least one participating lane */
    int64_t bytes;      /* requested by all lanes */
    int64_t sectors;    /* sectors of global memory */
    int64_t wavefronts; /* wavefronts of shared memory */
    int64_t conflicts;  /* additional wavefronts because of bank conflicts */

    /* The combined accesses of the lanes of the running warp. */
    tgl_tally_group *groups;
    int group_count;
    size_t group_room;
    int next[32];        /* per lane: the group after the one that it joined last */
    uint16_t passes[32]; /* per lane: number of accesses since the last flush */

    int traced;      /* executions of this instruction in the trace, at most TGL_TRACE_EACH */
    int traced_warp; /* the only warp whose executions are traced; valid if traced > 0 */
} tgl_site;

typedef struct tgl_tally {
    tgl_site *sites; /* a hash table by pc and kind; pc == NULL: free */
    size_t slots, used;
    uint32_t *touched; /* slots that the warp has used since the last flush */
    size_t touched_count;

    tgl_trace *trace; /* trace of the running warp; NULL: it is not traced */
    int warp;         /* number of the running warp in its block */
    uint32_t cluster; /* the running cluster */
    uint64_t order;   /* number of the latest access by a warp */
} tgl_tally;

bool tgl_tally_init(tgl_tally *tally);
void tgl_tally_free(tgl_tally *tally);

/* Removes all instructions and their counts. */
void tgl_tally_clear(tgl_tally *tally);

/* Records an access of `bytes`, 1 to 16, by a lane of the running warp. round: identifies the
 * iterations of the loops that the lane is in; accesses of the same round are combined. shared,
 * global: the address in this memory. A TGL_ASYNC_COPY has both, and its global may be 0. *site:
 * the index of the instruction. False: no memory. *is_full: the lane has reached the end of the
 * window at this instruction and must not continue before tgl_tally_flush(). */
bool tgl_tally_access(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target, int lane,
                      uint64_t round, uint32_t bytes, uintptr_t shared, uintptr_t global,
                      uint32_t *site, bool *is_full);

/* Counts one request that is not an access by a warp: a TMA copy, an instruction of the tensor
 * cores. False: no memory. */
bool tgl_tally_bulk(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target,
                    int64_t bytes, int64_t sectors, uint32_t *site);

/* Adds a step to the trace for an execution of instruction number `site`; the caller fills it in.
 * NULL: it is not traced, because only the first TGL_TRACE_EACH executions by one warp are. */
tgl_trace_step *tgl_tally_step(tgl_tally *tally, uint32_t site);

/* Adds the counts of another tally, whose instructions have addresses `moved` bytes above ours.
 * False: no memory. */
bool tgl_tally_add(tgl_tally *tally, const tgl_tally *other, uintptr_t moved);

/* Counts the accesses of the running warp since the last call. */
void tgl_tally_flush(tgl_tally *tally);

#endif
