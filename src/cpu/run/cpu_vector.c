/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix times vector (GEMV): C has one row or one column. Each element of the matrix is used once,
 * so the matrix is not packed. The vector is copied if it is not contiguous.
 */
#include "cpu/run/cpu_vector.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_epilogue.h"

#include <string.h>

/* y := alpha*op(M)*x + beta*y, where M is the operand of the product that is not a vector. */
typedef struct vector_job {
    const cpu_product *product;
    int64_t problem;   /* of the batch */
    int64_t length, k; /* of y, of x */
    const char *M, *x;
    char *y;
    int64_t ld, x_step, y_step;
    bool by_rows; /* y[i] is row i of M times x; else y is the sum of all rows p of M times x[p] */
    char *x_copy, *sums;
} vector_job;

static vector_job job_of(const cpu_product *product, int64_t problem)
{
    const tgl_shape *s = product->shape;
    const cpu_plan *plan = product->plan;
    const tgl_run *run = product->run;
    const int64_t element = (int64_t)plan->kernels->element;
    const char *A = tgl_cpu_a_of(s, run, problem, element);
    const char *B = tgl_cpu_b_of(s, run, problem, element);
    vector_job job = {
        .product = product,
        .problem = problem,
        .k = s->k,
        .y = tgl_cpu_d_of(s, run, problem, element),
        .x_copy = product->workspace,
        .sums = product->workspace + plan->a_bytes,
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

/* Computes a thread's part of y. */
static void multiply_lines(void *context, int thread, int team)
{
    const vector_job *job = context;
    const cpu_product *product = job->product;
    const cpu_kernels *kernels = product->plan->kernels;
    const int64_t element = (int64_t)kernels->element;
    /* Units of 64 elements: two threads rarely write the same cache line of y. */
    const cpu_range part = cpu_part((cpu_range){0, job->length}, 64, team, thread), one = {0, 1};
    const int64_t begin = part.begin, count = cpu_length(part);
    if (count == 0) return;
    char *sums = job->sums + begin * element;
    if (job->by_rows)
        kernels->dot(sums, job->M + begin * job->ld * element, job->ld, count, job->k, job->x);
    else
        kernels->combine(sums, job->M + begin * element, job->ld, count, job->k, job->x);
    kernels->reduce(job->y + begin * job->y_step * element, job->y_step, count, sums, 0, 1,
                    product->run->alpha, product->run->beta);
    const bool is_column = product->shape->n == 1;
    tgl_cpu_epilogue(product, job->problem, is_column ? part : one, is_column ? one : part);
}

void tgl_cpu_vector(const cpu_product *product)
{
    const cpu_plan *plan = product->plan;
    for (int64_t i = 0; i < product->shape->batch; i++) {
        vector_job job = job_of(product, i);
        if (job.x_step != 1) {
            plan->kernels->copy(job.x_copy, 1, job.x, job.x_step, 1, job.k);
            job.x = job.x_copy;
        }
        _Static_assert(sizeof job <= CPU_TEAM_JOB_BYTES, "no room for a job");
        tgl_cpu_run_team(product, multiply_lines, &job, sizeof job);
    }
}
