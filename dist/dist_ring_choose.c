/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether GEMM + reduce-scatter and GEMM + all-reduce go in a ring (dist_ring.h), and in
 * how many chunks per shard. A shard is the block of rows or columns of C that a rank owns.
 */
#include "dist_ring_choose.h"
#include "dist_cost.h"
#include "dist_error.h"

int dist_ring_axis(const dist_task *task)
{
    const dist_spread *c = &task->spread[OPERAND_C];
    if (c->replicated) return AXIS_M;
    for (int side = 0; side < 2; side++) {
        const dist_axis *x = &c->axis[side], *other = &c->axis[1 - side];
        if (x->parts == task->ranks && other->parts == 1 && x->source == 0 &&
            x->first == x->block && x->block * x->parts >= x->size)
            return task->axis_of[OPERAND_C][side];
    }
    return AXES;
}

static bool ring_serves(const dist_task *task, const dist_division *division)
{
    const dist_volumes v = dist_volumes_of(task, division);
    const dist_axis *k = &division->axis[AXIS_K];
    return task->ranks > 1 && k->parts == task->ranks && division->ranks == task->ranks &&
           v.stays[OPERAND_A] && v.stays[OPERAND_B] && !task->spread[OPERAND_A].replicated &&
           !task->spread[OPERAND_B].replicated && dist_ring_axis(task) != AXES;
}

/* Predicted seconds of a ring with `chunks` chunks per shard; chunks = 0: of a single product per
 * rank. axis: that of dist_ring_axis(). */
static double ring_seconds(const dist_task *task, const tgl_dist_machine *machine, int axis,
                           int chunks)
{
    const double ranks = task->ranks, products = chunks > 0 ? ranks * chunks : 1;
    const double k = (double)dist_task_extent(task, AXIS_K) / ranks;
    const double mn =
        (double)dist_task_extent(task, AXIS_M) * (double)dist_task_extent(task, AXIS_N);
    const dist_volumes v = {.multiplications = mn * k};
    const int other = axis == AXIS_M ? OPERAND_B : OPERAND_A, kept = 1 - other;
    const double sum = (double)dist_task_sum_element(task);
    const double moved = mn * sum * (ranks - 1) / ranks / machine->bytes_per_s;
    const double extent = (double)dist_task_extent(task, axis == AXIS_M ? AXIS_N : AXIS_M);
    const double whole = extent * k * (double)dist_task_element(task, other);
    const double cut = mn / extent * k * (double)dist_task_element(task, kept) + 2 * mn * sum;
    const double reading = machine->operand_bytes_per_s > 0
                               ? (whole + cut / products) / machine->operand_bytes_per_s
                               : 0;
    const double computing = dist_cost_products(task, &v, machine) / products;
    const double each = (reading > computing ? reading : computing) + machine->product_s;
    /* number of shards that a rank sums */
    const double parts = task->spread[OPERAND_C].replicated ? ranks : 1;
    if (chunks == 0)
        return each + parts * moved + machine->latency_s + machine->product_s * ranks +
               2 * mn / ranks * parts * (ranks - 1) * sum / machine->memory_per_s;
    const double move = moved / (products - chunks) + machine->latency_s;
    /* time of the copies of the last chunk to all ranks: no product overlaps with them */
    const double copying = task->spread[OPERAND_C].replicated
                               ? 2 * moved / chunks / ranks + 2 * machine->latency_s
                               : 0;
    const double multiplying =
        products * each + (chunks == 1 ? (products - 1) * move : 0) + copying;
    const double moving = (products - chunks) * move + 2 * each + copying;
    return multiplying > moving ? multiplying : moving;
}

/* Sets the division and the figures for the ring that choice->ring describes. */
static void set_choice(const dist_task *task, dist_division *division, double seconds,
                       dist_choice *choice)
{
    tgl_dist_figures *f = &choice->figures;
    const double ranks = task->ranks, sum = (double)dist_task_sum_element(task);
    const double mn =
        (double)dist_task_extent(task, AXIS_M) * (double)dist_task_extent(task, AXIS_N);
    const double copies =
        task->spread[OPERAND_C].replicated ? (double)dist_task_element(task, OPERAND_C) : 0;
    const int64_t shard = (dist_task_extent(task, dist_ring_axis(task)) - 1) / task->ranks + 1;
    division->loop = dist_ring_axis(task);
    division->panels = choice->ring > 0 ? (int64_t)task->ranks * choice->ring : 1;
    division->panel = (dist_task_extent(task, division->loop) - 1) / division->panels + 1;
    choice->division = *division;
    f->parts_m = f->parts_n = 1;
    f->parts_k = task->ranks;
    f->seconds = seconds;
    f->received_bytes = choice->ring == 0 && copies > 0 /* each rank receives all partial sums */
                            ? mn * sum * (ranks - 1)
                            : mn * (sum + copies) * (ranks - 1) / ranks;
    f->panels = division->panels;
    f->panel = choice->ring > 0 ? (shard - 1) / choice->ring + 1 : division->panel;
    choice->stays[0] = 'A', choice->stays[1] = 'B', choice->stays[2] = '\0';
}

static void consider_ring(const dist_task *task, const tgl_dist_machine *machine,
                          const dist_limits *limits, dist_choice *choice)
{
    dist_division division = dist_planner_staying(task, OPERAND_A);
    if (!machine->moves_alone || task->spread[OPERAND_A].replicated ||
        !dist_planner_allows(limits, &division) || !ring_serves(task, &division))
        return;
    const int axis = dist_ring_axis(task);
    const int64_t shard = (dist_task_extent(task, axis) - 1) / task->ranks + 1;
    double best = choice->figures.seconds;
    for (int chunks = 0; chunks <= RING_CHUNKS_MOST; chunks = chunks > 0 ? 2 * chunks : 1) {
        const double seconds = ring_seconds(task, machine, axis, chunks);
        if (seconds >= best || (chunks > 1 && shard / chunks < RING_CHUNK_GRAIN)) continue;
        best = seconds;
        choice->ring = chunks;
    }
    if (choice->ring != RING_NONE) set_choice(task, &division, best, choice);
}

tgl_status dist_choose(const dist_task *task, const tgl_dist_machine *machine,
                       const dist_limits *limits, dist_choice *choice)
{
    DIST_TRY(dist_planner_choose(task, machine, limits, choice));
    choice->ring = RING_NONE;
    if (limits->panel == 0 && limits->panel_max == 0 && limits->memory_bytes <= 0)
        consider_ring(task, machine, limits, choice);
    return TGL_OK;
}
