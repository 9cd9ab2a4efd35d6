/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM + reduce-scatter and GEMM + all-reduce with one collective operation; dist_reduce.h
 * describes it. In an all-reduce C is replicated; in a reduce-scatter each rank has the same number
 * of its rows.
 */
#include "dist_reduce.h"

#include "dist_copy.h"
#include "dist_error.h"

static bool is_all_reduce(const tgl_dist_plan *plan)
{
    return plan->task.spread[OPERAND_C].replicated;
}

static bool is_padded(const tgl_dist_plan *plan)
{
    return plan->task.ld[OPERAND_C] != plan->task.problem.n;
}

/* Rows of C that this rank has. */
static int64_t own_rows(const tgl_dist_plan *plan)
{
    return is_all_reduce(plan) ? plan->task.problem.m : plan->task.problem.m / plan->task.ranks;
}

static size_t bytes_of(const tgl_dist_plan *plan, int64_t rows)
{
    return (size_t)(rows * plan->task.problem.n) * dist_task_element(&plan->task, OPERAND_C);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

tgl_status dist_reduce_allocate(tgl_dist_plan *plan)
{
    const bool sums_in_place = is_all_reduce(plan);
    if (!sums_in_place || is_padded(plan))
        DIST_TRY(dist_plan_allocate(plan, bytes_of(plan, plan->task.problem.m), &plan->partial));
    if (sums_in_place || !is_padded(plan)) return TGL_OK;
    return dist_plan_allocate(plan, bytes_of(plan, own_rows(plan)), &plan->reduced);
}

void dist_reduce_free(tgl_dist_plan *plan)
{
    dist_plan_release(plan, plan->partial);
    dist_plan_release(plan, plan->reduced);
    plan->partial = plan->reduced = NULL;
}

/* ---- Products -------------------------------------------------------------------------------- */

/* This rank's product for the rows [first, first + rows) of C. beta: for C in the memory of this
 * rank. */
static void multiply(tgl_dist_plan *plan, dist_ring_call *call, int64_t first, int64_t rows,
                     double beta)
{
    const dist_task *task = &plan->task;
    const int rank = plan->dist->transport.rank;
    const dist_rect own = dist_rect_at(&task->spread[OPERAND_A], rank, 0);
    const bool by_rows = task->axis_of[OPERAND_A][DIST_OUTER] == AXIS_M;
    const dist_window *k = &own.window[by_rows ? DIST_INNER : DIST_OUTER];
    const int64_t from = by_rows ? first * task->ld[OPERAND_A] : first;
    dist_product p = {.problem = task->problem, .alpha = call->alpha, .beta = beta};
    p.problem.m = rows;
    p.problem.k = k->end - k->begin;
    if (p.problem.k > 0) {
        p.A = (const char *)call->A + from * (int64_t)dist_task_element(task, OPERAND_A);
        p.B = call->B;
        p.problem.lda = task->ld[OPERAND_A];
        p.problem.ldb = task->ld[OPERAND_B];
    }
    p.problem.ldc = task->ld[OPERAND_C];
    p.C = call->C;
    if (plan->partial != NULL) {
        p.problem.type_d = task->type[OPERAND_C];
        p.problem.ldd = task->problem.n;
        p.D = (char *)plan->partial + bytes_of(plan, first);
    }
    p.has_epilogue = rank == 0 && task->epilogue.size > 0;
    p.bias = task->epilogue.bias != TGL_BIAS_NONE && p.has_epilogue ? call->bias : NULL;
    const tgl_status status = dist_multiply(&plan->products, &p);
    if (call->product == TGL_OK) call->product = status;
}

/* Reduce-scatter with beta: each rank adds beta*C to its product for its own rows. */
static void multiply_shards(tgl_dist_plan *plan, dist_ring_call *call)
{
    const int64_t rows = own_rows(plan);
    for (int rank = 0; rank < plan->task.ranks; rank++)
        multiply(plan, call, rank * rows, rows,
                 rank == plan->dist->transport.rank ? call->beta : 0);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

tgl_status dist_reduce_run(tgl_dist_plan *plan, dist_ring_call *call)
{
    const tgl_dist_transport *t = &plan->dist->transport;
    const int64_t m = plan->task.problem.m;
    const size_t line = bytes_of(plan, 1), element = dist_task_element(&plan->task, OPERAND_C);
    const bool all = is_all_reduce(plan);
    if (m == 0 || line == 0) return TGL_OK;
    if (!all && call->beta != 0)
        multiply_shards(plan, call);
    else
        multiply(plan, call, 0, m, t->rank == 0 ? call->beta : 0);
    const void *from = plan->partial != NULL ? plan->partial : call->C;
    void *to = plan->reduced != NULL          ? plan->reduced
               : all && plan->partial != NULL ? plan->partial
                                              : call->C;
    DIST_TRY(t->collect(t->state, all ? TGL_DIST_ALL_REDUCE : TGL_DIST_REDUCE_SCATTER,
                        plan->task.type[OPERAND_C], from, to,
                        (size_t)(own_rows(plan) * plan->task.problem.n)));
    if (to == call->C) return TGL_OK;
    return dist_copy(t, call->C, (size_t)plan->task.ld[OPERAND_C] * element, to, line,
                     own_rows(plan), line);
}
