/* SPDX-License-Identifier: Apache-2.0
 *
 * Bias, activation and residual.
 */
#ifndef TGL_CPU_EPILOGUE_H
#define TGL_CPU_EPILOGUE_H

#include "cpu/kernels/kernels.h"
#include "problem/run.h"

/* A part of D. */
typedef struct cpu_rectangle {
    int64_t row, rows, column, columns;
} cpu_rectangle;

/* Bias, activation and residual for a part of D, in one problem of the batch, where
 * D holds alpha*op(A)*op(B) + beta*C. For shapes with an epilogue. */
void tgl_cpu_epilogue(const tgl_shape *shape, const cpu_kernels *kernels, const tgl_run *run,
                      int64_t problem, cpu_rectangle part);

#endif
