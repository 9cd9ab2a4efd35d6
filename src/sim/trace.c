/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends steps to a trace, moves their addresses, and sorts them.
 */
#include "sim/trace.h"

#include "sim/growing.h"

tgl_trace_step *tgl_trace_add(tgl_trace *trace)
{
    tgl_trace_step *steps = tgl_grow(trace->steps, &trace->room, trace->count, sizeof *steps);
    if (steps == NULL) return NULL;
    trace->steps = steps;
    return &trace->steps[trace->count++];
}

void tgl_trace_move(tgl_trace *trace, uintptr_t moved)
{
    for (size_t i = 0; i < trace->count; i++) {
        tgl_trace_step *step = &trace->steps[i];
        step->pc = (const char *)step->pc - moved;
        step->tiles[0] -= moved;
        step->tiles[1] -= moved;
        for (uint32_t lanes = step->shared.lanes; lanes != 0; lanes &= lanes - 1)
            step->shared.address[__builtin_ctz(lanes)] -= moved;
    }
}

static int by_order(const void *x, const void *y)
{
    const tgl_trace_step *a = x, *b = y;
    return a->order < b->order ? -1 : a->order > b->order;
}

void tgl_trace_sort(tgl_trace *trace)
{
    if (trace->count > 0) qsort(trace->steps, trace->count, sizeof *trace->steps, by_order);
}

void tgl_trace_free(tgl_trace *trace)
{
    free(trace->steps);
    *trace = (tgl_trace){.steps = NULL};
}
