/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers the accesses of single threads into accesses by warps, and counts those.
 */
#ifndef TGL_SIM_TALLY_H
#define TGL_SIM_TALLY_H

#include "sim/count.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum tgl_access_kind {
    TGL_GLOBAL_LOAD,
    TGL_GLOBAL_STORE,
    TGL_SHARED_LOAD,
    TGL_SHARED_STORE,
    TGL_ASYNC_COPY, /* cp.async and TMA: a global load and a shared store at once */
    TGL_ACCESS_KINDS
} tgl_access_kind;

/* How often a lane may pass one site before its warp must be flushed. */
enum { TGL_TALLY_WINDOW = 256 };

typedef struct tgl_tally_group tgl_tally_group;

/* An instruction that accesses memory, and what it has come to. */
typedef struct tgl_site {
    const void *pc; /* its return address */
    tgl_access_kind kind;
    int target;         /* what the first access touched: the caller's number */
    int64_t requests;   /* executions by a warp with a lane that took part */
    int64_t bytes;      /* asked for by all lanes */
    int64_t sectors;    /* of global memory */
    int64_t wavefronts; /* of shared memory */
    int64_t conflicts;  /* wavefronts that bank conflicts added */

    /* Of the warp that runs: what its lanes did here together. */
    tgl_tally_group *groups;
    int group_count, group_room;
    int next[32];        /* of each lane: the group behind the one that it joined last */
    uint16_t passes[32]; /* of each lane */
} tgl_site;

typedef struct tgl_tally {
    tgl_site *sites; /* a hash table by pc and kind; pc == NULL: free */
    size_t slots, used;
    uint32_t *touched; /* slots that the warp has passed since it was flushed */
    size_t touched_count;
} tgl_tally;

bool tgl_tally_init(tgl_tally *tally);
void tgl_tally_free(tgl_tally *tally);

/* Forgets all sites. */
void tgl_tally_clear(tgl_tally *tally);

/* Takes note of an access of `bytes`, 1 to 16, by a lane of the warp that runs. round: of the loops
 * that the lane is in; lanes in the same round go together. shared, global: the
 * address of the kind's side; of both for TGL_ASYNC_COPY, where global may be 0 for none. *site:
 * the index of the instruction. False: no memory. *is_full is set if the lane has reached the end
 * of the window at this site: it must not go on before tgl_tally_flush(). */
bool tgl_tally_access(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target, int lane,
                      uint64_t round, uint32_t bytes, uintptr_t shared, uintptr_t global,
                      uint32_t *site, bool *is_full);

/* Counts one request that is no access of a warp: a TMA copy. False: no memory. */
bool tgl_tally_bulk(tgl_tally *tally, const void *pc, tgl_access_kind kind, int target,
                    int64_t bytes, int64_t sectors, uint32_t *site);

/* Counts what the lanes of one warp have done since the last call. */
void tgl_tally_flush(tgl_tally *tally);

#endif
