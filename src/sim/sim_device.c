/* SPDX-License-Identifier: Apache-2.0
 *
 * The sim device: host memory, a C compiler, and a simulated SM, which executes one plan at a time.
 */
#include "sim/sim_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* ---- Open and close -------------------------------------------------------------------------- */

/* Reads TEGULA_SIM_SEED. If it is unset or empty, blocks run in the order of the grid; otherwise
 * they run in a random order with this seed. */
static tgl_status read_seed(tgl_sim *sim)
{
    const char *text = secure_getenv("TEGULA_SIM_SEED");
    char *end;
    snprintf(sim->seed_text, sizeof sim->seed_text, "as in the grid");
    if (text == NULL || text[0] == '\0') return TGL_OK;
    errno = 0;
    const unsigned long long seed = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        return tgl_fail(TGL_BAD_SETTING,
                        "TEGULA_SIM_SEED is \"%s\"; it takes a number from 0 to 2^64 - 1", text);
    sim->is_shuffled = true;
    sim->seed = seed;
    snprintf(sim->seed_text, sizeof sim->seed_text, "%llu", seed);
    return TGL_OK;
}

static void release_device(tgl_sim *sim)
{
    tgl_sim_runner_free(atomic_load(&sim->runner));
    tgl_host_compiler_free(&sim->compiler);
    free(sim);
}

static tgl_status set_up(tgl_sim *sim)
{
    TGL_TRY(read_seed(sim));
    tgl_sim_runner *runner = tgl_sim_runner_make(sim);
    if (runner == NULL) return TGL_NO_MEMORY;
    atomic_store(&sim->runner, runner);
    return tgl_host_compiler_find(&sim->compiler);
}

static tgl_status sim_open(tgl_device *dev, int index, const tgl_device_options *options)
{
    if (index != 0) return tgl_fail(TGL_NO_DEVICE, "there is one sim device, not sim:%d", index);
    if (getauxval(AT_SECURE) != 0)
        return tgl_fail(TGL_NO_DEVICE,
                        "there is no sim device in a program with more rights than its user "
                        "(setuid): it runs a C compiler, in an environment of the user's");
    tgl_sim *sim = calloc(1, sizeof *sim);
    if (sim == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a device");
    sim->threads = options->threads;
    const tgl_status status = set_up(sim);
    if (status == TGL_OK)
        dev->state = sim;
    else
        release_device(sim);
    return status;
}

static void sim_close(tgl_device *dev)
{
    tgl_sim *sim = dev->state;
    while (sim->modules != NULL) {
        tgl_sim_module *module = sim->modules;
        sim->modules = module->next;
        tgl_sim_module_free(module);
    }
    release_device(sim);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tgl_status sim_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    const size_t alignment = 256;
    (void)dev;
    *memory = NULL;
    if (bytes <= SIZE_MAX - alignment)
        *memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    return *memory != NULL ? TGL_OK : tgl_fail(TGL_NO_MEMORY, "no %zu bytes of memory", bytes);
}

static void sim_free(tgl_device *dev, void *memory)
{
    (void)dev;
    free(memory);
}

static tgl_status sim_copy(tgl_device *dev, void *dst, const void *src, size_t bytes, void *stream)
{
    (void)dev, (void)stream;
    memcpy(dst, src, bytes);
    return TGL_OK;
}

static tgl_status sim_sync(tgl_device *dev)
{
    (void)dev;
    return TGL_OK;
}

/* ---- Properties ------------------------------------------------------------------------------ */

/* The chip that plans are made for. It is a real one, so that the simulator runs the kernels that
 * this chip would run. */
static const tgl_chip *sim_chip(const tgl_device *dev)
{
    (void)dev;
    return tgl_chip_find("h200");
}

static int sim_property(const tgl_device *dev, int index, const char **key, const char **value)
{
    const tgl_sim *sim = dev->state;
    const struct {
        const char *key, *value;
    } properties[] = {
        {"model", "1 SM, warps of 32 threads, 32 banks of 4 bytes, 32-byte sectors"},
        {"order of blocks", sim->seed_text},
        {"compiler", sim->compiler.words},
        {"compiler version", sim->compiler.version},
        {"cache", tgl_cache_describe(sim->compiler.cache)},
    };
    const int count = sizeof properties / sizeof properties[0];
    if (index >= count) return count;
    *key = properties[index].key;
    *value = properties[index].value;
    return count;
}

static double sim_number(const tgl_device *dev, tgl_number number)
{
    (void)dev;
    return number == TGL_NUMBER_PROCESSORS ? 1 : 0; /* the simulator has no other numbers */
}

static tgl_status sim_measure(tgl_device *dev, tgl_ceiling ceiling, double *value)
{
    (void)dev, (void)ceiling, (void)value;
    return tgl_fail(TGL_UNSUPPORTED,
                    "the simulator counts memory accesses; its speed has no meaning");
}

const tgl_backend tgl_sim_backend = {
    .name = "sim",
    .stack = 48 << 10, /* bytes of stack for planning: measured by test_stack, plus a reserve */
    .open = sim_open,
    .close = sim_close,
    .alloc = sim_alloc,
    .free = sim_free,
    .upload = sim_copy,
    .download = sim_copy,
    .sync = sim_sync,
    .chip = sim_chip,
    .prepare = tgl_sim_prepare,
    .unprepare = tgl_sim_unprepare,
    .run = tgl_sim_run,
    .counters = tgl_sim_counters,
    .explain = tgl_sim_explain,
    .trace = tgl_sim_trace,
    .property = sim_property,
    .number = sim_number,
    .measure = sim_measure,
};
