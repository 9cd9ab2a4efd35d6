/* SPDX-License-Identifier: Apache-2.0
 *
 * The sim backend: host memory, the CUDA kernels of the registry compiled as C, and one simulated
 * multiprocessor that plans take in turn.
 */
#include "sim/state.h"

#include "plan/ladder.h"
#include "plan/planner.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* ---- Open and close -------------------------------------------------------------------------- */

static void list_properties(tgl_sim *sim)
{
    const char *const list[TGL_SIM_PROPERTIES][2] = {
        {"model", "1 multiprocessor, warps of 32 threads, 32 banks of 4 bytes, 32-byte sectors"},
        {"compiler", sim->compiler.words},
        {"compiler version", sim->compiler.version},
        {"cache", tgl_cache_describe(sim->compiler.cache)},
    };
    for (int i = 0; i < TGL_SIM_PROPERTIES; i++) {
        sim->properties[i].key = list[i][0];
        sim->properties[i].value = list[i][1];
    }
}

static void release(tgl_sim *sim)
{
    tgl_machine_free(&sim->machine);
    tgl_host_compiler_free(&sim->compiler);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

static tgl_status sim_open(tgl_device *dev, int index, const tgl_device_options *options)
{
    (void)options;
    if (index != 0)
        return tgl_fail(dev, TGL_NO_DEVICE, "there is one sim device, not sim:%d", index);
    if (getauxval(AT_SECURE) != 0)
        return tgl_fail(dev, TGL_NO_DEVICE,
                        "there is no sim device in a program with more rights than its user "
                        "(setuid): it runs a C compiler, in an environment of the user's");
    tgl_sim *sim = calloc(1, sizeof *sim);
    if (sim == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a device");
    pthread_mutex_init(&sim->lock, NULL);
    tgl_status status = TGL_OK;
    if (!tgl_machine_init(&sim->machine))
        status = tgl_fail(dev, TGL_NO_MEMORY, "no memory for the simulator");
    if (status == TGL_OK) status = tgl_host_compiler_find(dev, &sim->compiler);
    if (status != TGL_OK) {
        release(sim);
        return status;
    }
    list_properties(sim);
    dev->state = sim;
    return TGL_OK;
}

static void sim_close(tgl_device *dev)
{
    tgl_sim *sim = dev->state;
    while (sim->modules != NULL) {
        tgl_sim_module *module = sim->modules;
        sim->modules = module->next;
        tgl_sim_module_free(module);
    }
    release(sim);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tgl_status sim_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    const size_t alignment = 256;
    if (bytes <= SIZE_MAX - alignment)
        *memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    return *memory != NULL ? TGL_OK : tgl_fail(dev, TGL_NO_MEMORY, "no %zu bytes of memory", bytes);
}

static void sim_free(tgl_device *dev, void *memory)
{
    (void)dev;
    free(memory);
}

static tgl_status sim_copy(tgl_device *dev, void *dst, const void *src, size_t bytes)
{
    (void)dev;
    memcpy(dst, src, bytes);
    return TGL_OK;
}

static tgl_status sim_sync(tgl_device *dev)
{
    (void)dev;
    return TGL_OK;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* The simulator plans as for this chip: what it counts is what the chip would do. */
static const tgl_chip_facts *planned_for(void)
{
    return tgl_chip_facts_find("h200");
}

/* The kernel's module, compiled and loaded if it is not yet. */
static tgl_status load(tgl_device *dev, const tgl_kernel *kernel, const char *source,
                       tgl_sim_module **module)
{
    tgl_sim *sim = dev->state;
    for (*module = sim->modules; *module != NULL; *module = (*module)->next)
        if (tgl_kernel_is_same(&(*module)->kernel, kernel)) return TGL_OK;
    void *image;
    size_t size;
    TGL_TRY(tgl_host_compile(dev, &sim->compiler, kernel, source, &image, &size));
    tgl_status status = tgl_sim_module_load(dev, kernel, image, size, module);
    free(image);
    if (status != TGL_OK) return status;
    (*module)->next = sim->modules;
    sim->modules = *module;
    return TGL_OK;
}

/* The same for one thread at a time. */
static tgl_status load_locked(tgl_device *dev, const tgl_kernel *kernel, const char *source,
                              tgl_sim_module **module)
{
    tgl_sim *sim = dev->state;
    pthread_mutex_lock(&sim->lock);
    tgl_status status = load(dev, kernel, source, module);
    pthread_mutex_unlock(&sim->lock);
    return status;
}

static tgl_status plan_ladder(tgl_plan *plan, const tgl_kernel *kernel, const char *source,
                              tgl_sim_plan *made)
{
    tgl_device *dev = plan->dev;
    TGL_TRY(tgl_ladder_check(dev, &plan->shape));
    TGL_TRY(tgl_ladder_grid(dev, &plan->shape, kernel, &made->grid_x, &made->grid_y));
    plan->kernel = kernel->name;
    return load_locked(dev, kernel, source, &made->rung);
}

/* Counters are zero before and after a launch. */
static tgl_status plan_part(tgl_plan *plan, tgl_sim_part *part)
{
    tgl_device *dev = plan->dev;
    const int64_t words = part->of.plan.workspace_floats + part->of.plan.counters;
    tgl_gemm_variant variant;
    for (int i = 0; i < TGL_GEMM_VARIANTS; i++)
        if (tgl_gemm_variant_make(&part->of.plan, &part->of.shape, i, &variant))
            TGL_TRY(load_locked(dev, &variant.kernel, NULL, &part->modules[i]));
    if (words > 0) part->workspace = calloc((size_t)words, sizeof *part->workspace);
    if (words > 0 && part->workspace == NULL)
        return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a plan's workspace");
    plan->memory += (size_t)words * sizeof *part->workspace;
    return TGL_OK;
}

static tgl_status plan_gemm(tgl_plan *plan, const tgl_plan_options *options, tgl_sim_plan *made)
{
    tgl_device *dev = plan->dev;
    tgl_gemm_part parts[TGL_PARTS_MOST];
    char message[200];
    tgl_status status = tgl_planner_plan(planned_for(), &plan->shape, options, &made->choice,
                                         message, sizeof message);
    if (status != TGL_OK) return tgl_fail(dev, status, "%s", message);
    plan->kernel = made->choice.plan.row->name;
    made->part_count = tgl_candidate_parts(&made->choice, &plan->shape, parts);
    for (int i = 0; i < made->part_count; i++) {
        made->parts[i].of = parts[i];
        TGL_TRY(plan_part(plan, &made->parts[i]));
    }
    return TGL_OK;
}

static void free_plan(tgl_sim_plan *made)
{
    for (int i = 0; i < made->part_count; i++)
        free(made->parts[i].workspace);
    free(made);
}

/* kernel: of a rung; NULL: whatever the options say. */
static tgl_status prepare(tgl_plan *plan, const tgl_kernel *kernel, const char *source,
                          const tgl_plan_options *options)
{
    tgl_sim_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return tgl_fail(plan->dev, TGL_NO_MEMORY, "no memory for a plan");
    made->cluster = 1;
    tgl_status status =
        kernel != NULL ? plan_ladder(plan, kernel, source, made) : plan_gemm(plan, options, made);
    if (status == TGL_OK)
        plan->state = made;
    else
        free_plan(made);
    return status;
}

static tgl_status sim_prepare(tgl_plan *plan, const tgl_plan_options *options, void *stream)
{
    (void)stream;
    const tgl_kernel *kernel = options->kernel != NULL ? tgl_kernel_find(options->kernel) : NULL;
    return prepare(plan, kernel, NULL, options);
}

static void sim_unprepare(tgl_plan *plan)
{
    free_plan(plan->state);
}

tgl_status tgl_sim_plan_create(tgl_device *dev, const tgl_problem *problem,
                               const tgl_kernel *kernel, const char *source, int cluster,
                               tgl_plan **out)
{
    char message[160];
    tgl_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a plan");
    plan->dev = dev;
    atomic_init(&plan->users, 1);
    tgl_status status = tgl_shape_make(problem, true, &plan->shape, message, sizeof message);
    if (status == TGL_OK)
        status = prepare(plan, kernel, source, NULL);
    else
        tgl_keep_error(dev, "%s", message);
    if (status != TGL_OK) {
        free(plan);
        return status;
    }
    if (cluster > 1) ((tgl_sim_plan *)plan->state)->cluster = (unsigned)cluster;
    *out = plan;
    return TGL_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* A batch of stored matrices, `rows` lines of `row` elements each. */
static tgl_sim_matrix matrix(const char *name, const void *base, int64_t rows, int64_t row,
                             int64_t ld, int64_t batch, int64_t stride, const char *taboo)
{
    const int64_t element = sizeof(float);
    return (tgl_sim_matrix){
        .name = name,
        .base = (uintptr_t)base,
        .rows = rows,
        .row_bytes = row * element,
        .ld_bytes = ld * element,
        .extent = rows > 0 && row > 0 ? ((rows - 1) * ld + row) * element : 0,
        .batch = batch,
        .stride_bytes = stride * element,
        .taboo = taboo,
    };
}

/* What a run may touch, whichever kernel it is. batch: of this launch. */
static void set_matrices(const tgl_gemm_shape *s, const tgl_run *run, int64_t batch,
                         tgl_sim_launch *launch)
{
    const char *no_product = run->alpha != 0 && s->k > 0 ? NULL : "alpha is 0";
    launch->matrices[TGL_SIM_A] =
        matrix("A", run->A, s->trans_a ? s->k : s->m, s->trans_a ? s->m : s->k, s->lda, batch,
               s->stride_a, no_product);
    launch->matrices[TGL_SIM_B] =
        matrix("B", run->B, s->trans_b ? s->n : s->k, s->trans_b ? s->k : s->n, s->ldb, batch,
               s->stride_b, no_product);
    launch->matrices[TGL_SIM_C] = matrix("C", run->C, s->m, s->n, s->ldc, batch, s->stride_c,
                                         run->beta == 0 ? "beta is 0" : NULL);
}

/* An array of pointers to matrices, and the matrices that they lead to. */
static void set_array(const void *const *array, const char *name, int64_t batch,
                      tgl_sim_matrix *pointers, tgl_sim_matrix *matrices)
{
    const int64_t words = sizeof(void *) / sizeof(float);
    if (array == NULL) return;
    *pointers = matrix(name, array, 1, batch * words, batch * words, 1, 0, NULL);
    matrices->bases = array;
}

/* What only kernels of the production families are given. */
static void set_more_matrices(const tgl_gemm_shape *s, const tgl_gemm_args *args, int64_t batch,
                              tgl_sim_matrix *all)
{
    const tgl_gemm_epilogue *e = &s->epilogue;
    const int64_t bias = e->bias == TGL_BIAS_ROW ? s->m : s->n;
    set_array((const void *const *)args->A_array, "the pointers to A", batch,
              &all[TGL_SIM_A_POINTERS], &all[TGL_SIM_A]);
    set_array((const void *const *)args->B_array, "the pointers to B", batch,
              &all[TGL_SIM_B_POINTERS], &all[TGL_SIM_B]);
    set_array((const void *const *)args->C_array, "the pointers to C", batch,
              &all[TGL_SIM_C_POINTERS], &all[TGL_SIM_C]);
    if (args->bias != NULL)
        all[TGL_SIM_BIAS] = matrix("bias", args->bias, 1, bias, bias, batch, e->stride_bias, NULL);
    if (args->residual != NULL)
        all[TGL_SIM_RESIDUAL] = matrix("residual", args->residual, s->m, s->n, e->ld_residual,
                                       batch, e->stride_residual, NULL);
}

/* Without a product k is 0, so that neither A nor B is read, and alpha is 0, so that an infinite
 * one adds nothing: as on the GPU. */
static void make_ladder_launch(const tgl_plan *plan, const tgl_run *run, tgl_sim_launch *launch)
{
    const tgl_sim_plan *made = plan->state;
    const tgl_gemm_shape *s = &plan->shape;
    const bool has_product = run->alpha != 0 && s->k > 0;
    *launch = (tgl_sim_launch){
        .module = made->rung,
        .grid_x = made->grid_x,
        .grid_y = made->grid_y,
        .grid_z = 1,
        .threads = (unsigned)made->rung->kernel.threads,
        .cluster = made->cluster,
        .m = (int)s->m,
        .n = (int)s->n,
        .k = has_product ? (int)s->k : 0,
        .alpha = has_product ? (float)run->alpha : 0,
        .beta = (float)run->beta,
        .A = run->A,
        .B = run->B,
        .C = run->C,
        .lda = s->lda,
        .ldb = s->ldb,
        .ldc = s->ldc,
    };
    set_matrices(s, run, 1, launch);
}

/* The launch of a part over the problems of the batch from `first` on. run: of the whole. */
static void make_gemm_launch(const tgl_sim_part *part, const tgl_run *run, int64_t first,
                             tgl_gemm_args *args, tgl_sim_launch *launch)
{
    const tgl_gemm_plan *gemm = &part->of.plan;
    const tgl_gemm_shape *s = &part->of.shape;
    const tgl_run own = tgl_gemm_part_run(&part->of, run);
    const int64_t words = gemm->workspace_floats + gemm->counters;
    unsigned grid[3];
    tgl_sim_module *module = part->modules[tgl_gemm_variant_for(gemm, &own)];
    float *counters = words > 0 ? part->workspace + gemm->workspace_floats : NULL;
    tgl_gemm_launch(gemm, s, &own, first, part->workspace, counters, args, grid);
    *launch = (tgl_sim_launch){
        .module = module,
        .grid_x = grid[0],
        .grid_y = grid[1],
        .grid_z = grid[2],
        .threads = (unsigned)module->kernel.threads,
        .cluster = args->cluster > 1 ? (unsigned)args->cluster : 1,
        .gemm = args,
        .m = (int)s->m,
        .n = (int)s->n,
    };
    const tgl_run these = {
        .alpha = run->alpha, .beta = run->beta, .A = args->A, .B = args->B, .C = args->C};
    set_matrices(s, &these, args->batch, launch);
    set_more_matrices(s, args, args->batch, launch->matrices);
    launch->matrices[TGL_SIM_WORKSPACE] =
        matrix("the workspace", part->workspace, 1, words, words, 1, 0, NULL);
}

/* What has to move for the whole of C and of the batch: parts and launches have some in common. */
static int64_t needed_bytes(const tgl_plan *plan, const tgl_run *run)
{
    const tgl_sim_plan *made = plan->state;
    tgl_sim_part whole = made->parts[0];
    tgl_gemm_args args;
    tgl_sim_launch launch;
    whole.of.shape = plan->shape;
    make_gemm_launch(&whole, run, 0, &args, &launch);
    for (int i = 0; i < TGL_SIM_MATRICES; i++)
        launch.matrices[i].batch = plan->shape.batch;
    return tgl_report_needed_bytes(&launch);
}

/* As many launches as a batch takes. */
static tgl_status run_part(tgl_sim *sim, const tgl_sim_part *part, const tgl_run *run,
                           tgl_report *report)
{
    for (int64_t i = 0; i < part->of.shape.batch; i += part->of.plan.batch_step) {
        tgl_gemm_args args;
        tgl_sim_launch launch;
        make_gemm_launch(part, run, i, &args, &launch);
        TGL_TRY(tgl_machine_run(&sim->machine, &launch));
        tgl_report_add(report, &sim->machine);
    }
    return TGL_OK;
}

static tgl_status run_ladder(tgl_sim *sim, const tgl_plan *plan, const tgl_run *run,
                             tgl_report *report)
{
    tgl_sim_launch launch;
    make_ladder_launch(plan, run, &launch);
    TGL_TRY(tgl_machine_run(&sim->machine, &launch));
    tgl_report_add(report, &sim->machine);
    report->totals.needed_bytes = tgl_report_needed_bytes(&launch);
    return TGL_OK;
}

static tgl_status run_gemm(tgl_sim *sim, const tgl_plan *plan, const tgl_run *run,
                           tgl_report *report)
{
    const tgl_sim_plan *made = plan->state;
    for (int i = 0; i < made->part_count; i++)
        TGL_TRY(run_part(sim, &made->parts[i], run, report));
    report->totals.needed_bytes = needed_bytes(plan, run);
    return TGL_OK;
}

/* The report is that of the latest run that went well. */
static tgl_status run_launches(const tgl_plan *plan, const tgl_run *run)
{
    tgl_sim *sim = plan->dev->state;
    tgl_sim_plan *made = plan->state;
    tgl_report report = {.module = NULL};
    TGL_TRY((made->rung != NULL ? run_ladder : run_gemm)(sim, plan, run, &report));
    made->report = report;
    return TGL_OK;
}

/* The blocks that a launch did not come to would have set them to zero. */
static void clear_counters(tgl_sim_plan *made)
{
    for (int i = 0; i < made->part_count; i++) {
        const tgl_sim_part *part = &made->parts[i];
        const tgl_gemm_plan *gemm = &part->of.plan;
        if (part->workspace != NULL)
            memset(part->workspace + gemm->workspace_floats, 0,
                   (size_t)gemm->counters * sizeof *part->workspace);
    }
}

static tgl_status sim_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    (void)stream;
    tgl_sim *sim = plan->dev->state;
    char message[160];
    const tgl_status fault = tgl_run_check_pointers(&plan->shape, run, message, sizeof message);
    if (fault != TGL_OK) return tgl_fail(plan->dev, fault, "%s", message);
    pthread_mutex_lock(&sim->lock);
    const tgl_status status = run_launches(plan, run);
    if (status != TGL_OK) {
        clear_counters(plan->state);
        tgl_keep_error(plan->dev, "%s", sim->machine.message);
    }
    pthread_mutex_unlock(&sim->lock);
    return status;
}

static tgl_status sim_counters(const tgl_plan *plan, tgl_counters *counters)
{
    tgl_sim *sim = plan->dev->state;
    const tgl_sim_plan *made = plan->state;
    pthread_mutex_lock(&sim->lock);
    const bool is_filled = made->report.module != NULL;
    if (is_filled) *counters = made->report.totals;
    pthread_mutex_unlock(&sim->lock);
    if (!is_filled)
        return tgl_fail(plan->dev, TGL_UNSUPPORTED, "nothing is counted before the first run");
    return TGL_OK;
}

/* ---- Explaining ------------------------------------------------------------------------------ */

static void explain_launch(tgl_text *out, const tgl_sim_module *module, const unsigned grid[3])
{
    tgl_planner_explain_launch(out, &module->kernel, grid);
    tgl_text_add(out, "shared      %zu bytes a block\n", module->shared_bytes);
}

/* The launch of the first problems of a batch, with a product. */
static void explain_part(tgl_text *out, const tgl_sim_part *part)
{
    const tgl_run run = {.alpha = 1};
    tgl_gemm_args args;
    unsigned grid[3];
    tgl_gemm_launch(&part->of.plan, &part->of.shape, &run, 0, NULL, NULL, &args, grid);
    explain_launch(out, part->modules[TGL_GEMM_ALIGNED], grid);
}

static size_t sim_explain(const tgl_plan *plan, char *text, size_t size)
{
    tgl_sim *sim = plan->dev->state;
    const tgl_sim_plan *made = plan->state;
    const tgl_gemm_shape *s = &plan->shape;
    const unsigned grid[3] = {made->grid_x, made->grid_y, 1};
    tgl_text out = {text, size, 0};
    tgl_planner_explain_problem(&out, s);
    if (made->rung != NULL) explain_launch(&out, made->rung, grid);
    for (int i = 0; i < made->part_count; i++)
        explain_part(&out, &made->parts[i]);
    tgl_text_add(&out, "compiled    by %s\n", sim->compiler.version);
    if (made->rung == NULL) tgl_planner_explain(&out, planned_for(), s, &made->choice);
    pthread_mutex_lock(&sim->lock);
    const size_t used = out.length < size ? out.length : size;
    out.length += tgl_report_write(&made->report, size > 0 ? text + used : NULL, size - used);
    pthread_mutex_unlock(&sim->lock);
    return out.length;
}

static const char *sim_kernel_name(const tgl_device *dev, int index)
{
    (void)dev;
    return tgl_gpu_kernel_name(index);
}

static tgl_status sim_property(const tgl_device *dev, int index, const char **key,
                               const char **value)
{
    const tgl_sim *sim = dev->state;
    if (index >= TGL_SIM_PROPERTIES) return TGL_BAD_ARGUMENT;
    *key = sim->properties[index].key;
    *value = sim->properties[index].value;
    return TGL_OK;
}

static tgl_status sim_measure(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    (void)ceiling, (void)value;
    return tgl_fail(dev, TGL_UNSUPPORTED, "the simulator counts; its speed has no meaning");
}

const tgl_backend tgl_sim_backend = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .alloc = sim_alloc,
    .free = sim_free,
    .upload = sim_copy,
    .download = sim_copy,
    .sync = sim_sync,
    .prepare = sim_prepare,
    .unprepare = sim_unprepare,
    .run = sim_run,
    .counters = sim_counters,
    .explain = sim_explain,
    .kernel_name = sim_kernel_name,
    .property = sim_property,
    .measure = sim_measure,
};
