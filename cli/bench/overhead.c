/* SPDX-License-Identifier: Apache-2.0
 *
 * `tegula bench --host-overhead`.
 */
#include "overhead.h"
#include "cli.h"
#include "cublas.h"
#include "kernel_names.h"
#include "progress.h"
#include "stats.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKS = 101, CALLS = 20 };

/* One of the ways to compute a product whose calls are timed. */
typedef struct way {
    const char *name;
    bool is_kept; /* whether the calls run a plan made before; if not, they call tgl_gemm() or
                     cuBLAS */
    int splits;   /* number of splits (split-K) of the planner's kernel; 0: as the planner
                     chooses */
    bool by_peer; /* whether the calls are of cuBLAS */
} way;

static const way ways[] = {
    {"tgl_plan_run(), k whole", true, 1, false},
    {"tgl_plan_run(), k in 4 splits", true, 4, false},
    {"tgl_plan_run(), the planner's choice", true, 0, false},
    {"tgl_gemm(), planned before", false, 0, false},
    {"cublasSgemm()", false, 0, true},
};

/* The arguments of the calls. */
typedef struct caller {
    tgl_device *dev;
    operands operands;
    tgl_plan *plan;          /* NULL unless way.is_kept; see also make_plan() */
    cublas_product *product; /* NULL unless way.by_peer */
} caller;

static tgl_status call_product(const caller *c, operand_set set)
{
    if (c->product != NULL) return cublas_run(c->product, set) ? TGL_OK : TGL_DRIVER;
    if (c->plan != NULL) return tgl_plan_run(c->plan, 1, set.A, set.B, 0, set.C, NULL);
    return tgl_gemm(c->dev, &c->operands.problem, 1, set.A, set.B, 0, set.C, NULL);
}

/* Times BLOCKS blocks of CALLS calls. Between blocks it waits for the device, so that the queue
 * never fills up and a call never waits for room in it. blocks[b] := mean seconds of a call in
 * block b. */
static tgl_status time_calls(const caller *c, double *blocks)
{
    const operand_set set = operands_for(&c->operands, 0);
    tgl_status status = call_product(c, set); /* the first call plans, compiles and loads the
                                                 kernel */
    for (int b = 0; b < BLOCKS && status == TGL_OK; b++) {
        status = tgl_device_sync(c->dev);
        const double start = cli_clock();
        for (int i = 0; i < CALLS && status == TGL_OK; i++)
            status = call_product(c, set);
        blocks[b] = (cli_clock() - start) / CALLS;
    }
    return status == TGL_OK ? tgl_device_sync(c->dev) : status;
}

/* Makes c->plan for the planner's kernel with the number of splits of *w. c->plan stays NULL if
 * that kernel does not support split-K. */
static tgl_status make_plan(caller *c, const way *w)
{
    const tgl_problem *p = &c->operands.problem;
    char kernel[160];
    CLI_TRY(cli_plan(c->dev, p, NULL, &c->plan));
    if (w->splits == 0) return TGL_OK;
    const char *chosen = tgl_plan_kernel(c->plan);
    snprintf(kernel, sizeof kernel, "%.*s:splits=%d", (int)strcspn(chosen, ":"), chosen, w->splits);
    tgl_plan_destroy(c->plan);
    c->plan = NULL;
    return kernel_has_option(kernel, "splits=1") ? cli_plan(c->dev, p, kernel, &c->plan) : TGL_OK;
}

static tgl_status time_way(caller *c, const way *w)
{
    double blocks[BLOCKS];
    CLI_TRY(time_calls(c, blocks));
    const double median = stats_quantile(blocks, BLOCKS, 0.5);
    printf("  %-38s %6.2f us a call, at least %.2f\n", w->name, 1e6 * median, 1e6 * blocks[0]);
    return TGL_OK;
}

/* Measures and prints one way. lib: cuBLAS for a way with by_peer; else unused, may be NULL. */
static tgl_status measure_way(tgl_device *dev, const way *w, cublas *lib)
{
    const tgl_problem p = cli_problem(TGL_F32, 32, 32, 256);
    caller c = {.dev = dev};
    char why[200] = "";
    tgl_status status = operands_make(&c.operands, dev, &p, false);
    if (status == TGL_OK && w->by_peer) {
        c.product = cublas_prepare(lib, CUBLAS_DEFAULT, &c.operands, why, sizeof why);
        status = c.product != NULL ? TGL_OK : TGL_DRIVER;
    } else if (status == TGL_OK && w->is_kept) {
        status = make_plan(&c, w);
    }
    const bool is_there = !w->is_kept || c.plan != NULL;
    if (status == TGL_OK && is_there) status = time_way(&c, w);
    tgl_plan_destroy(c.plan);
    cublas_release(c.product);
    operands_release(&c.operands);
    return status;
}

static tgl_status measure_all(tgl_device *dev, cublas *lib)
{
    tgl_status status = TGL_OK;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && status == TGL_OK; i++)
        if (!ways[i].by_peer || lib != NULL) status = measure_way(dev, &ways[i], lib);
    return status;
}

int overhead_measure(tgl_device *dev)
{
    char message[512];
    printf("host time on %s, medians of %d blocks of %d calls, 32x32x256\n", tgl_device_name(dev),
           BLOCKS, CALLS);
    tgl_status status = measure_all(dev, NULL);
    if (status == TGL_OK && !cli_device_is_host(dev)) {
        cublas *lib = cublas_open(dev, message, sizeof message);
        printf("%s%s\n",
               lib != NULL ? "the same with the device's context current, as beside cudart"
                           : "without cuBLAS: ",
               lib != NULL ? "" : message);
        if (lib != NULL) status = measure_all(dev, lib);
        cublas_close(lib);
    }
    return status == TGL_OK ? EXIT_DONE : cli_fail_status(status);
}
