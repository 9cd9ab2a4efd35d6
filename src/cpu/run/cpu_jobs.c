/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the jobs of a product. A thread takes one job after the other from a counter that all
 * threads share. With split-K, the threads add the sums of the parts of k after the last job: each
 * thread adds some rows of every rectangle. The order of additions does not depend on which thread
 * computes what.
 */
#include "cpu/run/cpu_jobs.h"

/* Some problems of the batch, whose jobs the threads compute at the same time. */
typedef struct job_round {
    const cpu_product *product;
    cpu_cut cut;
    int64_t problem, rectangles; /* index of the first problem; number of rectangles in all of these
                                    problems */
    _Atomic int64_t taken;       /* counter of cpu_next_item() */
} job_round;

static cpu_job job_at(const job_round *x, int64_t rectangle, int64_t part, int thread)
{
    const cpu_cut *cut = &x->cut;
    const cpu_product *product = x->product;
    const tgl_shape *s = product->shape;
    const int64_t row = rectangle / cut->grid_n % cut->grid_m, column = rectangle % cut->grid_n;
    cpu_job job = {
        .problem = x->problem + rectangle / (cut->grid_m * cut->grid_n),
        .rows = cpu_part((cpu_range){0, s->m}, cut->unit_m, cut->grid_m, row),
        .columns = cpu_part((cpu_range){0, s->n}, cut->unit_n, cut->grid_n, column),
        .k = cpu_part((cpu_range){0, s->k}, cut->unit_k, cut->parts, part),
    };
    if (cut->thread_bytes > 0) job.memory = product->workspace + (size_t)thread * cut->thread_bytes;
    if (cut->parts > 1)
        job.sums = product->workspace + (size_t)product->plan->threads * cut->thread_bytes +
                   (size_t)(rectangle * cut->parts + part) * cut->sum_bytes;
    return job;
}

static void compute_jobs(void *context, int thread, int team)
{
    job_round *x = context;
    const int64_t parts = x->cut.parts;
    for (int64_t i = thread; i < x->rectangles * parts; i = cpu_next_item(&x->taken, team)) {
        const cpu_job job = job_at(x, i / parts, i % parts, thread);
        x->cut.compute(x->product, &job);
    }
}

static void add_parts_of_jobs(void *context, int thread, int team)
{
    const job_round *x = context;
    for (int64_t i = 0; i < x->rectangles; i++) {
        const cpu_job job = job_at(x, i, 0, thread);
        x->cut.add_parts(x->product, &job, cpu_part(job.rows, 1, team, thread));
    }
}

void tgl_cpu_run_jobs(const cpu_product *x, const cpu_cut *cut)
{
    const int64_t batch = x->shape->batch;
    for (int64_t i = 0; i < batch; i += cut->problems) {
        const int64_t problems = tgl_min64(cut->problems, batch - i);
        job_round round = {x, *cut, i, problems * cut->grid_m * cut->grid_n, 0};
        _Static_assert(sizeof round <= CPU_TEAM_JOB_BYTES, "no room for a job");
        tgl_cpu_run_team(x, compute_jobs, &round, sizeof round);
        if (cut->parts > 1) tgl_cpu_run_team(x, add_parts_of_jobs, &round, sizeof round);
    }
}
