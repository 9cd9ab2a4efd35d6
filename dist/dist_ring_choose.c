/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether GEMM + reduce-scatter and GEMM + all-reduce go in a ring (dist_ring.h), and in
 * how many chunks per shard. A shard is the block of rows or columns of C that a rank owns.
 */
#include "dist_ring_choose.h"
#include "dist_cost.h"
#include "dist_error.h"

#include <math.h>

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

tgl_type dist_ring_type(const dist_task *task, const tgl_dist_machine *machine)
{
    const tgl_type type = task->type[OPERAND_C];
    const bool is_16_bits = type == TGL_F16 || type == TGL_BF16;
    return machine->collective_s > 0 && is_16_bits ? type : task->type_sum;
}

static bool ring_serves(const dist_task *task, const dist_division *division)
{
    const dist_volumes v = dist_volumes_of(task, division);
    const dist_axis *k = &division->axis[AXIS_K];
    return task->ranks > 1 && k->parts == task->ranks && division->ranks == task->ranks &&
           v.stays[OPERAND_A] && v.stays[OPERAND_B] && !task->spread[OPERAND_A].replicated &&
           !task->spread[OPERAND_B].replicated && dist_ring_axis(task) != AXES;
}

static bool has_equal_shards(const dist_task *task)
{
    const int side = task->axis_of[OPERAND_C][DIST_OUTER] == AXIS_M ? DIST_OUTER : DIST_INNER;
    const dist_axis *rows = &task->spread[OPERAND_C].axis[side];
    return rows->block * rows->parts == rows->size;
}

/* Whether one collective operation can add up the ranks' products: every shard has the same number
 * of complete rows, there is no activation, rank 0 can add the bias, and the transport adds the
 * type of C. */
static bool can_reduce(const dist_task *task, const tgl_dist_machine *machine)
{
    const tgl_epilogue *e = &task->epilogue;
    const bool is_copied = task->spread[OPERAND_C].replicated;
    const tgl_type type = task->type[OPERAND_C];
    return machine->collective_s > 0 && dist_ring_axis(task) == AXIS_M &&
           (is_copied || has_equal_shards(task)) &&
           (e->size == 0 ||
            (e->activation == TGL_ACTIVATION_NONE && (e->bias != TGL_BIAS_ROW || is_copied))) &&
           (type == TGL_F16 || type == TGL_BF16 || type == TGL_F32 || type == TGL_F64 ||
            type == TGL_I32);
}

/* Seconds of the collective operation. elements: how many a rank receives in a reduce-scatter. */
static double reducing(const dist_task *task, const tgl_dist_machine *machine, double elements)
{
    const double bytes = elements * (double)dist_task_element(task, OPERAND_C);
    return task->spread[OPERAND_C].replicated
               ? dist_cost_collective(TGL_DIST_ALL_REDUCE, 2 * bytes, machine)
               : dist_cost_collective(TGL_DIST_REDUCE_SCATTER, bytes, machine);
}

/* WAITING: each product of a ring waits this fraction of a message's latency. INTERFERENCE:
 * products become slower by this fraction of the time of the messages. Both are from measurements
 * on 2 and 4 H200, for m from 512 to 16384, 2026-11. */
static const double WAITING = 0.5, INTERFERENCE = 0.05;

/* Seconds by which an all-reduce takes longer than a reduce-scatter: each rank sends its chunks, of
 * `elements` elements, to all ranks, and copies those of the others from their buffers into C. The
 * next chunk's product hides the sending of all but the last one. */
static double copying_seconds(const dist_task *task, const tgl_dist_machine *machine,
                              double elements, double chunks, double product)
{
    const double bytes = elements * (double)dist_task_element(task, OPERAND_C);
    const double sending = (task->ranks - 1) * (bytes / machine->bytes_per_s + machine->latency_s);
    const double storing = (task->ranks - 1) * (bytes / machine->memory_per_s + machine->product_s);
    const double late = sending > product ? sending - product : 0;
    return sending + machine->latency_s + (chunks - 1) * late + chunks * storing;
}

/* Predicted seconds of a ring with `chunks` chunks per shard; chunks = 0: each rank
 * computes one product and sends its parts as messages; RING_COLLECTIVE: each rank computes one
 * product, and one collective operation adds them. axis: dist_ring_axis(). */
static double ring_seconds(const dist_task *task, const tgl_dist_machine *machine, int axis,
                           int chunks)
{
    const double ranks = task->ranks, products = chunks > 0 ? ranks * chunks : 1;
    const double k = (double)dist_task_extent(task, AXIS_K) / ranks;
    const double mn =
        (double)dist_task_extent(task, AXIS_M) * (double)dist_task_extent(task, AXIS_N);
    const dist_volumes v = {.multiplications = mn * k};
    const int other = axis == AXIS_M ? OPERAND_B : OPERAND_A, kept = 1 - other;
    const double sum = (double)tgl_type_size(dist_ring_type(task, machine));
    const double moved = mn * sum * (ranks - 1) / ranks / machine->bytes_per_s;
    const double extent = (double)dist_task_extent(task, axis == AXIS_M ? AXIS_N : AXIS_M);
    const double whole = extent * k * (double)dist_task_element(task, other);
    const double cut = mn / extent * k * (double)dist_task_element(task, kept) + 2 * mn * sum;
    const double reading = machine->operand_bytes_per_s > 0
                               ? (whole + cut / products) / machine->operand_bytes_per_s
                               : 0;
    const double computing = dist_cost_products(task, &v, machine) / products;
    const double product = (reading > computing ? reading : computing) + machine->product_s;
    const bool is_copied = task->spread[OPERAND_C].replicated;
    if (chunks == RING_COLLECTIVE)
        return product + reducing(task, machine, mn * (ranks - 1) / ranks);
    /* number of shards that a rank sums */
    const double parts = is_copied ? ranks : 1;
    if (chunks == 0)
        return product + parts * moved + (ranks - 1) * machine->latency_s +
               machine->product_s * ranks +
               2 * mn / ranks * parts * (ranks - 1) * sum / machine->memory_per_s;
    const double move = moved / (products - chunks) + machine->latency_s;
    const double copying =
        is_copied ? copying_seconds(task, machine, mn / ranks / chunks, chunks, product) : 0;
    const double each = product + WAITING * machine->latency_s;
    const double multiplying = products * each + (chunks == 1 ? (products - 1) * move : 0) +
                               INTERFERENCE * moved + copying;
    const double moving = (products - chunks) * move + 2 * each + copying;
    return multiplying > moving ? multiplying : moving;
}

/* Sets the division and the figures for the ring that choice->ring describes. */
static void set_choice(const dist_task *task, const tgl_dist_machine *machine,
                       dist_division *division, double seconds, dist_choice *choice)
{
    tgl_dist_figures *f = &choice->figures;
    const double ranks = task->ranks;
    const double sum = (double)tgl_type_size(dist_ring_type(task, machine));
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
    const double element = (double)dist_task_element(task, OPERAND_C);
    f->received_bytes = choice->ring == 0 && copies > 0 /* each rank receives all partial sums */
                            ? mn * sum * (ranks - 1)
                            : mn * ((choice->ring == RING_COLLECTIVE ? element : sum) + copies) *
                                  (ranks - 1) / ranks;
    f->panels = division->panels;
    f->panel = choice->ring > 0 ? (shard - 1) / choice->ring + 1 : division->panel;
    choice->gathers[OPERAND_A] = choice->gathers[OPERAND_B] = false;
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
    static const int kinds[] = {RING_COLLECTIVE, 0, 1, 2, 4, RING_CHUNKS_MOST};
    /* If the chosen division is the one that a ring serves, its panels need additional kernels for
     * copies and additions. dist_cost() assumes that products hide the time of these kernels, and
     * predicts too little. A ring is then chosen whatever the division's predicted time is. */
    const dist_volumes chosen = dist_volumes_of(task, &choice->division);
    const bool is_same =
        chosen.stays[OPERAND_A] && chosen.stays[OPERAND_B] && !chosen.stays[OPERAND_C];
    double best = is_same ? HUGE_VAL : choice->figures.seconds;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const double seconds = ring_seconds(task, machine, axis, kinds[i]);
        if (seconds >= best || (kinds[i] > 1 && shard / kinds[i] < RING_CHUNK_GRAIN) ||
            (kinds[i] == RING_COLLECTIVE && !can_reduce(task, machine)))
            continue;
        best = seconds;
        choice->ring = kinds[i];
    }
    if (choice->ring != RING_NONE) set_choice(task, machine, &division, best, choice);
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
