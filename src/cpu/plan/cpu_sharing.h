/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads a product is worth, and how they share it.
 */
#ifndef TGL_CPU_SHARING_H
#define TGL_CPU_SHARING_H

#include "cpu/plan/cpu_plan.h"

/* The number of threads, 1 to `max`, that pays for `work` multiply-adds of f32. */
int tgl_cpu_threads_for(double work, int max);

/* A rectangle of C. */
typedef struct cpu_rectangle {
    int64_t rows, columns;
} cpu_rectangle;

/* Chooses threads, sharing, parts and grid of a plan that has its kernels, for a team of at most
 * `max`. Returns the largest rectangle of the grid. */
cpu_rectangle tgl_cpu_share(const tgl_shape *shape, int max, cpu_plan *plan);

#endif
