/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes plans of distributed products: agrees on the arguments, chooses how the product is divided
 * over the ranks, and allocates memory. A plan runs in steps, with one panel of A and B in each
 * (dist_plan.h).
 */
#include "dist_arguments.h"
#include "dist_error.h"
#include "dist_reduce.h"
#include "dist_ring.h"
#include "dist_ring_choose.h"

#include <stdlib.h>
#include <string.h>

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Allocates the buffers for the panels of an operand, or for the partial sums of C, large enough
 * for every step. */
static tgl_status allocate_panels(tgl_dist_plan *plan, int operand, size_t element)
{
    const int64_t steps = dist_plan_steps(plan, operand);
    int64_t lines = 0, width = 0, offset;
    for (int64_t step = 0; step < steps; step++) {
        const dist_rect rect =
            dist_rect_at(&plan->needed[operand], plan->dist->transport.rank, step);
        if (operand != OPERAND_C && dist_plan_in_place(plan, operand, step, &offset)) continue;
        if (dist_rect_lines(&rect) > lines) lines = dist_rect_lines(&rect);
        if (dist_rect_width(&rect) > width) width = dist_rect_width(&rect);
    }
    plan->ld[operand] = width;
    for (int slot = 0; slot < (steps > 1 ? 2 : 1); slot++)
        DIST_TRY(dist_plan_allocate(plan, (size_t)(lines * width) * element,
                                    &plan->buffer[operand][slot]));
    return TGL_OK;
}

static tgl_status allocate_slots(tgl_dist_plan *plan, dist_transfer *t, int64_t steps)
{
    const int ranks = plan->dist->transport.ranks;
    if (t->gathers) return TGL_OK;
    dist_transfer_measure(t, plan->dist->transport.rank, ranks, steps);
    for (int i = 0; i < (steps > 1 ? 2 : 1); i++) {
        dist_slot *slot = &t->slot[i];
        DIST_TRY(dist_plan_allocate(plan, t->packed_bytes, &slot->packed));
        DIST_TRY(dist_plan_allocate(plan, t->staged_bytes, &slot->staged));
        slot->messages = malloc(sizeof *slot->messages * 2 * (size_t)ranks);
        if (slot->messages == NULL)
            return dist_fail(TGL_NO_MEMORY, "no memory for the messages to %d ranks", ranks);
    }
    return TGL_OK;
}

/* Allocates the buffers for the panels of A or B, and the transfer that fills them. */
static tgl_status allocate_gathering(tgl_dist_plan *plan, int operand)
{
    const size_t element = dist_task_element(&plan->task, operand);
    DIST_TRY(allocate_panels(plan, operand, element));
    plan->transfer[operand] = (dist_transfer){.from = &plan->task.spread[operand],
                                              .to = &plan->needed[operand],
                                              .ld_from = plan->task.ld[operand],
                                              .ld_to = plan->ld[operand],
                                              .type = plan->task.type[operand],
                                              .element = element,
                                              .gathers = plan->choice.gathers[operand],
                                              .at_once = plan->choice.division.panels == 1};
    return allocate_slots(plan, &plan->transfer[operand], dist_plan_steps(plan, operand));
}

/* Allocates memory for the sums of several products, unless C itself can hold them: C has the type
 * of the sums, and there is no epilogue. */
static tgl_status allocate_sums(tgl_dist_plan *plan)
{
    const dist_division *division = &plan->choice.division;
    const dist_task *task = &plan->task;
    const bool is_complete =
        division->c_stays && (division->loop != AXIS_K || division->panels == 1);
    const dist_rect own = dist_rect_at(&plan->owned, plan->dist->transport.rank, 0);
    plan->has_sums =
        !is_complete && (task->type[OPERAND_C] != task->type_sum || task->epilogue.size > 0);
    plan->ld_sums = plan->has_sums ? dist_rect_width(&own) : task->ld[OPERAND_C];
    if (!plan->has_sums) return TGL_OK;
    return dist_plan_allocate(
        plan, (size_t)(dist_rect_lines(&own) * plan->ld_sums) * dist_task_sum_element(task),
        &plan->sums);
}

/* Sets which part of C this rank adds up. If each rank has a copy of C, also allocates the transfer
 * that sends the added parts to all ranks. */
static tgl_status allocate_copies(tgl_dist_plan *plan)
{
    const int rank = plan->dist->transport.rank;
    const dist_spread *c = &plan->task.spread[OPERAND_C];
    int64_t rest;
    plan->owned = *c;
    plan->first_row = 0;
    plan->has_copies = c->replicated && !plan->choice.division.c_stays;
    if (!plan->has_copies) return TGL_OK;
    dist_axis *rows = &plan->owned.axis[DIST_OUTER];
    *rows = dist_axis_even(rows->size, plan->task.ranks, 1);
    plan->owned.replicated = false;
    if (dist_axis_length(rows, rank) > 0) plan->first_row = dist_axis_index(rows, rank, 0, &rest);
    plan->copies = (dist_transfer){.from = &plan->owned,
                                   .to = c,
                                   .ld_from = plan->task.ld[OPERAND_C],
                                   .ld_to = plan->task.ld[OPERAND_C],
                                   .element = dist_task_element(&plan->task, OPERAND_C),
                                   .keeps_own = true,
                                   .stages = plan->dist->transport.allocate != NULL};
    return plan->choice.ring != RING_NONE ? TGL_OK : allocate_slots(plan, &plan->copies, 1);
}

/* Allocates the partial sums, and their transfer to the owners of C. */
static tgl_status allocate_delivery(tgl_dist_plan *plan)
{
    DIST_TRY(allocate_copies(plan));
    DIST_TRY(allocate_sums(plan));
    if (plan->choice.division.c_stays) return TGL_OK;
    const size_t element = dist_task_sum_element(&plan->task);
    DIST_TRY(allocate_panels(plan, OPERAND_C, element));
    plan->transfer[OPERAND_C] = (dist_transfer){.from = &plan->needed[OPERAND_C],
                                                .to = &plan->owned,
                                                .ld_from = plan->ld[OPERAND_C],
                                                .ld_to = plan->ld_sums,
                                                .type = plan->task.type_sum,
                                                .element = element,
                                                .adds = true};
    return allocate_slots(plan, &plan->transfer[OPERAND_C], dist_plan_steps(plan, OPERAND_C));
}

static void free_slots(tgl_dist_plan *plan, dist_transfer *transfer)
{
    for (int i = 0; i < 2; i++) {
        dist_slot *slot = &transfer->slot[i];
        dist_plan_release(plan, slot->packed);
        dist_plan_release(plan, slot->staged);
        free(slot->messages);
        *slot = (dist_slot){.packed = NULL};
    }
}

static void free_memory(tgl_dist_plan *plan)
{
    for (int x = 0; x < OPERANDS; x++) {
        free_slots(plan, &plan->transfer[x]);
        for (int i = 0; i < 2; i++) {
            dist_plan_release(plan, plan->buffer[x][i]);
            plan->buffer[x][i] = NULL;
        }
    }
    free_slots(plan, &plan->copies);
    dist_ring_free(plan);
    dist_reduce_free(plan);
    dist_plan_release(plan, plan->sums);
    plan->sums = NULL;
    plan->memory_bytes = 0;
}

static tgl_status allocate_all(tgl_dist_plan *plan, int64_t limit)
{
    if (plan->choice.ring != RING_NONE) {
        DIST_TRY(allocate_copies(plan));
        DIST_TRY(plan->choice.ring == RING_COLLECTIVE ? dist_reduce_allocate(plan)
                                                      : dist_ring_allocate(plan));
    } else {
        DIST_TRY(allocate_gathering(plan, OPERAND_A));
        DIST_TRY(allocate_gathering(plan, OPERAND_B));
        DIST_TRY(allocate_delivery(plan));
    }
    if (limit > 0 && plan->memory_bytes > (double)limit)
        return dist_fail(TGL_NO_MEMORY,
                         "the product takes %.0f bytes beside its matrices; the limit is %lld",
                         plan->memory_bytes, (long long)limit);
    return TGL_OK;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

/* Collective: the smallest memory limit of all ranks; 0: no rank has one. */
static tgl_status least_limit(tgl_dist *dist, int64_t mine, int64_t *least)
{
    const void *all;
    *least = 0;
    DIST_TRY(dist_gather(dist, &mine, sizeof mine, &all));
    for (int rank = 0; rank < dist->transport.ranks; rank++) {
        const int64_t limit = ((const int64_t *)all)[rank];
        if (limit > 0 && (*least == 0 || limit < *least)) *least = limit;
    }
    return TGL_OK;
}

/* Chooses a division. All ranks use rank 0's choice: the predicted times are floating-point
 * numbers, which may differ in the last bit between processors. */
static tgl_status choose(tgl_dist_plan *plan, const dist_limits *limits)
{
    tgl_dist *dist = plan->dist;
    const void *all;
    DIST_TRY(dist_agree(dist, dist_choose(&plan->task, &dist->machine, limits, &plan->choice)));
    DIST_TRY(dist_gather(dist, &plan->choice, sizeof plan->choice, &all));
    memcpy(&plan->choice, all, sizeof plan->choice);
    return TGL_OK;
}

/* Chooses a division and allocates its memory. As long as a rank has too little memory, tries again
 * with panels of half the length, unless the caller has set the length. */
static tgl_status choose_and_allocate(tgl_dist_plan *plan, const tgl_dist_options *options)
{
    const int64_t own_limit = options != NULL ? options->memory_limit : 0;
    int64_t limit;
    DIST_TRY(least_limit(plan->dist, own_limit, &limit));
    dist_limits limits = dist_limits_of(&plan->task, options, limit);
    for (;;) {
        DIST_TRY(choose(plan, &limits));
        const dist_division *division = &plan->choice.division;
        dist_planner_start(&plan->task, division, plan->start);
        for (int x = 0; x < OPERANDS; x++)
            plan->needed[x] = dist_division_spread(&plan->task, division, x, plan->start);
        const tgl_status status = dist_agree(plan->dist, allocate_all(plan, limit));
        if (status == TGL_OK) return TGL_OK;
        free_memory(plan);
        if (status != TGL_NO_MEMORY || division->panel == 1 || limits.panel > 0) return status;
        limits.panel_max = (division->panel + 1) / 2;
    }
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* Allocates a plan and reads its task. Returns NULL after a failure, with the reason in *status. */
static tgl_dist_plan *begin_plan(tgl_dist *dist, const tgl_problem *problem,
                                 const tgl_dist_layout *const layouts[OPERANDS],
                                 const tgl_dist_options *options, tgl_status *status)
{
    tgl_dist_plan *plan = calloc(1, sizeof *plan);
    int32_t *start = malloc(sizeof *start * (size_t)dist->transport.ranks);
    *status = plan != NULL && start != NULL ? dist_options_check(options)
                                            : dist_fail(TGL_NO_MEMORY, "no memory for a plan");
    if (*status == TGL_OK)
        *status = dist_task_read(problem, layouts, options, dist->transport.rank,
                                 dist->transport.ranks, &plan->task);
    if (*status != TGL_OK) {
        free(plan), free(start);
        return NULL;
    }
    plan->dist = dist;
    plan->start = start;
    plan->products = (dist_products){
        .dev = dist->dev, .epilogue = plan->task.epilogue.size > 0 ? &plan->task.epilogue : NULL};
    return plan;
}

tgl_status tgl_dist_plan_create(tgl_dist *dist, const tgl_problem *problem,
                                const tgl_dist_layout *a, const tgl_dist_layout *b,
                                const tgl_dist_layout *c, const tgl_dist_options *options,
                                tgl_dist_plan **plan)
{
    if (dist == NULL || plan == NULL)
        return dist_fail(TGL_BAD_ARGUMENT, "dist or plan is NULL: this rank takes no part");
    *plan = NULL;
    const tgl_dist_layout *const layouts[OPERANDS] = {a, b, c};
    tgl_status own = TGL_OK;
    tgl_dist_plan *made = begin_plan(dist, problem, layouts, options, &own);
    tgl_status status = dist_arguments_agree(dist, own, problem, layouts, options);
    if (made != NULL && status == TGL_OK) status = choose_and_allocate(made, options);
    if (status != TGL_OK || made == NULL) {
        tgl_dist_plan_destroy(made);
        return status;
    }
    made->choice.figures.memory_bytes = made->memory_bytes;
    made->number = ++dist->plans;
    *plan = made;
    return TGL_OK;
}

/* If the communicator is broken, buffers are not freed, because messages may still be on the way to
 * them. */
void tgl_dist_plan_destroy(tgl_dist_plan *plan)
{
    if (plan == NULL) return;
    if (!plan->dist->is_broken) free_memory(plan);
    dist_products_free(&plan->products);
    free(plan->start);
    free(plan);
}

tgl_status tgl_dist_plan_figures(const tgl_dist_plan *plan, tgl_dist_figures *figures)
{
    if (plan == NULL || figures == NULL || figures->size < sizeof *figures)
        return dist_fail(TGL_BAD_ARGUMENT,
                         "the plan or the figures are NULL, or their size is wrong");
    const size_t size = figures->size;
    *figures = plan->choice.figures;
    figures->size = size;
    return TGL_OK;
}
