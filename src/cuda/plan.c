/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of the cuda backend: a short list of launches over one workspace. Everything that can be
 * decided before the pointers are known is decided in prepare(); run() fills the arguments on its
 * stack and launches.
 */
#include "cuda/state.h"
#include "plan/ladder.h"
#include "plan/planner.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 16 };

/* Where the latest run of a plan has gone. */
typedef enum latest_run {
    NOWHERE, /* there was none: nobody has to wait */
    ON_DEFAULT_STREAM,
    ON_A_STREAM, /* which has recorded an event after its last launch */
} latest_run;

/* Device memory of a plan, for what its blocks tell each other. A run has all of it to itself: runs
 * on different streams wait for each other on the device. Runs that are captured into a graph
 * cannot, and have memory of their own. */
typedef struct workspace {
    size_t bytes; /* of a run; 0: the plan needs none */
    CUdeviceptr
        memory; /* for two runs, the second for those in graphs; of a one-shot plan for one */
    pthread_mutex_t lock;
    latest_run latest;
    CUevent passed; /* is recorded ON_A_STREAM, on the default one when somebody has to wait */
} workspace;

/* A part of C, with what its launches need. */
typedef struct cuda_part {
    tgl_gemm_part of;
    const tgl_module *modules[TGL_GEMM_VARIANTS];
    size_t sums_at, counters_at; /* in the workspace */
} cuda_part;

typedef struct cuda_plan {
    const tgl_module *rung;  /* of the ladder; NULL: a plan of the production families */
    unsigned grid_x, grid_y; /* of the ladder */
    tgl_candidate choice;
    cuda_part parts[TGL_PARTS_MOST]; /* in the order of their launches */
    int part_count;
    workspace space;
} cuda_plan;

/* The arguments of a launch of the ladder: where each lies, as cuLaunchKernel() wants it, and room
 * for them. */
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
static void fill_ladder(const tgl_gemm_shape *shape, const tgl_run *run, arguments *args)
{
    args->count = 0;
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
static tgl_status plan_ladder(tgl_plan *plan, const tgl_kernel *kernel, cuda_plan *made)
{
    tgl_device *dev = plan->dev;
    const int capability = ((tgl_cuda *)dev->state)->chip.capability;
    TGL_TRY(tgl_ladder_check_chip(dev, kernel, capability));
    TGL_TRY(tgl_ladder_check(dev, &plan->shape));
    TGL_TRY(tgl_ladder_grid(dev, &plan->shape, kernel, &made->grid_x, &made->grid_y));
    plan->kernel = kernel->name;
    return tgl_cuda_load(dev, kernel, &made->rung);
}

static size_t round_up(size_t bytes)
{
    const size_t unit = 256;
    return (bytes + unit - 1) / unit * unit;
}

/* A region of the workspace for each part: they may be under way at once. */
static void lay_out_workspace(cuda_plan *made)
{
    size_t bytes = 0;
    for (int i = 0; i < made->part_count; i++) {
        cuda_part *part = &made->parts[i];
        const tgl_gemm_plan *plan = &part->of.plan;
        part->sums_at = bytes;
        part->counters_at = bytes + round_up((size_t)plan->workspace_floats * sizeof(float));
        bytes = part->counters_at + round_up((size_t)plan->counters * sizeof(unsigned));
    }
    made->space.bytes = bytes;
}

/* Counters are zero before and after a launch. */
static tgl_status make_workspace(tgl_plan *plan, workspace *space)
{
    const tgl_driver *driver = &((tgl_cuda *)plan->dev->state)->driver;
    const size_t bytes = (plan->is_one_shot ? 1 : 2) * space->bytes;
    if (bytes == 0) return TGL_OK;
    CUresult result = driver->cuMemAlloc(&space->memory, bytes);
    if (result == CUDA_SUCCESS) result = driver->cuMemsetD8Async(space->memory, 0, bytes, NULL);
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(NULL);
    if (result == CUDA_SUCCESS)
        result = driver->cuEventCreate(&space->passed, CU_EVENT_DISABLE_TIMING);
    plan->memory += bytes;
    return tgl_cuda_check(plan->dev, result, "setting the plan's workspace aside");
}

/* *captured: whether what a run with a workspace gives the stream goes into a graph. That of a
 * one-shot plan is refused: the graph would outlive the workspace. The default stream is never
 * captured. */
static tgl_status check_capture(const tgl_plan *plan, CUstream stream, bool *captured)
{
    const tgl_driver *driver = &((tgl_cuda *)plan->dev->state)->driver;
    int captures = 0;
    if (stream != NULL)
        TGL_TRY(tgl_cuda_check(plan->dev, driver->cuStreamIsCapturing(stream, &captures),
                               "asking whether the stream is being captured"));
    *captured = captures != 0;
    if (captures != 0 && plan->is_one_shot)
        return tgl_fail(plan->dev, TGL_UNSUPPORTED,
                        "the stream is being captured, and the workspace that tgl_gemm() needs for "
                        "this product may be gone before the graph is: capture tgl_plan_run() of a "
                        "plan that outlives the graph");
    return TGL_OK;
}

static void free_workspace(tgl_device *dev, workspace *space)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    pthread_mutex_destroy(&space->lock);
    if (space->memory == NULL || tgl_cuda_enter(dev, &scope) != TGL_OK) return;
    if (space->passed != NULL) driver->cuEventDestroy(space->passed);
    driver->cuMemFree(space->memory);
    tgl_cuda_leave(&scope);
}

/* Every variant that the pointers of a run may ask for is compiled now. */
static tgl_status load_part(tgl_device *dev, cuda_part *part)
{
    tgl_gemm_variant variant;
    for (int i = 0; i < TGL_GEMM_VARIANTS; i++)
        if (tgl_gemm_variant_make(&part->of.plan, &part->of.shape, i, &variant))
            TGL_TRY(tgl_cuda_load(dev, &variant.kernel, &part->modules[i]));
    return TGL_OK;
}

/* stream: of a one-shot plan's first run. */
static tgl_status plan_gemm(tgl_plan *plan, const tgl_plan_options *options, CUstream stream,
                            cuda_plan *made)
{
    tgl_device *dev = plan->dev;
    const tgl_chip_facts *facts = &((tgl_cuda *)dev->state)->chip.facts;
    tgl_gemm_part parts[TGL_PARTS_MOST];
    char message[200];
    tgl_status status =
        tgl_planner_plan(facts, &plan->shape, options, &made->choice, message, sizeof message);
    if (status != TGL_OK) return tgl_fail(dev, status, "%s", message);
    plan->kernel = made->choice.plan.row->name;
    made->part_count = tgl_candidate_parts(&made->choice, &plan->shape, parts);
    for (int i = 0; i < made->part_count; i++)
        made->parts[i].of = parts[i];
    lay_out_workspace(made);
    bool captured; /* then what follows would break the capture before the run is refused */
    if (plan->is_one_shot && made->space.bytes > 0) TGL_TRY(check_capture(plan, stream, &captured));
    for (int i = 0; i < made->part_count; i++)
        TGL_TRY(load_part(dev, &made->parts[i]));
    return make_workspace(plan, &made->space);
}

static tgl_status make_plan(tgl_plan *plan, const tgl_plan_options *options, CUstream stream,
                            cuda_plan *made)
{
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(plan->dev, &scope));
    const tgl_kernel *rung = options->kernel != NULL ? tgl_kernel_find(options->kernel) : NULL;
    tgl_status status =
        rung != NULL ? plan_ladder(plan, rung, made) : plan_gemm(plan, options, stream, made);
    tgl_cuda_leave(&scope);
    return status;
}

static void free_plan(tgl_device *dev, cuda_plan *made)
{
    free_workspace(dev, &made->space);
    free(made);
}

tgl_status tgl_cuda_prepare(tgl_plan *plan, const tgl_plan_options *options, void *stream)
{
    cuda_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return tgl_fail(plan->dev, TGL_NO_MEMORY, "no memory for a plan");
    pthread_mutex_init(&made->space.lock, NULL);
    tgl_status status = make_plan(plan, options, stream, made);
    if (status == TGL_OK)
        plan->state = made;
    else
        free_plan(plan->dev, made);
    return status;
}

void tgl_cuda_unprepare(tgl_plan *plan)
{
    free_plan(plan->dev, plan->state);
}

/* ---- Running --------------------------------------------------------------------------------- */

static CUresult run_ladder(const tgl_driver *driver, const cuda_plan *made,
                           const tgl_gemm_shape *shape, const tgl_run *run, CUstream stream)
{
    const tgl_module *module = made->rung;
    arguments args;
    fill_ladder(shape, run, &args);
    return driver->cuLaunchKernel(module->function, made->grid_x, made->grid_y, 1,
                                  (unsigned)module->kernel.threads, 1, 1,
                                  (unsigned)module->kernel.dynamic_shared, stream, args.at, NULL);
}

/* Whether a launch may start while the one before it in the stream still runs, and let the next one
 * do so. With more blocks than multiprocessors these would be spread badly over those that are
 * still taken, which does not matter to many short ones. */
static bool may_overlap(const tgl_cuda *cuda, const tgl_gemm_plan *plan, const unsigned grid[3])
{
    const int64_t blocks = (int64_t)grid[0] * grid[1] * grid[2];
    return plan->row->family == TGL_MATVEC || blocks <= cuda->chip.multiprocessors;
}

/* One launch. starts_early: while the one before it in the stream still runs, if that one lets it;
 * the kernels of kernels/gemm/ wait for each other themselves (lib/launch_order.h). */
static CUresult launch(const tgl_cuda *cuda, const cuda_part *part, int variant, bool starts_early,
                       const tgl_gemm_args *args, const unsigned grid[3], CUstream stream)
{
    const tgl_gemm_plan *plan = &part->of.plan;
    const tgl_module *module = part->modules[variant];
    const unsigned threads = (unsigned)plan->threads;
    const unsigned shared = (unsigned)tgl_gemm_dynamic_shared(plan, variant);
    void *at[] = {(void *)args};
    CUlaunchAttribute attributes[2];
    unsigned count = 0;
    if (starts_early)
        attributes[count++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.allows_overlap = 1};
    if (args->cluster > 1)
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                                  .value.cluster = {(unsigned)args->cluster, 1, 1}};
    const CUlaunchConfig config = {
        .grid = {grid[0], grid[1], grid[2]},
        .block = {threads, 1, 1},
        .dynamic_shared = shared,
        .stream = stream,
        .attributes = attributes,
        .attribute_count = count,
    };
    if (cuda->has_extended_launch && count > 0)
        return cuda->driver.cuLaunchKernelEx(&config, module->function, at, NULL);
    return cuda->driver.cuLaunchKernel(module->function, grid[0], grid[1], grid[2], threads, 1, 1,
                                       shared, stream, at, NULL);
}

/* Where a part stands among the launches of a run. */
typedef struct turn {
    bool is_strip, is_last;
    bool overlaps; /* as all launches of the run so far may */
} turn;

/* As many launches as a batch takes. Strips fill the last wave of the launch before them, however
 * large: they begin when its last block has, which has waited for all that came before. Each is one
 * launch (tgl_gemm_strips): a second one would not wait for the first, whose workspace it has.
 * memory: of the workspace, or NULL. */
static CUresult launch_part(const tgl_cuda *cuda, const cuda_part *part, turn *its,
                            const tgl_run *run, char *memory, CUstream stream)
{
    const tgl_gemm_plan *plan = &part->of.plan;
    const tgl_run own = tgl_gemm_part_run(&part->of, run);
    const int variant = tgl_gemm_variant_for(plan, &own);
    char *sums = memory != NULL ? memory + part->sums_at : NULL;
    char *counters = memory != NULL ? memory + part->counters_at : NULL;
    CUresult result = CUDA_SUCCESS;
    for (int64_t i = 0; i < part->of.shape.batch && result == CUDA_SUCCESS; i += plan->batch_step) {
        tgl_gemm_args args;
        unsigned grid[3];
        tgl_gemm_launch(plan, &part->of.shape, &own, i, sums, counters, &args, grid);
        const bool overlaps = may_overlap(cuda, plan, grid);
        its->overlaps = its->overlaps && overlaps;
        args.overlaps = !its->is_last || its->overlaps;
        args.waits_at_end = its->is_strip;
        result = launch(cuda, part, variant, its->is_strip || overlaps, &args, grid, stream);
    }
    return result;
}

static CUresult launch_parts(const tgl_cuda *cuda, const cuda_plan *made, const tgl_run *run,
                             char *memory, CUstream stream)
{
    turn its = {.overlaps = true};
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < made->part_count && result == CUDA_SUCCESS; i++) {
        its.is_strip = i > 0;
        its.is_last = i + 1 == made->part_count;
        result = launch_part(cuda, &made->parts[i], &its, run, memory, stream);
    }
    return result;
}

/* Makes the stream wait for the latest run. The default stream cannot be destroyed, so that it need
 * not be asked before somebody has to wait for it; and nobody has to wait for himself. Asking it
 * joins all blocking streams and breaks a capture on any of them: nobody asks without need. */
static CUresult wait_for_latest(const tgl_driver *driver, const workspace *space, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    if (space->latest == NOWHERE) return CUDA_SUCCESS;
    if (stream == NULL && space->latest == ON_DEFAULT_STREAM) return CUDA_SUCCESS;
    if (space->latest == ON_DEFAULT_STREAM) result = driver->cuEventRecord(space->passed, NULL);
    if (result == CUDA_SUCCESS) result = driver->cuStreamWaitEvent(stream, space->passed, 0);
    return result;
}

/* As launch_parts(), with the workspace to itself. */
static CUresult run_in_turn(const tgl_cuda *cuda, cuda_plan *made, const tgl_run *run,
                            CUstream stream)
{
    const tgl_driver *driver = &cuda->driver;
    workspace *space = &made->space;
    pthread_mutex_lock(&space->lock);
    CUresult result = wait_for_latest(driver, space, stream);
    if (result == CUDA_SUCCESS) {
        /* Of a launch that fails, those before it are under way all the same. */
        result = launch_parts(cuda, made, run, space->memory, stream);
        const CUresult recorded =
            stream != NULL ? driver->cuEventRecord(space->passed, stream) : CUDA_SUCCESS;
        if (recorded == CUDA_SUCCESS)
            space->latest = stream != NULL ? ON_A_STREAM : ON_DEFAULT_STREAM;
        if (result == CUDA_SUCCESS) result = recorded;
    }
    pthread_mutex_unlock(&space->lock);
    return result;
}

/* The device's context is current. */
static tgl_status run_plan(const tgl_plan *plan, const tgl_run *run, CUstream stream)
{
    cuda_plan *made = plan->state;
    const tgl_cuda *cuda = plan->dev->state;
    char *memory = made->space.memory;
    bool captured = false;
    CUresult result;
    if (memory != NULL) TGL_TRY(check_capture(plan, stream, &captured));
    if (made->rung != NULL)
        result = run_ladder(&cuda->driver, made, &plan->shape, run, stream);
    else if (captured)
        result = launch_parts(cuda, made, run, memory + made->space.bytes, stream);
    else if (memory != NULL)
        result = run_in_turn(cuda, made, run, stream);
    else
        result = launch_parts(cuda, made, run, NULL, stream);
    return tgl_cuda_check(plan->dev, result, plan->kernel);
}

tgl_status tgl_cuda_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(plan->dev, &scope));
    tgl_status status = run_plan(plan, run, stream);
    tgl_cuda_leave(&scope);
    return status;
}

/* ---- Explaining ------------------------------------------------------------------------------ */

/* The context is current. */
static void explain_launch(tgl_text *out, const tgl_cuda *cuda, const tgl_module *module,
                           const unsigned grid[3], int dynamic_shared)
{
    const tgl_kernel *kernel = &module->kernel;
    const unsigned threads = (unsigned)kernel->threads;
    int blocks = 0;
    cuda->driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, module->function, kernel->threads, (size_t)dynamic_shared);
    const double total = (double)grid[0] * grid[1] * grid[2];
    const double at_once = (double)blocks * cuda->chip.multiprocessors;
    tgl_planner_explain_launch(out, kernel, grid);
    tgl_text_add(out, "registers   %d a thread, local memory %d bytes a thread\n",
                 module->registers, module->local_bytes);
    tgl_text_add(out, "shared      %d bytes a block, static, and %d dynamic\n",
                 module->shared_bytes, dynamic_shared);
    if (blocks > 0)
        tgl_text_add(out,
                     "occupancy   %d block%s a multiprocessor: %u of %d threads (%.0f %%)\n"
                     "waves       %.2f (%.0f blocks, %.0f at once on %d multiprocessors)\n",
                     blocks, blocks == 1 ? "" : "s", (unsigned)blocks * threads,
                     cuda->chip.threads_per_sm,
                     100.0 * blocks * threads / cuda->chip.threads_per_sm, total / at_once, total,
                     at_once, cuda->chip.multiprocessors);
    tgl_text_add(out, "compiled    for %s, %s, in %.3f s\n", cuda->arch.name,
                 module->from_cache ? "from the cache" : "by NVRTC", module->seconds);
}

/* The launches of the first problems of a batch, with a product. */
static void explain_gemm(tgl_text *out, const tgl_cuda *cuda, const cuda_plan *made,
                         const tgl_gemm_shape *shape)
{
    const tgl_run run = {.alpha = 1};
    for (int i = 0; i < made->part_count; i++) {
        const tgl_gemm_part *part = &made->parts[i].of;
        tgl_gemm_args args;
        unsigned grid[3];
        tgl_gemm_launch(&part->plan, &part->shape, &run, 0, NULL, NULL, &args, grid);
        explain_launch(out, cuda, made->parts[i].modules[TGL_GEMM_ALIGNED], grid,
                       part->plan.dynamic_shared);
    }
    tgl_planner_explain(out, &cuda->chip.facts, shape, &made->choice);
}

size_t tgl_cuda_explain(const tgl_plan *plan, char *text, size_t size)
{
    const cuda_plan *made = plan->state;
    const tgl_cuda *cuda = plan->dev->state;
    tgl_text out = {text, size, 0};
    tgl_cuda_scope scope;
    tgl_text_add(&out, "device      %s, %s\n", plan->dev->name, cuda->chip.name);
    tgl_planner_explain_problem(&out, &plan->shape);
    if (tgl_cuda_enter(plan->dev, &scope) != TGL_OK) {
        tgl_text_add(&out, "the device is lost\n");
        return out.length;
    }
    const unsigned grid[3] = {made->grid_x, made->grid_y, 1};
    if (made->rung != NULL)
        explain_launch(&out, cuda, made->rung, grid, made->rung->kernel.dynamic_shared);
    else
        explain_gemm(&out, cuda, made, &plan->shape);
    tgl_cuda_leave(&scope);
    return out.length;
}
