/* SPDX-License-Identifier: Apache-2.0
 *
 * The panels of a plan (dist_plan.h), and its memory.
 */
#include "dist_plan.h"

#include "dist_error.h"

/* ---- Panels ---------------------------------------------------------------------------------- */

bool dist_plan_loops(const tgl_dist_plan *plan, int operand)
{
    return plan->needed[operand].loop != DIST_NEITHER;
}

int64_t dist_plan_steps(const tgl_dist_plan *plan, int operand)
{
    return dist_plan_loops(plan, operand) ? plan->choice.division.panels : 1;
}

bool dist_plan_in_place(const tgl_dist_plan *plan, int operand, int64_t step, int64_t *offset)
{
    const int rank = plan->dist->transport.rank;
    const dist_rect needed = dist_rect_at(&plan->needed[operand], rank, step);
    const dist_rect own = dist_rect_at(&plan->task.spread[operand], rank, 0);
    int64_t line, column;
    *offset = 0;
    if (dist_rect_lines(&needed) == 0 || dist_rect_width(&needed) == 0) return true;
    if (!dist_overlap_is_whole(needed.window[DIST_OUTER], own.window[DIST_OUTER], &line) ||
        !dist_overlap_is_whole(needed.window[DIST_INNER], own.window[DIST_INNER], &column))
        return false;
    *offset = line * plan->task.ld[operand] + column;
    return true;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

tgl_status dist_plan_allocate(tgl_dist_plan *plan, size_t bytes, void **memory)
{
    const tgl_dist_transport *t = &plan->dist->transport;
    plan->memory_bytes += (double)bytes;
    if (t->allocate != NULL) return t->allocate(t->state, bytes, memory);
    const tgl_status status = tgl_alloc(plan->dist->dev, bytes, memory);
    return status == TGL_OK ? TGL_OK : dist_fail_local(status);
}

void dist_plan_release(tgl_dist_plan *plan, void *memory)
{
    const tgl_dist_transport *t = &plan->dist->transport;
    if (t->allocate != NULL)
        t->release(t->state, memory);
    else
        tgl_free(plan->dist->dev, memory);
}
