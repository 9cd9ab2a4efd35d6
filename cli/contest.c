/* SPDX-License-Identifier: Apache-2.0
 *
 * One shape, timed.
 */
#include "contest.h"
#include "cli.h"
#include "epilogue_options.h"
#include "progress.h"
#include "random.h"
#include "reference.h"
#include "stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double sample_seconds = 2e-3; /* of a sample, at least */
enum { ROUNDS_MIN = 5, ROUNDS_MAX = 101, CALLS_MAX = 1 << 20, SPOT_CHECKS = 128 };

/* ---- Preparation ----------------------------------------------------------------------------- */

static int64_t count_c(const tgl_problem *p)
{
    return p->m * p->n * p->batch;
}

/* cuBLAS is prepared for the problem; what it does not take, it is left out of. */
static void prepare_cublas(contest *t, contestant *c)
{
    char why[200];
    c->product = cublas_prepare(c->peer->cublas, c->peer->way, &t->operands, why, sizeof why);
    c->right = c->product != NULL;
    if (!c->right) cli_fail("%s is left out here: %s", c->peer->name, why);
}

static tgl_status prepare(contest *t)
{
    const contest_settings *s = t->settings;
    const tgl_problem *p = &t->problem;
    t->all = calloc((size_t)s->peer_count + 1, sizeof *t->all);
    if (t->all == NULL) return TGL_NO_MEMORY;
    for (int i = 0; i <= s->peer_count; i++) {
        contestant *c = &t->all[i];
        c->peer = i > 0 ? &s->peers[i - 1] : NULL;
        c->right = i == 0 || peer_takes(c->peer, p);
        c->samples = malloc(ROUNDS_MAX * sizeof *c->samples);
        if (c->samples == NULL) return TGL_NO_MEMORY;
    }
    tgl_status status = operands_make(&t->operands, s->dev, p, true);
    if (status == TGL_OK && t->epilogue != NULL)
        status = operands_add_epilogue(&t->operands, t->epilogue);
    tgl_plan_options options = s->plan;
    options.epilogue = t->epilogue;
    if (status == TGL_OK) status = tgl_plan_create(s->dev, p, &options, &t->plan);
    if (status == TGL_OK) status = tgl_timer_create(s->dev, &t->timer);
    for (int i = 1; status == TGL_OK && i <= s->peer_count; i++)
        if (t->all[i].peer->cublas != NULL) prepare_cublas(t, &t->all[i]);
    return status;
}

void contest_release(contest *t)
{
    if (t->settings == NULL) return;
    tgl_timer_destroy(t->timer);
    tgl_plan_destroy(t->plan);
    for (int i = 0; t->all != NULL && i <= t->settings->peer_count; i++) {
        cublas_release(t->all[i].product);
        free(t->all[i].samples);
    }
    free(t->all);
    operands_release(&t->operands);
    *t = (contest){0};
}

static tgl_status run_once(contest *t, const contestant *c)
{
    const operand_set set = operands_for(&t->operands, t->calls++);
    if (c->product != NULL) return cublas_run(c->product, set) ? TGL_OK : TGL_DRIVER;
    if (c->peer != NULL) {
        peer_run(c->peer, &t->problem, set.A, set.B, set.C);
        return TGL_OK;
    }
    if (t->settings->one_shot)
        return tgl_gemm(t->settings->dev, &t->problem, 1, set.A, set.B, 0, set.C, NULL);
    const tgl_operands given = {.size = sizeof given,
                                .alpha = 1,
                                .A = set.A,
                                .B = set.B,
                                .C = set.C,
                                .bias = set.bias,
                                .residual = set.residual};
    return tgl_plan_run_operands(t->plan, &given, NULL);
}

/* ---- Verification ---------------------------------------------------------------------------- */

static double host_element(tgl_type type, const void *X, int64_t at)
{
    return type == TGL_F32 ? (double)((const float *)X)[at] : ((const double *)X)[at];
}

/* The reference of C[b](i, j). */
static reference_element expected(const contest *t, int64_t b, int64_t i, int64_t j)
{
    const tgl_problem *p = &t->problem;
    const bool trans_a = p->trans_a != TGL_NO_TRANS, trans_b = p->trans_b != TGL_NO_TRANS;
    const size_t size = tgl_type_size(p->type_c);
    const int64_t at_a = b * p->stride_a + (trans_a ? i : i * p->k);
    const int64_t at_b = b * p->stride_b + (trans_b ? j * p->k : j);
    return reference_dot(p->type_c, p->k, (const char *)t->operands.host_a + (size_t)at_a * size,
                         trans_a ? p->m : 1, (const char *)t->operands.host_b + (size_t)at_b * size,
                         trans_b ? 1 : p->n);
}

/* What Tegula's epilogue makes of it. */
static void finish(const contest *t, int64_t b, int64_t i, int64_t j, reference_element *x)
{
    const tgl_epilogue *e = t->epilogue;
    const tgl_problem *p = &t->problem;
    double bias = 0, residual = 0;
    if (e->bias != TGL_BIAS_NONE)
        bias = host_element(p->type_c, t->operands.host_bias, e->bias == TGL_BIAS_ROW ? i : j);
    if (e->residual)
        residual = host_element(p->type_c, t->operands.host_residual, (b * p->m + i) * p->n + j);
    epilogue_finish(e, bias, residual, x);
}

/* Compares elements drawn at random, and looks for NaN in all. `C` is on the host. */
static bool is_right(const contest *t, const contestant *c, const void *C, char *why,
                     size_t why_size)
{
    const tgl_epilogue *epilogue = c->peer == NULL ? t->epilogue : NULL;
    const tgl_problem *p = &t->problem;
    const int64_t count = count_c(p);
    for (int64_t at = 0; at < count; at++)
        if (!isfinite(host_element(p->type_c, C, at))) {
            snprintf(why, why_size, "element %" PRId64 " of C is not finite", at);
            return false;
        }
    if (epilogue != NULL && epilogue->expression != NULL) return true; /* nobody knows */
    random_state r;
    random_seed(&r, 2, 0);
    error_summary summary = {0};
    const double bound = error_bound(p->k) + (epilogue != NULL ? EPILOGUE_ERRORS : 0);
    for (int spot = 0; spot < SPOT_CHECKS; spot++) {
        const int64_t b = random_between(&r, 0, p->batch - 1);
        const int64_t i = random_between(&r, 0, p->m - 1), j = random_between(&r, 0, p->n - 1);
        const double x = host_element(p->type_c, C, (b * p->m + i) * p->n + j);
        reference_element e = expected(t, b, i, j);
        if (epilogue != NULL) finish(t, b, i, j, &e);
        double error;
        if (error_add(&summary, p->type_c, x, &e, bound, &error)) continue;
        snprintf(why, why_size,
                 "C(%" PRId64 ", %" PRId64 ") is %.9g, the reference %.9Lg: error %.3g", i, j, x,
                 e.value, error);
        return false;
    }
    return true;
}

/* Runs a contestant once over a C of NaN, and judges what it leaves. */
static tgl_status verify(contest *t, contestant *c)
{
    tgl_device *dev = t->settings->dev;
    const operand_set set = operands_for(&t->operands, 0);
    const size_t size = t->operands.size_c;
    const bool host = cli_device_is_host(dev);
    void *C = host ? set.C : malloc(size);
    if (C == NULL) return TGL_NO_MEMORY;
    memset(C, 0xff, size); /* a NaN in every type */
    tgl_status status = host ? TGL_OK : tgl_upload(dev, set.C, C, size, NULL);
    t->calls = 0; /* that set */
    if (status == TGL_OK) status = run_once(t, c);
    if (status == TGL_OK && !host) status = tgl_download(dev, C, set.C, size, NULL);
    char why[200];
    if (status == TGL_OK && !is_right(t, c, C, why, sizeof why)) {
        c->right = false;
        if (c->peer == NULL)
            snprintf(t->error, sizeof t->error, "%s", why);
        else
            cli_fail("%s is wrong and is left out here: %s", c->peer->name, why);
    }
    if (!host) free(C);
    return status;
}

/* ---- Timing ---------------------------------------------------------------------------------- */

/* Seconds of processor time that this process has used. */
static double processor_time(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* Waits until the threads of the library that ran before have stopped spinning for more work, which
 * they do for up to 30 ms: they would take the processors away from the next one. */
static void wait_until_quiet(const contest_settings *s)
{
    if (s->threads <= 1) return;
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < 100; i++) {
        const double before = processor_time();
        nanosleep(&pause, NULL);
        if (processor_time() - before < 2e-4) return;
    }
}

/* Seconds a call, over `calls` of them. */
static tgl_status time_calls(contest *t, const contestant *c, int calls, double *seconds)
{
    const double used_before = processor_time();
    tgl_status status = tgl_timer_start(t->timer, NULL);
    for (int i = 0; status == TGL_OK && i < calls; i++)
        status = run_once(t, c);
    if (status == TGL_OK) status = tgl_timer_stop(t->timer, NULL, seconds);
    if (t->settings->cpu_time) *seconds = processor_time() - used_before;
    *seconds /= calls;
    return status;
}

/* Finds how many calls fill a sample. */
static tgl_status calibrate(contest *t, contestant *c)
{
    wait_until_quiet(t->settings);
    tgl_status status = run_once(t, c);
    double seconds = 0;
    for (c->calls = 1; status == TGL_OK;) {
        status = time_calls(t, c, c->calls, &seconds);
        if (status != TGL_OK || seconds * c->calls >= sample_seconds) break;
        if (c->calls >= CALLS_MAX) break; /* a clock that stands still */
        /* From too short a time one cannot tell: grow step by step. */
        const double wanted = sample_seconds * 1.2 / (seconds + 1e-9);
        c->calls = wanted > 16.0 * c->calls ? 16 * c->calls : (int)wanted + 1;
    }
    c->seconds = seconds;
    return status;
}

static tgl_status take_sample(contest *t, contestant *c, int round)
{
    wait_until_quiet(t->settings);
    /* Beside a call this long, caches and sleeping threads do not count. */
    tgl_status status = c->seconds < 0.1 ? run_once(t, c) : TGL_OK;
    if (status != TGL_OK) return status;
    return time_calls(t, c, c->calls, &c->samples[round]);
}

static int choose_rounds(const contest *t)
{
    const contest_settings *s = t->settings;
    if (s->repeat > 0) return s->repeat < ROUNDS_MAX ? s->repeat : ROUNDS_MAX;
    double round = 0;
    for (int i = 0; i <= s->peer_count; i++)
        if (t->all[i].right) round += t->all[i].seconds * (t->all[i].calls + 1) + 1e-3;
    const double rounds = s->time / round;
    return rounds < ROUNDS_MIN ? ROUNDS_MIN : rounds > ROUNDS_MAX ? ROUNDS_MAX : (int)rounds;
}

/* Takes the samples to medians. Sorts the contestants' samples. */
static void summarise(contest *t)
{
    contestant *ours = &t->all[0];
    double ratios[ROUNDS_MAX];
    for (int i = t->settings->peer_count; i >= 0; i--) {
        contestant *c = &t->all[i];
        if (!c->right) continue;
        for (int round = 0; round < t->rounds; round++)
            ratios[round] = c->samples[round] / ours->samples[round];
        c->ratio = stats_quantile(ratios, t->rounds, 0.5);
        /* Tegula comes last, since the ratios need its samples in their order. */
        c->seconds = stats_quantile(c->samples, t->rounds, 0.5);
    }
}

static tgl_status time_all(contest *t)
{
    const int count = t->settings->peer_count + 1;
    for (int i = 0; i < count; i++)
        if (t->all[i].right) {
            tgl_status status = calibrate(t, &t->all[i]);
            if (status != TGL_OK) return status;
        }
    t->rounds = choose_rounds(t);
    for (int round = 0; round < t->rounds; round++)
        for (int i = 0; i < count; i++) {
            contestant *c = &t->all[(round + i) % count];
            if (!c->right) continue;
            tgl_status status = take_sample(t, c, round);
            if (status != TGL_OK) return status;
        }
    summarise(t);
    return TGL_OK;
}

tgl_status contest_run(contest *t, const contest_settings *settings, const tgl_problem *problem)
{
    *t = (contest){.settings = settings, .problem = *problem, .own_epilogue = settings->epilogue};
    t->epilogue = epilogue_for(&t->own_epilogue, problem);
    tgl_status status = prepare(t);
    for (int i = 0; status == TGL_OK && i <= settings->peer_count; i++)
        if (t->all[i].right) status = verify(t, &t->all[i]);
    if (status != TGL_OK || t->error[0] != '\0') return status;
    wait_until_quiet(settings);
    const tgl_ceiling ceiling =
        problem->type_c == TGL_F64 ? TGL_CEILING_FMA_F64 : TGL_CEILING_FMA_F32;
    if (tgl_device_measure(settings->dev, ceiling, &t->fma) != TGL_OK) t->fma = 0;
    return time_all(t);
}

const contestant *contest_best_peer(const contest *t)
{
    const contestant *best = NULL;
    for (int i = 1; i <= t->settings->peer_count; i++)
        if (t->all[i].right && (best == NULL || t->all[i].ratio < best->ratio)) best = &t->all[i];
    return best;
}
