/* SPDX-License-Identifier: Apache-2.0
 *
 * The cpu backend: host memory, and plans for the host's processor.
 */
#include "cpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Open and close -------------------------------------------------------------------------- */

static void add_property(cpu_device *cpu, const char *key, const char *format, ...)
    TGL_PRINTF(3, 4);
static void add_property(cpu_device *cpu, const char *key, const char *format, ...)
{
    const int index = cpu->property_count++;
    va_list args;
    va_start(args, format);
    cpu->properties[index].key = key;
    vsnprintf(cpu->properties[index].value, sizeof cpu->properties[index].value, format, args);
    va_end(args);
}

static void list_properties(cpu_device *cpu)
{
    const cpu_facts *facts = &cpu->facts;
    add_property(cpu, "processor", "%s", facts->name);
    add_property(cpu, "instruction sets", "%s%s%s%s", facts->features & CPU_AVX2 ? "avx2 " : "",
                 facts->features & CPU_FMA ? "fma " : "",
                 facts->features & CPU_AVX512F ? "avx512f" : "",
                 facts->features == 0 ? "portable only" : "");
    add_property(cpu, "tier", "%s", cpu->tiers[0]->name);
    add_property(cpu, "cores", "%d", facts->cores);
    add_property(cpu, "threads", "%d", cpu->threads);
    add_property(cpu, "L1d cache", "%zu KB", facts->l1d / 1024);
    add_property(cpu, "L2 cache", "%zu KB", facts->l2 / 1024);
    if (facts->l3 > 0) add_property(cpu, "L3 cache", "%zu KB", facts->l3 / 1024);
#ifdef _OPENMP
    add_property(cpu, "OpenMP", "yes");
#else
    add_property(cpu, "OpenMP", "no");
#endif
}

/* The library's share of the machine: what the caller asked for, else what OpenMP would take. */
static int count_threads(int asked)
{
#ifdef _OPENMP
    const int threads = asked > 0 ? asked : omp_get_max_threads();
    return threads < CPU_MAX_THREADS ? threads : CPU_MAX_THREADS;
#else
    (void)asked;
    return 1;
#endif
}

static tgl_status cpu_open(tgl_device *dev, int index, const tgl_device_options *options)
{
    if (index != 0)
        return tgl_fail(dev, TGL_NO_DEVICE, "there is one cpu device, not cpu:%d", index);
    cpu_device *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a device");
    tgl_cpu_detect(&cpu->facts);
    char message[200];
    cpu->tier_count = tgl_cpu_choose_tiers(cpu->facts.features, getenv("TEGULA_CPU"), cpu->tiers,
                                           message, sizeof message);
    if (cpu->tier_count == 0) {
        free(cpu);
        return tgl_fail(dev, TGL_BAD_SETTING, "%s", message);
    }
    cpu->threads = count_threads(options->threads);
    tgl_cpu_pool_open(&cpu->pool);
    list_properties(cpu);
    dev->state = cpu;
    return TGL_OK;
}

static void cpu_close(tgl_device *dev)
{
    cpu_device *cpu = dev->state;
    tgl_cpu_pool_close(&cpu->pool);
    free(cpu);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tgl_status cpu_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    if (bytes <= SIZE_MAX - CPU_ALIGNMENT)
        *memory = aligned_alloc(CPU_ALIGNMENT,
                                (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT);
    return *memory != NULL ? TGL_OK : tgl_fail(dev, TGL_NO_MEMORY, "no %zu bytes of memory", bytes);
}

static void cpu_free(tgl_device *dev, void *memory)
{
    (void)dev;
    free(memory);
}

static tgl_status cpu_copy(tgl_device *dev, void *dst, const void *src, size_t bytes)
{
    (void)dev;
    memcpy(dst, src, bytes);
    return TGL_OK;
}

static tgl_status cpu_sync(tgl_device *dev)
{
    (void)dev;
    return TGL_OK;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* The tier asked for by its kernel's name, or the best. NULL: none has that name. */
static const cpu_tier *find_tier(const cpu_device *cpu, const char *kernel)
{
    if (kernel == NULL) return cpu->tiers[0];
    for (int i = 0; i < cpu->tier_count; i++)
        if (strcmp(cpu->tiers[i]->kernel, kernel) == 0) return cpu->tiers[i];
    return NULL;
}

static tgl_status check_types(tgl_device *dev, const tgl_gemm_shape *s)
{
    if (s->type_a != s->type_c || s->type_b != s->type_c)
        return tgl_fail(dev, TGL_UNSUPPORTED, "the cpu device multiplies matrices of one type");
    if (s->type_c != TGL_F32 && s->type_c != TGL_F64)
        return tgl_fail(dev, TGL_UNSUPPORTED, "the cpu device has kernels for f32 and f64 only");
    if (s->compute != TGL_COMPUTE_DEFAULT)
        return tgl_fail(dev, TGL_UNSUPPORTED, "the cpu device has no TF32 arithmetic");
    if (s->epilogue.expression != NULL)
        return tgl_fail(dev, TGL_UNSUPPORTED,
                        "the cpu device compiles no expressions: use bias, activation and "
                        "residual, or the devices cuda and sim");
    return TGL_OK;
}

static tgl_status cpu_prepare(tgl_plan *plan, const tgl_plan_options *options, void *stream)
{
    (void)stream;
    const char *kernel = options->kernel;
    tgl_device *dev = plan->dev;
    cpu_device *cpu = dev->state;
    const cpu_tier *tier = find_tier(cpu, kernel);
    if (tier == NULL)
        return tgl_fail(dev, TGL_UNKNOWN_KERNEL, "the cpu device has no kernel \"%s\" here",
                        kernel);
    TGL_TRY(check_types(dev, &plan->shape));

    cpu_plan *state = malloc(sizeof *state);
    if (state == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a plan");
    tgl_cpu_plan(&plan->shape, plan->shape.type_c == TGL_F32 ? tier->f32 : tier->f64, cpu, state);
    if (!tgl_cpu_pool_reserve(&cpu->pool, state->workspace)) {
        const size_t workspace = state->workspace;
        free(state);
        return tgl_fail(dev, TGL_NO_MEMORY, "no %zu bytes of workspace", workspace);
    }
    plan->kernel = tier->kernel;
    plan->state = state;
    return TGL_OK;
}

static void cpu_unprepare(tgl_plan *plan)
{
    free(plan->state);
}

static tgl_status cpu_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    (void)stream;
    const cpu_plan *p = plan->state;
    cpu_device *cpu = plan->dev->state;
    char message[160];
    const tgl_status fault = tgl_run_check_pointers(&plan->shape, run, message, sizeof message);
    if (fault != TGL_OK) return tgl_fail(plan->dev, fault, "%s", message);
    if (run->alpha == 0 || p->path == CPU_PATH_SCALE) {
        tgl_cpu_scale(&plan->shape, p->kernels, run);
        return TGL_OK;
    }
    char *workspace = NULL;
    if (p->workspace > 0) {
        workspace = tgl_cpu_pool_take(&cpu->pool, p->workspace);
        if (workspace == NULL)
            return tgl_fail(plan->dev, TGL_NO_MEMORY, "no %zu bytes of workspace", p->workspace);
    }
    if (p->path == CPU_PATH_VECTOR)
        tgl_cpu_vector(&plan->shape, p, run, workspace);
    else
        tgl_cpu_gemm(&plan->shape, p, run, workspace);
    if (workspace != NULL) tgl_cpu_pool_give(&cpu->pool, workspace);
    return TGL_OK;
}

/* ---- Facts ----------------------------------------------------------------------------------- */

static const char *cpu_kernel_name(const tgl_device *dev, int index)
{
    const cpu_device *cpu = dev->state;
    return index < cpu->tier_count ? cpu->tiers[index]->kernel : NULL;
}

static tgl_status cpu_property(const tgl_device *dev, int index, const char **key,
                               const char **value)
{
    const cpu_device *cpu = dev->state;
    if (index >= cpu->property_count) return TGL_BAD_ARGUMENT;
    *key = cpu->properties[index].key;
    *value = cpu->properties[index].value;
    return TGL_OK;
}

const tgl_backend tgl_cpu_backend = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_copy,
    .download = cpu_copy,
    .sync = cpu_sync,
    .prepare = cpu_prepare,
    .unprepare = cpu_unprepare,
    .run = cpu_run,
    .explain = tgl_cpu_explain,
    .kernel_name = cpu_kernel_name,
    .property = cpu_property,
    .measure = tgl_cpu_measure,
};
