/* SPDX-License-Identifier: Apache-2.0
 *
 * tgl_dist_explain(): describes the plan of a product in words. It does not communicate, so the
 * ranks need not exist.
 */
#include "dist_comm.h"
#include "dist_cost.h"
#include "dist_error.h"
#include "dist_ring_choose.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct output {
    char *text;
    size_t size, length;
} output;

static void print(output *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(output *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t room = o->length < o->size ? o->size - o->length : 0;
    const int length = vsnprintf(room > 0 ? o->text + o->length : NULL, room, format, args);
    va_end(args);
    if (length > 0) o->length += (size_t)length;
}

/* The caller's letter (m, n or k) for an axis. If task->is_exchanged, the caller's m is the
 * planner's n. */
static char loop_name(const dist_task *task, int axis)
{
    return task->is_exchanged ? "nmk"[axis] : "mnk"[axis];
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 100;
}

/* Seconds that the product would take if its multiplications were divided evenly and nothing
 * moved. */
static double ideal_seconds(const dist_task *task, const tgl_dist_machine *machine)
{
    dist_volumes even = {.multiplications = 1.0 / task->ranks};
    for (int axis = 0; axis < AXES; axis++)
        even.multiplications *= (double)dist_task_extent(task, axis);
    return dist_cost_products(task, &even, machine);
}

static void describe_machine(output *o, const tgl_dist_machine *machine,
                             const tgl_dist_machine *given)
{
    const tgl_dist_machine none = {.size = 0}, *g = given != NULL ? given : &none;
    const struct {
        const char *name;
        bool is_given;
    } constants[] = {{"FLOP/s", g->flops_per_s > 0},
                     {"bandwidth", g->bytes_per_s > 0},
                     {"latency", g->latency_s > 0}};
    print(o,
          "machine      %.1f GFLOP/s in F64 and %.1f GB/s for each rank, %.1f us a message\n"
          "constants   ",
          1e-9 * machine->flops_per_s, 1e-9 * machine->bytes_per_s, 1e6 * machine->latency_s);
    for (int i = 0; i < 3; i++)
        print(o, " %s %s%s", constants[i].name,
              constants[i].is_given ? "given by the caller" : "modelled, not measured",
              i < 2 ? ";" : "\n");
}

static void describe(output *o, const dist_task *task, const dist_choice *choice,
                     const tgl_dist_machine *machine)
{
    const tgl_dist_figures *f = &choice->figures;
    print(o, "%d ranks, %d candidates\n", task->ranks, choice->candidates);
    print(o, "grid         %d x %d x %d parts of m, n and k\n", f->parts_m, f->parts_n, f->parts_k);
    print(o, "stays        %s\n", choice->stays[0] != '\0' ? choice->stays : "nothing");
    print(o, "loop         %lld panels of %lld along %c\n", (long long)f->panels,
          (long long)f->panel, loop_name(task, choice->division.loop));
    print(o, "exchange     %s\n",
          choice->ring == RING_COLLECTIVE ? "one collective operation adds up the ranks' products"
          : choice->gathers[OPERAND_A] || choice->gathers[OPERAND_B]
              ? "one all-gather, then the product"
              : "messages between two ranks");
    print(o, "received     %.3f MB by a rank; the least for evenly stored matrices is %.3f MB\n",
          1e-6 * f->received_bytes, 1e-6 * f->bound_bytes);
    print(o, "memory       %.3f MB beside the matrices\n", 1e-6 * f->memory_bytes);
    print(o, "predicted    %.6f s, of which the products alone take %.6f s: %.0f %%\n", f->seconds,
          f->local_seconds, percent(f->local_seconds, f->seconds));
    print(o,
          "efficiency   %.0f %% of %d ranks that divide the work evenly and do not communicate\n",
          percent(ideal_seconds(task, machine), f->seconds), task->ranks);
}

tgl_status tgl_dist_explain(const tgl_problem *problem, const tgl_dist_layout *a,
                            const tgl_dist_layout *b, const tgl_dist_layout *c, int ranks,
                            const tgl_dist_machine *machine, const tgl_dist_options *options,
                            tgl_dist_figures *figures, char *text, size_t size, size_t *length)
{
    const tgl_dist_layout *const layouts[OPERANDS] = {a, b, c};
    const tgl_dist_machine complete = dist_machine_of(machine);
    dist_task task;
    dist_choice choice;
    if (ranks < 1 || (text == NULL && size > 0) || length == NULL)
        return dist_fail(TGL_BAD_ARGUMENT, "there are no ranks, or a pointer is NULL");
    if (figures != NULL && figures->size < sizeof *figures)
        return dist_fail(TGL_BAD_ARGUMENT, "the size of the figures is wrong");
    DIST_TRY(dist_options_check(options));
    DIST_TRY(dist_task_read(problem, layouts, options, 0, ranks, &task));
    const dist_limits limits =
        dist_limits_of(&task, options, options != NULL ? options->memory_limit : 0);
    DIST_TRY(dist_choose(&task, &complete, &limits, &choice));
    output o = {text, size, 0};
    describe(&o, &task, &choice, &complete);
    describe_machine(&o, &complete, machine);
    *length = o.length;
    if (figures != NULL) *figures = choice.figures;
    return TGL_OK;
}
