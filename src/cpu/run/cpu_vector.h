/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix times vector.
 */
#ifndef TGL_CPU_VECTOR_H
#define TGL_CPU_VECTOR_H

#include "base/thread_pool.h"
#include "cpu/plan/cpu_plan.h"
#include "problem/run.h"

/* As tgl_cpu_gemm(). */
void tgl_cpu_vector(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                    char *workspace, thread_pool *threads);

#endif
