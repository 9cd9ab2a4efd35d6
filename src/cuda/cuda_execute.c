/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes launch lists. prepare() decides all that does not depend on a run's pointers: functions,
 * grids of persistent kernels, attributes of launches. run() chooses the alternatives, fills in the
 * arguments on its stack, and launches.
 */
#include "cuda/arena.h"
#include "cuda/cuda_state.h"
#include "cuda/tensor_map.h"
#include "plan/launch_list.h"

#include <stdlib.h>

/* One alternative of a step, ready to be launched. */
typedef struct cuda_launch {
    const tgl_launch *of;
    const tgl_module *module;
    unsigned grid_x;
    /* Those that the launch needs, first the one that lets it start before the launch before it in
     * the stream has ended; that one is left out where it has nothing to overlap with. */
    CUlaunchAttribute attributes[2];
    unsigned attribute_count;
    bool is_early; /* attributes[0] is that one */
} cuda_launch;

typedef struct cuda_plan {
    cuda_launch **steps; /* the alternatives of each step of the list */
    cuda_launch *launches;
    int launch_count;
    tgl_tensor_maps *maps; /* NULL: the list has none */
} cuda_plan;

/* ---- Preparing ------------------------------------------------------------------------------- */

/* Blocks in z, of the first launch of a batch. */
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

/* The blocks of a launch that are resident at once: on an SM, or in clusters on the device. */
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
        config.attributes += launch->is_early; /* only that of the cluster */
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

/* A persistent kernel gets no more blocks, in whole clusters, than are resident at once. */
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

/* The driver refuses a launch whose arguments are longer than the kernel's parameters, and takes a
 * shorter one without a word. Before 12.4 it cannot be asked. */
static tgl_status check_arguments(tgl_device *dev, const cuda_launch *launch)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    size_t end = 0, offset, size;
    if (driver->cuFuncGetParamInfo == NULL) return TGL_OK;
    for (size_t i = 0;
         driver->cuFuncGetParamInfo(launch->module->function, i, &offset, &size) == CUDA_SUCCESS;
         i++)
        end = offset + size;
    if (end == 0 || end == (size_t)launch->of->argument_bytes) return TGL_OK;
    return tgl_fail(TGL_BAD_ARGUMENT, "%s has parameters of %zu bytes, but is launched with %d",
                    launch->of->kernel->name, end, launch->of->argument_bytes);
}

static tgl_status prepare_launch(tgl_device *dev, cuda_launch *launch)
{
    const tgl_launch *of = launch->of;
    TGL_TRY(make_attributes(dev->state, launch));
    TGL_TRY(tgl_cuda_load(dev, of->kernel, of->dynamic_shared, &launch->module));
    TGL_TRY(check_arguments(dev, launch));
    return choose_grid(dev, launch);
}

static tgl_status prepare_launches(tgl_device *dev, cuda_plan *made)
{
    for (int i = 0; i < made->launch_count; i++)
        TGL_TRY(prepare_launch(dev, &made->launches[i]));
    return TGL_OK;
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
    free(made->launches);
    free(made->steps);
    free(made);
}

/* One cuda_launch for each launch of the list. NULL: no memory. */
static cuda_plan *make_plan(const tgl_launch_list *list)
{
    int count = 0;
    for (int i = 0; i < list->step_count; i++)
        count += list->steps[i].launch_count;
    cuda_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->steps = calloc((size_t)list->step_count + 1, sizeof *made->steps);
    made->launches = calloc((size_t)count + 1, sizeof *made->launches);
    if (made->steps == NULL || made->launches == NULL) {
        free(made->steps);
        free(made->launches);
        free(made);
        return NULL;
    }
    for (int i = 0; i < list->step_count; i++) {
        made->steps[i] = &made->launches[made->launch_count];
        for (int j = 0; j < list->steps[i].launch_count; j++)
            made->launches[made->launch_count++].of = &list->steps[i].launches[j];
    }
    return made;
}

tgl_status tgl_cuda_prepare(tgl_plan *plan, const char *kernel)
{
    (void)kernel; /* the list says it */
    tgl_device *dev = plan->dev;
    tgl_cuda_scope scope;
    cuda_plan *made = make_plan(&plan->list);
    if (made == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a plan");
    tgl_status status = tgl_cuda_enter_relaxed(dev, &scope);
    if (status == TGL_OK) {
        status = prepare_maps(dev, &plan->list, made);
        if (status == TGL_OK) status = prepare_launches(dev, made);
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

/* bytes: the arguments. may_overlap: a launch that may start early does so. */
static CUresult launch(const tgl_driver *driver, cuda_launch *it, const unsigned grid[3],
                       bool may_overlap, unsigned char *bytes, CUstream stream)
{
    const tgl_launch *of = it->of;
    size_t size = (size_t)of->argument_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    const unsigned skipped = it->is_early && !may_overlap;
    if (it->attribute_count > skipped) {
        CUlaunchConfig config = config_of(it, grid, stream);
        config.attributes += skipped;
        config.attribute_count -= skipped;
        return driver->cuLaunchKernelEx(&config, it->module->function, NULL, extra);
    }
    return driver->cuLaunchKernel(it->module->function, grid[0], grid[1], grid[2], of->threads, 1,
                                  1, (unsigned)of->dynamic_shared, stream, NULL, extra);
}

/* All launches of an alternative: more than one for a batch that is larger than a grid. */
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
        const unsigned grid[3] = {it->grid_x, of->grid[1], depth};
        TGL_TRY(tgl_launch_fill(&plan->list, of, run, space->counters, space->scratch, i,
                                tgl_tensor_map_encode, made->maps, bytes));
        const CUresult result = launch(driver, it, grid, may_overlap, bytes, stream);
        if (result != CUDA_SUCCESS) return tgl_cuda_check(plan->dev, result, of->kernel->name);
    }
    return TGL_OK;
}

/* A launch beside the one before it depends on what came before that one. If the step of that one
 * is left out, the launch before it is one that it may depend on, and it waits. */
static tgl_status run_list(const tgl_plan *plan, const tgl_run *run, const tgl_workspace *space,
                           CUstream stream)
{
    const cuda_plan *made = plan->state;
    const tgl_launch_list *list = &plan->list;
    bool follows = false; /* the step before was launched */
    for (int i = 0; i < list->step_count; i++) {
        const tgl_launch *chosen = tgl_step_choose(&list->steps[i], run);
        if (chosen != NULL)
            TGL_TRY(run_launch(plan, &made->steps[i][chosen - list->steps[i].launches],
                               chosen->order != TGL_BESIDE || follows, run, space, stream));
        follows = chosen != NULL;
    }
    return TGL_OK;
}

/* The device's context is current. */
static tgl_status run_plan(const tgl_plan *plan, const tgl_run *run, CUstream stream)
{
    tgl_workspace space = {.own = NULL};
    if (tgl_list_workspace(&plan->list) == 0) return run_list(plan, run, &space, stream);
    TGL_TRY(tgl_workspace_take(plan->dev, &plan->list, run, stream, &space));
    return tgl_workspace_give_back(plan->dev, &space, stream, run_list(plan, run, &space, stream));
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
static void explain_launch(tgl_text *out, const tgl_cuda *cuda, cuda_launch *launch)
{
    const tgl_module *module = launch->module;
    const tgl_launch *of = launch->of;
    const double total = (double)launch->grid_x * of->grid[1] * depth_of(of);
    int64_t at_once = 0;
    tgl_text_add(out, "registers   %d a thread, local memory %d bytes a thread\n",
                 module->registers, module->local_bytes);
    tgl_text_add(out, "shared      %d bytes a block, static, and %d dynamic\n",
                 module->shared_bytes, of->dynamic_shared);
    if (resident_blocks(cuda, launch, &at_once) == CUDA_SUCCESS && at_once > 0) {
        const double blocks = (double)at_once / cuda->facts.sms;
        tgl_text_add(out,
                     "occupancy   %.3g block%s an SM: %.0f of %d threads (%.0f %%)\n"
                     "waves       %.2f (%.0f blocks, %lld at once on %d SMs)\n",
                     blocks, blocks == 1 ? "" : "s", blocks * of->threads,
                     cuda->facts.threads_per_sm,
                     100.0 * blocks * of->threads / cuda->facts.threads_per_sm,
                     total / (double)at_once, total, (long long)at_once, cuda->facts.sms);
    }
    tgl_text_add(out, "compiled    for %s, %s, in %.3f s\n", cuda->arch.name,
                 module->from_cache ? "from the cache" : "by NVRTC", module->seconds);
}

/* The first alternative of each step, with its name if there are several steps. */
void tgl_cuda_explain(const tgl_plan *plan, tgl_text *out)
{
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
        explain_launch(out, cuda, made->steps[i]);
    }
    tgl_cuda_leave(&scope);
}
