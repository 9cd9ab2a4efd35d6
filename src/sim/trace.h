/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace of a block: what the lanes of its warps access, step by step. Of each instruction the
 * first executions by one warp are kept, so that a short trace contains all instructions.
 */
#ifndef TGL_SIM_TRACE_H
#define TGL_SIM_TRACE_H

#include "sim/count.h"

#include <stddef.h>

enum { TGL_TRACE_EACH = 8 }; /* maximum number of steps of one instruction */

/* An instruction that a warp executes. */
typedef struct tgl_trace_step {
    uint64_t order; /* position in time */
    const void *pc;
    tgl_access_kind kind;
    int target, warp;               /* target: as in tgl_site */
    tgl_warp_access shared, global; /* lanes is 0: not accessed */
    int64_t rows, row_bytes;        /* size of a TMA box; `shared` and `global` have its address in
                                       one lane; 0: no box */
    uintptr_t tiles[2];             /* addresses of wgmma's operands in shared memory */
    int m, n, k, type;              /* shape and type (a tgl_type) of mma and wgmma */
} tgl_trace_step;

typedef struct tgl_trace {
    tgl_trace_step *steps;
    size_t count, room;
} tgl_trace;

/* A new step at the end; NULL: no memory. */
tgl_trace_step *tgl_trace_add(tgl_trace *trace);

/* Subtracts `moved` from all addresses of code and of shared memory. This turns the trace of a copy
 * of the module, which lies `moved` bytes behind it, into a trace of the module. */
void tgl_trace_move(tgl_trace *trace, uintptr_t moved);

/* Sorts the steps by time. */
void tgl_trace_sort(tgl_trace *trace);
void tgl_trace_free(tgl_trace *trace);

#endif
