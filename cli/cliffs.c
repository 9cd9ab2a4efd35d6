/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --cliffs`.
 */
#include "cliffs.h"
#include "cli.h"
#include "progress.h"
#include "stopwatch.h"

#include <inttypes.h>
#include <stdio.h>

static const double sample_seconds = 3e-3, steep = 1.10;
enum { SAMPLES = 7 };

/* ---- Cliffs ---------------------------------------------------------------------------------- */

/* The kernel's name goes to `kernel`. */
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

/* One more of m, n or k. */
static tgl_problem neighbour(const tgl_problem *p, int which)
{
    tgl_problem q = *p;
    q.m += which == 0;
    q.n += which == 1;
    q.k += which == 2;
    if (q.batch > 1) {
        q.stride_a = q.m * q.k;
        q.stride_b = q.k * q.n;
        q.stride_c = q.m * q.n;
    }
    return q;
}

/* Prints a step; counts it if it is steep. */
static void report_step(const tgl_problem *p, double at, const char *kernel, const tgl_problem *q,
                        double there, const char *kernel_there, int *cliffs)
{
    const double ratio = there / at / (suite_flops(q) / suite_flops(p));
    const bool is_cliff = ratio > steep;
    *cliffs += is_cliff;
    printf("%s %" PRId64 "x%" PRId64 "x%" PRId64 " %9.2f us %-22s -> %" PRId64 "x%" PRId64
           "x%" PRId64 " %9.2f us %-22s x%.3f%s\n",
           suite_layout(p), p->m, p->n, p->k, 1e6 * at, kernel, q->m, q->n, q->k, 1e6 * there,
           kernel_there, ratio, is_cliff ? "  CLIFF" : "");
}

static tgl_status look_around(tgl_device *dev, const tgl_problem *p, int *cliffs)
{
    double at, there;
    char kernel[64], kernel_there[64];
    tgl_status status = time_shape(dev, p, &at, kernel, sizeof kernel);
    for (int i = 0; i < 3 && status == TGL_OK; i++) {
        const tgl_problem q = neighbour(p, i);
        status = time_shape(dev, &q, &there, kernel_there, sizeof kernel_there);
        if (status == TGL_OK) report_step(p, at, kernel, &q, there, kernel_there, cliffs);
    }
    return status;
}

int cliffs_find(tgl_device *dev, const suite *s)
{
    int cliffs = 0, code = EXIT_DONE;
    progress line;
    progress_start(&line, s->count);
    for (int i = 0; i < s->count; i++) {
        progress_update(&line, i, "cliffs");
        progress_clear(&line);
        const tgl_status status = look_around(dev, &s->problems[i], &cliffs);
        if (status != TGL_OK && status != TGL_UNSUPPORTED) code = cli_fail_status(dev, status);
        if (status == TGL_DEVICE_LOST) break;
    }
    printf("%d of %d steps are cliffs on %s: more than a tenth beyond the work added\n", cliffs,
           3 * s->count, tgl_device_name(dev));
    return code;
}
