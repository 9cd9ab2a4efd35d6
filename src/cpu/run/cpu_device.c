/* SPDX-License-Identifier: Apache-2.0
 *
 * The cpu device: implements tgl_backend (backend.h) with host memory and the host's processor.
 */
#include "base/processors.h"
#include "cpu/plan/word_plan.h"
#include "cpu/run/cpu_blocks.h"
#include "cpu/run/cpu_explain.h"
#include "cpu/run/cpu_gemm.h"
#include "cpu/run/cpu_measure.h"
#include "cpu/run/cpu_small.h"
#include "cpu/run/cpu_state.h"
#include "cpu/run/cpu_trial.h"
#include "cpu/run/cpu_vector.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    const cpu_facts *facts = &cpu->machine.facts;
    add_property(cpu, "processor", "%s", facts->name);
    if (facts->model[0] != '\0') add_property(cpu, "model", "%s", facts->model);
    add_property(
        cpu, "instruction sets", "%s%s%s%s%s%s%s%s%s%s%s",
        facts->features & CPU_AVX2 ? "avx2 " : "", facts->features & CPU_FMA ? "fma " : "",
        facts->features & CPU_AVX512 ? "avx512" : "",
        facts->features & CPU_AVX512_VNNI ? " avx512_vnni" : "",
        facts->features & CPU_AVX512_BF16 ? " avx512_bf16" : "",
        facts->features & CPU_AMX ? " amx" : "", facts->features & CPU_NEON ? "neon" : "",
        facts->features & CPU_DOTPROD ? " dotprod" : "", facts->features & CPU_I8MM ? " i8mm" : "",
        facts->features & CPU_BF16 ? " bf16" : "", facts->features == 0 ? "portable only" : "");
    add_property(cpu, "tier", "%s", cpu->tiers[0]->name);
    add_property(cpu, "cores", "%d", facts->cores);
    add_property(cpu, "threads", "%d", cpu->threads.threads);
    add_property(cpu, "L1d cache", "%zu KB", facts->l1d / 1024);
    add_property(cpu, "L2 cache", "%zu KB", facts->l2 / 1024);
    if (facts->l3 > 0) add_property(cpu, "L3 cache", "%zu KB", facts->l3 / 1024);
}

/* Maximum bytes of idle packing buffers that the device keeps: KEPT_BYTES_OF_THREAD for each
 * thread, and at least KEPT_BYTES. A buffer that would exceed the limit is freed when its product
 * ends: the product is then so large that allocating the buffer anew takes a small part of its
 * time. */
enum { KEPT_BYTES = 16 << 20, KEPT_BYTES_OF_THREAD = 4 << 20 };

static tgl_status cpu_open(tgl_device *dev, int index, const tgl_device_options *options)
{
    if (index != 0) return tgl_fail(TGL_NO_DEVICE, "there is one cpu device, not cpu:%d", index);
    cpu_device *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a device");
    tgl_cpu_detect(&cpu->machine.facts);
    const tgl_status status = tgl_cpu_choose_tiers(
        cpu->machine.facts.features, getenv("TEGULA_CPU"), cpu->tiers, &cpu->tier_count);
    if (status != TGL_OK) {
        free(cpu);
        return status;
    }
    const int threads =
        tgl_count_threads(options->threads, cpu->machine.facts.cores, CPU_MAX_THREADS);
    cpu->machine.threads = threads;
    tgl_thread_pool_open(&cpu->threads, threads, cpu->machine.facts.cores);
    const size_t kept = (size_t)cpu->threads.threads_max * KEPT_BYTES_OF_THREAD;
    cpu->buffers.most = kept > KEPT_BYTES ? kept : KEPT_BYTES;
    list_properties(cpu);
    dev->state = cpu;
    return TGL_OK;
}

static void cpu_trim(tgl_device *dev)
{
    cpu_device *cpu = dev->state;
    tgl_buffer_pool_trim(&cpu->buffers);
}

static void cpu_close(tgl_device *dev)
{
    cpu_device *cpu = dev->state;
    tgl_thread_pool_close(&cpu->threads);
    tgl_buffer_pool_close(&cpu->buffers);
    free(cpu);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tgl_status cpu_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    (void)dev;
    if (bytes <= SIZE_MAX - CPU_ALIGNMENT)
        *memory = aligned_alloc(CPU_ALIGNMENT,
                                (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT);
    return *memory != NULL ? TGL_OK : tgl_fail(TGL_NO_MEMORY, "no %zu bytes of memory", bytes);
}

static void cpu_free(tgl_device *dev, void *memory)
{
    (void)dev;
    free(memory);
}

static tgl_status cpu_copy(tgl_device *dev, void *dst, const void *src, size_t bytes, void *stream)
{
    (void)dev, (void)stream;
    memcpy(dst, src, bytes);
    return TGL_OK;
}

/* Runs are synchronous. Exception: if a signal handler has left a run by longjmp(), workers may
 * still compute it; this function waits for them. */
static tgl_status cpu_sync(tgl_device *dev)
{
    cpu_device *cpu = dev->state;
    tgl_thread_pool_settle(&cpu->threads);
    return TGL_OK;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* The tier whose kernel has this name, such as "cpu/avx2"; options behind a colon are ignored. The
 * best tier if `kernel` is NULL. Returns NULL if no tier has the name. */
static const cpu_tier *find_tier(const cpu_device *cpu, const char *kernel)
{
    if (kernel == NULL) return cpu->tiers[0];
    const size_t length = strcspn(kernel, ":");
    for (int i = 0; i < cpu->tier_count; i++) {
        const char *name = cpu->tiers[i]->kernel;
        if (strlen(name) == length && memcmp(name, kernel, length) == 0) return cpu->tiers[i];
    }
    return NULL;
}

/* Whether a bias or residual is absent, or has one of the types in the set `types`. */
static bool has_addend(unsigned types, bool is_there, tgl_type type)
{
    return !is_there || (types & CPU_BIT(type)) != 0;
}

/* Refuses shapes that the cpu device does not support. All compute modes are supported: kernels
 * compute in IEEE 754 arithmetic, except the kernels of words (cpu_words.h), which are used only in
 * the modes that cpu_types.c lists. */
static tgl_status check_shape(const tgl_shape *s)
{
    const cpu_type *type = tgl_cpu_type_of(s);
    const tgl_shape_epilogue *e = &s->epilogue;
    const bool is_f8 = tgl_type_is_f8(s->type_a) && tgl_type_is_f8(s->type_b);
    if (type == NULL || (s->type_b != s->type_a && !is_f8) ||
        (type->results & CPU_BIT(s->type_c)) == 0 || (type->results & CPU_BIT(s->type_d)) == 0)
        return tgl_fail(TGL_UNSUPPORTED, "the cpu device has kernels for f32, f64, c64, c128, f16, "
                                         "bf16, e4m3, e5m2, and i8 with results of i32 or scales");
    const bool takes_bias = has_addend(type->addends, e->bias != TGL_BIAS_NONE, e->type_bias);
    if (!takes_bias || !has_addend(type->addends, e->residual, e->type_residual))
        return tgl_fail(TGL_UNSUPPORTED,
                        "the %s is %s; the cpu device takes f16, bf16 and f32 for products of f16, "
                        "bf16, 8-bit floating-point types and scaled i8, else the type of D only",
                        takes_bias ? "residual" : "bias",
                        tgl_type_name(takes_bias ? e->type_residual : e->type_bias));
    if (e->activation > type->last_activation)
        return tgl_fail(TGL_UNSUPPORTED, "products of i8 have integers as results: the cpu device "
                                         "applies no activation but relu to them");
    if (e->expression != NULL)
        return tgl_fail(TGL_UNSUPPORTED,
                        "the cpu device compiles no expressions: use bias, activation and "
                        "residual, or the devices cuda and sim");
    return TGL_OK;
}

/* Allocates and fills the plan's state; NULL: out of memory. */
static cpu_plan *make_state(const tgl_shape *shape, const cpu_tier *tier, cpu_blocking blocking,
                            const cpu_machine *machine)
{
    cpu_plan *state = malloc(sizeof *state);
    if (state == NULL) return NULL;
    const cpu_words *words = tgl_cpu_words_for(shape, tier);
    if (words == NULL && tgl_cpu_type_of(shape)->fits_tiles) {
        tgl_cpu_plan(shape, tgl_cpu_kernels_of(tier, shape->type_d), blocking, machine, state);
        return state;
    }
    cpu_block_plan *blocks = malloc(sizeof *blocks);
    if (blocks != NULL) {
        tgl_cpu_plan_blocks(shape, tier, words, blocking, machine, blocks, state);
        return state;
    }
    free(state);
    return NULL;
}

static void free_state(cpu_plan *state)
{
    if (state != NULL) free(state->blocks);
    free(state);
}

static tgl_status cpu_prepare(tgl_plan *plan, const char *kernel)
{
    cpu_device *cpu = plan->dev->state;
    const cpu_tier *tier = find_tier(cpu, kernel);
    if (tier == NULL)
        return tgl_fail(TGL_UNKNOWN_KERNEL, "the cpu device has no kernel \"%.*s\" here",
                        (int)strcspn(kernel, ":"), kernel);
    TGL_TRY(check_shape(&plan->shape));

    cpu_blocking blocking;
    TGL_TRY(tgl_cpu_blocking_read(kernel != NULL ? kernel + strcspn(kernel, ":") : "", &blocking));
    cpu_machine machine = cpu->machine;
    machine.threads = cpu->threads.threads;
    cpu_plan *state = make_state(&plan->shape, tier, blocking, &machine);
    if (state == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a plan");
    const size_t bytes = tgl_cpu_buffer_bytes(state);
    if (!tgl_buffer_pool_reserve(&cpu->buffers, bytes)) {
        free_state(state);
        return tgl_fail(TGL_NO_MEMORY, "no %zu bytes of memory for packing", bytes);
    }
    snprintf(plan->kernel, sizeof plan->kernel, "%s", kernel != NULL ? kernel : tier->kernel);
    plan->state = state;
    return TGL_OK;
}

static void cpu_unprepare(tgl_plan *plan)
{
    free_state(plan->state);
}

/* Reads a scalar of this type as a double. number: 0 for the real part, 1 for the imaginary part,
 * which is 0 for real types. Returns 0 if `at` is NULL. */
static double scalar_at(tgl_type type, const void *at, int number)
{
    if (at == NULL || (number == 1 && !tgl_type_is_complex(type))) return 0;
    return tgl_type_is_single(type) ? ((const float *)at)[number]
           : type == TGL_I32        ? *(const int32_t *)at
                                    : ((const double *)at)[number];
}

/* A copy of the run with the values of alpha and beta, which are read now from the caller's
 * memory. */
static tgl_run with_host_scalars(const tgl_shape *s, const tgl_run *run)
{
    const tgl_type type = tgl_shape_scalar_type(s);
    tgl_run host = *run;
    host.alpha = scalar_at(type, run->at[TGL_AT_ALPHA], 0);
    host.alpha_imag = scalar_at(type, run->at[TGL_AT_ALPHA], 1);
    host.beta = scalar_at(type, run->at[TGL_AT_BETA], 0);
    host.beta_imag = scalar_at(type, run->at[TGL_AT_BETA], 1);
    host.has_product = run->has_product && (host.alpha != 0 || host.alpha_imag != 0);
    if (!tgl_run_has_beta(&host) && !s->in_place)
        host.at[TGL_AT_C] = host.at[TGL_AT_C_ARRAY] = NULL;
    return host;
}

/* D := C in all problems of the batch, unless D is C itself or C is not read. */
static void copy_c(const tgl_shape *s, const tgl_run *run, int64_t element)
{
    if (s->in_place || run->at[s->pointers ? TGL_AT_C_ARRAY : TGL_AT_C] == NULL) return;
    for (int64_t i = 0; i < s->batch; i++) {
        const char *C = tgl_cpu_c_of(s, run, i, element);
        char *D = tgl_cpu_d_of(s, run, i, element);
        for (int64_t row = 0; row < s->m; row++)
            memcpy(D + row * s->ldd * element, C + row * s->ldc * element,
                   (size_t)(s->n * element));
    }
}

/* The functions that run plans, by path. */
static void (*const run_path[])(const cpu_product *) = {
    [CPU_PATH_GEMM] = tgl_cpu_gemm,     [CPU_PATH_SMALL] = tgl_cpu_small_run,
    [CPU_PATH_VECTOR] = tgl_cpu_vector, [CPU_PATH_SCALE] = tgl_cpu_scale,
    [CPU_PATH_BLOCKS] = tgl_cpu_blocks,
};

/* Runs a plan with alpha and beta as host values. CPU_PATH_BLOCKS reads C itself. The other paths
 * compute in place, so that C is copied to D first. */
static tgl_status run_host_scalars(const tgl_plan *plan, const tgl_run *run)
{
    const cpu_plan *p = plan->state;
    cpu_device *cpu = plan->dev->state;
    const bool in_blocks = p->path == CPU_PATH_BLOCKS;
    const cpu_path path = in_blocks || run->has_product ? p->path : CPU_PATH_SCALE;
    TGL_TRY(tgl_run_check_pointers(&plan->shape, run));
    const size_t bytes = path == CPU_PATH_SCALE ? 0 : tgl_cpu_buffer_bytes(p);
    cpu_buffer buffer = {NULL, -1};
    if (bytes > 0) {
        buffer = tgl_buffer_pool_take(&cpu->buffers, bytes);
        if (buffer.memory == NULL)
            return tgl_fail(TGL_NO_MEMORY, "no %zu bytes of memory for packing", bytes);
    }
    tgl_run_clear_amax(run); /* only now: a run that fails must not change amax */
    if (!in_blocks) copy_c(&plan->shape, run, (int64_t)p->kernels->element);
    const cpu_product product = {&plan->shape, p, run, buffer.memory, NULL};
    const bool has_team = bytes > 0 && p->threads > 1;
    run_path[path](has_team ? tgl_cpu_product_of_team(&product, &cpu->threads, buffer.memory)
                            : &product);
    tgl_buffer_pool_give(&cpu->buffers, buffer);
    return TGL_OK;
}

static tgl_status cpu_run(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    (void)stream;
    if (!plan->shape.device_scalars) return run_host_scalars(plan, run);
    const tgl_run host = with_host_scalars(&plan->shape, run);
    return run_host_scalars(plan, &host);
}

static void cpu_set_threads(tgl_device *dev, int threads)
{
    cpu_device *cpu = dev->state;
    if (threads == 0) threads = cpu->machine.threads;
    cpu->threads.threads = threads < cpu->threads.threads_max ? threads : cpu->threads.threads_max;
}

/* ---- Facts ----------------------------------------------------------------------------------- */

static const char *cpu_kernel_name(const tgl_device *dev, int index)
{
    const cpu_device *cpu = dev->state;
    return index < cpu->tier_count ? cpu->tiers[index]->kernel : NULL;
}

static int cpu_property(const tgl_device *dev, int index, const char **key, const char **value)
{
    const cpu_device *cpu = dev->state;
    if (index >= cpu->property_count) return cpu->property_count;
    *key = cpu->properties[index].key;
    *value = cpu->properties[index].value;
    return cpu->property_count;
}

static double cpu_number(const tgl_device *dev, tgl_number number)
{
    const cpu_device *cpu = dev->state;
    switch (number) {
    case TGL_NUMBER_PROCESSORS:
        return cpu->machine.facts.cores;
    case TGL_NUMBER_MEMORY_BYTES: {
        const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        return pages > 0 && page > 0 ? (double)pages * (double)page : 0;
    }
    case TGL_NUMBER_L1_BYTES:
        return (double)cpu->machine.facts.l1d;
    case TGL_NUMBER_L2_BYTES:
        return (double)cpu->machine.facts.l2;
    case TGL_NUMBER_L3_BYTES:
        return (double)cpu->machine.facts.l3;
    case TGL_NUMBER_THREADS:
        return cpu->threads.threads;
    default:
        return 0;
    }
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
    .trim = cpu_trim,
    .set_threads = cpu_set_threads,
    .prepare = cpu_prepare,
    .unprepare = cpu_unprepare,
    .run = cpu_run,
    .run_small = tgl_cpu_run_small,
    .explain = tgl_cpu_explain,
    .kernel_name = cpu_kernel_name,
    .property = cpu_property,
    .number = cpu_number,
    .measure = tgl_cpu_measure,
    .trials = &tgl_cpu_trials,
    .settings = &tgl_cpu_device_settings,
};
