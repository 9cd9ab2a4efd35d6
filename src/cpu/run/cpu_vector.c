/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix times vector (GEMV): C has one row or one column. Each element of the matrix is used once,
 * so the matrix is not packed. The vector is copied if it is not contiguous.
 */
#include "cpu/run/cpu_vector.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/batch_matrix.h"
#include "cpu/run/cpu_epilogue.h"

#include <string.h>

/* y := alpha*op(M)*x + beta*y, where M is the operand of the product that is not a vector. */
typedef struct vector_job {
    const cpu_kernels *kernels;
    const tgl_shape *shape;
    const tgl_run *run;
    int64_t problem;   /* of the batch */
    int64_t length, k; /* of y, of x */
    const char *M, *x;
    char *y;
    int64_t ld, x_step, y_step;
    bool by_rows; /* y[i] is row i of M times x; else y is the sum of rows of M, scaled by x */
    char *x_copy, *sums;
} vector_job;

static vector_job job_of(const tgl_shape *s, const cpu_plan *plan, const tgl_run *run,
                         int64_t problem, char *workspace)
{
    const int64_t element = (int64_t)plan->kernels->element;
    const char *A = tgl_cpu_a_of(s, run, problem, element);
    const char *B = tgl_cpu_b_of(s, run, problem, element);
    vector_job job = {
        .kernels = plan->kernels,
        .shape = s,
        .run = run,
        .problem = problem,
        .k = s->k,
        .y = tgl_cpu_d_of(s, run, problem, element),
        .x_copy = workspace,
        .sums = workspace + plan->a_bytes,
    };
    if (s->n == 1) { /* op(A) is the matrix, op(B) the column */
        job.length = s->m;
        job.M = A, job.ld = s->lda;
        job.x = B, job.x_step = s->trans_b ? 1 : s->ldb;
        job.by_rows = !s->trans_a;
        job.y_step = s->ldd;
    } else { /* op(B) is the matrix, op(A) the row */
        job.length = s->n;
        job.M = B, job.ld = s->ldb;
        job.x = A, job.x_step = s->trans_a ? s->lda : 1;
        job.by_rows = s->trans_b;
        job.y_step = 1;
    }
    return job;
}

static void multiply(void *context, int thread, int team)
{
    const vector_job *job = context;
    const cpu_kernels *kernels = job->kernels;
    const int64_t element = (int64_t)kernels->element;
    /* Units of 64 elements: two threads rarely write the same cache line of y. */
    const int64_t unit = 64, units = cpu_ceil_div(job->length, unit);
    const int64_t begin = tgl_min64(job->length, cpu_share(units, team, thread) * unit);
    const int64_t end = tgl_min64(job->length, cpu_share(units, team, thread + 1) * unit);
    if (begin == end) return;
    char *sums = job->sums + begin * element;
    if (job->by_rows)
        kernels->dot(sums, job->M + begin * job->ld * element, job->ld, end - begin, job->k,
                     job->x);
    else
        kernels->combine(sums, job->M + begin * element, job->ld, end - begin, job->k, job->x);
    kernels->reduce(job->y + begin * job->y_step * element, job->y_step, end - begin, sums, 0, 1,
                    job->run->alpha, job->run->beta);
    if (tgl_epilogue_is_none(&job->shape->epilogue)) return;
    const cpu_rectangle part = job->shape->n == 1 ? (cpu_rectangle){begin, end - begin, 0, 1}
                                                  : (cpu_rectangle){0, 1, begin, end - begin};
    tgl_cpu_epilogue(job->shape, kernels, job->run, job->problem, part);
}

void tgl_cpu_vector(const tgl_shape *s, const cpu_plan *plan, const tgl_run *run, char *workspace,
                    thread_pool *threads)
{
    for (int64_t i = 0; i < s->batch; i++) {
        vector_job job = job_of(s, plan, run, i, workspace);
        if (job.x_step != 1) {
            plan->kernels->copy(job.x_copy, 1, job.x, job.x_step, 1, job.k);
            job.x = job.x_copy;
        }
        tgl_thread_pool_run(threads, plan->threads, multiply, &job);
    }
}
