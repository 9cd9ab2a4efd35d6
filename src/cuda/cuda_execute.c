/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes launch lists (plan/launch_list.h). A list is a sequence of steps. Each step has one or
 * more alternative launches, of which a run takes one or none, depending on the alignment of its
 * operands and the like. tgl_cuda_prepare() does everything that does not depend on the pointers of
 * a run: it loads functions, and sets grids of persistent kernels and launch attributes. It
 * prepares the alternatives that a run with aligned operands takes, and those with the same
 * kernels. Other alternatives are prepared by the first run that takes them. tgl_cuda_run() chooses
 * alternatives, fills in the arguments on its stack, and launches.
 */
#include "base/integers.h"
#include "base/no_cancel.h"
#include "cuda/cuda_launch.h"
#include "cuda/cuda_state.h"
#include "cuda/tensor_map.h"
#include "cuda/workspace.h"
#include "plan/launch_list.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct cuda_plan {
    cuda_launch *launches; /* all alternatives of the list, ordered by step */
    int *first;            /* for each step: index of its first alternative */
    int launch_count;
    tgl_tensor_maps *maps;   /* NULL: the list has none */
    pthread_mutex_t lock;    /* held while prepare_late() prepares an alternative */
    atomic_bool is_complete; /* all alternatives are ready */
} cuda_plan;

/* ---- Preparing ------------------------------------------------------------------------------- */

/* gridDim.z of the launch. If the batch needs several launches: gridDim.z of the first of them. */
static unsigned depth_of(const tgl_launch *launch)
{
    return launch->count_in_grid_z ? (unsigned)launch->count : launch->grid[2];
}

static int64_t cluster_blocks(const tgl_launch *launch)
{
    return (int64_t)launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
}

static CUlaunchConfig config_of(cuda_launch *launch, const unsigned grid[3], CUstream stream)
{
    const tgl_launch *of = launch->of;
    return (CUlaunchConfig){
        .grid = {grid[0], grid[1], grid[2]},
        .block = {of->threads, 1, 1},
        .dynamic_shared = (unsigned)of->dynamic_shared,
        .stream = stream,
        .attributes = launch->attributes,
        .attribute_count = launch->attribute_count,
    };
}

static tgl_status make_attributes(const tgl_cuda *cuda, cuda_launch *launch)
{
    const tgl_launch *of = launch->of;
    const bool has_cluster = cluster_blocks(of) > 1;
    if (has_cluster && !cuda->has_extended_launch)
        return tgl_fail(TGL_UNSUPPORTED,
                        "%s needs thread block clusters, which this device does "
                        "not have",
                        of->kernel->name);
    launch->is_early = of->order != TGL_AFTER_ALL && cuda->has_extended_launch;
    if (launch->is_early)
        launch->attributes[launch->attribute_count++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.allows_overlap = 1};
    if (has_cluster)
        launch->attributes[launch->attribute_count++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                .value.cluster = {of->cluster[0], of->cluster[1], of->cluster[2]}};
    return TGL_OK;
}

/* *blocks := the number of blocks of the launch that are resident at once on the whole device. */
static CUresult resident_blocks(const tgl_cuda *cuda, cuda_launch *launch, int64_t *blocks)
{
    const tgl_launch *of = launch->of;
    const tgl_driver *driver = &cuda->driver;
    const CUfunction function = launch->module->function;
    int count = 0;
    CUresult result;
    if (cluster_blocks(of) > 1) {
        const unsigned grid[3] = {of->grid[0], of->grid[1], depth_of(of)};
        CUlaunchConfig config = config_of(launch, grid, NULL);
        config.attributes += launch->is_early; /* skips the attribute of early launches: only the
                                                  cluster attribute matters */
        config.attribute_count -= launch->is_early;
        result = driver->cuOccupancyMaxActiveClusters(&count, function, &config);
        *blocks = count * cluster_blocks(of);
    } else {
        result = driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &count, function, (int)of->threads, (size_t)of->dynamic_shared);
        *blocks = (int64_t)count * cuda->facts.sms;
    }
    return result;
}

/* Sets gridDim.x. For a persistent kernel, reduces it so that all blocks of the grid are resident
 * at once, in whole clusters. */
static tgl_status choose_grid(tgl_device *dev, cuda_launch *launch)
{
    const tgl_launch *of = launch->of;
    int64_t blocks;
    launch->grid_x = of->grid[0];
    if (!of->is_persistent) return TGL_OK;
    TGL_TRY(tgl_cuda_check(dev, resident_blocks(dev->state, launch, &blocks), of->kernel->name));
    const int64_t rows = (int64_t)of->grid[1] * depth_of(of), cluster = of->cluster[0];
    int64_t width = blocks / rows / cluster * cluster;
    if (width < cluster) width = cluster;
    if (width < of->grid[0]) launch->grid_x = (unsigned)width;
    return TGL_OK;
}

static tgl_status fill_launch(tgl_device *dev, cuda_launch *launch)
{
    const tgl_launch *of = launch->of;
    launch->attribute_count = 0;
    TGL_TRY(make_attributes(dev->state, launch));
    TGL_TRY(tgl_cuda_load(dev, of->kernel, of->dynamic_shared, &launch->module));
    TGL_TRY(tgl_cuda_find_arguments(&((tgl_cuda *)dev->state)->driver, launch));
    return choose_grid(dev, launch);
}

static tgl_status prepare_launch(tgl_device *dev, cuda_launch *launch)
{
    const tgl_status status = fill_launch(dev, launch);
    if (status == TGL_OK) {
        atomic_store_explicit(&launch->is_ready, true, memory_order_release);
    } else {
        tgl_cuda_release(dev, launch->module);
        launch->module = NULL;
    }
    return status;
}

static bool is_ready(cuda_launch *launch)
{
    return atomic_load_explicit(&launch->is_ready, memory_order_acquire);
}

static void note_complete(cuda_plan *made)
{
    bool all = true;
    for (int i = 0; i < made->launch_count; i++)
        all = all && is_ready(&made->launches[i]);
    atomic_store_explicit(&made->is_complete, all, memory_order_release);
}

/* The cuda_launch of `chosen`, an alternative of step number `step`. */
static cuda_launch *launch_of(const cuda_plan *made, const tgl_launch_list *list, int step,
                              const tgl_launch *chosen)
{
    return &made->launches[made->first[step] + (chosen - list->steps[step].launches)];
}

/* Whether a launch that has been prepared uses this kernel. */
static bool has_kernel(cuda_plan *made, const tgl_kernel *kernel)
{
    for (int i = 0; i < made->launch_count; i++)
        if (made->launches[i].of->kernel == kernel && is_ready(&made->launches[i])) return true;
    return false;
}

/* Prepares the launches of a run with aligned operands, and all others that use the same
 * kernels. */
static tgl_status prepare_launches(tgl_device *dev, const tgl_launch_list *list, cuda_plan *made)
{
    tgl_cuda_load_ahead(dev, list);
    for (int i = 0; i < list->step_count; i++) {
        const tgl_launch *chosen = tgl_step_choose_aligned(&list->steps[i]);
        if (chosen != NULL) TGL_TRY(prepare_launch(dev, launch_of(made, list, i, chosen)));
    }
    for (int i = 0; i < made->launch_count; i++) {
        cuda_launch *launch = &made->launches[i];
        if (!is_ready(launch) && has_kernel(made, launch->of->kernel))
            TGL_TRY(prepare_launch(dev, launch));
    }
    note_complete(made);
    return TGL_OK;
}

/* Prepares an alternative for a run or an explanation, unless it is ready. */
static tgl_status prepare_late(const tgl_plan *plan, cuda_launch *launch)
{
    cuda_plan *made = plan->state;
    tgl_cuda_scope scope;
    if (is_ready(launch)) return TGL_OK;
    TGL_TRY(tgl_cuda_enter_relaxed(plan->dev, &scope));
    pthread_mutex_lock(&made->lock);
    const tgl_status status = is_ready(launch) ? TGL_OK : prepare_launch(plan->dev, launch);
    note_complete(made);
    pthread_mutex_unlock(&made->lock);
    tgl_cuda_leave(&scope);
    return status;
}

static tgl_status prepare_maps(tgl_device *dev, const tgl_launch_list *list, cuda_plan *made)
{
    const tgl_cuda *cuda = dev->state;
    if (list->map_count == 0) return TGL_OK;
    if (cuda->driver.cuTensorMapEncodeTiled == NULL)
        return tgl_fail(TGL_UNSUPPORTED,
                        "the driver cannot encode tensor maps; install one for CUDA 12.0 or later");
    made->maps = tgl_tensor_maps_create(dev, list->map_count);
    return made->maps != NULL ? TGL_OK : tgl_fail(TGL_NO_MEMORY, "no memory for tensor maps");
}

static void free_plan(tgl_device *dev, cuda_plan *made)
{
    for (int i = 0; i < made->launch_count; i++)
        tgl_cuda_release(dev, made->launches[i].module);
    tgl_tensor_maps_destroy(made->maps);
    pthread_mutex_destroy(&made->lock);
    free(made->launches);
    free(made->first);
    free(made);
}

/* Allocates one cuda_launch for each launch of the list. NULL: no memory. */
static cuda_plan *make_plan(tgl_device *dev, const tgl_launch_list *list)
{
    int count = 0;
    for (int i = 0; i < list->step_count; i++)
        count += list->steps[i].launch_count;
    cuda_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    pthread_mutex_init(&made->lock, NULL);
    made->first = calloc((size_t)list->step_count + 1, sizeof *made->first);
    made->launches = calloc((size_t)count + 1, sizeof *made->launches);
    if (made->first == NULL || made->launches == NULL) {
        free_plan(dev, made);
        return NULL;
    }
    for (int i = 0; i < list->step_count; i++) {
        made->first[i] = made->launch_count;
        for (int j = 0; j < list->steps[i].launch_count; j++)
            made->launches[made->launch_count++].of = &list->steps[i].launches[j];
    }
    return made;
}

tgl_status tgl_cuda_prepare(tgl_plan *plan, const char *kernel)
{
    (void)kernel; /* plan->list contains the kernel */
    tgl_device *dev = plan->dev;
    tgl_cuda_scope scope;
    cuda_plan *made = make_plan(dev, &plan->list);
    if (made == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a plan");
    tgl_status status = tgl_cuda_enter_relaxed(dev, &scope);
    if (status == TGL_OK) {
        status = prepare_maps(dev, &plan->list, made);
        if (status == TGL_OK) status = prepare_launches(dev, &plan->list, made);
        tgl_cuda_leave(&scope);
    }
    if (status == TGL_OK)
        plan->state = made;
    else
        free_plan(dev, made);
    return status;
}

void tgl_cuda_unprepare(tgl_plan *plan)
{
    free_plan(plan->dev, plan->state);
    plan->state = NULL;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Launches once, with `parameters` or `extra` as in cuLaunchKernel(). may_overlap: the launch may
 * start before the previous one has ended, if it->of->order allows that. */
static CUresult launch(const tgl_driver *driver, cuda_launch *it, const unsigned grid[3],
                       bool may_overlap, void **parameters, void **extra, CUstream stream)
{
    const tgl_launch *of = it->of;
    const unsigned skipped = it->is_early && !may_overlap;
    if (it->attribute_count > skipped) {
        CUlaunchConfig config = config_of(it, grid, stream);
        config.attributes += skipped;
        config.attribute_count -= skipped;
        return driver->cuLaunchKernelEx(&config, it->module->function, parameters, extra);
    }
    return driver->cuLaunchKernel(it->module->function, grid[0], grid[1], grid[2], of->threads, 1,
                                  1, (unsigned)of->dynamic_shared, stream, parameters, extra);
}

/* Launches once. The arguments are passed as one block of bytes or, if the kernel has tensor maps,
 * as separate parameters. */
static CUresult launch_bytes(const tgl_driver *driver, cuda_launch *it, const unsigned grid[3],
                             bool may_overlap, unsigned char *bytes, CUstream stream)
{
    size_t size = (size_t)it->of->argument_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    if (it->parameter_count == 0) return launch(driver, it, grid, may_overlap, NULL, extra, stream);
    void *parameters[PARAMETERS_MAX];
    for (int i = 0; i < it->parameter_count; i++)
        parameters[i] = bytes + it->parameter_at[i];
    return launch(driver, it, grid, may_overlap, parameters, NULL, stream);
}

/* Runs an alternative: launches it once, or several times if the batch is larger than a grid. */
static tgl_status run_launch(const tgl_plan *plan, cuda_launch *it, bool may_overlap,
                             const tgl_run *run, const tgl_workspace *space, CUstream stream)
{
    const tgl_driver *driver = &((tgl_cuda *)plan->dev->state)->driver;
    const cuda_plan *made = plan->state;
    const tgl_launch *of = it->of;
    _Alignas(64) unsigned char bytes[TGL_ARGUMENT_BYTES_MAX];
    for (int64_t i = 0; i < of->repeats; i++) {
        const unsigned depth =
            of->count_in_grid_z ? (unsigned)tgl_launch_count(of, i) : of->grid[2];
        const unsigned grid[3] = {tgl_launch_width(of, run, it->grid_x), of->grid[1], depth};
        TGL_TRY(tgl_launch_fill(&plan->list, of, run, space->counters, space->scratch, i,
                                tgl_tensor_map_encode, made->maps, bytes));
        const CUresult result = launch_bytes(driver, it, grid, may_overlap, bytes, stream);
        if (result != CUDA_SUCCESS) return tgl_cuda_check(plan->dev, result, of->kernel->name);
    }
    return TGL_OK;
}

/* Sets amax_d, the largest magnitude of D, to 0 before the launches: kernels only replace it by
 * larger values. */
static tgl_status clear_amax(const tgl_plan *plan, const tgl_run *run, CUstream stream)
{
    const tgl_driver *driver = &((tgl_cuda *)plan->dev->state)->driver;
    if (run->at[TGL_AT_AMAX] == NULL) return TGL_OK;
    return tgl_cuda_check(
        plan->dev,
        driver->cuMemsetD8Async((CUdeviceptr)run->at[TGL_AT_AMAX], 0, sizeof(float), stream),
        "clearing amax_d");
}

/* Launches all steps of the list. A TGL_BESIDE launch (tgl_ordering in plan/launch_list.h) may
 * overlap only with the launch of the step before it. If the run skips that step, the previous
 * launch belongs to an earlier step, on which the TGL_BESIDE launch may depend. The TGL_BESIDE
 * launch then does not start early. */
static tgl_status run_list(const tgl_plan *plan, const tgl_run *run, const tgl_workspace *space,
                           CUstream stream)
{
    const cuda_plan *made = plan->state;
    const tgl_launch_list *list = &plan->list;
    bool follows = false; /* the previous step was launched */
    TGL_TRY(clear_amax(plan, run, stream));
    for (int i = 0; i < list->step_count; i++) {
        const tgl_launch *chosen = tgl_step_choose(&list->steps[i], run);
        if (chosen != NULL)
            TGL_TRY(run_launch(plan, launch_of(made, list, i, chosen),
                               chosen->order != TGL_BESIDE || follows, run, space, stream));
        follows = chosen != NULL;
    }
    return TGL_OK;
}

/* Prepares the alternatives that the run takes, before any of them is launched. */
static tgl_status prepare_run(const tgl_plan *plan, const tgl_run *run)
{
    cuda_plan *made = plan->state;
    const tgl_launch_list *list = &plan->list;
    if (atomic_load_explicit(&made->is_complete, memory_order_acquire)) return TGL_OK;
    for (int i = 0; i < list->step_count; i++) {
        const tgl_launch *chosen = tgl_step_choose(&list->steps[i], run);
        if (chosen != NULL) TGL_TRY(prepare_late(plan, launch_of(made, list, i, chosen)));
    }
    return TGL_OK;
}

/* Enqueues the launches of the plan, with workspace if needed. Must be called in the device's
 * context. */
static tgl_status run_plan(const tgl_plan *plan, const tgl_run *run, CUstream stream)
{
    tgl_workspace space = {.own = NULL};
    TGL_TRY(prepare_run(plan, run));
    if (tgl_list_workspace(&plan->list) == 0) return run_list(plan, run, &space, stream);
    const tgl_status taken = tgl_workspace_take(plan->dev, &plan->list, run, stream, &space);
    if (taken != TGL_OK) return taken == TGL_NO_MEMORY ? TGL_NO_WORKSPACE : taken;
    return tgl_workspace_give_back(plan->dev, &space, stream, run_list(plan, run, &space, stream));
}

tgl_status tgl_cuda_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    TGL_NO_CANCEL;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(plan->dev, &scope));
    tgl_status status = run_plan(plan, run, stream);
    tgl_cuda_leave(&scope);
    return status;
}

/* ---- Explaining ------------------------------------------------------------------------------ */

/* Describes the resources and the occupancy of one launch. Must be called in the device's
 * context. */
static void explain_launch(tgl_text *out, const tgl_cuda *cuda, cuda_launch *launch)
{
    const tgl_module *module = launch->module;
    const tgl_launch *of = launch->of;
    const double total = (double)launch->grid_x * of->grid[1] * depth_of(of);
    int64_t at_once = 0;
    tgl_text_add(out, "registers   %d per thread, %d bytes of local memory per thread\n",
                 module->registers, module->local_bytes);
    tgl_text_add(out, "shared      %d bytes static and %d dynamic per block\n",
                 module->shared_bytes, of->dynamic_shared);
    if (resident_blocks(cuda, launch, &at_once) == CUDA_SUCCESS && at_once > 0) {
        const double blocks = (double)at_once / cuda->facts.sms;
        tgl_text_add(out,
                     "occupancy   %.3g block%s per SM: %.0f of %d threads (%.0f %%)\n"
                     "waves       %.2f (%.0f blocks, %lld at once on %d SMs)\n",
                     blocks, blocks == 1 ? "" : "s", blocks * of->threads,
                     cuda->facts.threads_per_sm,
                     100.0 * blocks * of->threads / cuda->facts.threads_per_sm,
                     total / (double)at_once, total, (long long)at_once, cuda->facts.sms);
    }
    tgl_text_add(out, "compiled    for %s, %s, in %.3f s\n", cuda->arch.name, module->origin,
                 module->seconds);
}

/* Describes the first alternative of each step. If there are several steps, writes their names,
 * too. */
void tgl_cuda_explain(const tgl_plan *plan, tgl_text *out)
{
    TGL_NO_CANCEL; /* explaining may compile, which cancellation of the thread must not interrupt */
    const tgl_cuda *cuda = plan->dev->state;
    const cuda_plan *made = plan->state;
    const tgl_launch_list *list = &plan->list;
    tgl_cuda_scope scope;
    tgl_text_add(out, "device      %s, %s\n", plan->dev->name, cuda->facts.name);
    if (tgl_cuda_enter_relaxed(plan->dev, &scope) != TGL_OK) {
        tgl_text_add(out, "the device is lost\n");
        return;
    }
    for (int i = 0; i < list->step_count; i++) {
        if (list->steps[i].launch_count == 0) continue;
        if (list->step_count > 1)
            tgl_text_add(out, "code        of %s: %s\n", list->steps[i].what,
                         list->steps[i].launches[0].kernel->name);
        cuda_launch *launch = &made->launches[made->first[i]];
        if (prepare_late(plan, launch) == TGL_OK) explain_launch(out, cuda, launch);
    }
    tgl_cuda_leave(&scope);
}
