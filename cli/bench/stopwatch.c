/* SPDX-License-Identifier: Apache-2.0
 *
 * Times plans.
 */
#include "stopwatch.h"
#include "cli.h"
#include "stats.h"

enum { SAMPLES_MAX = 31, RUNS_MAX = 4096 };

tgl_status stopwatch_make(stopwatch *w, const operands *o)
{
    *w = (stopwatch){.operands = o};
    return tgl_timer_create(o->dev, &w->timer);
}

void stopwatch_release(stopwatch *w)
{
    tgl_timer_destroy(w->timer);
    w->timer = NULL;
}

static tgl_status run_many(stopwatch *w, const tgl_plan *plan, int runs, double *seconds)
{
    CLI_TRY(tgl_timer_start(w->timer, NULL));
    for (int i = 0; i < runs; i++)
        CLI_TRY(operands_run(w->operands, plan, operands_for(w->operands, w->calls++)));
    CLI_TRY(tgl_timer_stop(w->timer, NULL, seconds));
    *seconds /= runs;
    return TGL_OK;
}

tgl_status stopwatch_run(stopwatch *w, const tgl_plan *plan, double least, double *seconds)
{
    double once = 0;
    *seconds = 0;
    CLI_TRY(run_many(w, plan, 1, &once));
    CLI_TRY(run_many(w, plan, 1, &once));
    const double wanted = once > 0 ? least / once : 1;
    const int runs = wanted > RUNS_MAX ? RUNS_MAX : wanted < 1 ? 1 : (int)wanted;
    return run_many(w, plan, runs, seconds);
}

tgl_status stopwatch_median(stopwatch *w, const tgl_plan *plan, double least, int samples,
                            double *seconds)
{
    double taken[SAMPLES_MAX];
    for (int i = 0; i < samples; i++)
        CLI_TRY(stopwatch_run(w, plan, least, &taken[i]));
    *seconds = stats_quantile(taken, samples, 0.5);
    return TGL_OK;
}
