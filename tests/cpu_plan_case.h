/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the plans of the cpu device: a server, which need not be the machine that runs the
 * tests, and products of f32.
 */
#ifndef CPU_PLAN_CASE_H
#define CPU_PLAN_CASE_H

#include "support.h"

#include "cpu/plan/cpu_plan.h"

static const cpu_machine server = {
    .facts = {.l1d = 48 << 10, .l2 = 2 << 20, .l3 = 64 << 20, .cores = 8},
    .threads = 8,
};

/* The server with a processor of this model ("": unknown) and this number of threads. */
static inline cpu_machine server_of(const char *model, int threads)
{
    cpu_machine machine = server;
    snprintf(machine.facts.model, sizeof machine.facts.model, "%s", model);
    machine.threads = threads;
    return machine;
}

static inline tgl_shape shape_of(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b)
{
    tgl_problem problem = problem_of(TGL_F32, m, n, k);
    problem.trans_a = trans_a ? TGL_TRANS : TGL_NO_TRANS;
    problem.trans_b = trans_b ? TGL_TRANS : TGL_NO_TRANS;
    tgl_shape shape;
    assert_status(tgl_shape_make(&problem, true, &shape), TGL_OK);
    return shape;
}

static inline cpu_plan plan_of(const tgl_shape *shape, int threads)
{
    const cpu_machine device = server_of("", threads);
    cpu_plan plan;
    tgl_cpu_plan(shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &plan);
    return plan;
}

/* Kernels with the tile sizes of AVX-512. A plan needs only these sizes, so the functions are those
 * of the portable tier. */
static inline cpu_kernels wide_kernels(void)
{
    cpu_kernels kernels = tgl_cpu_kernels_portable_f32;
    kernels.vector = 16;
    kernels.mr = 8;
    kernels.nv = 3;
    kernels.small_nv = 4;
    return kernels;
}

#endif
