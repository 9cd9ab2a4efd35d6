/* SPDX-License-Identifier: Apache-2.0
 *
 * Small products, without workspace.
 */
#ifndef TGL_CPU_SMALL_H
#define TGL_CPU_SMALL_H

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "cpu/plan/cpu_plan.h"

/* tgl_backend.run_small. */
bool tgl_cpu_run_small(const tgl_device *dev, const tgl_small_product *product);

/* Those of a plan, with the epilogue. */
void tgl_cpu_small_run(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                       thread_pool *threads);

#endif
