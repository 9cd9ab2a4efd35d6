/* SPDX-License-Identifier: Apache-2.0
 *
 * Times plans of one product, for the file of measured times (plan/wisdom.h). All runs use the same
 * random matrices, which are therefore in the caches if they fit, as in most programs that multiply
 * on the CPU. The settings of the planner that are compared are listed by cpu_settings.c.
 */
#include "cpu/run/cpu_trial.h"
#include "backend/trial_operands.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "cpu/plan/cpu_settings.h"
#include "cpu/run/cpu_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum bytes of the operands of a product that is timed. It is a constant, because a process
 * cannot easily determine the free memory: containers have limits of their own. */
enum { SET_BYTES_MAX = 256 << 20 };

struct tgl_trial {
    tgl_shape shape;
    tgl_trial_set set;
    char *memory;
};

/* ---- Matrices -------------------------------------------------------------------------------- */

/* Fills an operand: the beginning with random elements, the rest with copies of the beginning. */
static void fill_operand(const tgl_trial_operand *x, char *at)
{
    for (size_t done = tgl_trial_draw(x, at), more; done < x->bytes; done += more) {
        more = x->bytes - done < done ? x->bytes - done : done;
        memcpy(at + done, at, more);
    }
}

/* Whether a set of operands is small, and at most three quarters of it are gaps: unused memory
 * between rows and between matrices. */
static bool is_small(const tgl_trial_set *set)
{
    return set->bytes <= SET_BYTES_MAX && set->gaps / 3 <= (set->bytes - set->gaps);
}

/* Allocates and fills a set of operands, which the caller frees. NULL: no memory, or the set is not
 * small (is_small()). */
static char *make_set(const tgl_trial_set *set)
{
    char *memory = is_small(set) ? aligned_alloc(CPU_ALIGNMENT, set->bytes) : NULL;
    for (int i = 0; i < TGL_OPERANDS && memory != NULL; i++) {
        const tgl_trial_operand *x = &set->operands[i];
        if (x->bytes > 0 && tgl_trial_reads(i)) fill_operand(x, memory + x->offset);
    }
    return memory;
}

/* ---- The functions of tgl_trials ------------------------------------------------------------- */

/* chip: the processor's model (its name if the model is unknown), the tier, and the sizes of L2 and
 * L3, because plans depend on them: a virtual machine may report other sizes on the same model. */
static void trial_describe(const tgl_device *dev, char chip[TGL_NAME_SIZE],
                           char driver[TGL_NAME_SIZE])
{
    const cpu_device *cpu = dev->state;
    const cpu_facts *facts = &cpu->machine.facts;
    const char *model = facts->model[0] != '\0' ? facts->model : facts->name;
    snprintf(driver, TGL_NAME_SIZE, "none");
    snprintf(chip, TGL_NAME_SIZE, "%.80s, %s, L2 %zu KB, L3 %zu KB", model, cpu->tiers[0]->name,
             facts->l2 / 1024, facts->l3 / 1024);
}

static bool trial_is_captured(tgl_device *dev, void *stream)
{
    (void)dev, (void)stream;
    return false;
}

static tgl_status trial_open(tgl_device *dev, const tgl_shape *shape, tgl_trial **trial)
{
    (void)dev;
    tgl_trial *t = calloc(1, sizeof *t);
    if (t == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory to measure the product");
    t->shape = *shape;
    tgl_trial_set_make(shape, &t->set);
    t->memory = make_set(&t->set);
    if (t->memory == NULL) {
        free(t);
        return tgl_fail(TGL_NO_MEMORY, "no memory to measure the product");
    }
    *trial = t;
    return TGL_OK;
}

static void trial_close(tgl_trial *t)
{
    free(t->memory);
    free(t);
}

static tgl_status trial_time(tgl_trial *t, const tgl_plan *plan, int runs, double *seconds)
{
    tgl_run run = tgl_trial_run(&t->shape, &t->set, t->memory);
    if (!t->shape.in_place) run.at[TGL_AT_C] = NULL; /* beta is 0, so that C is not read */
    const double start = tgl_clock();
    for (int i = 0; i < runs; i++)
        TGL_TRY(plan->dev->backend->run(plan, &run, NULL));
    *seconds = tgl_clock() - start;
    return *seconds > 0 ? TGL_OK : tgl_fail(TGL_DRIVER, "the clock stands still");
}

const tgl_trials tgl_cpu_trials = {
    .describe = trial_describe,
    .is_captured = trial_is_captured,
    .open = trial_open,
    .close = trial_close,
    .time = trial_time,
};

/* ---- The functions of tgl_settings ----------------------------------------------------------- */

static void add_kernels(tgl_sha256 *hash, const cpu_kernels *kernels)
{
    const int facts[] = {kernels->mr, kernels->nv, kernels->vector, kernels->kc};
    tgl_sha256_add(hash, facts, sizeof facts);
}

/* source := a hash of tables that a plan depends on in addition to the shape and the machine: the
 * values of this row of tgl_cpu_models, and tile sizes and kc of the tier's kernels of f32 and f64.
 * A time that was measured with another hash is not used. */
static void hash_setting(const cpu_tier *tier, const cpu_model *row, char source[TGL_SOURCE_SIZE])
{
    char values[CPU_MODEL_TEXT];
    unsigned char digest[TGL_SHA256_BYTES];
    tgl_sha256 hash;
    tgl_cpu_model_values(row, values);
    tgl_sha256_start(&hash);
    tgl_sha256_add(&hash, values, strlen(values));
    add_kernels(&hash, tier->f32);
    add_kernels(&hash, tier->f64);
    tgl_sha256_finish(&hash, digest);
    tgl_sha256_text(digest, (TGL_SOURCE_SIZE - 1) / 2, source);
}

static int settings_list(const tgl_device *dev, tgl_setting list[TGL_SETTINGS_MAX])
{
    _Static_assert((int)CPU_SETTINGS_MAX <= (int)TGL_SETTINGS_MAX, "all settings have room");
    const cpu_device *cpu = dev->state;
    const cpu_tier *tier = cpu->tiers[0];
    const cpu_model *own = tgl_cpu_model_find(tgl_cpu_models, cpu->machine.facts.model, tier->f32);
    cpu_blocking settings[CPU_SETTINGS_MAX];
    const int count = tgl_cpu_settings(own, settings);
    for (int i = 0; i < count; i++) {
        char options[CPU_SETTING_TEXT];
        const cpu_blocking *s = &settings[i];
        tgl_cpu_setting_options(s, options);
        snprintf(list[i].kernel, sizeof list[i].kernel, "%s%s", tier->kernel, options);
        hash_setting(tier, s->row > 0 ? &tgl_cpu_models[s->row - 1] : own, list[i].source);
    }
    return count;
}

static bool settings_are_same(const tgl_plan *x, const tgl_plan *y)
{
    return tgl_cpu_plan_is_same(x->state, y->state);
}

const tgl_settings tgl_cpu_device_settings = {.list = settings_list, .is_same = settings_are_same};
