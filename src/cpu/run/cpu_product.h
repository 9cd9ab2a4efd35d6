/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of a plan, the team that computes it, and the matrices of its batch.
 */
#ifndef TGL_CPU_PRODUCT_H
#define TGL_CPU_PRODUCT_H

#include "base/thread_pool.h"
#include "cpu/plan/block_plan.h"
#include "problem/run.h"
#include "problem/small_product.h"

/* A run of a plan: the argument of the functions that compute the paths (cpu_path). */
typedef struct cpu_product {
    const tgl_shape *shape;
    const cpu_plan *plan;
    const tgl_run *run;
    char *workspace;       /* plan->workspace bytes, aligned to CPU_ALIGNMENT; may be
                              NULL if the run needs none */
    struct cpu_team *team; /* data for a run by several threads; NULL: the calling thread computes
                              alone */
} cpu_product;

enum { CPU_TEAM_JOB_BYTES = 256 };

/* The team of threads that compute a run. This struct has a copy of everything that they read,
 * except the matrices. It lies in front of the run's workspace, not on the caller's stack, because
 * workers may use it longer than the call lasts: a signal handler may leave the call by longjmp(),
 * and the caller may then even destroy the plan. */
typedef struct cpu_team {
    tgl_shape shape;
    cpu_plan plan;
    cpu_block_plan blocks;
    tgl_run run;
    cpu_product product; /* refers to the members above */
    thread_pool *threads;
    thread_pool_task task;
    _Alignas(CPU_ALIGNMENT) char job[CPU_TEAM_JOB_BYTES]; /* the context of the task */
} cpu_team;

/* Bytes of the buffer for a run of the plan: the workspace, and a cpu_team for several threads. */
static inline size_t tgl_cpu_buffer_bytes(const cpu_plan *plan)
{
    return plan->workspace + (plan->threads > 1 ? sizeof(cpu_team) : 0);
}

/* Copies a run and all that it refers to into `buffer`, of tgl_cpu_buffer_bytes() bytes, for a run
 * by several threads. The workspace lies behind the copy. Returns the copy of the product, which is
 * in `buffer`. */
const cpu_product *tgl_cpu_product_of_team(const cpu_product *product, thread_pool *threads,
                                           char *buffer);

/* Calls body(job, thread, team) on the threads of the plan; only body(job, 0, 1) if product->team
 * is NULL. With a team, the `bytes` bytes of the job, at most CPU_TEAM_JOB_BYTES, are copied.
 * Pointers in them must then point only to the matrices and into the run's buffer (cpu_team and
 * workspace), which outlive the caller. */
void tgl_cpu_run_team(const cpu_product *product, thread_pool_fn *body, void *job, size_t bytes);

static inline tgl_complex_part tgl_cpu_complex_part(const tgl_shape *s, const tgl_run *run)
{
    return (tgl_complex_part){run->alpha_imag, run->beta_imag, s->conj_a, s->conj_b};
}

/* The following functions return the addresses of the matrices of problem i of the batch: A, B, C,
 * and D, the output, which is C if the product is in place. element: bytes of an element. */
static inline const char *tgl_cpu_matrix_of(const tgl_shape *s, const tgl_run *run,
                                            tgl_operand matrix, tgl_operand array, int64_t i,
                                            int64_t stride, int64_t element)
{
    if (s->pointers) return ((const char *const *)run->at[array])[i];
    return (const char *)run->at[matrix] + i * stride * element;
}

static inline const char *tgl_cpu_a_of(const tgl_shape *s, const tgl_run *run, int64_t i,
                                       int64_t element)
{
    return tgl_cpu_matrix_of(s, run, TGL_AT_A, TGL_AT_A_ARRAY, i, s->stride_a, element);
}

static inline const char *tgl_cpu_b_of(const tgl_shape *s, const tgl_run *run, int64_t i,
                                       int64_t element)
{
    return tgl_cpu_matrix_of(s, run, TGL_AT_B, TGL_AT_B_ARRAY, i, s->stride_b, element);
}

static inline const char *tgl_cpu_c_of(const tgl_shape *s, const tgl_run *run, int64_t i,
                                       int64_t element)
{
    return tgl_cpu_matrix_of(s, run, TGL_AT_C, TGL_AT_C_ARRAY, i, s->stride_c, element);
}

static inline char *tgl_cpu_d_of(const tgl_shape *s, const tgl_run *run, int64_t i, int64_t element)
{
    return (char *)tgl_cpu_matrix_of(s, run, TGL_AT_D, TGL_AT_D_ARRAY, i, s->stride_d, element);
}

#endif
