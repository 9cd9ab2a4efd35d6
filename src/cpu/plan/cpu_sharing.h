/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the number of threads for a product, and how they divide its work.
 */
#ifndef TGL_CPU_SHARING_H
#define TGL_CPU_SHARING_H

#include "cpu/plan/cpu_plan.h"

/* The number of threads, from 1 to `max`, for which `work` multiply-adds of f32 are enough work. */
int tgl_cpu_threads_for(double work, int max);

/* A rectangle of C. */
typedef struct cpu_rectangle {
    int64_t rows, columns;
} cpu_rectangle;

/* Chooses threads, sharing, parts and grid of `plan`, whose kernels are set. max: limit of the
 * threads. copy_columns: an untransposed A is usually packed if a rectangle of C has at least this
 * many columns. Returns the size of the largest rectangle of the grid. */
cpu_rectangle tgl_cpu_share(const tgl_shape *shape, int max, int64_t copy_columns, cpu_plan *plan);

#endif
