/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures candidates of a product and adds their times to the wisdom (plan/wisdom.h): first the
 * planner's choice, then the candidates whose kernels are compiled already, then the others, which
 * are compiled in waves of one per processor, at most WAVE_MAX. Within each group the order is that
 * of tgl_planner_promising(). Variants of the fastest candidates follow. A candidate that is much
 * slower than the best gets one sample. The measurements are bursts: a few milliseconds at the
 * boost clock. The clock depends on the load of the last tenth of a second, so that the same
 * kernel, measured twice among other candidates, differed by up to 27 %
 * (docs/notes/2026-11-29-gpu.md). At the end the planner's choice and the fastest other candidates,
 * the finalists, are therefore measured again in rounds, a sample of each in a round. With a large
 * budget the finalists are then measured at the power limit ("sustained"), where the clock is
 * lower.
 */
#include "api/effort.h"
#include "base/clock.h"
#include "base/processors.h"
#include "plan/measured_choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 5, RUNS_MAX = 256, FINALISTS = 3, WAVE_MAX = 16 };

/* Runs of a candidate whose run is longer than a sample: 2 if it is hopeless, else 1 + SAMPLES. */
enum { USUAL_RUNS = 4 };

static const double SAMPLE_SECONDS = 1e-3;  /* minimum duration of a sample, reached by repeated
                                               runs */
static const double WARM_UP_SECONDS = 5e-3; /* runs of this duration raise the clock of an idle
                                               GPU */
static const double HOPELESS = 1.3;         /* no further samples of a candidate that takes HOPELESS
                                               times as long as the best */
static const double SUSTAINED_BUDGET = 2;   /* minimum budget, in seconds, to measure at the power
                                               limit, too */
static const double SUSTAINED_SECONDS = 0.25; /* time after which the power limit determines the
                                                 clock */

/* No wave of compilations begins after this many budgets of host time. By default this is half a
 * second, so that a new product usually waits for one wave, whose slowest kernel takes 1 to 3 s. */
static const double COMPILE_BUDGETS = 2.5;

/* The same for budgets from SUSTAINED_BUDGET on: a caller with so much time wants all candidates to
 * be measured, even if few processors compile them. */
static const double PATIENT_BUDGETS = 10;

/* The state of measuring one product. */
typedef struct measuring {
    tgl_device *dev;
    const tgl_shape *shape;
    const tgl_request *request;
    int64_t workspace_limit; /* the workspace_limit of the caller's options */
    tgl_trial *trial;
    double budget, used; /* GPU time in seconds: the limit, and what has been used so far */
    double end;          /* time of tgl_clock() after which no wave begins */
    int wave;            /* number of candidates that are compiled in parallel */
    double best;         /* seconds of the fastest candidate so far; INFINITY at first */
} measuring;

/* Runs the plan `runs` times, and adds the time to m->used. */
static tgl_status run(measuring *m, const tgl_plan *plan, int runs, double *seconds)
{
    TGL_TRY(m->dev->backend->trials->time(m->trial, plan, runs, seconds));
    m->used += *seconds;
    return TGL_OK;
}

/* The number of runs for a sample, limited by the remaining budget. each: seconds of a run. */
static int runs_of_sample(const measuring *m, double each)
{
    const double wanted = fmin(ceil(SAMPLE_SECONDS / each), RUNS_MAX);
    const double possible = floor((m->budget - m->used) / each);
    return (int)fmax(0, fmin(wanted, possible));
}

/* Whether the budget suffices for another candidate: for one run of the fastest so far. */
static bool has_time(const measuring *m)
{
    return m->used < m->budget && (isinf(m->best) || m->used + m->best < m->budget);
}

/* Runs the plan once, which loads the code and allocates workspace. For the first candidate,
 * repeats this for WARM_UP_SECONDS, or a tenth of the budget if that is less, to raise the GPU's
 * clock. *seconds := the time of the last run. */
static tgl_status warm_up(measuring *m, const tgl_plan *plan, double *seconds)
{
    const double until = m->used == 0 ? fmin(WARM_UP_SECONDS, m->budget / 10) : 0;
    do
        TGL_TRY(run(m, plan, 1, seconds));
    while (m->used < until);
    return TGL_OK;
}

/* *sample := the seconds of a run of a plan, which takes about `each` seconds; 0 if the budget does
 * not suffice for one. */
static tgl_status take_sample(measuring *m, const tgl_plan *plan, double each, double *sample)
{
    const int runs = runs_of_sample(m, each);
    *sample = 0;
    if (runs == 0) return TGL_OK;
    TGL_TRY(run(m, plan, runs, sample));
    *sample /= runs;
    return TGL_OK;
}

/* Takes samples of a plan. *line := their median and spread. If the warm-up uses up the budget, its
 * last run is the only sample: without a sample, every later plan of a large product would measure
 * again. Returns TGL_OK with line->samples = 0 if the budget was used up before. */
static tgl_status take_samples(measuring *m, const tgl_plan *plan, tgl_measured *line)
{
    double samples[SAMPLES], sample;
    int count = 0;
    line->samples = 0;
    if (m->used >= m->budget) return TGL_OK;
    TGL_TRY(warm_up(m, plan, &samples[0]));
    for (; count < SAMPLES; count++) {
        TGL_TRY(take_sample(m, plan, samples[count == 0 ? 0 : count - 1], &sample));
        if (sample == 0) break;
        samples[count] = sample;
        if (samples[count] > HOPELESS * m->best) {
            count++;
            break;
        }
    }
    if (count == 0) count = 1;
    tgl_effort_summarise(samples, count, line);
    return TGL_OK;
}

/* Runs the plan until the power limit determines the clock, then takes samples. If the budget is
 * used up by then, the mean time of the latest runs is the only sample. If it ends earlier, there
 * is no sample, unless a run alone takes SUSTAINED_SECONDS. */
static tgl_status take_sustained(measuring *m, const tgl_plan *plan, tgl_measured *line)
{
    const double end = m->used + SUSTAINED_SECONDS;
    double seconds, each = line->seconds;
    for (int runs; m->used < end && (runs = runs_of_sample(m, each)) > 0; each = seconds / runs)
        TGL_TRY(run(m, plan, runs, &seconds));
    if (m->used < end && each < SUSTAINED_SECONDS) return TGL_OK;
    line->is_sustained = true;
    m->best = INFINITY; /* the best time so far was measured in a burst, not at the power limit */
    TGL_TRY(take_samples(m, plan, line));
    if (line->samples > 0) return TGL_OK;
    line->seconds = each;
    line->samples = 1;
    return TGL_OK;
}

/* Makes the plan of the candidate with this kernel string. */
static tgl_status make_plan(const measuring *m, const char *kernel, tgl_plan **plan)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = kernel,
                                      .workspace_limit = m->workspace_limit,
                                      .effort = TGL_EFFORT_ESTIMATE};
    return tgl_plan_make(m->dev, m->shape, &options, plan);
}

static tgl_status measure_plan(measuring *m, const tgl_plan *plan, tgl_measured *line)
{
    tgl_wisdom_source(&plan->list, line->source);
    const tgl_status status =
        line->seconds > 0 ? take_sustained(m, plan, line) : take_samples(m, plan, line);
    if (status != TGL_OK || line->samples == 0) return status;
    tgl_wisdom_add(m->dev->wisdom, m->shape, line);
    m->best = fmin(m->best, line->seconds);
    return TGL_OK;
}

/* Measures the candidate with this kernel string and adds its time to the wisdom. seconds: 0 to
 * measure in bursts; to measure at the power limit, the candidate's time in bursts. Returns false
 * if nothing more can be measured. */
static bool measure_kernel(measuring *m, const char *kernel, double seconds)
{
    tgl_plan *plan;
    tgl_measured line = {.kernel = kernel, .seconds = seconds};
    const tgl_status made = make_plan(m, kernel, &plan);
    if (made != TGL_OK) return made != TGL_DEVICE_LOST && made != TGL_DRIVER;
    const tgl_status status = measure_plan(m, plan, &line);
    tgl_plan_release(plan);
    return status == TGL_OK || status == TGL_NO_WORKSPACE || status == TGL_NO_MEMORY;
}

/* ---- The order ------------------------------------------------------------------------------- */

static bool is_compiled(const measuring *m, const tgl_candidate *c)
{
    tgl_launch_list list;
    const tgl_chip *chip = m->dev->backend->chip(m->dev);
    if (tgl_planner_list(chip, m->shape, c, &list) != TGL_OK) return false;
    const bool is = m->dev->backend->trials->is_compiled(m->dev, &list);
    tgl_list_free(&list);
    return is;
}

/* Whether the wisdom has a usable time of a candidate. lines, count: the lines of the wisdom for
 * the product. kernel: the candidate's kernel string. */
static bool is_known(const measuring *m, const tgl_candidate *c, const char *kernel,
                     const tgl_measured *lines, int count)
{
    char source[TGL_SOURCE_SIZE] = "";
    for (int i = 0; i < count; i++) {
        if (lines[i].stale != NULL || strcmp(lines[i].kernel, kernel) != 0) continue;
        if (source[0] == '\0')
            tgl_planner_source(m->dev->backend->chip(m->dev), m->shape, c, source);
        if (strcmp(lines[i].source, source) == 0) return true;
    }
    return false;
}

/* What has been done with a candidate. OFFERED: it was in a wave, so it is compiled now or cannot
 * be compiled. DONE: it was measured, or the wisdom had its time. */
typedef enum state { WAITING, OFFERED, DONE } state;

/* The candidates of a list, and their states. */
typedef struct agenda {
    const tgl_candidate *candidates;
    int count;
    bool has_choice; /* the first one is the planner's choice, which must be compiled anyway */
    state *states;
} agenda;

/* The GPU time that measuring a candidate will take, by its predicted time. */
static double expected_use(const tgl_candidate *c)
{
    return USUAL_RUNS * fmax(c->seconds, SAMPLE_SECONDS);
}

/* Compiles in parallel the next candidates that are waiting and not compiled: at most m->wave, and
 * only as many as the GPU time left probably suffices for, but at least one. Returns false if there
 * is none, or no wave may begin any more. */
static bool compile_wave(const measuring *m, agenda *a)
{
    tgl_launch_list lists[WAVE_MAX];
    const tgl_chip *chip = m->dev->backend->chip(m->dev);
    double use = m->used;
    int found = 0;
    if (tgl_clock() > m->end) return false;
    for (int i = 0; i < a->count && found < m->wave; i++) {
        if (a->states[i] != WAITING || is_compiled(m, &a->candidates[i])) continue;
        use += expected_use(&a->candidates[i]);
        if (found > 0 && use > m->budget) break;
        a->states[i] = OFFERED;
        if (tgl_planner_list(chip, m->shape, &a->candidates[i], &lists[found]) == TGL_OK) found++;
    }
    if (found > 0) m->dev->backend->trials->load_lists(m->dev, lists, found);
    for (int i = 0; i < found; i++)
        tgl_list_free(&lists[i]);
    return found > 0;
}

/* Whether candidate i was not measured yet and can be measured now. */
static bool is_due(const measuring *m, const agenda *a, int i)
{
    if (a->states[i] == DONE) return false;
    return (a->has_choice && i == 0) || is_compiled(m, &a->candidates[i]);
}

/* Marks the candidates whose times the wisdom has, so that they are neither compiled nor measured.
 */
static void mark_known(const measuring *m, agenda *a)
{
    char kernel[TGL_KERNEL_STRING_SIZE];
    tgl_measured *lines;
    const int known = tgl_wisdom_find(m->dev->wisdom, m->shape, &lines);
    for (int i = 0; i < a->count && known > 0; i++) {
        tgl_candidate_string(&a->candidates[i], kernel, sizeof kernel);
        if (is_known(m, &a->candidates[i], kernel, lines, known)) a->states[i] = DONE;
    }
    free(lines);
}

/* Measures the candidates that are due. Returns false if nothing more can be measured. */
static bool measure_due(measuring *m, agenda *a)
{
    char kernel[TGL_KERNEL_STRING_SIZE];
    bool goes_on = true;
    for (int i = 0; i < a->count && goes_on && has_time(m); i++) {
        if (!is_due(m, a, i)) continue;
        a->states[i] = DONE;
        tgl_candidate_string(&a->candidates[i], kernel, sizeof kernel);
        goes_on = measure_kernel(m, kernel, 0);
    }
    return goes_on;
}

/* A finalist: a plan, its line of the wisdom, and its samples. */
typedef struct finalist {
    tgl_plan *plan;
    tgl_measured line;
    double samples[SAMPLES];
} finalist;

/* Measures the finalists again, in rounds, and adds the new times to the wisdom. Only whole rounds
 * count. */
static void measure_rounds(measuring *m, finalist *of, int count)
{
    int rounds = 0;
    for (bool goes_on = true; goes_on && rounds < SAMPLES; rounds += goes_on)
        for (int i = 0; i < count && goes_on; i++)
            goes_on =
                take_sample(m, of[i].plan, of[i].line.seconds, &of[i].samples[rounds]) == TGL_OK &&
                of[i].samples[rounds] > 0;
    for (int i = 0; i < count && rounds > 0; i++) {
        tgl_effort_summarise(of[i].samples, rounds, &of[i].line);
        tgl_wisdom_add(m->dev->wisdom, m->shape, &of[i].line);
    }
}

/* Makes a finalist of a line of the wisdom. Returns false if the plan cannot be made, or if the
 * kernel's source has changed since the line was measured. */
static bool make_finalist(const measuring *m, const tgl_measured *line, finalist *f)
{
    char source[TGL_SOURCE_SIZE];
    f->line = *line;
    if (make_plan(m, line->kernel, &f->plan) != TGL_OK) return false;
    tgl_wisdom_source(&f->plan->list, source);
    if (strcmp(source, line->source) == 0) return true;
    tgl_plan_release(f->plan);
    return false;
}

/* Measures the finalists in rounds: the planner's choice and the fastest other candidates that were
 * measured in bursts. */
static void compare_finalists(measuring *m, const tgl_candidate *choice)
{
    char own[TGL_KERNEL_STRING_SIZE];
    finalist of[1 + FINALISTS];
    tgl_measured *lines;
    if (!has_time(m)) return;
    const int lines_count = tgl_wisdom_find(m->dev->wisdom, m->shape, &lines);
    int count = 0, others = 0;
    tgl_candidate_string(choice, own, sizeof own);
    for (int i = 0; i < lines_count && count < 1 + FINALISTS; i++) {
        const bool is_own = strcmp(lines[i].kernel, own) == 0;
        if (lines[i].stale != NULL || lines[i].is_sustained || (!is_own && others == FINALISTS) ||
            !make_finalist(m, &lines[i], &of[count]))
            continue;
        count++;
        others += !is_own;
    }
    free(lines);
    if (count > 1) measure_rounds(m, of, count);
    for (int i = 0; i < count; i++)
        tgl_plan_release(of[i].plan);
}

/* Measures at the power limit: the planner's choice if wants_own, else the fastest other
 * candidates, up to FINALISTS. own: the kernel string of the planner's choice. */
static void measure_sustained(measuring *m, const tgl_measured *lines, int count, const char *own,
                              bool wants_own)
{
    int finalists = 0;
    for (int i = 0; i < count && finalists < FINALISTS; i++) {
        const bool is_own = strcmp(lines[i].kernel, own) == 0;
        if (lines[i].stale != NULL || lines[i].is_sustained || is_own != wants_own) continue;
        finalists++;
        if (!measure_kernel(m, lines[i].kernel, lines[i].seconds)) break;
    }
}

static void measure_finalists(measuring *m, const tgl_candidate *choice)
{
    char own[TGL_KERNEL_STRING_SIZE];
    tgl_measured *lines;
    const int count = tgl_wisdom_find(m->dev->wisdom, m->shape, &lines);
    tgl_candidate_string(choice, own, sizeof own);
    measure_sustained(m, lines, count, own, true);
    measure_sustained(m, lines, count, own, false);
    free(lines);
}

/* Measures the candidates that have no time in the wisdom: those that are compiled, then waves of
 * the others. If the planner's choice is not compiled, a wave comes first, so that the choice is
 * not compiled alone. Returns false if nothing more can be measured. */
static bool measure_list(measuring *m, const tgl_candidate *candidates, int count, bool has_choice)
{
    agenda a = {candidates, count, has_choice, calloc((size_t)count, sizeof *a.states)};
    if (a.states == NULL) return false;
    mark_known(m, &a);
    if (has_choice && a.states[0] == WAITING && !is_compiled(m, &candidates[0]))
        compile_wave(m, &a);
    bool goes_on;
    do
        goes_on = measure_due(m, &a);
    while (goes_on && has_time(m) && compile_wave(m, &a));
    free(a.states);
    return goes_on;
}

/* Measures variants (measured_choice.h) of the fastest candidates, up to FINALISTS. Returns false
 * if nothing more can be measured. */
static bool measure_variants(measuring *m, const tgl_candidate *choice)
{
    tgl_measured *lines;
    const tgl_chip *chip = m->dev->backend->chip(m->dev);
    const int count = tgl_wisdom_find(m->dev->wisdom, m->shape, &lines);
    bool goes_on = true;
    for (int i = 0; i < count && i < FINALISTS && goes_on && has_time(m); i++) {
        tgl_candidate *variants;
        if (lines[i].stale != NULL) break;
        const int found =
            tgl_planner_variants(chip, m->shape, m->request, choice, lines[i].kernel, &variants);
        if (found > 0) goes_on = measure_list(m, variants, found, false);
        free(variants);
    }
    free(lines);
    return goes_on;
}

/* Measures the candidates and their variants. If the finalists are to be measured at the power
 * limit, half of the budget is kept for them. */
static void measure_all(measuring *m, const tgl_candidate *candidates, int count)
{
    const double budget = m->budget;
    const bool is_sustained = budget >= SUSTAINED_BUDGET;
    if (is_sustained) m->budget = budget / 2;
    const bool goes_on =
        measure_list(m, candidates, count, true) && measure_variants(m, &candidates[0]);
    if (goes_on) compare_finalists(m, &candidates[0]);
    m->budget = budget;
    if (goes_on && is_sustained) measure_finalists(m, &candidates[0]);
}

/* ---- Whether to measure ---------------------------------------------------------------------- */

/* *choice := what the planner would choose without the wisdom (the file of measured kernel times).
 * *said := what the wisdom contains about the product. */
static tgl_status consult(const tgl_device *dev, const tgl_shape *shape, const tgl_request *request,
                          tgl_candidate *choice, tgl_consulted *said)
{
    const tgl_chip *chip = dev->backend->chip(dev);
    TGL_TRY(tgl_planner_estimate(chip, shape, request, choice));
    tgl_candidate measured = *choice;
    tgl_planner_consult(chip, shape, request, true, &measured, said);
    return TGL_OK;
}

/* Measures the product, unless another thread has measured it while the caller waited for the lock
 * dev->measuring. The caller must hold this lock. */
static void measure_product(measuring *m)
{
    const tgl_trials *trials = m->dev->backend->trials;
    tgl_candidate choice, *candidates;
    tgl_consulted said;
    tgl_wisdom_refresh(m->dev->wisdom);
    if (tgl_wisdom_is_fixed(m->dev->wisdom) ||
        consult(m->dev, m->shape, m->request, &choice, &said) != TGL_OK ||
        (m->budget >= SUSTAINED_BUDGET ? said.has_sustained : said.has_choice) ||
        trials->open(m->dev, m->shape, &m->trial) != TGL_OK)
        return;
    const int count = tgl_planner_promising(m->dev->backend->chip(m->dev), m->shape, m->request,
                                            &choice, &candidates);
    if (count > 0) measure_all(m, candidates, count);
    free(candidates);
    trials->close(m->trial);
}

void tgl_plan_measure(tgl_device *dev, const tgl_shape *shape, const tgl_request *request,
                      const tgl_plan_options *options)
{
    double budget;
    if (!tgl_effort_measures(dev, shape, options, &budget)) return;
    measuring m = {.dev = dev,
                   .shape = shape,
                   .request = request,
                   .workspace_limit = options->workspace_limit,
                   .budget = budget,
                   .wave = (int)fmin(tgl_processors(), WAVE_MAX),
                   .best = INFINITY};
    if (!tgl_effort_lock(dev, INFINITY)) return;
    /* The time of waiting for other threads does not count. */
    m.end = tgl_clock() + budget * (budget < SUSTAINED_BUDGET ? COMPILE_BUDGETS : PATIENT_BUDGETS);
    measure_product(&m);
    pthread_mutex_unlock(&dev->measuring);
}
