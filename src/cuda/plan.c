/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of the cuda backend: a short list of launches over one workspace. Everything that can be
 * decided before the pointers are known is decided in prepare(); run() fills the arguments on its
 * stack and launches.
 */
#include "cuda/state.h"
#include "plan/ladder.h"
#include "text.h"

#include <stdlib.h>

enum { LAUNCHES_MAX = 4, ARGUMENTS_MAX = 16 };

/* The arguments of one launch: where each lies, as cuLaunchKernel() wants it, and room for them. */
typedef struct arguments {
    void *at[ARGUMENTS_MAX];
    union {
        int i;
        float f;
        long long l;
        const void *p;
    } value[ARGUMENTS_MAX];
    int count;
} arguments;

typedef struct cuda_plan cuda_plan;

typedef struct launch {
    const tgl_module *module;
    unsigned grid_x, grid_y, threads;
    void (*fill)(const cuda_plan *plan, const tgl_gemm_shape *shape, const tgl_run *run,
                 arguments *args);
} launch;

struct cuda_plan {
    int launches;
    launch launch[LAUNCHES_MAX]; /* in their order on the stream */
    size_t workspace_bytes;
    CUdeviceptr workspace; /* NULL: none is needed */
};

/* ---- Arguments ------------------------------------------------------------------------------- */

static void add_int(arguments *args, int64_t value)
{
    args->value[args->count].i = (int)value;
    args->at[args->count] = &args->value[args->count];
    args->count++;
}

static void add_float(arguments *args, double value)
{
    args->value[args->count].f = (float)value;
    args->at[args->count] = &args->value[args->count];
    args->count++;
}

static void add_long(arguments *args, int64_t value)
{
    args->value[args->count].l = value;
    args->at[args->count] = &args->value[args->count];
    args->count++;
}

static void add_pointer(arguments *args, const void *value)
{
    args->value[args->count].p = value;
    args->at[args->count] = &args->value[args->count];
    args->count++;
}

/* (m, n, k, alpha, A, lda, B, ldb, beta, C, ldc). Without a product k is 0, so that neither A nor B
 * is read, and alpha is 0, so that an infinite one adds nothing. */
static void fill_ladder(const cuda_plan *plan, const tgl_gemm_shape *shape, const tgl_run *run,
                        arguments *args)
{
    (void)plan;
    const bool has_product = run->alpha != 0 && shape->k > 0;
    add_int(args, shape->m);
    add_int(args, shape->n);
    add_int(args, has_product ? shape->k : 0);
    add_float(args, has_product ? run->alpha : 0);
    add_pointer(args, run->A);
    add_long(args, shape->lda);
    add_pointer(args, run->B);
    add_long(args, shape->ldb);
    add_float(args, run->beta);
    add_pointer(args, run->C);
    add_long(args, shape->ldc);
}

/* ---- Planning -------------------------------------------------------------------------------- */

/* One launch over all of C. */
static tgl_status plan_ladder(tgl_device *dev, const tgl_gemm_shape *shape,
                              const tgl_kernel *kernel, cuda_plan *plan)
{
    launch *step = &plan->launch[plan->launches++];
    *step = (launch){.threads = (unsigned)kernel->threads, .fill = fill_ladder};
    TGL_TRY(tgl_ladder_grid(dev, shape, kernel, &step->grid_x, &step->grid_y));
    return tgl_cuda_load(dev, kernel, &step->module);
}

/* Fills a plan of zeros. The context is current. */
static tgl_status make_plan(tgl_device *dev, const tgl_gemm_shape *shape, const tgl_kernel *kernel,
                            cuda_plan *plan)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    TGL_TRY(plan_ladder(dev, shape, kernel, plan));
    if (plan->workspace_bytes == 0) return TGL_OK;
    return tgl_cuda_check(dev, driver->cuMemAlloc(&plan->workspace, plan->workspace_bytes),
                          "allocating the plan's workspace");
}

tgl_status tgl_cuda_prepare(tgl_plan *plan, const char *name)
{
    tgl_device *dev = plan->dev;
    const tgl_kernel *kernel;
    tgl_cuda_scope scope;
    const int capability = ((tgl_cuda *)dev->state)->chip.capability;
    TGL_TRY(tgl_ladder_choose(dev, name, capability, &kernel));
    TGL_TRY(tgl_ladder_check(dev, &plan->shape));
    cuda_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a plan");
    tgl_status status = tgl_cuda_enter(dev, &scope);
    if (status == TGL_OK) {
        status = make_plan(dev, &plan->shape, kernel, made);
        tgl_cuda_leave(&scope);
    }
    if (status != TGL_OK) {
        free(made);
        return status;
    }
    plan->state = made;
    plan->kernel = kernel->name;
    return TGL_OK;
}

void tgl_cuda_unprepare(tgl_plan *plan)
{
    cuda_plan *made = plan->state;
    if (made->workspace != NULL) plan->dev->backend->free(plan->dev, made->workspace);
    free(made);
}

/* ---- Running --------------------------------------------------------------------------------- */

tgl_status tgl_cuda_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    const cuda_plan *made = plan->state;
    const tgl_driver *driver = &((tgl_cuda *)plan->dev->state)->driver;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(plan->dev, &scope));
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < made->launches && result == CUDA_SUCCESS; i++) {
        const launch *step = &made->launch[i];
        arguments args;
        args.count = 0;
        step->fill(made, &plan->shape, run, &args);
        result = driver->cuLaunchKernel(
            step->module->function, step->grid_x, step->grid_y, 1, step->threads, 1, 1,
            (unsigned)step->module->kernel->dynamic_shared, stream, args.at, NULL);
    }
    tgl_status status = tgl_cuda_check(plan->dev, result, plan->kernel);
    tgl_cuda_leave(&scope);
    return status;
}

/* ---- Explaining ------------------------------------------------------------------------------ */

static void explain_problem(tgl_text *out, const tgl_gemm_shape *s)
{
    const double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    const double bytes = 4.0 * ((double)s->m * (double)s->k + (double)s->k * (double)s->n +
                                2.0 * (double)s->m * (double)s->n);
    tgl_text_add(out,
                 "problem     C := alpha*A*B + beta*C, f32, row-major, m=%lld n=%lld k=%lld%s\n",
                 (long long)s->m, (long long)s->n, (long long)s->k,
                 s->swapped ? " (column-major given: A and B, m and n exchanged)" : "");
    tgl_text_add(out,
                 "intensity   %.1f FLOP/byte (%.4g GFLOP, %.4g MB if each matrix moves once)\n",
                 flops / bytes, 1e-9 * flops, 1e-6 * bytes);
}

/* The context is current. */
static void explain_launch(tgl_text *out, const tgl_cuda *cuda, const launch *step)
{
    const tgl_module *module = step->module;
    const tgl_kernel *kernel = module->kernel;
    int blocks = 0;
    cuda->driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, module->function, (int)step->threads, (size_t)kernel->dynamic_shared);
    const double grid = (double)step->grid_x * step->grid_y;
    const double at_once = (double)blocks * cuda->chip.multiprocessors;
    tgl_text_add(out, "kernel      %s: %s in kernels/%s\n", kernel->name, kernel->symbol,
                 kernel->file);
    tgl_text_add(out, "tiles       %s; a block computes %d x %d of C\n",
                 kernel->defines[0] != '\0' ? kernel->defines : "the file's defaults",
                 kernel->block_m, kernel->block_n);
    tgl_text_add(out, "launch      %u x %u blocks of %u threads\n", step->grid_x, step->grid_y,
                 step->threads);
    tgl_text_add(out, "registers   %d a thread, local memory %d bytes a thread\n",
                 module->registers, module->local_bytes);
    tgl_text_add(out, "shared      %d bytes a block, static, and %d dynamic\n",
                 module->shared_bytes, kernel->dynamic_shared);
    if (blocks > 0)
        tgl_text_add(out,
                     "occupancy   %d block%s a multiprocessor: %u of %d threads (%.0f %%)\n"
                     "waves       %.2f (%.0f blocks, %.0f at once on %d multiprocessors)\n",
                     blocks, blocks == 1 ? "" : "s", (unsigned)blocks * step->threads,
                     cuda->chip.threads_per_sm,
                     100.0 * blocks * step->threads / cuda->chip.threads_per_sm, grid / at_once,
                     grid, at_once, cuda->chip.multiprocessors);
    tgl_text_add(out, "compiled    for %s, %s, in %.3f s\n", cuda->arch.name,
                 module->from_cache ? "from the cache" : "by NVRTC", module->seconds);
}

size_t tgl_cuda_explain(const tgl_plan *plan, char *text, size_t size)
{
    const cuda_plan *made = plan->state;
    const tgl_cuda *cuda = plan->dev->state;
    tgl_text out = {text, size, 0};
    tgl_cuda_scope scope;
    tgl_text_add(&out, "device      %s, %s\n", plan->dev->name, cuda->chip.name);
    explain_problem(&out, &plan->shape);
    if (tgl_cuda_enter(plan->dev, &scope) != TGL_OK) {
        tgl_text_add(&out, "the device is lost\n");
        return out.length;
    }
    for (int i = 0; i < made->launches; i++)
        explain_launch(&out, cuda, &made->launch[i]);
    tgl_cuda_leave(&scope);
    if (made->workspace_bytes > 0)
        tgl_text_add(&out, "workspace   %zu bytes\n", made->workspace_bytes);
    return out.length;
}
