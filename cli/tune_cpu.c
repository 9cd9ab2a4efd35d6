/* SPDX-License-Identifier: Apache-2.0
 *
 * A blocking is the size of the block of A that stays in cache: kc along k and mc rows. Measures
 * blockings of the cpu device: first values of kc; after that, with the best kc, values of mc. Each
 * round times every candidate and the planner's own blocking once, so that other programs slow all
 * of them alike. A candidate's gain is the geometric mean over the shapes of the median of (time of
 * the planner's blocking / time of the candidate).
 */
#include "tune_cpu.h"
#include "cli.h"
#include "problem_options.h"
#include "progress.h"
#include "stats.h"
#include "stopwatch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CANDIDATES = 12, ROUNDS = 9, NAME_SIZE = 64 };
static const double sample_seconds = 4e-3;
static const double least_gain = 1.01; /* minimum speedup for which a row is written; a smaller
                                          speedup may be noise */

typedef struct candidate {
    int kc, mc; /* the blocking; 0: the planner's choice */
    double log_gain;
} candidate;

/* Writes the kernel string of a candidate. If kc is 0, the string has no options, and the planner
 * chooses the blocking. */
static void name_of(const tgl_device *dev, const candidate *c, char name[NAME_SIZE])
{
    char mc[24] = "";
    if (c->mc > 0) snprintf(mc, sizeof mc, ",mc=%d", c->mc);
    if (c->kc > 0)
        snprintf(name, NAME_SIZE, "%s:kc=%d%s", tgl_kernel_name(dev, 0), c->kc, mc);
    else
        snprintf(name, NAME_SIZE, "%s", tgl_kernel_name(dev, 0));
}

static tgl_status time_all(stopwatch *watch, tgl_plan *const *plans, int count, candidate *all)
{
    double ratios[CANDIDATES][ROUNDS];
    tgl_status status = TGL_OK;
    for (int round = 0; round < ROUNDS && status == TGL_OK; round++) {
        double seconds[CANDIDATES];
        for (int i = 0; i < count && status == TGL_OK; i++) {
            const int at = (round + i) % count;
            status = stopwatch_run(watch, plans[at], sample_seconds, &seconds[at]);
        }
        for (int i = 0; i < count && status == TGL_OK; i++)
            ratios[i][round] = seconds[0] / seconds[i];
    }
    for (int i = 0; i < count && status == TGL_OK; i++)
        all[i].log_gain += log(stats_quantile(ratios[i], ROUNDS, 0.5));
    return status;
}

/* Measures the candidates on one shape, and adds the logarithm of each one's speedup over candidate
 * 0, the planner's choice, to its log_gain. */
static tgl_status add_gains(tgl_device *dev, const tgl_problem *p, candidate *all, int count)
{
    operands matrices;
    stopwatch watch = {0};
    tgl_plan *plans[CANDIDATES] = {NULL};
    tgl_status status = operands_make(&matrices, dev, p, true);
    if (status == TGL_OK) status = stopwatch_make(&watch, &matrices);
    for (int i = 0; i < count && status == TGL_OK; i++) {
        char name[NAME_SIZE];
        name_of(dev, &all[i], name);
        status = cli_plan(dev, p, name, &plans[i]);
    }
    if (status == TGL_OK) status = time_all(&watch, plans, count, all);
    for (int i = 0; i < count; i++)
        tgl_plan_destroy(plans[i]);
    stopwatch_release(&watch);
    operands_release(&matrices);
    return status;
}

/* Measures the candidates on the first shape and on as many others as can be begun before `end`.
 * *shapes := their number. */
static tgl_status measure_shapes(tgl_device *dev, const suite *s, double end, candidate *all,
                                 int count, int *shapes)
{
    progress line;
    progress_start(&line, s->count);
    tgl_status status = TGL_OK;
    *shapes = 0;
    for (int i = 0; i < s->count && status == TGL_OK && (i == 0 || cli_clock() < end); i++) {
        progress_update(&line, i, problem_shape_label(&s->problems[i]).text);
        status = add_gains(dev, &s->problems[i], all, count);
        ++*shapes;
    }
    progress_clear(&line);
    return status;
}

static double gain(const candidate *c, int shapes)
{
    return exp(c->log_gain / shapes);
}

/* Prints the candidates with their speeds. Returns the fastest one. */
static candidate best_of(const candidate *all, int count, int shapes)
{
    int best = 0;
    for (int i = 0; i < count; i++) {
        if (all[i].log_gain > all[best].log_gain) best = i;
        if (i > 0)
            printf("kc %5d  mc %5d  %.3f of the planner's speed\n", all[i].kc, all[i].mc,
                   gain(&all[i], shapes));
    }
    return all[best];
}

void tune_cpu_key(const tgl_device *dev, const char *model, tgl_type type, char key[TUNE_CPU_ROW])
{
    snprintf(key, TUNE_CPU_ROW, "{\"%s\", \"%s\", %s, ", model, cli_device_property(dev, "tier"),
             type == TGL_F64 ? "TGL_F64" : "TGL_F32");
}

int tune_cpu(tgl_device *dev, const char *model, const suite *s, double minutes,
             char row[TUNE_CPU_ROW])
{
    static const int kcs[] = {0, 128, 192, 256, 320, 384, 448, 512, 640, 768};
    static const int mcs[] = {0, 24, 48, 96, 144, 192, 288, 384, 576};
    candidate all[CANDIDATES] = {{0, 0, 0}};
    const double end = cli_clock() + 60 * minutes;
    int shapes, count = sizeof kcs / sizeof kcs[0];
    row[0] = '\0';
    for (int i = 0; i < count; i++)
        all[i] = (candidate){kcs[i], 0, 0};
    tgl_status status = measure_shapes(dev, s, end, all, count, &shapes);
    if (status != TGL_OK) return cli_fail_at("tune", status);
    candidate best = best_of(all, count, shapes);

    if (best.kc > 0) {
        count = sizeof mcs / sizeof mcs[0];
        for (int i = 1; i < count; i++)
            all[i] = (candidate){best.kc, mcs[i], 0};
        all[count++] = (candidate){best.kc, 0, 0};
        all[0] = (candidate){0, 0, 0};
        status = measure_shapes(dev, s, end, all, count, &shapes);
        if (status != TGL_OK) return cli_fail_at("tune", status);
        best = best_of(all, count, shapes);
    }
    if (gain(&best, shapes) < least_gain) {
        printf("the planner's own blocking is the best\n");
        return EXIT_DONE;
    }
    tune_cpu_key(dev, model, s->problems[0].type_a, row);
    const size_t used = strlen(row);
    snprintf(row + used, TUNE_CPU_ROW - used,
             "{%d, %d}}, /* %.3f of the planner's speed, %d shapes */\n", best.kc, best.mc,
             gain(&best, shapes), shapes);
    return EXIT_DONE;
}
