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
 * on 2 H200, for m from 512 to 16384, 2026-11. */
static const double WAITING = 0.25, INTERFERENCE = 0.05;

/* A way to add up the ranks' products (dist_choice.ring and .chunk). last: the length of the last
 * chunk of a shard. */
typedef struct ring_way {
    int chunks;
    int64_t chunk, last;
} ring_way;

/* A ring whose model is evaluated. extent: the size of C along the axis that the ring does not
 * divide; k: a rank's part of the K of the product. */
typedef struct ring_model {
    const dist_task *task;
    const tgl_dist_machine *machine;
    int axis;
    double extent, k, ranks;
    double sum; /* bytes of an element of the partial sums */
    bool is_copied;
} ring_model;

static ring_model model_of(const dist_task *task, const tgl_dist_machine *machine)
{
    const int axis = dist_ring_axis(task);
    return (ring_model){.task = task,
                        .machine = machine,
                        .axis = axis,
                        .extent = (double)dist_task_extent(task, axis == AXIS_M ? AXIS_N : AXIS_M),
                        .k = (double)dist_task_extent(task, AXIS_K) / task->ranks,
                        .ranks = task->ranks,
                        .sum = (double)tgl_type_size(dist_ring_type(task, machine)),
                        .is_copied = task->spread[OPERAND_C].replicated};
}

/* Factor on the time of a product whose C has `elements` elements of 16 bits, because it takes
 * whole waves, or half waves with smaller tiles; below LEAST half waves it splits K. 1 for other
 * types. FULL: the filled part of the waves for which the machine's rates were measured. SMALLER:
 * the relative time of smaller tiles.
 * (H200, bench/results/h200/dist_phases.csv) */
static double of_waves(const ring_model *r, double elements)
{
    static const double FULL = 0.97, SMALLER = 1.1, LEAST = 0.9;
    const double waves = elements / r->machine->wave_elements;
    if (r->machine->wave_elements <= 0 || dist_task_element(r->task, OPERAND_C) != 2 ||
        2 * waves < LEAST)
        return 1;
    return FULL * fmin(ceil(waves), SMALLER * ceil(2 * waves) / 2) / waves;
}

/* Seconds of a rank's product for `length` rows (or columns) of C. It reads all of one operand, and
 * some rows of the other. */
static double product_seconds(const ring_model *r, double length)
{
    const int other = r->axis == AXIS_M ? OPERAND_B : OPERAND_A, kept = 1 - other;
    const dist_volumes v = {.multiplications = length * r->extent * r->k};
    const double bytes = r->extent * r->k * (double)dist_task_element(r->task, other) +
                         length * r->k * (double)dist_task_element(r->task, kept) +
                         2 * length * r->extent * r->sum;
    const double rate = r->machine->operand_bytes_per_s, reading = rate > 0 ? bytes / rate : 0;
    const double computing =
        dist_cost_products(r->task, &v, r->machine) * of_waves(r, length * r->extent);
    return fmax(reading, computing) + r->machine->product_s;
}

/* Seconds by which an all-reduce takes longer than a reduce-scatter. Each rank sends its chunks to
 * all other ranks, and copies the chunks that it receives from its receive buffers into C. The
 * product of the next chunk hides the sending of every chunk but the last. */
static double copying_seconds(const ring_model *r, const ring_way *way)
{
    const tgl_dist_machine *machine = r->machine;
    const double line = r->extent * (double)dist_task_element(r->task, OPERAND_C);
    double seconds = 0;
    for (int i = 0; i < way->chunks; i++) {
        const bool is_last = i + 1 == way->chunks;
        const double bytes = line * (double)(is_last ? way->last : way->chunk);
        const double sending = (r->ranks - 1) * (bytes / machine->bytes_per_s + machine->latency_s);
        const double next =
            product_seconds(r, (double)(i + 2 == way->chunks ? way->last : way->chunk));
        seconds += is_last ? sending : fmax(sending - next, 0);
        seconds += (r->ranks - 1) * (bytes / machine->memory_per_s + machine->product_s);
    }
    return seconds;
}

/* Seconds of a ring of chunks. Products that add what they received read it as slowly as a copy
 * does: 13 to 40 us for 67 MB in three runs (H200, bench/dist_phases.py). */
static double chunks_seconds(const ring_model *r, const ring_way *way)
{
    const tgl_dist_machine *machine = r->machine;
    const double shard = (double)(way->chunk * (way->chunks - 1) + way->last);
    const double bytes = (r->ranks - 1) * shard * r->extent * r->sum;
    const double moved = bytes / machine->bytes_per_s, adding = bytes / machine->memory_per_s;
    const double moving = moved + (r->ranks - 1) * way->chunks * machine->latency_s;
    const double waiting = WAITING * machine->latency_s;
    const double first = product_seconds(r, (double)way->chunk) + waiting;
    const double last = product_seconds(r, (double)way->last) + waiting;
    const double copying = r->is_copied ? copying_seconds(r, way) : 0;
    const double multiplying = r->ranks * ((way->chunks - 1) * first + last) +
                               (way->chunks == 1 ? moving : 0) + INTERFERENCE * moved + adding;
    return fmax(multiplying, moving + first + last) + copying;
}

/* Seconds of one product, whose parts are sent as messages. parts: shards that a rank sums. */
static double exchange_seconds(const ring_model *r, double m, double product)
{
    const tgl_dist_machine *machine = r->machine;
    const double parts = r->is_copied ? r->ranks : 1;
    const double bytes = m * r->extent * r->sum * (r->ranks - 1) / r->ranks;
    return product + parts * bytes / machine->bytes_per_s + (r->ranks - 1) * machine->latency_s +
           machine->product_s * r->ranks + 2 * parts * bytes / machine->memory_per_s;
}

static double ring_seconds(const ring_model *r, const ring_way *way)
{
    const double m = (double)dist_task_extent(r->task, r->axis);
    if (way->chunks > 0) return chunks_seconds(r, way);
    const double product = product_seconds(r, m);
    if (way->chunks == 0) return exchange_seconds(r, m, product);
    return product + reducing(r->task, r->machine, m * r->extent * (r->ranks - 1) / r->ranks);
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
    f->panel = choice->ring > 0 ? choice->chunk : division->panel;
    choice->gathers[OPERAND_A] = choice->gathers[OPERAND_B] = false;
    choice->stays[0] = 'A', choice->stays[1] = 'B', choice->stays[2] = '\0';
}

enum { WAYS_MAX = 9 };

static int64_t longest_shard(const dist_task *task, int axis)
{
    const dist_spread *c = &task->spread[OPERAND_C];
    if (c->replicated) return (dist_task_extent(task, axis) - 1) / task->ranks + 1;
    return c->axis[task->axis_of[OPERAND_C][0] == axis ? 0 : 1].block;
}

static int64_t round_up(int64_t length, int64_t grain)
{
    return (length + grain - 1) / grain * grain;
}

static int64_t left_of(int64_t shard, int64_t used)
{
    return shard > used ? shard - used : 0;
}

/* Lists the ways that are compared: one collective operation, one exchange, and rings. The chunks
 * of a ring are equal, but for a shorter last one. In an all-reduce, where nothing hides the copies
 * of the last chunk, it may also be a single wave. All chunks of a shard but the last have a
 * multiple of RING_CHUNK_GRAIN rows. Returns the number of ways. */
static int list_ways(const ring_model *r, ring_way *ways)
{
    const int64_t shard = longest_shard(r->task, r->axis);
    const double wave = r->machine->wave_elements / fmax(r->extent, 1) / RING_CHUNK_GRAIN;
    const bool has_waves = wave >= 1 && wave * RING_CHUNK_GRAIN < (double)shard;
    const int64_t last = has_waves ? (int64_t)wave * RING_CHUNK_GRAIN : 0;
    int count = 0;
    ways[count++] = (ring_way){RING_COLLECTIVE, shard, shard};
    ways[count++] = (ring_way){0, shard, shard};
    ways[count++] = (ring_way){1, shard, shard};
    for (int chunks = 2; chunks <= RING_CHUNKS_MAX && shard / chunks >= RING_CHUNK_GRAIN;
         chunks *= 2) {
        const int64_t even = round_up((shard - 1) / chunks + 1, RING_CHUNK_GRAIN);
        if (even * (chunks - 1) >= shard) continue; /* the last chunk would be empty */
        ways[count++] = (ring_way){chunks, even, left_of(shard, even * (chunks - 1))};
        const int64_t longer = round_up((shard - last - 1) / (chunks - 1) + 1, RING_CHUNK_GRAIN);
        if (r->is_copied && last > 0 && longer > even)
            ways[count++] = (ring_way){chunks, longer, left_of(shard, longer * (chunks - 1))};
    }
    return count;
}

static void consider_ring(const dist_task *task, const tgl_dist_machine *machine,
                          const dist_limits *limits, dist_choice *choice)
{
    dist_division division = dist_planner_staying(task, OPERAND_A);
    if (!machine->moves_alone || task->spread[OPERAND_A].replicated ||
        !dist_planner_allows(limits, &division) || !ring_serves(task, &division))
        return;
    const ring_model model = model_of(task, machine);
    /* If the chosen division is the one that a ring serves, its panels need additional kernels for
     * copies and additions. dist_cost() assumes that products hide the time of these kernels, and
     * predicts too little. A ring is then chosen whatever the division's predicted time is. */
    const dist_volumes chosen = dist_volumes_of(task, &choice->division);
    const bool is_same =
        chosen.stays[OPERAND_A] && chosen.stays[OPERAND_B] && !chosen.stays[OPERAND_C];
    double best = is_same ? HUGE_VAL : choice->figures.seconds;
    ring_way ways[WAYS_MAX];
    const int count = list_ways(&model, ways);
    for (int i = 0; i < count; i++) {
        const double seconds = ring_seconds(&model, &ways[i]);
        if (seconds >= best || (ways[i].chunks == RING_COLLECTIVE && !can_reduce(task, machine)))
            continue;
        best = seconds;
        choice->ring = ways[i].chunks;
        choice->chunk = ways[i].chunk;
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
