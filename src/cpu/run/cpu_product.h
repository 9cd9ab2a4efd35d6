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

/* The argument of the functions that run a plan, one for each cpu_path. */
typedef struct cpu_product {
    const tgl_shape *shape;
    const cpu_plan *plan;
    const tgl_run *run;
    char *workspace;       /* plan->workspace bytes, aligned to CPU_ALIGNMENT; NULL if that is 0 */
    struct cpu_team *team; /* NULL: the caller computes alone */
} cpu_product;

enum { CPU_TEAM_JOB_BYTES = 256 };

/* All that the threads of a team read beside the matrices. A run of several threads has it in
 * front of its workspace: workers may still compute when a signal handler has left the caller's
 * frames by longjmp(), and even when the caller has destroyed the plan. */
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

/* Bytes of the buffer that a run of the plan takes. */
static inline size_t tgl_cpu_buffer_bytes(const cpu_plan *plan)
{
    return plan->workspace + (plan->threads > 1 ? sizeof(cpu_team) : 0);
}

/* Copies a run for a team, with all that it refers to, to a buffer of tgl_cpu_buffer_bytes(). */
const cpu_product *tgl_cpu_product_of_team(const cpu_product *product, thread_pool *threads,
                                           char *buffer);

/* Runs body(job, thread, team) on the threads of the plan. job: its `bytes` bytes are copied.
 * It may point only to matrices and to what the product of a team refers to. */
void tgl_cpu_run_team(const cpu_product *product, thread_pool_fn *body, void *job, size_t bytes);

static inline tgl_complex_part tgl_cpu_complex_part(const tgl_shape *s, const tgl_run *run)
{
    return (tgl_complex_part){run->alpha_imag, run->beta_imag, s->conj_a, s->conj_b};
}

/* The matrices of problem i of the batch: A, B, C, and D, which is written (C itself if the product
 * is in place). element: bytes of an element. */
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
