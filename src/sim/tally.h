/* SPDX-License-Identifier: Apache-2.0
 *
 * Combines the accesses of single threads into accesses by warps, and counts the accesses by warps.
 */
#ifndef TGL_SIM_TALLY_H
#define TGL_SIM_TALLY_H

#include "sim/count.h"
#include "sim/trace.h"

#include <stdbool.h>
#include <stddef.h>

/* A lane may execute an instruction this many times before its warp's accesses must be counted
 * (tgl_tally_flush()). */
enum { TGL_TALLY_WINDOW = 256 };

typedef struct tgl_tally_group tgl_tally_group;

/* An instruction that accesses memory, and its counts. */
typedef struct tgl_site {
    const void *pc; /* return address of the instruction's call of a hook */
    tgl_access_kind kind;
    int target; /* index of the region (TGL_SIM_A and so on) or of the shared array that the first
                   access was to */
    uint32_t cluster;   /* cluster of the thread of the first access */
    int64_t requests;   /* executions by a warp with at least one active lane */
    int64_t bytes;      /* bytes requested, all lanes together */
    int64_t sectors;    /* sectors of global memory */
    int64_t wavefronts; /* wavefronts of shared memory */
    int64_t conflicts;  /* additional wavefronts because of bank conflicts */

    /* The combined accesses of the lanes of the running warp. */
    tgl_tally_group *groups;
    int group_count;
    size_t group_room;
    int next[32];        /* per lane: index of the group after the one that it joined last */
    uint16_t passes[32]; /* per lane: number of accesses since the last flush */

    int traced;      /* number of executions of this instruction that are in the trace, at most
                        TGL_TRACE_EACH */
    int traced_warp; /* the only warp whose executions are traced; valid if traced > 0 */
} tgl_site;

typedef struct tgl_tally {
    tgl_site *sites; /* a hash table with the key (pc, kind); pc == NULL: the slot is free */
    size_t slots, used;
    uint32_t *touched; /* slots that the running warp has used since the last flush */
    size_t touched_count;

    tgl_trace *trace; /* receives the trace of the running warp; NULL: it is not traced */
    int warp;         /* number of the running warp in its block */
    uint32_t cluster; /* the running cluster */
    uint64_t order;   /* number of warp accesses so far */
} tgl_tally;

bool tgl_tally_init(tgl_tally *tally);
void tgl_tally_free(tgl_tally *tally);

/* Removes all instructions and their counts. */
void tgl_tally_clear(tgl_tally *tally);

/* Records an access of `bytes` (1 to 16) by a lane of the running warp. round: identifies the
 * iterations of the enclosing loops; accesses of lanes with equal `round` are combined. shared: the
 * address in shared memory; 0: the access is not to shared memory. global: the same for global
 * memory. A TGL_ASYNC_COPY has both addresses; its `global` may be 0. *site: the index of the
 * instruction in tally->sites. *is_full: the lane must not continue before tgl_tally_flush().
 * False: out of memory, or the table of instructions is full. */
bool tgl_tally_access(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target, int lane,
                      uint64_t round, uint32_t bytes, uintptr_t shared, uintptr_t global,
                      uint32_t *site, bool *is_full);

/* Counts one execution of an instruction that is not a warp's memory access: a TMA copy or an
 * instruction of the tensor cores. False: the table of instructions is full. */
bool tgl_tally_bulk(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target,
                    int64_t bytes, int64_t sectors, uint32_t *site);

/* Adds a step for an execution of instruction `site` to the trace; the caller fills in the step.
 * NULL: this execution is not traced. Only the first TGL_TRACE_EACH executions by one warp are
 * traced. */
tgl_trace_step *tgl_tally_step(tgl_tally *tally, uint32_t site);

/* Adds the counts of another tally, which belongs to a copy of the kernel's code. moved: the copy
 * is this many bytes higher in memory than the code of this tally. False: the table of instructions
 * is full. */
bool tgl_tally_add(tgl_tally *tally, const tgl_tally *other, uintptr_t moved);

/* Counts the accesses of the running warp since the last flush. */
void tgl_tally_flush(tgl_tally *tally);

#endif
