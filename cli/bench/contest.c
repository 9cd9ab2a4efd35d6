/* SPDX-License-Identifier: Apache-2.0
 *
 * Verifies and times the contestants, which are Tegula and its peers (the other libraries), on one
 * shape.
 */
#include "contest.h"
#include "cli.h"
#include "elements.h"
#include "problem_options.h"
#include "random.h"
#include "reference.h"
#include "stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

static const double sample_seconds = 2e-3; /* minimum duration of a sample */
/* Calls for this time wake the sleeping threads of a library. It is ten times 0.1 ms, our guess of
 * the time that Linux takes to run a thread that was woken. */
static const double wake_seconds = 1e-3;
enum { ROUNDS_MIN = 5, CALLS_MAX = 1 << 20, CEILING_SAMPLES = 2 };

/* ---- Preparation ----------------------------------------------------------------------------- */

/* Prepares cuBLAS for the problem. If cuBLAS does not support the problem, c->right becomes false,
 * which excludes this contestant. */
static void prepare_cublas(contest *t, contestant *c)
{
    char why[200];
    c->product = cublas_prepare(c->peer->cublas, c->peer->way, &t->operands, why, sizeof why);
    c->right = c->product != NULL;
    if (!c->right) cli_fail("%s is left out here: %s", c->peer->name, why);
}

static tgl_status prepare_contest(contest *t)
{
    const contest_settings *s = t->settings;
    const tgl_problem *p = &t->problem;
    for (int i = 0; i <= s->peer_count; i++) {
        contestant *c = &t->all[i];
        c->peer = i > 0 ? &s->peers[i - 1] : NULL;
        c->right = i == 0 || peer_takes(c->peer, p);
    }
    CLI_TRY(operands_make_kept(&t->operands, s->dev, p, s->kept));
    if (t->epilogue != NULL) CLI_TRY(operands_add_epilogue(&t->operands, t->epilogue));
    tgl_plan_options options = s->plan;
    options.epilogue = t->epilogue;
    CLI_TRY(tgl_plan_create(s->dev, p, &options, &t->plan));
    if (s->prepares[0]) CLI_TRY(operands_prepare(&t->operands, t->plan, TGL_SIDE_A));
    if (s->prepares[1]) CLI_TRY(operands_prepare(&t->operands, t->plan, TGL_SIDE_B));
    CLI_TRY(tgl_timer_create(s->dev, &t->timer));
    for (int i = 1; i <= s->peer_count; i++)
        if (t->all[i].peer->cublas != NULL) prepare_cublas(t, &t->all[i]);
    return TGL_OK;
}

void contest_release(contest *t)
{
    tgl_timer_destroy(t->timer);
    tgl_plan_destroy(t->plan);
    for (int i = 0; i <= t->settings->peer_count; i++)
        cublas_release(t->all[i].product);
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
    return operands_run(&t->operands, t->plan, set);
}

/* ---- Verification ---------------------------------------------------------------------------- */

/* Draws the elements of C that are checked. Their expected values are computed once for all
 * contestants, because reading a column of a large matrix is slow. */
static void choose_checks(contest *t)
{
    const tgl_problem *p = &t->problem;
    random_state r;
    random_seed(&r, 2, 0);
    for (int n = 0; n < CONTEST_CHECKS; n++) {
        contest_check *check = &t->checks[n];
        check->b = random_int(&r, 0, p->batch - 1);
        check->i = random_int(&r, 0, p->m - 1);
        check->j = random_int(&r, 0, p->n - 1);
        check->part = n % element_parts(p->type_a);
        check->expected =
            operands_expected(&t->operands, check->b, check->i, check->j, check->part);
    }
}

/* The expected value of a drawn element with Tegula's epilogue applied to it. */
static reference_element apply_epilogue(const contest *t, const contest_check *check)
{
    const tgl_epilogue *e = t->epilogue;
    const tgl_problem *p = &t->problem;
    const operands *o = &t->operands;
    const int parts = element_parts(o->result.type);
    double bias = 0, residual = 0;
    reference_element x = check->expected;
    if (e->bias != TGL_BIAS_NONE)
        bias = element_get(o->result.type, o->host_bias,
                           (e->bias == TGL_BIAS_ROW ? check->i : check->j) * parts + check->part);
    if (e->residual)
        residual =
            element_get(o->result.type, o->host_residual,
                        ((check->b * p->m + check->i) * p->n + check->j) * parts + check->part);
    reference_epilogue(element_accumulator(p->type_a), e, bias, residual, &x);
    return x;
}

/* The greatest error e (reference.h) that an element of this contestant's result may have. All
 * contestants compute in the arithmetic of the problem's compute mode. A peer (another library) may
 * also round partial sums to the type of the result. The bound leaves out error_of_cut_sums(): the
 * inputs of the bench have both signs, so that the errors of truncated sums do not add up. */
static double bound_of(const contest *t, const contestant *c, bool has_epilogue)
{
    const tgl_problem *p = &t->problem;
    return error_bound_of(p, false) +
           (c->peer != NULL ? error_of_rounded_sums(t->operands.result.type, p->k) : 0) +
           (has_epilogue ? EPILOGUE_ERRORS : 0);
}

/* Whether the result C, in host memory, is right: all its elements are finite, and the drawn
 * elements are within the bound of their expected values, which are not known for an epilogue with
 * an expression. False: `why` says what is wrong. */
static bool is_right(const contest *t, const contestant *c, const void *C, char *why,
                     size_t why_size)
{
    const tgl_epilogue *epilogue = c->peer == NULL ? t->epilogue : NULL;
    const stored_matrix *result = &t->operands.result;
    const int parts = element_parts(result->type);
    const int64_t at = element_find_non_finite(result->type, C, result->extent * parts);
    if (at < result->extent * parts) {
        snprintf(why, why_size, "element %" PRId64 " of C is not finite", at / parts);
        return false;
    }
    if (epilogue != NULL && epilogue->expression != NULL)
        return true; /* the program cannot evaluate expressions on the host */
    error_summary summary = {0};
    const double bound = bound_of(t, c, epilogue != NULL);
    for (int n = 0; n < CONTEST_CHECKS; n++) {
        const contest_check *s = &t->checks[n];
        const double x =
            element_get(result->type, C, stored_place(result, s->b, s->i, s->j) * parts + s->part);
        const reference_element e = epilogue != NULL ? apply_epilogue(t, s) : s->expected;
        double error;
        if (error_add(&summary, result->type, x, &e, bound, &error)) continue;
        snprintf(why, why_size,
                 "C(%" PRId64 ", %" PRId64 ") is %.10g, the reference %.10Lg: error %.3g", s->i,
                 s->j, x, e.value, error);
        return false;
    }
    return true;
}

/* Fills C with NaN (integers: with -1), runs a contestant once, and sets c->right to whether the
 * result is right. A wrong result of Tegula is described in t->error. */
static tgl_status verify_contestant(contest *t, contestant *c)
{
    void *C = t->operands.host_c;
    char why[200];
    CLI_TRY(operands_forget_result(&t->operands, C));
    t->calls = 0; /* so that the next call uses the first set of matrices */
    CLI_TRY(run_once(t, c));
    CLI_TRY(operands_download_result(&t->operands, C));
    c->right = is_right(t, c, C, why, sizeof why);
    if (!c->right && c->peer == NULL)
        snprintf(t->error, sizeof t->error, "%s", why);
    else if (!c->right)
        cli_fail("%s is wrong and is left out here: %s", c->peer->name, why);
    return TGL_OK;
}

/* ---- Timing ---------------------------------------------------------------------------------- */

/* Seconds of processor time that all threads of this process have used so far. */
static double processor_time(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* Waits, at most 0.6 s, until the threads of the library that ran before are asleep. After a call
 * they spin (95 ms with OpenBLAS, 0.2 s with MKL) and would compete with the next library for the
 * processors. They sleep when the processor time of this process no longer grows; Linux updates it
 * at each timer tick, every 10 ms or more often. */
static void wait_until_quiet(const contest_settings *s)
{
    if (s->threads <= 1) return;
    const struct timespec pause = {0, 12000000};
    for (int i = 0; i < 50; i++) {
        const double before = processor_time();
        nanosleep(&pause, NULL);
        if (processor_time() - before < 2e-4) return;
    }
}

/* *seconds := the mean time of one of `calls` successive calls; processor time with
 * settings->cpu_time. */
static tgl_status time_calls(contest *t, const contestant *c, int calls, double *seconds)
{
    const double used_before = processor_time();
    CLI_TRY(tgl_timer_start(t->timer, NULL));
    for (int i = 0; i < calls; i++)
        CLI_TRY(run_once(t, c));
    CLI_TRY(tgl_timer_stop(t->timer, NULL, seconds));
    if (t->settings->cpu_time) *seconds = processor_time() - used_before;
    *seconds /= calls;
    return TGL_OK;
}

/* Sets c->calls to the number of calls that takes at least sample_seconds. */
static tgl_status choose_calls(contest *t, contestant *c)
{
    wait_until_quiet(t->settings);
    CLI_TRY(run_once(t, c));
    for (c->calls = 1;;) {
        CLI_TRY(time_calls(t, c, c->calls, &c->seconds));
        if (c->seconds * c->calls >= sample_seconds) return TGL_OK;
        if (c->calls >= CALLS_MAX) return TGL_OK; /* ends the loop if the clock does not advance */
        /* A very short time is inaccurate, so the number of calls grows at most by a factor of 16
         * at once. */
        const double wanted = sample_seconds * 1.2 / (c->seconds + 1e-9);
        c->calls = wanted > 16.0 * c->calls ? 16 * c->calls : (int)wanted + 1;
    }
}

/* The number of calls that precede a sample and are not timed. For a call of 0.1 s or more, the
 * time to warm caches and wake threads is negligible. */
static int warm_up_calls(const contest *t, const contestant *c)
{
    if (c->seconds >= 0.1) return 0;
    if (t->settings->threads <= 1 || c->seconds * c->calls <= wake_seconds) return 1;
    return (int)ceil(wake_seconds / c->seconds);
}

static tgl_status take_sample(contest *t, contestant *c, int round)
{
    wait_until_quiet(t->settings);
    for (int i = warm_up_calls(t, c); i > 0; i--)
        CLI_TRY(run_once(t, c));
    return time_calls(t, c, c->calls, &c->samples[round]);
}

static int choose_rounds(const contest *t)
{
    const contest_settings *s = t->settings;
    if (s->repeat > 0) return s->repeat < CONTEST_ROUNDS_MAX ? s->repeat : CONTEST_ROUNDS_MAX;
    double round = 0;
    for (int i = 0; i <= s->peer_count; i++)
        if (t->all[i].right)
            round += t->all[i].seconds * (t->all[i].calls + warm_up_calls(t, &t->all[i])) + 1e-3;
    const double rounds = s->time / round;
    return rounds < ROUNDS_MIN           ? ROUNDS_MIN
           : rounds > CONTEST_ROUNDS_MAX ? CONTEST_ROUNDS_MAX
                                         : (int)rounds;
}

/* Computes the median, ratio and spread of each contestant. Sorts the samples of the
 * contestants. */
static void summarise(contest *t)
{
    contestant *ours = &t->all[0];
    double ratios[CONTEST_ROUNDS_MAX];
    for (int i = t->settings->peer_count; i >= 0; i--) {
        contestant *c = &t->all[i];
        if (!c->right) continue;
        for (int round = 0; round < t->rounds; round++)
            ratios[round] = c->samples[round] / ours->samples[round];
        c->ratio = stats_quantile(ratios, t->rounds, 0.5);
        /* Tegula (index 0) comes last, because all ratios need its samples in the order of the
         * rounds. */
        c->seconds = stats_quantile(c->samples, t->rounds, 0.5);
        c->spread = (stats_quantile(c->samples, t->rounds, 0.75) - c->samples[0]) / c->seconds;
    }
}

static tgl_status time_all(contest *t)
{
    const int count = t->settings->peer_count + 1;
    for (int i = 0; i < count; i++)
        if (t->all[i].right) CLI_TRY(choose_calls(t, &t->all[i]));
    t->rounds = choose_rounds(t);
    for (int round = 0; round < t->rounds; round++)
        for (int i = 0; i < count; i++) {
            contestant *c = &t->all[(round + i) % count];
            if (c->right) CLI_TRY(take_sample(t, c, round));
        }
    summarise(t);
    return TGL_OK;
}

/* Raises the run's best FMA rate (*best) if a new sample is higher, and copies it to t->fma. Other
 * programs can only slow the measured loop, so the best sample is the most accurate one. Samples
 * are taken before and after each shape, on a GPU only before the first shape: other programs
 * seldom use it, and one sample takes longer than all other measurements of a shape. */
static void measure_ceiling(contest *t)
{
    if (element_is_integer(t->problem.type_a)) return; /* no FMA rate of integers is measured */
    tgl_device *dev = t->settings->dev;
    const bool is_f64 = t->problem.type_a == TGL_F64 || t->problem.type_a == TGL_C128;
    const tgl_ceiling ceiling = is_f64 ? TGL_CEILING_FMA_F64 : TGL_CEILING_FMA_F32;
    double *best = &t->settings->best_fma[is_f64], value;
    const bool is_enough = !cli_device_is_host(dev) && *best > 0;
    for (int i = 0; i < CEILING_SAMPLES && !is_enough; i++)
        if (tgl_device_measure(dev, ceiling, &value) == TGL_OK && value > *best) *best = value;
    t->fma = *best;
}

double contest_spread(const contest *t)
{
    double widest = 0;
    for (int i = 0; i <= t->settings->peer_count; i++)
        if (t->all[i].right && t->all[i].spread > widest) widest = t->all[i].spread;
    return widest;
}

tgl_status contest_run(contest *t, const contest_settings *settings, const tgl_problem *problem)
{
    *t = (contest){.settings = settings, .problem = *problem, .own_epilogue = settings->epilogue};
    t->epilogue = epilogue_for(&t->own_epilogue, problem);
    tgl_status status = prepare_contest(t);
    if (status == TGL_OK) choose_checks(t);
    for (int i = 0; status == TGL_OK && i <= settings->peer_count; i++)
        if (t->all[i].right) status = verify_contestant(t, &t->all[i]);
    if (status != TGL_OK || t->error[0] != '\0') return status;
    wait_until_quiet(settings);
    measure_ceiling(t);
    status = time_all(t);
    if (status == TGL_OK) measure_ceiling(t);
    return status;
}

const contestant *contest_best_peer(const contest *t)
{
    const contestant *best = NULL;
    for (int i = 1; i <= t->settings->peer_count; i++)
        if (t->all[i].right && (best == NULL || t->all[i].ratio < best->ratio)) best = &t->all[i];
    return best;
}
