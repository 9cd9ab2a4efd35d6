/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and times the rungs of the ladder (ladder.h) at one size.
 */
#include "cli.h"
#include "ladder.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 2000 };
static const double sample_seconds = 2e-3; /* minimum duration of a sample */
static const double rung_seconds = 0.4;    /* approximate duration of all samples of a rung */
static const double slow_seconds = 0.05;   /* a call at least this long needs no warm-up call before
                                              it */
static const double warm_up_seconds = 0.1; /* duration of the calls before the first round */

/* ---- Chapters -------------------------------------------------------------------------------- */

static const ladder_chapter chapters[CHAPTERS] = {
    {1, "", TGL_F32, TGL_COMPUTE_DEFAULT, "f32"},
    {2, "f16_", TGL_F16, TGL_COMPUTE_DEFAULT, "f16, accumulated in f32"},
    {3, "words_", TGL_F32, TGL_COMPUTE_TF32, "f32, by products of TF32"},
};

const ladder_chapter *ladder_chapter_number(int number)
{
    return &chapters[number - 1];
}

static const ladder_chapter *chapter_of(const char *name)
{
    for (int i = 1; i < CHAPTERS; i++)
        if (strncmp(name, chapters[i].prefix, strlen(chapters[i].prefix)) == 0) return &chapters[i];
    return &chapters[0];
}

/* ---- Preparation ----------------------------------------------------------------------------- */

static rung *add_rung(ladder_size *s, const char *name)
{
    rung *r = &s->rungs[s->count++];
    *r = (rung){.name = name};
    return r;
}

/* The name of a rung, which is the kernel's name without "ladder/"; NULL: the kernel is not a
 * rung. */
static const char *rung_name(const char *kernel)
{
    static const char prefix[] = "ladder/";
    return strncmp(kernel, prefix, sizeof prefix - 1) == 0 ? kernel + sizeof prefix - 1 : NULL;
}

static tgl_status note_failure(rung *r, tgl_status status)
{
    if (tgl_last_error(r->note, sizeof r->note) == 0)
        snprintf(r->note, sizeof r->note, "%s", tgl_status_text(status));
    r->failed = status != TGL_UNSUPPORTED && status != TGL_GRID_TOO_LARGE;
    return status == TGL_DEVICE_LOST ? status : TGL_OK;
}

static tgl_status add_kernels(ladder_size *s)
{
    tgl_device *dev = s->settings->dev;
    const char *kernel;
    int number = 0;
    for (int i = 0; (kernel = tgl_kernel_name(dev, i)) != NULL; i++) {
        const char *name = rung_name(kernel);
        if (name == NULL) continue;
        number++;
        if (chapter_of(name) != s->settings->chapter || s->count == RUNGS_MAX - CUBLAS_WAYS)
            continue;
        rung *r = add_rung(s, name);
        r->number = number;
        const tgl_status status = cli_plan(dev, &s->problem, kernel, &r->plan);
        if (status != TGL_OK) CLI_TRY(note_failure(r, status));
    }
    return TGL_OK;
}

static void add_cublas(ladder_size *s)
{
    for (cublas_way way = 0; s->settings->cublas != NULL && way < CUBLAS_WAYS; way++) {
        rung *r = add_rung(s, cublas_way_name(way));
        r->is_peer = true;
        r->product =
            cublas_prepare(s->settings->cublas, way, &s->operands, r->note, sizeof r->note);
    }
}

static tgl_status prepare_rungs(ladder_size *s)
{
    tgl_device *dev = s->settings->dev;
    CLI_TRY(operands_make(&s->operands, dev, &s->problem, s->settings->timed));
    s->truth = truth_make(&s->operands);
    if (s->truth == NULL) return TGL_NO_MEMORY;
    add_rung(s, "reference")->seconds = truth_is_whole(s->truth) ? truth_seconds(s->truth) : 0;
    CLI_TRY(tgl_timer_create(dev, &s->timer));
    CLI_TRY(add_kernels(s));
    add_cublas(s);
    return TGL_OK;
}

void ladder_release(ladder_size *s)
{
    for (int i = 0; i < s->count; i++) {
        tgl_plan_destroy(s->rungs[i].plan);
        cublas_release(s->rungs[i].product);
    }
    tgl_timer_destroy(s->timer);
    truth_free(s->truth);
    operands_release(&s->operands);
    *s = (ladder_size){0};
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool can_run(const rung *r)
{
    return r->note[0] == '\0' && (r->plan != NULL || r->product != NULL);
}

static tgl_status run_once(const rung *r, operand_set set)
{
    if (r->product == NULL) return tgl_plan_run(r->plan, 1, set.A, set.B, 0, set.C, NULL);
    return cublas_run(r->product, set) ? TGL_OK : TGL_DRIVER;
}

/* *seconds := the mean time of one of `calls` successive calls. */
static tgl_status time_calls(ladder_size *s, const rung *r, int calls, double *seconds)
{
    *seconds = 0;
    CLI_TRY(tgl_timer_start(s->timer, NULL));
    for (int i = 0; i < calls; i++)
        CLI_TRY(run_once(r, operands_for(&s->operands, s->calls++)));
    CLI_TRY(tgl_timer_stop(s->timer, NULL, seconds));
    *seconds /= calls;
    return TGL_OK;
}

/* ---- Checking -------------------------------------------------------------------------------- */

/* Fills C with NaN, runs the rung once, and downloads the result to C, which is host memory. */
static tgl_status run_over_nan(ladder_size *s, rung *r, void *C)
{
    CLI_TRY(operands_forget_result(&s->operands, C));
    s->calls = 0; /* so that the next call uses the first set of operands */
    CLI_TRY(time_calls(s, r, 1, &r->seconds));
    return operands_download_result(&s->operands, C);
}

static tgl_status check_rung(ladder_size *s, rung *r, void *C)
{
    tgl_status status = run_over_nan(s, r, C);
    if (status != TGL_OK) return note_failure(r, status);
    r->verdict = truth_judge(s->truth, r->name, C);
    if (!r->verdict.right) {
        snprintf(r->note, sizeof r->note, "WRONG: %s", r->verdict.why);
        r->failed = true;
    }
    r->counters.size = sizeof r->counters;
    if (s->settings->has_counters) status = tgl_plan_counters(r->plan, &r->counters);
    return status != TGL_OK ? note_failure(r, status) : TGL_OK;
}

/* Checks all rungs, cuBLAS first: its result serves as the reference for elements that are not
 * computed in double precision. */
static tgl_status check_all(ladder_size *s, void (*step)(void *, const char *), void *user)
{
    const bool is_host = cli_device_is_host(s->settings->dev);
    void *C = is_host ? s->operands.C : malloc(s->operands.size_c);
    if (C == NULL) return TGL_NO_MEMORY;
    tgl_status status = TGL_OK;
    for (int peers = 1; peers >= 0; peers--)
        for (int i = 0; i < s->count && status == TGL_OK; i++) {
            rung *r = &s->rungs[i];
            if (r->is_peer != (peers == 1) || !can_run(r)) continue;
            step(user, r->name);
            status = check_rung(s, r, C);
        }
    if (!is_host) free(C);
    return status;
}

/* ---- Timing ---------------------------------------------------------------------------------- */

/* Chooses the number of calls in a sample and the number of samples from r->seconds, the time of
 * the run that was checked. */
static tgl_status choose_samples(ladder_size *s, rung *r)
{
    if (r->seconds < slow_seconds) {
        CLI_TRY(run_once(r, operands_for(&s->operands, s->calls++)));
        CLI_TRY(time_calls(s, r, 3, &r->seconds));
    }
    const double calls = ceil(sample_seconds / (r->seconds + 1e-9));
    r->calls = calls < CALLS_MAX ? (int)calls : CALLS_MAX;
    const double repeats = rung_seconds / (r->seconds * (r->calls + 1));
    const int least = r->seconds > 1 ? 1 : r->seconds > slow_seconds ? 3 : 7;
    r->repeats = repeats > LADDER_ROUNDS_MAX ? LADDER_ROUNDS_MAX
                 : repeats < least           ? least
                                             : (int)repeats;
    return TGL_OK;
}

static tgl_status warm_up(ladder_size *s, const rung *r)
{
    double seconds;
    for (double spent = 0; spent < warm_up_seconds; spent += seconds * r->calls)
        CLI_TRY(time_calls(s, r, r->calls, &seconds));
    return TGL_OK;
}

/* Whether a rung is sampled in this round; its r->repeats samples are spread evenly over the
 * rounds. */
static bool takes_part(const rung *r, int round, int rounds)
{
    return (round + 1) * r->repeats / rounds > round * r->repeats / rounds;
}

static tgl_status take_sample(ladder_size *s, rung *r, int round)
{
    if (r->seconds < slow_seconds) CLI_TRY(run_once(r, operands_for(&s->operands, s->calls++)));
    return time_calls(s, r, r->calls, &r->samples[round]);
}

static tgl_status take_samples(ladder_size *s, void (*step)(void *, const char *), void *user)
{
    for (int round = 0; round < s->rounds; round++)
        for (int i = 0; i < s->count; i++) {
            rung *r = &s->rungs[(round + i) % s->count];
            if (!can_run(r) || !takes_part(r, round, s->rounds)) continue;
            step(user, r->name);
            const tgl_status status = take_sample(s, r, round);
            if (status != TGL_OK) CLI_TRY(note_failure(r, status));
        }
    return TGL_OK;
}

/* The median, over the rounds that have samples of both, of (time of peer / time of r); 0: there is
 * no such round. */
static double median_ratio(const ladder_size *s, const rung *peer, const rung *r)
{
    double ratios[LADDER_ROUNDS_MAX];
    int count = 0;
    for (int i = 0; i < s->rounds; i++)
        if (peer->samples[i] > 0 && r->samples[i] > 0)
            ratios[count++] = peer->samples[i] / r->samples[i];
    return count > 0 ? stats_quantile(ratios, count, 0.5) : 0;
}

static void summarise(ladder_size *s)
{
    for (int i = 0; i < s->count; i++) {
        rung *r = &s->rungs[i];
        double samples[LADDER_ROUNDS_MAX];
        int count = 0;
        for (int round = 0; round < s->rounds; round++)
            if (r->samples[round] > 0) samples[count++] = r->samples[round];
        if (count == 0 || r->note[0] != '\0') continue;
        r->repeats = count;
        r->seconds = stats_quantile(samples, count, 0.5);
        r->low = stats_quantile(samples, count, 0.25);
        r->high = stats_quantile(samples, count, 0.75);
        for (int way = 0; way < CUBLAS_WAYS; way++)
            for (int j = 0; j < s->count; j++)
                if (strcmp(s->rungs[j].name, cublas_way_name((cublas_way)way)) == 0)
                    r->of_peer[way] = median_ratio(s, &s->rungs[j], r);
    }
}

static tgl_status time_all(ladder_size *s, void (*step)(void *, const char *), void *user)
{
    rung *last = NULL;
    for (int i = 0; i < s->count; i++) {
        rung *r = &s->rungs[i];
        if (!can_run(r)) continue;
        step(user, r->name);
        const tgl_status status = choose_samples(s, r);
        if (status != TGL_OK) CLI_TRY(note_failure(r, status));
        if (!can_run(r)) continue;
        if (r->repeats > s->rounds) s->rounds = r->repeats;
        last = r;
    }
    if (last == NULL) return TGL_OK;
    for (int i = 0; i < s->count; i++)
        if (s->rungs[i].is_peer) s->rungs[i].repeats = s->rounds;
    tgl_status status = warm_up(s, last);
    if (status == TGL_OK) status = take_samples(s, step, user);
    summarise(s);
    return status;
}

tgl_status ladder_run(ladder_size *s, const ladder_settings *settings, const tgl_problem *problem,
                      void (*step)(void *user, const char *name), void *user)
{
    *s = (ladder_size){.settings = settings, .problem = *problem};
    step(user, "reference");
    tgl_status status = prepare_rungs(s);
    if (status == TGL_OK) status = check_all(s, step, user);
    if (settings->timed) return status == TGL_OK ? time_all(s, step, user) : status;
    for (int i = 0; i < s->count; i++)
        s->rungs[i].seconds = 0; /* the time of a single run is not accurate enough to be printed */
    return status;
}
