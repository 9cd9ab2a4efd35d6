/* SPDX-License-Identifier: Apache-2.0
 *
 * The predicted cost of a division (dist_task.h). It is the sum of the times of the local products,
 * of the bytes that the busiest rank receives, of the latencies of messages, and of copies; less
 * the time in which messages and products overlap. The product runs in steps: in each step a rank
 * multiplies one panel, a range of the axis division->loop. The cost depends on the arguments of
 * the plan, the assumed speeds (tgl_dist_machine) and constants only.
 */
#include "dist_cost.h"

#include <math.h>

/* ---- Volumes --------------------------------------------------------------------------------- */

static bool axes_equal(const dist_axis *x, const dist_axis *y)
{
    return x->size == y->size && x->first == y->first && x->block == y->block &&
           x->parts == y->parts && x->source == y->source && x->stride == y->stride;
}

/* Whether an operand need not move: A or B is replicated, each rank works with exactly its own part
 * of A or B, or each rank computes exactly its own part of C. */
static bool stays(const dist_task *task, const dist_division *division, int operand)
{
    const dist_spread *own = &task->spread[operand];
    if (own->replicated) return operand != OPERAND_C;
    return own->ranks == division->ranks &&
           axes_equal(&own->axis[0], &division->axis[task->axis_of[operand][0]]) &&
           axes_equal(&own->axis[1], &division->axis[task->axis_of[operand][1]]) &&
           (operand != OPERAND_C || division->axis[AXIS_K].parts == 1);
}

/* Estimated number of ranks from which a rank receives its part of an operand. */
static double peers_of(const dist_task *task, const dist_division *division, int operand)
{
    double peers = 1;
    for (int side = 0; side < 2; side++) {
        const double has = task->spread[operand].axis[side].parts;
        const double needs = division->axis[task->axis_of[operand][side]].parts;
        peers *= ceil(has / needs);
    }
    return peers;
}

static void keep_larger(double *kept, double value)
{
    if (value > *kept) *kept = value;
}

static double elements(const dist_rect *rect)
{
    return (double)dist_rect_lines(rect) * (double)dist_rect_width(rect);
}

static void add_rank(const dist_task *task, const dist_spread needed[OPERANDS], int rank,
                     int layers, dist_volumes *v)
{
    dist_rect rect[OPERANDS];
    for (int x = 0; x < OPERANDS; x++) {
        rect[x] = dist_rect_at(&needed[x], rank, 0);
        const dist_rect own = dist_rect_at(&task->spread[x], rank, 0);
        const double shared = (double)dist_rect_shared(&rect[x], &own);
        const double element =
            (double)(x == OPERAND_C ? dist_task_sum_element(task) : dist_task_element(task, x));
        double comes =
            x == OPERAND_C ? elements(&own) * layers - shared : elements(&rect[x]) - shared;
        if (x == OPERAND_C && task->spread[x].replicated) /* reduce-scatter, then all-gather */
            comes = elements(&own) * (layers + task->ranks - 2) / task->ranks;
        keep_larger(&v->needed[x], elements(&rect[x]) * element);
        if (!v->stays[x]) keep_larger(&v->received[x], comes * element);
    }
    const int k_side = task->axis_of[OPERAND_A][DIST_OUTER] == AXIS_K ? DIST_OUTER : DIST_INNER;
    const dist_window *k = &rect[OPERAND_A].window[k_side];
    keep_larger(&v->multiplications, elements(&rect[OPERAND_C]) * (double)(k->end - k->begin));
}

/* Evaluates all of at most ALL_UP_TO ranks, else SAMPLES evenly spaced ranks. */
dist_volumes dist_volumes_of(const dist_task *task, const dist_division *division)
{
    enum { ALL_UP_TO = 16, SAMPLES = 8 };
    dist_volumes v = {0};
    dist_spread needed[OPERANDS];
    dist_division whole = *division;
    whole.loop = AXES; /* no axis is cut into panels */
    for (int x = 0; x < OPERANDS; x++) {
        needed[x] = dist_division_spread(task, &whole, x, NULL);
        v.stays[x] = stays(task, division, x);
        v.peers[x] = v.stays[x] ? 0 : peers_of(task, division, x);
    }
    const int layers = division->axis[AXIS_K].parts;
    v.peers[OPERAND_C] *= layers;
    const int samples = task->ranks <= ALL_UP_TO ? task->ranks : SAMPLES;
    for (int i = 0; i < samples; i++)
        add_rank(task, needed,
                 samples > 1 ? (int)((int64_t)i * (task->ranks - 1) / (samples - 1)) : 0, layers,
                 &v);
    return v;
}

/* ---- Time ------------------------------------------------------------------------------------ */

double dist_cost_products(const dist_task *task, const dist_volumes *volumes,
                          const tgl_dist_machine *machine)
{
    const double rate = task->type[OPERAND_A] == TGL_F64   ? 1
                        : task->type[OPERAND_A] == TGL_F32 ? machine->f32_rate
                                                           : machine->half_rate;
    return 2 * volumes->multiplications / (rate * machine->flops_per_s);
}

/* Whether an operand is sent and received without packing: each rank has complete rows of the
 * stored matrix, and they are consecutive rows. */
static bool is_contiguous(const dist_task *task, const dist_division *division, int operand)
{
    const dist_axis *outer = &task->spread[operand].axis[DIST_OUTER];
    const int inner = task->axis_of[operand][DIST_INNER];
    return operand != OPERAND_C && division->loop != inner && division->axis[inner].parts == 1 &&
           task->spread[operand].axis[DIST_INNER].parts == 1 &&
           outer->block * outer->parts >= outer->size;
}

double dist_cost_collective(tgl_dist_collective operation, double bytes,
                            const tgl_dist_machine *machine)
{
    /* Rate of NCCL 2.28, relative to that of copies between two GPUs: measured on 2 and 4 H200
     * without multicast, 2026-11 (bench/results/h200/dist_table-*.csv: the time in column nccl
     * minus that in column local). */
    static const double rate[] = {
        [TGL_DIST_ALL_GATHER] = 0.6, [TGL_DIST_REDUCE_SCATTER] = 0.85, [TGL_DIST_ALL_REDUCE] = 1.0};
    return machine->collective_s + bytes / (rate[operation] * machine->bytes_per_s);
}

/* Seconds for the messages of an operand that moves in `times` steps, and for packing and unpacking
 * them. */
static double messages(const dist_task *task, const dist_division *division, const dist_volumes *v,
                       int operand, int64_t times, const tgl_dist_machine *machine)
{
    if (v->stays[operand]) return 0;
    const double copies =
        is_contiguous(task, division, operand) ? 0 : v->received[operand] + v->needed[operand];
    return v->received[operand] / machine->bytes_per_s + copies / machine->memory_per_s +
           v->peers[operand] * (double)times * machine->latency_s;
}

static bool can_gather(const dist_task *task, const dist_division *division, const dist_volumes *v,
                       int operand)
{
    const dist_spread *own = &task->spread[operand];
    const dist_axis *rows = &own->axis[DIST_OUTER];
    const int *axes = task->axis_of[operand];
    return division->panels == 1 && division->ranks == task->ranks && !v->stays[operand] &&
           division->axis[axes[0]].parts == 1 && division->axis[axes[1]].parts == 1 &&
           own->axis[DIST_INNER].parts == 1 && rows->parts == task->ranks && rows->source == 0 &&
           rows->first == rows->block && rows->block * rows->parts == rows->size;
}

bool dist_cost_gathers(const dist_task *task, const dist_division *division, const dist_volumes *v,
                       int operand, const tgl_dist_machine *machine)
{
    return machine->collective_s > 0 && can_gather(task, division, v, operand) &&
           dist_cost_collective(TGL_DIST_ALL_GATHER, v->received[operand], machine) <
               messages(task, division, v, operand, 1, machine);
}

/* Seconds for which an operand moves, by messages or by one all-gather. */
static double moving(const dist_task *task, const dist_division *division, const dist_volumes *v,
                     int operand, int64_t times, const tgl_dist_machine *machine)
{
    return dist_cost_gathers(task, division, v, operand, machine)
               ? dist_cost_collective(TGL_DIST_ALL_GATHER, v->received[operand], machine)
               : messages(task, division, v, operand, times, machine);
}

/* Seconds of the local products, one per panel. A product reads or writes one panel of each operand
 * that has the axis of the loop, and all of the other operand. */
static double multiplying(const dist_task *task, const dist_division *division,
                          const dist_volumes *v, double panels, const tgl_dist_machine *machine)
{
    const double computing = dist_cost_products(task, v, machine) / panels;
    double bytes = 0;
    for (int x = 0; x < OPERANDS; x++) {
        const int *axes = task->axis_of[x];
        const bool loops = axes[0] == division->loop || axes[1] == division->loop;
        bytes += v->needed[x] / (loops ? panels : 1);
    }
    const double reading =
        machine->operand_bytes_per_s > 0 ? bytes / machine->operand_bytes_per_s : 0;
    /* A panel along k is added to the sums in memory, which the product of a GPU reads and writes
     * after it has multiplied (seen on 4 H200, 32768x8192x8192 in 4 panels, 2026-11). */
    const double adding = machine->moves_alone && division->loop == AXIS_K
                              ? (2 * panels - 1) * v->needed[OPERAND_C] / machine->memory_per_s
                              : 0;
    return panels * (machine->product_s + (reading > computing ? reading : computing)) + adding;
}

/* Whether a rank has the panel of its first step already. This requires that the operand which
 * moves along the axis of the loop is divided along that axis, into at most as many parts as there
 * are panels. */
static bool has_first_panel(const dist_task *task, const dist_division *division,
                            const dist_volumes *v)
{
    for (int x = OPERAND_A; x <= OPERAND_B; x++)
        for (int side = 0; side < 2; side++)
            if (task->axis_of[x][side] == division->loop && !v->stays[x])
                return task->spread[x].axis[side].parts > 1 &&
                       division->panels >= task->spread[x].axis[side].parts;
    return false;
}

/* The first product waits for its panel, unless this is a GPU (moves_alone) that has the panel
 * already. The panels of later products arrive during earlier products, so that only the time by
 * which the transfers exceed these products is added. */
void dist_cost(const dist_task *task, const dist_division *division, const dist_volumes *v,
               const tgl_dist_machine *machine, tgl_dist_figures *figures)
{
    const double panels = division->panels > 0 ? (double)division->panels : 1;
    /* panel length at which a processor core computes at half speed; 0: the speed of a GPU does not
     * depend on it */
    const double short_panel = machine->moves_alone ? 0 : 16;
    /* fraction of the time of overlapping messages by which the products of a GPU become slower,
     * because messages and products share the memory bandwidth */
    const double interference = machine->moves_alone ? 0.1 : 0;
    const double slowdown = 1 + short_panel / (division->panel > 0 ? (double)division->panel : 1);
    double in_loop = 0, outside = 0, memory = 0;
    for (int x = 0; x < OPERANDS; x++) {
        const int *axes = task->axis_of[x];
        const bool loops = axes[0] == division->loop || axes[1] == division->loop;
        *(loops ? &in_loop : &outside) +=
            moving(task, division, v, x, loops ? division->panels : 1, machine);
        if (v->stays[x]) continue;
        const double share = loops ? 2 / panels : 1; /* two panels are in memory at the same time */
        memory += (v->needed[x] + 2 * v->received[x]) * share;
    }
    double products = multiplying(task, division, v, panels, machine);
    /* The stream of the products waits for each panel: half of a message's latency, which no
     * product hides (measured on 2 and 4 H200, m of 512 and 2048, 2026-11). */
    if (machine->moves_alone && panels > 1 && in_loop > 0)
        products += panels * machine->latency_s / 2;
    /* On a GPU, partial sums of C need additional kernels. The model counts one for each panel,
     * which adds the panel's sums, and three others, such as those that fill and round the sums.
     * Together these kernels read or write the sums about four times. */
    if (machine->moves_alone && !v->stays[OPERAND_C])
        outside +=
            (3 + panels) * machine->product_s + 4 * v->needed[OPERAND_C] / machine->memory_per_s;
    const bool waits = !machine->moves_alone || !has_first_panel(task, division, v);
    const double waiting = waits ? in_loop / panels : 0;
    const double hidden = in_loop * (1 - 1 / panels);
    figures->local_seconds = multiplying(task, division, v, 1, machine);
    figures->seconds = products * slowdown + outside + waiting +
                       (hidden > products ? hidden - products : 0) + interference * hidden;
    figures->memory_bytes = memory;
    figures->received_bytes = v->received[0] + v->received[1] + v->received[2];
    figures->panel = division->panel;
    figures->panels = division->panels;
    figures->parts_m = division->axis[AXIS_M].parts;
    figures->parts_n = division->axis[AXIS_N].parts;
    figures->parts_k = division->axis[AXIS_K].parts;
}
