/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the settings of a device without a chip for one product. Settings with the same plan are
 * measured once. Each round takes a sample of every plan that is not HOPELESS, so that other
 * programs on the machine slow all of them alike.
 */
#include "api/effort.h"
#include "api/settings.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, RUNS_MAX = 256 };

static const double SAMPLE_SECONDS = 2e-3; /* a sample has enough runs to take this long */
/* A setting that takes HOPELESS times as long as the best gets no further samples, unless it is the
 * planner's own choice. */
static const double HOPELESS = 1.3;

/* A setting, and its plan if no earlier setting has the same plan. */
typedef struct candidate {
    /* NULL: an earlier candidate has the same plan, or the plan could not be made. */
    tgl_plan *plan;
    int first;   /* the index of the first candidate with the same plan; NONE: there is no plan */
    double each; /* seconds of a run; 0: it has not run yet */
    double samples[ROUNDS];
    int count; /* number of samples */
} candidate;

enum { NONE = -1 };

typedef struct measuring {
    tgl_device *dev;
    const tgl_shape *shape;
    const tgl_plan_options *options;
    tgl_trial *trial;
    double budget, used; /* limit of the measuring time, and time used so far, in seconds */
    double best;         /* the least sample so far; INFINITY: none */
    tgl_setting settings[TGL_SETTINGS_MAX];
    candidate candidates[TGL_SETTINGS_MAX];
    int count;
} measuring;

/* ---- Plans ----------------------------------------------------------------------------------- */

/* The index of the first candidate before `index` with the same plan; `index` if there is none. */
static int find_same(const measuring *m, int index, const tgl_plan *plan)
{
    for (int i = 0; i < index; i++) {
        const tgl_plan *other = m->candidates[i].plan;
        if (other != NULL && m->dev->backend->settings->is_same(other, plan)) return i;
    }
    return index;
}

/* Makes the plan of each setting. Returns the number of different plans. */
static int make_plans(measuring *m)
{
    int different = 0;
    for (int i = 0; i < m->count; i++) {
        candidate *c = &m->candidates[i];
        const tgl_plan_options options = {.size = sizeof options,
                                          .kernel = m->settings[i].kernel,
                                          .workspace_limit = m->options->workspace_limit,
                                          .effort = TGL_EFFORT_ESTIMATE};
        c->first = NONE;
        if (tgl_plan_make(m->dev, m->shape, &options, &c->plan) != TGL_OK) continue;
        c->first = find_same(m, i, c->plan);
        if (c->first == i) {
            different++;
            continue;
        }
        tgl_plan_release(c->plan);
        c->plan = NULL;
    }
    return different;
}

/* ---- Samples --------------------------------------------------------------------------------- */

static bool run(measuring *m, const candidate *c, int runs, double *seconds)
{
    if (m->dev->backend->trials->time(m->trial, c->plan, runs, seconds) != TGL_OK) return false;
    m->used += *seconds;
    return true;
}

static void keep_sample(measuring *m, candidate *c, double seconds)
{
    c->samples[c->count++] = seconds;
    m->best = fmin(m->best, seconds);
}

/* Whether this number of samples of the planner's own choice is enough. Any number is enough if
 * twice the required number would not fit in the budget. seconds: time of a run; budget: seconds.
 */
static bool suffices(int samples, double seconds, double budget)
{
    return samples >= TGL_SETTING_SAMPLES || 2 * TGL_SETTING_SAMPLES * seconds > budget;
}

/* Whether a candidate is the planner's own choice and must have another sample, even if the budget
 * is used up: without enough samples it would be measured again for every later plan. */
static bool needs_sample(const measuring *m, const candidate *c)
{
    double least = c->samples[0];
    if (c != &m->candidates[0]) return false;
    for (int i = 1; i < c->count; i++)
        least = fmin(least, c->samples[i]);
    return c->count == 0 || !suffices(c->count, least, m->budget);
}

/* Whether a run of a candidate would end within the budget, or it must have a sample anyway. A
 * candidate that has not run yet is expected to take as long as the planner's own choice. */
static bool has_time(const measuring *m, const candidate *c)
{
    const double expected = c->each > 0 ? c->each : m->candidates[0].each;
    return needs_sample(m, c) || m->used + expected < m->budget;
}

/* Takes a sample, unless it would exceed the budget and is not needed (needs_sample()). The first
 * run of a plan, which touches its memory for the first time, counts as a sample only if it takes
 * SAMPLE_SECONDS, or if it is of the planner's own choice and has used up the budget. False: a run
 * failed. */
static bool take_sample(measuring *m, candidate *c)
{
    const bool is_first = c->each == 0;
    double seconds;
    if (is_first && !run(m, c, 1, &c->each)) return false;
    const double possible = floor((m->budget - m->used) / c->each);
    int runs = (int)fmin(fmin(ceil(SAMPLE_SECONDS / c->each), RUNS_MAX), possible);
    if (is_first && (c->each >= SAMPLE_SECONDS || (runs < 1 && c == &m->candidates[0]))) {
        keep_sample(m, c, c->each);
        return true;
    }
    if (runs < 1 && !needs_sample(m, c)) return true;
    if (runs < 1) runs = 1;
    if (!run(m, c, runs, &seconds)) return false;
    c->each = seconds / runs;
    keep_sample(m, c, c->each);
    return true;
}

static bool take_samples(measuring *m)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < m->count; i++) {
            candidate *c = &m->candidates[(round + i) % m->count];
            const bool is_slow = c->count > 0 && c->samples[0] > HOPELESS * m->best;
            if (c->plan == NULL || (is_slow && c != &m->candidates[0]) || !has_time(m, c)) continue;
            if (!take_sample(m, c)) return false;
        }
    }
    return true;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Adds the time of a setting to the wisdom. c: the candidate that has the setting's plan. */
static void add_line(measuring *m, const tgl_setting *setting, candidate *c)
{
    tgl_measured line = {.kernel = setting->kernel};
    if (c->count == 0) return;
    tgl_effort_summarise(c->samples, c->count, &line);
    memcpy(line.source, setting->source, sizeof line.source);
    tgl_wisdom_add(m->dev->wisdom, m->shape, &line);
}

static void add_lines(measuring *m)
{
    for (int i = 0; i < m->count; i++) {
        const int first = m->candidates[i].first;
        if (first != NONE) add_line(m, &m->settings[i], &m->candidates[first]);
    }
}

/* ---- Whether to measure ---------------------------------------------------------------------- */

/* Whether the wisdom has enough samples of the planner's own choice, setting 0. */
static bool is_known(const measuring *m)
{
    tgl_measured *lines;
    bool is = false;
    const int count = tgl_wisdom_find(m->dev->wisdom, m->shape, &lines);
    for (int i = 0; i < count && !is; i++)
        is = lines[i].stale == NULL && strcmp(lines[i].kernel, m->settings[0].kernel) == 0 &&
             strcmp(lines[i].source, m->settings[0].source) == 0 &&
             suffices(lines[i].samples, lines[i].seconds, m->budget);
    free(lines);
    return is;
}

static void measure(measuring *m)
{
    const tgl_trials *trials = m->dev->backend->trials;
    m->count = m->dev->backend->settings->list(m->dev, m->settings);
    if (!is_known(m) && make_plans(m) > 1 && trials->open(m->dev, m->shape, &m->trial) == TGL_OK) {
        if (take_samples(m)) add_lines(m);
        trials->close(m->trial);
    }
    for (int i = 0; i < m->count; i++)
        tgl_plan_release(m->candidates[i].plan);
}

/* Locks dev->measuring, reads the wisdom again, because another thread may have measured the
 * product in the meantime, and measures the product. */
static void lock_and_measure(tgl_device *dev, const tgl_shape *shape,
                             const tgl_plan_options *options, double budget)
{
    measuring *m = calloc(1, sizeof *m);
    if (m == NULL || !tgl_effort_lock(dev, 2 * budget)) {
        free(m);
        return;
    }
    m->dev = dev;
    m->shape = shape;
    m->options = options;
    m->budget = budget;
    m->best = INFINITY;
    tgl_wisdom_refresh(dev->wisdom);
    if (!tgl_wisdom_is_fixed(dev->wisdom)) measure(m);
    pthread_mutex_unlock(&dev->measuring);
    free(m);
}

/* Measurements must not change the caller's floating-point exception flags, nor trap. */
void tgl_settings_measure(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options)
{
    double budget;
    fenv_t environment;
    if (dev->backend->settings == NULL || shape->k == 0 ||
        !tgl_effort_measures(dev, shape, options, &budget))
        return;
    feholdexcept(&environment);
    lock_and_measure(dev, shape, options, budget);
    fesetenv(&environment);
}
