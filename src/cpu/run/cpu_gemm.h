/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by tiles, with packing (cpu_gemm.c).
 */
#ifndef TGL_CPU_GEMM_H
#define TGL_CPU_GEMM_H

#include "base/thread_pool.h"
#include "cpu/plan/cpu_plan.h"
#include "problem/run.h"

/* Runs a plan in place, D := alpha*op(A)*op(B) + beta*D and the epilogue, in `workspace`,
 * plan->workspace bytes aligned to CPU_ALIGNMENT. */
void tgl_cpu_gemm(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run, char *workspace,
                  thread_pool *threads);

/* D := beta*D for all of the batch, and the epilogue. */
void tgl_cpu_scale(const tgl_shape *shape, const cpu_kernels *kernels, const tgl_run *run);

#endif
