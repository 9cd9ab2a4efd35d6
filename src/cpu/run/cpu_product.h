/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of a plan, and the matrices of its batch.
 */
#ifndef TGL_CPU_PRODUCT_H
#define TGL_CPU_PRODUCT_H

#include "base/thread_pool.h"
#include "cpu/plan/cpu_plan.h"
#include "problem/run.h"

/* What the functions get that run the paths of a plan. */
typedef struct cpu_product {
    const tgl_shape *shape;
    const cpu_plan *plan;
    const tgl_run *run;
    char *workspace; /* plan->workspace bytes, aligned to CPU_ALIGNMENT; NULL if that is 0 */
    thread_pool *threads;
} cpu_product;

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
