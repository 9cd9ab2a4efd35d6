/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the plan of every shape, on several threads. The device keeps the kernels of a plan that
 * was destroyed, so the plan that is timed later need not compile them. These plans measure
 * nothing, because only one thread can measure at a time.
 */
#include "compile_ahead.h"
#include "cli.h"
#include "problem_options.h"
#include "workers.h"

#include <stdatomic.h>
#include <unistd.h>

typedef struct ahead {
    const contest_settings *settings;
    const suite *suite;
    atomic_int next; /* index of the shape that the next free thread takes */
} ahead;

static void make_plan(const contest_settings *settings, const tgl_problem *problem)
{
    tgl_epilogue epilogue = settings->epilogue;
    tgl_plan_options options = settings->plan;
    options.epilogue = epilogue_for(&epilogue, problem);
    options.effort = TGL_EFFORT_ESTIMATE;
    tgl_plan *plan = NULL;
    if (tgl_plan_create(settings->dev, problem, &options, &plan) == TGL_OK) tgl_plan_destroy(plan);
}

static void *make_plans(void *context)
{
    ahead *work = context;
    for (int i; (i = atomic_fetch_add(&work->next, 1)) < work->suite->count;)
        make_plan(work->settings, &work->suite->problems[i]);
    return NULL;
}

void compile_ahead(const contest_settings *settings, const suite *s)
{
    ahead work = {.settings = settings, .suite = s};
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    run_workers(processors < s->count ? processors : s->count, make_plans, &work);
}
