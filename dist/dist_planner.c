/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: compares the three divisions in which C, A or B stays where it is, and divisions of
 * m, n and k into equal parts. One axis of a division, its loop, is cut into panels.
 */
#include "dist_planner.h"

#include "dist_cost.h"
#include "dist_error.h"

#include <math.h>
#include <stdio.h>

typedef struct search {
    const dist_task *task;
    const tgl_dist_machine *machine;
    const dist_limits *limits;
    dist_choice *best;
    bool has_one, fits; /* `best` is set; it is within the memory limit */
} search;

/* ---- Limits ---------------------------------------------------------------------------------- */

tgl_status dist_options_check(const tgl_dist_options *o)
{
    if (o == NULL) return TGL_OK;
    if (o->size < sizeof *o) return dist_fail(TGL_BAD_ARGUMENT, "the size of the options is wrong");
    if (o->memory_limit < 0 || o->panel < 0 || o->parts_m < 0 || o->parts_n < 0 || o->parts_k < 0)
        return dist_fail(TGL_BAD_ARGUMENT, "a member of the options is negative");
    return TGL_OK;
}

dist_limits dist_limits_of(const dist_task *task, const tgl_dist_options *options,
                           int64_t memory_limit)
{
    const tgl_dist_options none = {.size = sizeof none}, *o = options != NULL ? options : &none;
    dist_limits limits = {.memory_bytes = (double)memory_limit, .panel = o->panel};
    limits.parts[AXIS_M] = task->is_exchanged ? o->parts_n : o->parts_m;
    limits.parts[AXIS_N] = task->is_exchanged ? o->parts_m : o->parts_n;
    limits.parts[AXIS_K] = o->parts_k;
    return limits;
}

/* ---- The bound ------------------------------------------------------------------------------- */

static void sort_down(double s[AXES])
{
    for (int i = 0; i < AXES; i++)
        for (int j = i + 1; j < AXES; j++)
            if (s[j] > s[i]) {
                const double kept = s[i];
                s[i] = s[j], s[j] = kept;
            }
}

/* A lower bound of the number of elements that some rank must receive (docs/distributed.md). */
static double bound_elements(const dist_task *task)
{
    double s[AXES];
    const double p = task->ranks;
    for (int axis = 0; axis < AXES; axis++)
        s[axis] = (double)dist_task_extent(task, axis);
    sort_down(s);
    if (s[2] == 0) return 0;
    if (p <= s[0] / s[1]) return (1 - 1 / p) * s[1] * s[2];
    if (p <= s[0] * s[1] / (s[2] * s[2]))
        return 2 * sqrt(s[0] * s[1] * s[2] * s[2] / p) - (s[0] * s[2] + s[1] * s[2]) / p;
    return 3 * cbrt(s[0] * s[1] * s[2] / p * (s[0] * s[1] * s[2] / p)) -
           (s[0] * s[1] + s[0] * s[2] + s[1] * s[2]) / p;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static void name_stays(const dist_task *task, const dist_volumes *v, char text[8])
{
    const char *names = task->is_exchanged ? "BAC" : "ABC";
    int length = 0;
    text[0] = '\0';
    for (int name = 'A'; name <= 'C'; name++)
        for (int x = 0; x < OPERANDS; x++)
            if (names[x] == name && v->stays[x])
                length += snprintf(text + length, 8 - (size_t)length, "%c", name);
}

static void consider(search *s, const dist_division *division, const dist_volumes *v)
{
    tgl_dist_figures figures = {.size = sizeof figures};
    dist_cost(s->task, division, v, s->machine, &figures);
    const double limit = s->limits->memory_bytes;
    const bool fits = limit <= 0 || figures.memory_bytes <= limit;
    s->best->candidates++;
    const tgl_dist_figures *best = &s->best->figures;
    if (s->has_one) {
        if (s->fits && !fits) return;
        if (s->fits == fits &&
            (fits ? figures.seconds >= best->seconds : figures.memory_bytes >= best->memory_bytes))
            return;
    }
    s->has_one = true, s->fits = fits;
    s->best->division = *division;
    s->best->figures = figures;
    for (int x = OPERAND_A; x <= OPERAND_B; x++)
        s->best->gathers[x] = dist_cost_gathers(s->task, division, v, x, s->machine);
    name_stays(s->task, v, s->best->stays);
}

/* The length of the longest part of an axis. */
static int64_t longest(const dist_axis *axis)
{
    int64_t length = 0;
    for (int part = 0; part < axis->parts; part++) {
        const int64_t other = dist_axis_length(axis, part);
        if (other > length) length = other;
    }
    return length;
}

static void consider_panel(search *s, dist_division *division, const dist_volumes *v,
                           int64_t length, int64_t panel)
{
    if (s->limits->panel > 0) panel = s->limits->panel;
    if (s->limits->panel_max > 0 && panel > s->limits->panel_max) panel = s->limits->panel_max;
    if (panel > length) panel = length;
    if (panel < 1) panel = 1;
    division->panel = panel;
    division->panels = length > 0 ? (length - 1) / panel + 1 : 1;
    /* a single panel takes the memory of the whole operands, of which there is too little */
    if (s->limits->panel_max > 0 && division->panels == 1) return;
    consider(s, division, v);
}

/* Considers several panel lengths: the longest part of the loop's axis, whole and divided by powers
 * of 2; and the block size of each matrix that moves and is divided along this axis, because all of
 * a block is on one rank. The block size is also divided by powers of 2. All but the whole part
 * have at least SHORTEST elements. */
static void consider_panels(search *s, dist_division *division, const dist_volumes *v)
{
    enum { SHORTEST = 64, TIMES_MAX = 64 };
    const int64_t length = longest(&division->axis[division->loop]);
    consider_panel(s, division, v, length, length);
    for (int64_t times = 2; times <= TIMES_MAX && length / times >= SHORTEST; times *= 2)
        consider_panel(s, division, v, length, (length - 1) / times + 1);
    for (int x = 0; x < OPERANDS; x++)
        for (int side = 0; side < 2; side++) {
            const dist_axis *axis = &s->task->spread[x].axis[side];
            if (s->task->axis_of[x][side] != division->loop || v->stays[x] || axis->parts == 1)
                continue;
            for (int64_t times = 1; axis->block / times >= SHORTEST && times <= TIMES_MAX;
                 times *= 2)
                if (axis->block % times == 0)
                    consider_panel(s, division, v, length, axis->block / times);
        }
}

bool dist_planner_allows(const dist_limits *limits, const dist_division *division)
{
    for (int axis = 0; axis < AXES; axis++)
        if (limits->parts[axis] > 0 && limits->parts[axis] != division->axis[axis].parts)
            return false;
    return true;
}

static void consider_division(search *s, dist_division *division)
{
    if (!dist_planner_allows(s->limits, division)) return;
    const dist_volumes v = dist_volumes_of(s->task, division);
    division->c_stays = v.stays[OPERAND_C];
    const double products = dist_cost_products(s->task, &v, s->machine);
    if (s->has_one && s->fits && products >= s->best->figures.seconds) return;
    for (division->loop = 0; division->loop < AXES; division->loop++)
        consider_panels(s, division, &v);
}

/* ---- Candidates ------------------------------------------------------------------------------ */

dist_division dist_planner_staying(const dist_task *task, int operand)
{
    const dist_spread *own = &task->spread[operand];
    dist_division division = {.ranks = own->ranks};
    for (int axis = 0; axis < AXES; axis++)
        division.axis[axis] = dist_axis_even(dist_task_extent(task, axis), 1, 1);
    for (int side = 0; side < 2; side++)
        division.axis[task->axis_of[operand][side]] = own->axis[side];
    return division;
}

static void consider_staying(search *s, int operand)
{
    if (s->task->spread[operand].replicated) return;
    dist_division division = dist_planner_staying(s->task, operand);
    consider_division(s, &division);
}

/* Whether the local products alone, without any communication, would take at least as long as the
 * whole best division so far. */
static bool is_hopeless(const search *s, const int parts[AXES])
{
    dist_volumes v = {.multiplications = 1};
    for (int axis = 0; axis < AXES; axis++)
        v.multiplications *= ceil((double)dist_task_extent(s->task, axis) / parts[axis]);
    return s->has_one && s->fits &&
           dist_cost_products(s->task, &v, s->machine) >= s->best->figures.seconds;
}

/* Considers the division into parts[] equal parts. Tries each order in which ranks can be numbered
 * along the axes: the order decides which elements a rank has already. */
static void consider_even(search *s, const int parts[AXES])
{
    if (is_hopeless(s, parts)) return;
    static const int orders[6][AXES] = {{AXIS_K, AXIS_N, AXIS_M}, {AXIS_N, AXIS_K, AXIS_M},
                                        {AXIS_K, AXIS_M, AXIS_N}, {AXIS_M, AXIS_K, AXIS_N},
                                        {AXIS_N, AXIS_M, AXIS_K}, {AXIS_M, AXIS_N, AXIS_K}};
    const int divided = (parts[0] > 1) + (parts[1] > 1) + (parts[2] > 1);
    for (int i = 0; i < (divided > 1 ? 6 : 1); i++) {
        dist_division division = {.ranks = 1};
        for (int j = 0; j < AXES; j++) {
            const int axis = orders[i][j];
            const int64_t extent = dist_task_extent(s->task, axis);
            division.axis[axis] =
                dist_axis_even(extent, parts[axis], parts[axis] > 1 ? division.ranks : 1);
            division.ranks *= parts[axis];
        }
        consider_division(s, &division);
    }
}

static void consider_grids(search *s, int ranks)
{
    for (int m = 1; m <= ranks; m++)
        for (int n = 1; ranks % m == 0 && n <= ranks / m; n++)
            if (ranks / m % n == 0) consider_even(s, (int[AXES]){m, n, ranks / m / n});
}

/* The maximum number of ranks that may have no work. A prime number of ranks, for example, has only
 * one-dimensional grids, so that a grid of one rank fewer may be faster. IDLE_MAX and OF come from
 * predictions for all numbers of ranks up to 4096 (test_dist_many_ranks without an argument). If
 * one rank may be idle, some numbers of ranks are up to 5 % slower than one rank fewer; if four may
 * be idle, none is 2 % slower. */
static int idle_ranks_max(int ranks)
{
    enum { IDLE_MAX = 4, OF = 32 };
    if (ranks <= 2) return 0;
    return ranks < OF ? 1 : ranks / OF < IDLE_MAX ? ranks / OF : IDLE_MAX;
}

tgl_status dist_planner_choose(const dist_task *task, const tgl_dist_machine *machine,
                               const dist_limits *limits, dist_choice *choice)
{
    *choice = (dist_choice){.candidates = 0};
    search s = {.task = task, .machine = machine, .limits = limits, .best = choice};
    consider_staying(&s, OPERAND_C);
    consider_staying(&s, OPERAND_A);
    consider_staying(&s, OPERAND_B);
    consider_grids(&s, task->ranks);
    const int idle_max = idle_ranks_max(task->ranks);
    for (int fewer = task->ranks - 1; fewer > 0 && (!s.has_one || fewer >= task->ranks - idle_max);
         fewer--)
        consider_grids(&s, fewer); /* more ranks than idle_max stay idle only if no grid has the
                                      parts that the caller requests */
    if (!s.has_one)
        return dist_fail(TGL_UNSUPPORTED,
                         "%d ranks cannot be divided into the parts of the options", task->ranks);
    tgl_dist_figures *f = &choice->figures;
    if (task->is_exchanged) { /* the planner's m is the caller's n */
        const int parts_m = f->parts_m;
        f->parts_m = f->parts_n, f->parts_n = parts_m;
    }
    f->bound_bytes = bound_elements(task) * (double)dist_task_element(task, OPERAND_A);
    return TGL_OK;
}

/* ---- The order of the panels ----------------------------------------------------------------- */

/* Of the operands that move and are divided along the axis of the loop, the one of which ranks
 * receive the most bytes; OPERANDS: there is none. */
static int leading_operand(const dist_task *task, const dist_division *division)
{
    const dist_volumes v = dist_volumes_of(task, division);
    int leader = OPERANDS;
    for (int x = 0; x < OPERANDS; x++) {
        const int *axes = task->axis_of[x];
        const int side = axes[0] == division->loop ? 0 : axes[1] == division->loop ? 1 : -1;
        if (side < 0 || v.stays[x] || task->spread[x].axis[side].parts == 1) continue;
        if (leader == OPERANDS || v.received[x] > v.received[leader]) leader = x;
    }
    return leader;
}

void dist_planner_start(const dist_task *task, const dist_division *division, int32_t *start)
{
    const int leader = leading_operand(task, division);
    for (int rank = 0; rank < task->ranks; rank++) {
        start[rank] = 0;
        if (leader == OPERANDS || rank >= task->spread[leader].ranks || rank >= division->ranks)
            continue;
        const int side = task->axis_of[leader][0] == division->loop ? 0 : 1;
        const dist_axis *needed = &division->axis[division->loop];
        const dist_axis *owned = &task->spread[leader].axis[side];
        dist_overlap overlap =
            dist_overlap_start(dist_window_whole(needed, dist_axis_part(needed, rank)),
                               dist_window_whole(owned, dist_axis_part(owned, rank)));
        dist_run run;
        if (dist_overlap_next(&overlap, &run)) start[rank] = (int32_t)(run.x / division->panel);
    }
}
