/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --cliffs`. A cliff is a step from a shape to one that is larger by 1 in m, n or k,
 * where the time per operation grows by more than 10 %.
 */
#include "cliffs.h"
#include "bench_report.h"
#include "cli.h"
#include "problem_options.h"
#include "progress.h"
#include "stopwatch.h"

#include <inttypes.h>
#include <stdio.h>

static const double sample_seconds = 3e-3, steep = 1.10;
enum { SAMPLES = 7 };

/* ---- Cliffs ---------------------------------------------------------------------------------- */

/* Times the planner's plan for a shape: *seconds := the median time of a run. kernel, of `size`
 * bytes, receives the name of the plan's kernel. */
static tgl_status time_shape(tgl_device *dev, const tgl_problem *p, double *seconds, char *kernel,
                             size_t size)
{
    operands matrices;
    stopwatch watch = {0};
    tgl_plan *plan = NULL;
    tgl_status status = operands_make(&matrices, dev, p, true);
    if (status == TGL_OK) status = tgl_plan_create(dev, p, NULL, &plan);
    if (status == TGL_OK) status = stopwatch_make(&watch, &matrices);
    if (status == TGL_OK) status = stopwatch_median(&watch, plan, sample_seconds, SAMPLES, seconds);
    snprintf(kernel, size, "%s", tgl_plan_kernel(plan));
    stopwatch_release(&watch);
    tgl_plan_destroy(plan);
    operands_release(&matrices);
    return status;
}

/* The problem with m (if which is 0), n (if 1) or k (if 2) increased by 1. */
static tgl_problem neighbour(const tgl_problem *p, int which)
{
    tgl_problem q = *p;
    q.m += which == 0;
    q.n += which == 1;
    q.k += which == 2;
    if (q.batch > 1) problem_set_strides(&q);
    return q;
}

typedef struct tally {
    int steps, cliffs; /* number of neighbours that were timed, and number of those that are
                          cliffs */
    int code;          /* an exit code: EXIT_FAILED if a call of the library failed */
    bool lost;         /* whether the device was lost (TGL_DEVICE_LOST) */
} tally;

static void report_step(const tgl_problem *p, double at, const char *kernel, const tgl_problem *q,
                        double there, const char *kernel_there, tally *sum)
{
    const double ratio = there / at / (problem_flops(q) / problem_flops(p));
    const bool is_cliff = ratio > steep;
    sum->steps++;
    sum->cliffs += is_cliff;
    printf("%s %9.2f us %-22s -> %" PRId64 "x%" PRId64 "x%" PRId64 " %9.2f us %-22s x%.3f%s\n",
           problem_shape_label(p).text, 1e6 * at, kernel, q->m, q->n, q->k, 1e6 * there,
           kernel_there, ratio, is_cliff ? "  CLIFF" : "");
}

/* Times a shape as time_shape() does. False: it could not be timed, and the error has been printed.
 * Unless the device does not support the shape, sum->code is then EXIT_FAILED. */
static bool try_shape(tgl_device *dev, const tgl_problem *p, double *seconds, char *kernel,
                      size_t size, tally *sum)
{
    const tgl_status status = time_shape(dev, p, seconds, kernel, size);
    char shape[64];
    report_shape(p, shape, sizeof shape);
    if (status == TGL_UNSUPPORTED)
        cli_fail("%s is left out: %s", shape, tgl_status_text(status));
    else if (status != TGL_OK)
        sum->code = cli_fail_at(shape, status);
    sum->lost = status == TGL_DEVICE_LOST;
    return status == TGL_OK;
}

static void look_around(tgl_device *dev, const tgl_problem *p, tally *sum)
{
    double at, there;
    char kernel[160], kernel_there[160];
    if (!try_shape(dev, p, &at, kernel, sizeof kernel, sum)) return;
    for (int i = 0; i < 3 && !sum->lost; i++) {
        const tgl_problem q = neighbour(p, i);
        if (try_shape(dev, &q, &there, kernel_there, sizeof kernel_there, sum))
            report_step(p, at, kernel, &q, there, kernel_there, sum);
    }
}

int cliffs_find(tgl_device *dev, const suite *s)
{
    tally sum = {.code = EXIT_DONE};
    progress line;
    progress_start(&line, s->count);
    for (int i = 0; i < s->count && !sum.lost; i++) {
        progress_update(&line, i, "cliffs");
        progress_clear(&line);
        look_around(dev, &s->problems[i], &sum);
    }
    printf("%d of %d steps are cliffs on %s: more than a tenth beyond the work added\n", sum.cliffs,
           sum.steps, tgl_device_name(dev));
    return sum.steps > 0 ? sum.code : cli_fail("no step was timed, from any shape");
}
