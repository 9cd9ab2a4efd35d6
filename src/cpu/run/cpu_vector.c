/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix times vector (GEMV): C has one row or one column. Each element of the matrix is used once,
 * so the matrix is not packed. The vector is copied if it is not contiguous or is conjugated.
 */
#include "cpu/run/cpu_vector.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_epilogue.h"

#include <string.h>

/* y := alpha*op(M)*x + beta*y. M is the matrix of the product, x the vector, y the row or column
 * C. */
typedef struct matvec {
    int64_t length, k; /* elements of y; elements of x */
    const char *M, *x;
    char *y;
    int64_t ld, x_step, y_step;
    bool conj_m, conj_x;
    bool by_rows; /* true: y[i] = (row i of M) * x; false: y = sum over p of x[p] * (row p of M) */
} matvec;

static matvec matvec_of(const tgl_small_product *p)
{
    const bool conj_a = p->complex != NULL && p->complex->conj_a;
    const bool conj_b = p->complex != NULL && p->complex->conj_b;
    if (p->n == 1) /* op(A) is the matrix, op(B) the column */
        return (matvec){.length = p->m,
                        .k = p->k,
                        .M = p->A,
                        .ld = p->lda,
                        .x = p->B,
                        .x_step = p->trans_b ? 1 : p->ldb,
                        .y = p->C,
                        .y_step = p->ldc,
                        .conj_m = conj_a,
                        .conj_x = conj_b,
                        .by_rows = !p->trans_a};
    return (matvec){.length = p->n, /* op(B) is the matrix, op(A) the row */
                    .k = p->k,
                    .M = p->B,
                    .ld = p->ldb,
                    .x = p->A,
                    .x_step = p->trans_a ? p->lda : 1,
                    .y = p->C,
                    .y_step = 1,
                    .conj_m = conj_b,
                    .conj_x = conj_a,
                    .by_rows = p->trans_b};
}

/* Whether the kernels get conj(x). They conjugate neither M nor x themselves: conj(M)*x is computed
 * as conj(M*conj(x)), and conj(M)*conj(x) as conj(M*x). */
static bool has_other_x(const matvec *v)
{
    return v->conj_m != v->conj_x;
}

/* Copies x to contiguous memory; conj(x) if the kernels need it. */
static void copy_x(const cpu_kernels *kernels, const matvec *v, char *to)
{
    if (has_other_x(v))
        kernels->conjugate(to, v->x, v->x_step, v->k);
    else
        kernels->copy(to, 1, v->x, v->x_step, 1, v->k);
}

/* Computes y[begin] to y[begin + count - 1]. x: contiguous, conjugated if has_other_x(). sums: a
 * buffer for count elements, which is not used if the sums can be added directly in y. */
static void multiply_part(const cpu_kernels *kernels, const matvec *v, const char *x, char *sums,
                          int64_t begin, int64_t count, double alpha, double beta,
                          tgl_complex_part complex)
{
    const int64_t element = (int64_t)kernels->element;
    const bool is_real = complex.alpha_imag == 0 && complex.beta_imag == 0 && !v->conj_m;
    const bool are_results = alpha == 1 && beta == 0 && v->y_step == 1 && is_real;
    if (are_results) sums = v->y + begin * element;
    if (v->by_rows)
        kernels->dot(sums, v->M + begin * v->ld * element, v->ld, count, v->k, x);
    else
        kernels->combine(sums, v->M + begin * element, v->ld, count, v->k, x);
    if (are_results) return;
    complex.conj_a = v->conj_m;
    kernels->reduce(v->y + begin * v->y_step * element, v->y_step, count, sums, 0, 1, alpha, beta,
                    &complex);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

typedef struct vector_job {
    const cpu_product *product;
    int64_t problem; /* index in the batch */
    matvec v;
    const char *x; /* contiguous, and conjugated if has_other_x() */
    char *sums;
} vector_job;

static matvec matvec_of_batch(const cpu_product *product, int64_t problem)
{
    const tgl_shape *s = product->shape;
    const int64_t element = (int64_t)product->plan->kernels->element;
    tgl_small_product one = tgl_small_product_of(s);
    tgl_complex_part complex = tgl_cpu_complex_part(s, product->run);
    one.complex = &complex;
    one.A = tgl_cpu_a_of(s, product->run, problem, element);
    one.B = tgl_cpu_b_of(s, product->run, problem, element);
    one.C = tgl_cpu_d_of(s, product->run, problem, element);
    return matvec_of(&one);
}

/* Computes the part of y of this thread, and its epilogue. */
static void multiply_lines(void *context, int thread, int team)
{
    const vector_job *job = context;
    const cpu_product *product = job->product;
    const cpu_kernels *kernels = product->plan->kernels;
    /* Units of 64 elements, so that two threads rarely write to the same cache line of y. */
    const cpu_range part = cpu_part((cpu_range){0, job->v.length}, 64, team, thread), one = {0, 1};
    if (cpu_length(part) == 0) return;
    multiply_part(kernels, &job->v, job->x, job->sums + part.begin * (int64_t)kernels->element,
                  part.begin, cpu_length(part), product->run->alpha, product->run->beta,
                  tgl_cpu_complex_part(product->shape, product->run));
    const bool is_column = product->shape->n == 1;
    tgl_cpu_epilogue(product, job->problem, is_column ? part : one, is_column ? one : part);
}

void tgl_cpu_vector(const cpu_product *product)
{
    const cpu_plan *plan = product->plan;
    for (int64_t i = 0; i < product->shape->batch; i++) {
        vector_job job = {.product = product,
                          .problem = i,
                          .v = matvec_of_batch(product, i),
                          .sums = product->workspace + plan->a_bytes};
        job.x = job.v.x;
        if (job.v.x_step != 1 || has_other_x(&job.v)) {
            copy_x(plan->kernels, &job.v, product->workspace);
            job.x = product->workspace;
        }
        _Static_assert(sizeof job <= CPU_TEAM_JOB_BYTES, "no room for a job");
        tgl_cpu_run_team(product, multiply_lines, &job, sizeof job);
    }
}

/* ---- Without a plan -------------------------------------------------------------------------- */

/* SHORT_BYTES: size in bytes of the buffers on the stack, for x and for the sums. FOR_ONE_THREAD:
 * maximum number of multiply-adds; a plan for so few multiply-adds uses one thread, too
 * (cpu_sharing.c). */
enum { SHORT_BYTES = 512 * sizeof(double), FOR_ONE_THREAD = 1 << 17 };

bool tgl_cpu_small_vector(const cpu_kernels *kernels, const tgl_small_product *product)
{
    _Alignas(64) char sums[SHORT_BYTES], x[SHORT_BYTES];
    const matvec v = matvec_of(product);
    const bool is_copied = v.x_step != 1 || has_other_x(&v);
    const int64_t length_max = SHORT_BYTES / (int64_t)sizeof(double) / kernels->parts;
    if (v.length > length_max || v.k > length_max || v.length * v.k > FOR_ONE_THREAD) return false;
    if (is_copied) copy_x(kernels, &v, x);
    /* beta is rounded to the type of the product first: if that gives 0, C must not be read. */
    const bool f32 = tgl_type_is_single(product->type);
    const double alpha = f32 ? (float)product->alpha : product->alpha;
    const double beta = f32 ? (float)product->beta : product->beta;
    multiply_part(kernels, &v, is_copied ? x : v.x, sums, 0, v.length, alpha, beta,
                  product->complex != NULL ? *product->complex : (tgl_complex_part){0});
    return true;
}
