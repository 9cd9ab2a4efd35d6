/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes launch lists (plan/launch_list.h) on the simulator. When a plan is made, compiles and
 * loads every kernel of its list. A run chooses alternatives, fills in arguments and tensor maps,
 * and runs the launches one after the other.
 */
#include "base/no_cancel.h"
#include "sim/launch_regions.h"
#include "sim/sim_state.h"

#include <stdlib.h>
#include <string.h>

/* Maximum static and dynamic shared memory per block, in bytes, for compute capability 9.0. In the
 * simulator, kernels declare dynamic shared memory as static (kernels/lib/dynamic_shared.h). */
enum { SHARED_MAX = 48 * 1024, DYNAMIC_SHARED_MAX = 227 * 1024 };
/* Maximum bytes of a static array in a kernel that also has dynamic shared memory. */
enum { STATIC_ARRAY_MAX = 4096 };

/* ---- Preparing ------------------------------------------------------------------------------- */

/* Finds the kernel's module among the loaded ones, or compiles and loads it. */
static tgl_status load_kernel(tgl_sim *sim, const tgl_kernel *kernel, tgl_sim_module **module)
{
    for (*module = sim->modules; *module != NULL; *module = (*module)->next)
        if (tgl_kernel_is_same((*module)->kernel, kernel)) return TGL_OK;
    void *image;
    size_t size;
    TGL_TRY(tgl_host_compile(&sim->compiler, kernel, &image, &size));
    tgl_status status = tgl_sim_module_load(kernel, image, size, module);
    free(image);
    if (status != TGL_OK) return status;
    (*module)->next = sim->modules;
    sim->modules = *module;
    return TGL_OK;
}

static tgl_status load_all(tgl_sim *sim, const tgl_launch_list *list, tgl_sim_plan *made)
{
    tgl_status status = TGL_OK;
    tgl_sim_runner *runner = tgl_sim_lock(sim);
    if (runner == NULL) return TGL_NO_MEMORY;
    for (int i = 0; i < list->kernel_count && status == TGL_OK; i++)
        status = load_kernel(sim, list->kernels[i], &made->modules[i]);
    tgl_sim_unlock(runner);
    return status;
}

/* The module of a launch's kernel. */
static tgl_sim_module *module_of(const tgl_plan *plan, const tgl_launch *launch)
{
    const tgl_sim_plan *made = plan->state;
    int i = 0;
    while (plan->list.kernels[i] != launch->kernel)
        i++;
    return made->modules[i];
}

/* The bytes of an array in shared memory that a launch's threads may access. A kernel may declare
 * more dynamic shared memory than a launch gives it, if this launch does not need all. */
static size_t shared_limit(const tgl_launch *launch)
{
    if (launch->dynamic_shared == 0) return 0;
    return launch->dynamic_shared > STATIC_ARRAY_MAX ? (size_t)launch->dynamic_shared
                                                     : STATIC_ARRAY_MAX;
}

static tgl_status check_launch(const tgl_plan *plan, const tgl_launch *launch)
{
    const tgl_sim_module *module = module_of(plan, launch);
    const int limit = launch->dynamic_shared > 0 ? DYNAMIC_SHARED_MAX : SHARED_MAX;
    if (module->shared_bytes > (size_t)limit)
        return tgl_fail(TGL_COMPILE, "%s declares %zu bytes of shared memory; %d is the maximum",
                        launch->kernel->name, module->shared_bytes, limit);
    if (launch->threads > TGL_SIM_THREADS_MAX)
        return tgl_fail(TGL_UNSUPPORTED, "%s has blocks of %u threads; %d is the maximum",
                        launch->kernel->name, launch->threads, TGL_SIM_THREADS_MAX);
    return TGL_OK;
}

static tgl_status check_list(const tgl_plan *plan)
{
    for (int i = 0; i < plan->list.step_count; i++)
        for (int j = 0; j < plan->list.steps[i].launch_count; j++)
            TGL_TRY(check_launch(plan, &plan->list.steps[i].launches[j]));
    return TGL_OK;
}

tgl_status tgl_sim_prepare(tgl_plan *plan, const char *kernel)
{
    (void)kernel;
    const size_t count = (size_t)plan->list.kernel_count;
    tgl_sim_plan *made = calloc(1, sizeof *made + count * sizeof(void *));
    if (made == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a plan");
    tgl_status status = load_all(plan->dev->state, &plan->list, made);
    plan->state = made;
    if (status == TGL_OK) status = check_list(plan);
    if (status != TGL_OK) tgl_sim_unprepare(plan);
    return status;
}

void tgl_sim_unprepare(tgl_plan *plan)
{
    tgl_sim_plan *made = plan->state;
    tgl_record_free(&made->record);
    free(made);
    plan->state = NULL;
}

/* ---- Tensor maps ----------------------------------------------------------------------------- */

static tgl_status check_tensor(const tgl_tensor *t, int map)
{
    const int64_t row = t->box[0] * (int64_t)tgl_type_size(t->type);
    const bool has_swizzle = t->swizzle_bytes == 32 || t->swizzle_bytes == 64 ||
                             t->swizzle_bytes == 128 || t->swizzle_bytes == 0;
    if (row % 16 != 0 || !has_swizzle || (t->swizzle_bytes > 0 && row > t->swizzle_bytes))
        return tgl_fail(TGL_BAD_ARGUMENT,
                        "tensor map %d of a launch list has rows of %lld bytes in its box, and a "
                        "swizzle of %d",
                        map, (long long)row, t->swizzle_bytes);
    for (int i = 0; i < t->rank; i++)
        if (t->size[i] > UINT32_MAX)
            return tgl_fail(TGL_BAD_ARGUMENT,
                            "tensor map %d of a launch list has more than 2^32 - 1 elements in "
                            "dimension %d",
                            map, i);
    return TGL_OK;
}

/* The simulator's tgl_encode_fn: fills in a tensor map. */
static tgl_status encode_tensor_map(void *context, const tgl_tensor *t, int map,
                                    const void *address, void *to)
{
    (void)context;
    TGL_TRY(check_tensor(t, map));
    struct tgl_tensor_map own = {.base = address,
                                 .rank = (unsigned char)t->rank,
                                 .element = (unsigned char)tgl_type_size(t->type),
                                 .swizzle = (unsigned char)t->swizzle_bytes,
                                 .is_tf32 = t->round_to_tf32};
    for (int i = 0; i < t->rank; i++) {
        own.size[i] = (unsigned)t->size[i];
        own.stride[i] = t->stride[i];
        own.box[i] = (unsigned short)t->box[i];
    }
    memcpy(to, &own, sizeof own);
    return TGL_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The state of a run. */
typedef struct job {
    tgl_sim_runner *runner;
    const tgl_plan *plan;
    const tgl_run *run;
    tgl_sim_memory memory;
    tgl_report report;
    tgl_record record;
    tgl_bundle_regions *members; /* NULL: the run is not one of a bundle */
} job;

static tgl_status run_repeat(job *j, const tgl_launch *launch, int64_t repeat)
{
    _Alignas(64) unsigned char arguments[TGL_ARGUMENT_BYTES_MAX];
    const int count = tgl_launch_count(launch, repeat);
    tgl_sim_launch own = {
        .module = module_of(j->plan, launch),
        .shared_limit = shared_limit(launch),
        .threads = launch->threads,
        .order = launch->order,
        .arguments = arguments,
        .argument_bytes = launch->argument_bytes,
        .first_problem = repeat * launch->count,
        .result = (char *)j->run->at[TGL_AT_D],
    };
    const tgl_launch_extent e = {launch->part, own.first_problem, count};
    memcpy(own.grid, launch->grid, sizeof own.grid);
    memcpy(own.cluster, launch->cluster, sizeof own.cluster);
    own.grid[0] = tgl_launch_width(launch, j->run, launch->grid[0]);
    if (launch->count_in_grid_z) own.grid[2] = (unsigned)count;
    TGL_TRY(tgl_launch_fill(&j->plan->list, launch, j->run, (char *)j->memory.counters,
                            (char *)j->memory.scratch, repeat, encode_tensor_map, NULL, arguments));
    if (j->members != NULL)
        tgl_launch_bundle_regions(&j->plan->shape, j->run->bundle, j->members, own.regions);
    else
        tgl_launch_regions(j->plan, j->run, &j->memory, &e, own.regions);
    own.trace = tgl_record_launch(&j->record, &own);
    TGL_TRY(tgl_host_threads_run(&j->runner->threads, &j->runner->machine, &own));
    tgl_report_add(&j->report, &j->runner->machine);
    return TGL_OK;
}

/* Starts the report and the record. Both describe the main launch: the first launch that writes to
 * D or, if there is none, the first launch. */
static void begin_report(job *j)
{
    const tgl_launch *main_launch = NULL;
    for (int i = 0; i < j->plan->list.step_count; i++) {
        const tgl_launch *launch = tgl_step_choose(&j->plan->list.steps[i], j->run);
        if (launch == NULL) continue;
        if (main_launch == NULL || (main_launch->part.m == 0 && launch->part.m > 0))
            main_launch = launch;
    }
    if (main_launch == NULL) return;
    tgl_report_begin(&j->report, module_of(j->plan, main_launch), main_launch->threads);
    tgl_record_begin(&j->record, module_of(j->plan, main_launch));
}

/* The number of real numbers in a row of D; a complex element has two. Launches divide D in units
 * of real numbers. */
static int64_t numbers_of_row(const tgl_shape *s)
{
    return s->n * (int64_t)(tgl_type_size(s->type_d) / tgl_type_alignment(s->type_d));
}

static int64_t needed_bytes(const job *j)
{
    const tgl_shape *s = &j->plan->shape;
    tgl_sim_region regions[TGL_SIM_REGIONS];
    const tgl_launch_extent whole = {{0, 0, s->m, numbers_of_row(s)}, 0, s->batch};
    tgl_launch_regions(j->plan, j->run, &j->memory, &whole, regions);
    return tgl_report_needed_bytes(regions);
}

static tgl_status run_steps(job *j)
{
    TGL_TRY(tgl_machine_begin(&j->runner->machine, &j->memory));
    for (int i = 0; i < j->plan->list.step_count; i++) {
        const tgl_launch *launch = tgl_step_choose(&j->plan->list.steps[i], j->run);
        for (int64_t r = 0; launch != NULL && r < launch->repeats; r++)
            TGL_TRY(run_repeat(j, launch, r));
    }
    TGL_TRY(tgl_machine_end(&j->runner->machine));
    if (j->record.module != NULL && !tgl_record_end(&j->record))
        return tgl_fail(TGL_NO_MEMORY, "no memory for the counts of a run");
    return TGL_OK;
}

/* For a run that prepares an operand: uses the memory for the prepared operand as the run's
 * scratch, because the run's kernels write to no other memory. */
static void use_kept(job *j)
{
    const tgl_operand operand = j->run->prepares;
    j->memory.scratch = j->run->kept[operand];
    j->memory.scratch_bytes = (size_t)j->plan->list.kept_bytes[operand];
}

/* Chooses the workspace: the caller's, or else the device's, which grows as needed. */
static tgl_status find_workspace(job *j)
{
    const tgl_launch_list *list = &j->plan->list;
    const size_t bytes = j->memory.counter_bytes + j->memory.scratch_bytes;
    char *workspace = j->run->workspace;
    if (bytes > 0 && workspace == NULL) {
        if (bytes > j->runner->workspace_room) {
            free(j->runner->workspace);
            j->runner->workspace = aligned_alloc(TGL_WORKSPACE_ALIGNMENT, bytes);
            j->runner->workspace_room = j->runner->workspace != NULL ? bytes : 0;
        }
        workspace = j->runner->workspace;
        if (workspace == NULL)
            return tgl_fail(TGL_NO_WORKSPACE, "no %zu bytes of memory for a workspace", bytes);
    }
    if (bytes > 0) memset(workspace, 0, list->counter_bytes);
    j->memory.counters = workspace;
    j->memory.scratch = bytes > 0 ? workspace + list->counter_bytes : NULL;
    if (j->run->is_preparation) use_kept(j);
    return TGL_OK;
}

/* Runs a plan while the runner is locked. After a successful run the plan keeps its report and
 * record. */
static tgl_status run_locked(tgl_sim_runner *runner, const tgl_plan *plan, const tgl_run *run)
{
    const tgl_shape *s = &plan->shape;
    tgl_sim_plan *made = plan->state;
    job j = {.runner = runner,
             .plan = plan,
             .run = run,
             .memory = {.m = s->m,
                        .n = numbers_of_row(s),
                        .batch = s->batch,
                        .counter_bytes = plan->list.counter_bytes,
                        .scratch_bytes = tgl_list_scratch_of(&plan->list, run)}};
    TGL_TRY(find_workspace(&j));
    begin_report(&j);
    const tgl_status status = run_steps(&j);
    if (status == TGL_OK && !run->is_preparation) {
        const tgl_record earlier = made->record;
        j.report.totals.needed_bytes = needed_bytes(&j);
        atomic_store(&runner->stores, made);
        made->report = j.report;
        made->record = j.record;
        atomic_store(&runner->stores, NULL);
        j.record = earlier;
    }
    tgl_record_free(&j.record);
    return status;
}

/* Runs a bundle while the runner is locked. */
static tgl_status run_bundle(tgl_sim_runner *runner, const tgl_plan *plan, const tgl_run *run)
{
    job j = {.runner = runner, .plan = plan, .run = run, .memory = {.batch = 1}};
    for (int i = 0; i < run->bundle->count; i++) {
        const struct tgl_bundle_member *x = &run->bundle->members[i];
        j.memory.m += x->m;
        j.memory.n = x->n > j.memory.n ? x->n : j.memory.n;
    }
    j.members = malloc(sizeof *j.members);
    if (j.members == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for the regions of a bundle");
    const tgl_status status = run_steps(&j);
    free(j.members);
    return status;
}

tgl_status tgl_sim_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    TGL_NO_CANCEL;
    (void)stream;
    tgl_sim *sim = plan->dev->state;
    TGL_TRY(tgl_run_check_pointers(&plan->shape, run));
    tgl_sim_runner *runner = tgl_sim_lock(sim);
    if (runner == NULL) return TGL_NO_MEMORY;
    tgl_run_clear_amax(run);
    const tgl_status status =
        run->bundle != NULL ? run_bundle(runner, plan, run) : run_locked(runner, plan, run);
    tgl_sim_unlock(runner);
    return status;
}

/* ---- Counters, report and trace -------------------------------------------------------------- */

tgl_status tgl_sim_counters(const tgl_plan *plan, tgl_counters *counters)
{
    tgl_sim *sim = plan->dev->state;
    const tgl_sim_plan *made = plan->state;
    tgl_sim_runner *runner = tgl_sim_lock(sim);
    if (runner == NULL) return TGL_NO_MEMORY;
    const bool is_filled = made->report.module != NULL;
    if (is_filled) *counters = made->report.totals;
    tgl_sim_unlock(runner);
    if (!is_filled) return tgl_fail(TGL_UNSUPPORTED, "there are no counts before the first run");
    return TGL_OK;
}

void tgl_sim_trace(const tgl_plan *plan, tgl_text *out)
{
    tgl_sim *sim = plan->dev->state;
    const tgl_sim_plan *made = plan->state;
    tgl_sim_runner *runner = tgl_sim_lock(sim);
    if (runner == NULL) return;
    if (made->record.module != NULL) tgl_record_write(&made->record, &made->report, out);
    tgl_sim_unlock(runner);
}

void tgl_sim_explain(const tgl_plan *plan, tgl_text *out)
{
    tgl_sim *sim = plan->dev->state;
    const tgl_sim_plan *made = plan->state;
    for (int i = 0; i < plan->list.step_count; i++) {
        const tgl_step *step = &plan->list.steps[i];
        if (step->launch_count > 0)
            tgl_text_add(out, "shared      %zu bytes per block of %s\n",
                         module_of(plan, &step->launches[0])->shared_bytes, step->what);
    }
    tgl_text_add(out, "compiled    by %s\n", sim->compiler.version);
    tgl_sim_runner *runner = tgl_sim_lock(sim);
    if (runner == NULL) return;
    tgl_report_write(&made->report, out);
    tgl_sim_unlock(runner);
}
