/* SPDX-License-Identifier: Apache-2.0
 *
 * The sim backend: host memory, the CUDA kernels of the registry compiled as C, and one simulated
 * multiprocessor that plans take in turn.
 */
#include "sim/state.h"

#include "plan/ladder.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The kernel's module, compiled and loaded if it is not yet. The lock is held. */
static tgl_status load(tgl_device *dev, const tgl_kernel *kernel, const char *source,
                       tgl_sim_module **module)
{
    tgl_sim *sim = dev->state;
    for (*module = sim->modules; *module != NULL; *module = (*module)->next)
        if ((*module)->kernel == kernel) return TGL_OK;
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

static tgl_status prepare(tgl_plan *plan, const tgl_kernel *kernel, const char *source)
{
    tgl_device *dev = plan->dev;
    tgl_sim *sim = dev->state;
    unsigned grid_x, grid_y;
    TGL_TRY(tgl_ladder_check(dev, &plan->shape));
    TGL_TRY(tgl_ladder_grid(dev, &plan->shape, kernel, &grid_x, &grid_y));
    if (kernel->dynamic_shared > 0)
        return tgl_fail(dev, TGL_UNSUPPORTED,
                        "%s uses dynamic shared memory, which the simulator does not have",
                        kernel->name);
    tgl_sim_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a plan");
    made->kernel = kernel;
    made->grid_x = grid_x;
    made->grid_y = grid_y;
    pthread_mutex_lock(&sim->lock);
    tgl_status status = load(dev, kernel, source, &made->module);
    pthread_mutex_unlock(&sim->lock);
    if (status != TGL_OK) {
        free(made);
        return status;
    }
    plan->state = made;
    plan->kernel = kernel->name;
    return TGL_OK;
}

static tgl_status sim_prepare(tgl_plan *plan, const char *name)
{
    const tgl_kernel *kernel;
    TGL_TRY(tgl_ladder_choose(plan->dev, name, INT_MAX, &kernel));
    return prepare(plan, kernel, NULL);
}

static void sim_unprepare(tgl_plan *plan)
{
    free(plan->state);
}

tgl_status tgl_sim_plan_create(tgl_device *dev, const tgl_problem *problem,
                               const tgl_kernel *kernel, const char *source, tgl_plan **out)
{
    char message[160];
    tgl_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a plan");
    plan->dev = dev;
    atomic_init(&plan->users, 1);
    tgl_status status = tgl_shape_make(problem, true, &plan->shape, message, sizeof message);
    if (status == TGL_OK)
        status = prepare(plan, kernel, source);
    else
        tgl_keep_error(dev, "%s", message);
    if (status != TGL_OK) {
        free(plan);
        return status;
    }
    *out = plan;
    return TGL_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

static tgl_sim_matrix matrix(char name, const void *base, int64_t rows, int64_t row, int64_t ld,
                             const char *taboo)
{
    const int64_t element = sizeof(float);
    return (tgl_sim_matrix){
        .name = name,
        .base = (uintptr_t)base,
        .rows = rows,
        .row_bytes = row * element,
        .ld_bytes = ld * element,
        .extent = rows > 0 && row > 0 ? ((rows - 1) * ld + row) * element : 0,
        .taboo = taboo,
    };
}

/* Without a product k is 0, so that neither A nor B is read, and alpha is 0, so that an infinite
 * one adds nothing: as on the GPU. */
static void make_launch(const tgl_plan *plan, const tgl_run *run, tgl_sim_launch *launch)
{
    const tgl_sim_plan *made = plan->state;
    const tgl_gemm_shape *s = &plan->shape;
    const bool has_product = run->alpha != 0 && s->k > 0;
    const char *no_product = has_product ? NULL : "alpha is 0";
    *launch = (tgl_sim_launch){
        .module = made->module,
        .grid_x = made->grid_x,
        .grid_y = made->grid_y,
        .threads = (unsigned)made->kernel->threads,
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
        .matrices = {matrix('A', run->A, s->m, s->k, s->lda, no_product),
                     matrix('B', run->B, s->k, s->n, s->ldb, no_product),
                     matrix('C', run->C, s->m, s->n, s->ldc, run->beta == 0 ? "beta is 0" : NULL)},
    };
}

static tgl_status sim_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    (void)stream;
    tgl_sim *sim = plan->dev->state;
    tgl_sim_plan *made = plan->state;
    tgl_sim_launch launch;
    make_launch(plan, run, &launch);
    pthread_mutex_lock(&sim->lock);
    const tgl_status status = tgl_machine_run(&sim->machine, &launch);
    if (status == TGL_OK)
        tgl_report_make(&made->report, &sim->machine);
    else
        tgl_keep_error(plan->dev, "%s", sim->machine.message);
    pthread_mutex_unlock(&sim->lock);
    return status;
}

static tgl_status sim_counters(const tgl_plan *plan, tgl_counters *counters)
{
    tgl_sim *sim = plan->dev->state;
    const tgl_sim_plan *made = plan->state;
    pthread_mutex_lock(&sim->lock);
    const bool is_filled = made->report.is_filled;
    if (is_filled) *counters = made->report.totals;
    pthread_mutex_unlock(&sim->lock);
    if (!is_filled)
        return tgl_fail(plan->dev, TGL_UNSUPPORTED, "nothing is counted before the first run");
    return TGL_OK;
}

/* ---- Explaining ------------------------------------------------------------------------------ */

static size_t sim_explain(const tgl_plan *plan, char *text, size_t size)
{
    tgl_sim *sim = plan->dev->state;
    const tgl_sim_plan *made = plan->state;
    const tgl_gemm_shape *s = &plan->shape;
    const tgl_kernel *kernel = made->kernel;
    tgl_text out = {text, size, 0};
    tgl_text_add(&out,
                 "problem     C := alpha*A*B + beta*C, f32, row-major, m=%lld n=%lld k=%lld%s\n",
                 (long long)s->m, (long long)s->n, (long long)s->k,
                 s->swapped ? " (column-major given: A and B, m and n exchanged)" : "");
    tgl_text_add(&out, "kernel      %s: %s in kernels/%s\n", kernel->name, kernel->symbol,
                 kernel->file);
    tgl_text_add(&out, "tiles       %s; a block computes %d x %d of C\n",
                 kernel->defines[0] != '\0' ? kernel->defines : "the file's defaults",
                 kernel->block_m, kernel->block_n);
    tgl_text_add(&out, "launch      %u x %u blocks of %d threads\n", made->grid_x, made->grid_y,
                 kernel->threads);
    tgl_text_add(&out, "shared      %zu bytes a block\n", made->module->shared_bytes);
    tgl_text_add(&out, "compiled    by %s\n", sim->compiler.version);
    pthread_mutex_lock(&sim->lock);
    const size_t used = out.length < size ? out.length : size;
    out.length += tgl_report_write(&made->report, size > 0 ? text + used : NULL, size - used);
    pthread_mutex_unlock(&sim->lock);
    return out.length;
}

static const char *sim_kernel_name(const tgl_device *dev, int index)
{
    (void)dev;
    const tgl_kernel *kernel = tgl_kernel_at(index);
    return kernel != NULL ? kernel->name : NULL;
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
