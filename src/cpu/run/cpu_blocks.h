/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of short types, and products by words.
 */
#ifndef TGL_CPU_BLOCKS_H
#define TGL_CPU_BLOCKS_H

#include "base/thread_pool.h"
#include "cpu/plan/block_plan.h"
#include "problem/run.h"

/* Runs a plan of tgl_cpu_plan_blocks(). */
void tgl_cpu_blocks(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                    char *workspace, thread_pool *threads);

#endif
