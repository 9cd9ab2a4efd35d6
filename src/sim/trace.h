/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace of a block: the addresses that the lanes of its warps access, step by step. Of each
 * instruction the first executions by one warp are kept, so that a short trace contains all
 * instructions.
 */
#ifndef TGL_SIM_TRACE_H
#define TGL_SIM_TRACE_H

#include "sim/count.h"

#include <stddef.h>

enum { TGL_TRACE_EACH = 8 }; /* maximum number of traced executions of one instruction */

/* A step of the trace: one instruction executed by a warp. */
typedef struct tgl_trace_step {
    uint64_t order; /* position in time: the step's number among all warp accesses */
    const void *pc;
    tgl_access_kind kind;
    int target, warp;               /* target: as in tgl_site */
    tgl_warp_access shared, global; /* addresses per lane; lanes = 0: this memory is not accessed */
    int64_t rows, row_bytes;        /* TMA: size of the box, whose addresses are in one lane of
                                       `shared` and `global`; 0: no box */
    uintptr_t tiles[2];             /* wgmma: addresses of the operands in shared memory */
    int m, n, k, type;              /* mma and wgmma: shape; type of A as a tgl_type */
} tgl_trace_step;

typedef struct tgl_trace {
    tgl_trace_step *steps;
    size_t count, room;
} tgl_trace;

/* Appends a step; NULL: out of memory. */
tgl_trace_step *tgl_trace_add(tgl_trace *trace);

/* Subtracts `moved` from all addresses of code and shared memory: turns the trace of a module's
 * copy, which is `moved` bytes higher in memory, into a trace of the module. */
void tgl_trace_move(tgl_trace *trace, uintptr_t moved);

/* Sorts the steps by time. */
void tgl_trace_sort(tgl_trace *trace);
void tgl_trace_free(tgl_trace *trace);

#endif
