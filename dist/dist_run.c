/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a plan, panel by panel. In step t
 * - the panels of step t+1 are sent and received;
 * - the panels of step t are multiplied;
 * - the partial sums of step t-1 are sent to the owners of C, unless C stays where it is. If the
 *   panels are along k, the sums are sent once, after the last step.
 *
 * A rank whose product or addition fails goes on to send and receive, so that no other rank waits
 * for it. At the end all ranks agree on the status.
 */
#include "dist_error.h"
#include "dist_reduce.h"

#include <math.h>

typedef struct run {
    tgl_dist_plan *plan;
    double alpha, beta;
    const void *matrix[2]; /* A, B */
    void *C;
    const void *bias;
    void *sums;         /* plan->sums, or this rank's part of C if C can hold the sums */
    tgl_status product; /* first failure of this rank's products and additions, else TGL_OK */
} run;

/* ---- Operands -------------------------------------------------------------------------------- */

static const dist_division *division_of(const run *r)
{
    return &r->plan->choice.division;
}

static void *at(const void *base, int64_t elements, size_t element)
{
    return base == NULL ? NULL : (char *)base + elements * (int64_t)element;
}

/* Address of the part of C that this rank adds up (tgl_dist_plan.owned). */
static void *own_c(const run *r)
{
    const tgl_dist_plan *plan = r->plan;
    return at(r->C, plan->first_row * plan->task.ld[OPERAND_C],
              dist_task_element(&plan->task, OPERAND_C));
}

/* The buffer of an operand for a step. An operand that is not cut into panels has only one
 * buffer. */
static void *buffer_of(const run *r, int operand, int64_t step)
{
    return r->plan->buffer[operand][dist_plan_loops(r->plan, operand) ? step & 1 : 0];
}

/* Address and leading dimension of A or B for a step: in the rank's own part, or in a buffer. */
static const void *operand_at(const run *r, int operand, int64_t step, int64_t *ld)
{
    int64_t offset;
    const tgl_dist_plan *plan = r->plan;
    if (dist_plan_in_place(plan, operand, step, &offset)) {
        *ld = plan->task.ld[operand];
        return at(r->matrix[operand], offset, dist_task_element(&plan->task, operand));
    }
    *ld = plan->ld[operand];
    return buffer_of(r, operand, step);
}

/* ---- Moving ---------------------------------------------------------------------------------- */

static tgl_status begin_operand(run *r, int operand, int64_t step)
{
    int64_t offset;
    tgl_dist_plan *plan = r->plan;
    void *target =
        dist_plan_in_place(plan, operand, step, &offset) ? NULL : buffer_of(r, operand, step);
    return dist_check_link(plan->dist,
                           dist_transfer_begin(&plan->transfer[operand], &plan->dist->transport,
                                               step, r->matrix[operand], target));
}

static tgl_status finish_operand(run *r, int operand, int64_t step)
{
    int64_t offset;
    tgl_dist_plan *plan = r->plan;
    void *target =
        dist_plan_in_place(plan, operand, step, &offset) ? NULL : buffer_of(r, operand, step);
    return dist_check_link(plan->dist,
                           dist_transfer_finish(&plan->transfer[operand], &plan->dist->transport,
                                                step, r->matrix[operand], target));
}

/* Calls move() for those of A and B that have a new panel in each step (looping = true), or for
 * those that move only once, before step 0 (looping = false). */
static tgl_status move_operands(run *r, tgl_status (*move)(run *, int, int64_t), bool looping,
                                int64_t step)
{
    for (int x = OPERAND_A; x <= OPERAND_B; x++)
        if (dist_plan_loops(r->plan, x) == looping) DIST_TRY(move(r, x, step));
    return TGL_OK;
}

static tgl_status begin_delivery(run *r, int64_t step)
{
    return dist_check_link(
        r->plan->dist, dist_transfer_begin(&r->plan->transfer[OPERAND_C], &r->plan->dist->transport,
                                           step, buffer_of(r, OPERAND_C, step), r->sums));
}

static tgl_status finish_delivery(run *r, int64_t step)
{
    dist_transfer *transfer = &r->plan->transfer[OPERAND_C];
    transfer->sum = r->product;
    const tgl_status status = dist_transfer_finish(transfer, &r->plan->dist->transport, step,
                                                   buffer_of(r, OPERAND_C, step), r->sums);
    r->product = transfer->sum;
    return dist_check_link(r->plan->dist, status);
}

/* If each rank has a copy of C: sends to all ranks the rows that this rank has added up. */
static tgl_status copy_result(run *r)
{
    tgl_dist *dist = r->plan->dist;
    dist_transfer *copies = &r->plan->copies;
    DIST_TRY(
        dist_check_link(dist, dist_transfer_begin(copies, &dist->transport, 0, own_c(r), r->C)));
    return dist_check_link(dist, dist_transfer_finish(copies, &dist->transport, 0, own_c(r), r->C));
}

/* ---- Products -------------------------------------------------------------------------------- */

static void multiply(run *r, const dist_product *product)
{
    const tgl_status status = dist_multiply(&r->plan->products, product);
    if (r->product == TGL_OK) r->product = status;
}

/* The address of the bias for the part of this rank's C that begins at (line, column). */
static const void *bias_from(const run *r, int64_t line, int64_t column)
{
    const dist_task *task = &r->plan->task;
    const tgl_epilogue *e = &task->epilogue;
    const tgl_type type = e->type_bias != 0 ? e->type_bias : task->type[OPERAND_C];
    if (e->bias == TGL_BIAS_NONE) return NULL;
    return at(r->bias, e->bias == TGL_BIAS_ROW ? line : column, tgl_type_size(type));
}

/* Computes the product of the panels of a step. */
static void multiply_panels(run *r, int64_t step)
{
    const dist_division *division = division_of(r);
    const dist_task *task = &r->plan->task;
    const int rank = r->plan->dist->transport.rank;
    const dist_rect a = dist_rect_at(&r->plan->needed[OPERAND_A], rank, step);
    const dist_rect c = dist_rect_at(&r->plan->needed[OPERAND_C], rank, step);
    const dist_window *k =
        &a.window[task->axis_of[OPERAND_A][DIST_OUTER] == AXIS_K ? DIST_OUTER : DIST_INNER];
    const bool adds =
        division->loop == AXIS_K && (step > 0 || (division->c_stays && r->plan->has_sums));
    if (k->begin == k->end && adds) return;

    dist_product p = {.problem = task->problem, .alpha = r->alpha};
    p.problem.m = dist_rect_lines(&c);
    p.problem.n = dist_rect_width(&c);
    p.problem.k = k->end - k->begin;
    if (p.problem.k > 0) {
        p.A = operand_at(r, OPERAND_A, step, &p.problem.lda);
        p.B = operand_at(r, OPERAND_B, step, &p.problem.ldb);
    }
    if (division->c_stays) {
        const int64_t line = c.window[DIST_OUTER].begin, column = c.window[DIST_INNER].begin;
        p.has_epilogue = !r->plan->has_sums && task->epilogue.size > 0;
        p.problem.type_c = r->plan->has_sums ? task->type_sum : task->type[OPERAND_C];
        p.problem.ldc = r->plan->ld_sums;
        p.C = at(r->sums, line * p.problem.ldc + column, tgl_type_size(p.problem.type_c));
        p.beta = adds ? 1 : r->beta;
        if (p.has_epilogue) p.bias = bias_from(r, line, column);
    } else {
        p.problem.type_c = task->type_sum;
        p.problem.ldc = r->plan->ld[OPERAND_C];
        p.C = buffer_of(r, OPERAND_C, step);
        p.beta = adds ? 1 : 0;
    }
    multiply(r, &p);
}

/* A product with k = 0: C := beta*C in the part that this rank has in `spread`. C: address of this
 * part. */
static dist_product scaling(const run *r, const dist_spread *spread, void *C, double beta)
{
    const dist_task *task = &r->plan->task;
    const dist_rect own = dist_rect_at(spread, r->plan->dist->transport.rank, 0);
    dist_product p = {.problem = task->problem, .beta = beta};
    p.problem.m = dist_rect_lines(&own);
    p.problem.n = dist_rect_width(&own);
    p.problem.k = 0;
    p.problem.ldc = task->ld[OPERAND_C];
    p.C = C;
    return p;
}

/* sums := beta*C, or C := beta*C if C holds the sums. The partial sums are added later. */
static void begin_sums(run *r)
{
    dist_product p = scaling(r, &r->plan->owned, own_c(r), r->beta);
    if (r->plan->has_sums) {
        p.problem.type_d = r->plan->task.type_sum;
        p.problem.ldd = r->plan->ld_sums;
        p.D = r->sums;
    } else if (r->plan->choice.division.c_stays) {
        return; /* the first product multiplies C by beta */
    }
    multiply(r, &p);
}

/* C := activation(sums + bias), rounded to the type of C. */
static void finish_sums(run *r)
{
    if (!r->plan->has_sums) return;
    dist_product p = scaling(r, &r->plan->owned, own_c(r), 1);
    p.problem.type_c = r->plan->task.type_sum;
    p.problem.ldc = r->plan->ld_sums;
    p.problem.type_d = r->plan->task.type[OPERAND_C];
    p.problem.ldd = r->plan->task.ld[OPERAND_C];
    p.C = r->sums;
    p.D = own_c(r);
    p.has_epilogue = r->plan->task.epilogue.size > 0;
    p.bias = bias_from(r, r->plan->first_row, 0);
    multiply(r, &p);
}

/* C := activation(beta*C + bias), without reading A and B. */
static void scale_only(run *r)
{
    dist_product p = scaling(r, &r->plan->task.spread[OPERAND_C], r->C, r->beta);
    p.has_epilogue = r->plan->task.epilogue.size > 0;
    p.bias = bias_from(r, 0, 0);
    multiply(r, &p);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void progress(const run *r)
{
    const tgl_dist_transport *t = &r->plan->dist->transport;
    if (t->progress != NULL) t->progress(t->state);
}

static tgl_status run_panels(run *r)
{
    const dist_division *division = division_of(r);
    const int64_t panels = division->panels;
    const bool delivers = !division->c_stays, delivers_each = delivers && division->loop != AXIS_K;
    DIST_TRY(move_operands(r, begin_operand, false, 0));
    DIST_TRY(move_operands(r, begin_operand, true, 0));
    begin_sums(r);
    DIST_TRY(move_operands(r, finish_operand, false, 0));
    for (int64_t step = 0; step < panels; step++) {
        DIST_TRY(move_operands(r, finish_operand, true, step));
        if (step + 1 < panels) DIST_TRY(move_operands(r, begin_operand, true, step + 1));
        progress(r);
        multiply_panels(r, step);
        progress(r);
        if (delivers_each) DIST_TRY(begin_delivery(r, step));
        if (delivers_each && step > 0) DIST_TRY(finish_delivery(r, step - 1));
    }
    if (delivers && !delivers_each) DIST_TRY(begin_delivery(r, 0));
    if (delivers) DIST_TRY(finish_delivery(r, delivers_each ? panels - 1 : 0));
    finish_sums(r);
    return r->plan->has_copies ? copy_result(r) : TGL_OK;
}

static tgl_status run_ring(run *r)
{
    dist_ring_call call = {.alpha = r->alpha,
                           .beta = r->beta,
                           .A = r->matrix[OPERAND_A],
                           .B = r->matrix[OPERAND_B],
                           .bias = r->bias,
                           .C = r->C,
                           .product = r->product};
    const tgl_status status = r->plan->choice.ring == RING_COLLECTIVE
                                  ? dist_reduce_run(r->plan, &call)
                                  : dist_ring_run(r->plan, &call);
    r->product = call.product;
    /* After a failure this rank sends no more messages, so the communicator is marked as broken. */
    return dist_check_link(r->plan->dist, status);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static bool is_bad(const void *pointer, size_t element)
{
    return pointer == NULL || (uintptr_t)pointer % element != 0;
}

static bool has_part(const run *r, int operand)
{
    const dist_rect own =
        dist_rect_at(&r->plan->task.spread[operand], r->plan->dist->transport.rank, 0);
    return dist_rect_lines(&own) > 0 && dist_rect_width(&own) > 0;
}

static bool reads_operands(const run *r)
{
    return r->alpha != 0 && r->plan->task.problem.k > 0;
}

static tgl_status check_pointers(const run *r)
{
    static const tgl_status bad[] = {TGL_BAD_A, TGL_BAD_B};
    const dist_task *task = &r->plan->task;
    for (int x = OPERAND_A; x <= OPERAND_B; x++) {
        const int given = task->is_exchanged ? 1 - x : x;
        if (reads_operands(r) && has_part(r, x) && is_bad(r->matrix[x], dist_task_element(task, x)))
            return dist_fail(bad[given], "%c is NULL or not aligned to its elements", "AB"[given]);
    }
    if (!has_part(r, OPERAND_C)) return TGL_OK;
    if (is_bad(r->C, dist_task_element(task, OPERAND_C)))
        return dist_fail(TGL_BAD_C, "C is NULL or not aligned to its elements");
    if (task->epilogue.bias != TGL_BIAS_NONE && r->bias == NULL)
        return dist_fail(TGL_BAD_BIAS, "the bias is NULL");
    return TGL_OK;
}

/* Checks alpha or beta: products with int32 sums require integers, as in tgl_gemm(). */
static tgl_status check_scalar(const run *r, const char *name, double value)
{
    if (r->plan->task.type_sum != TGL_I32 ||
        (value >= INT32_MIN && value <= INT32_MAX && value == trunc(value)))
        return TGL_OK;
    return dist_fail(TGL_BAD_SCALAR, "%s is %.9g; products of i8 take integers of 32 bits", name,
                     value);
}

static tgl_status check_arguments(const run *r)
{
    DIST_TRY(check_scalar(r, "alpha", r->alpha));
    DIST_TRY(check_scalar(r, "beta", r->beta));
    return check_pointers(r);
}

/* Collective: checks that all ranks run this plan, are ready, and have the same alpha and beta. */
static tgl_status agree_to_run(const run *r)
{
    const union {
        double value;
        uint64_t bits;
    } alpha = {r->alpha}, beta = {r->beta};
    const dist_call mine = {.plan = r->plan->number,
                            .status = check_arguments(r),
                            .alpha = alpha.bits,
                            .beta = beta.bits};
    return dist_begin_call(r->plan->dist, &mine);
}

tgl_status tgl_dist_plan_run(tgl_dist_plan *plan, double alpha, const void *A, const void *B,
                             double beta, void *C, const void *bias)
{
    if (plan == NULL) return dist_fail(TGL_BAD_ARGUMENT, "the plan is NULL");
    run r = {.plan = plan, .alpha = alpha, .beta = beta, .C = C, .bias = bias};
    r.matrix[plan->task.is_exchanged] = A;
    r.matrix[1 - plan->task.is_exchanged] = B;
    r.sums = plan->has_sums ? plan->sums : own_c(&r);
    plan->products.stream = plan->dist->transport.stream;
    DIST_TRY(agree_to_run(&r));
    if (reads_operands(&r))
        DIST_TRY(plan->choice.ring != RING_NONE ? run_ring(&r) : run_panels(&r));
    else
        scale_only(&r);
    return dist_agree(plan->dist, r.product);
}

tgl_status tgl_dist_gemm(tgl_dist *dist, const tgl_problem *problem, const tgl_dist_layout *a,
                         const tgl_dist_layout *b, const tgl_dist_layout *c, double alpha,
                         const void *A, const void *B, double beta, void *C)
{
    tgl_dist_plan *plan;
    DIST_TRY(tgl_dist_plan_create(dist, problem, a, b, c, NULL, &plan));
    const tgl_status status = tgl_dist_plan_run(plan, alpha, A, B, beta, C, NULL);
    tgl_dist_plan_destroy(plan);
    return status;
}
