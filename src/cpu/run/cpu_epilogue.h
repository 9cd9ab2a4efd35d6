/* SPDX-License-Identifier: Apache-2.0
 *
 * Bias, activation and residual.
 */
#ifndef TGL_CPU_EPILOGUE_H
#define TGL_CPU_EPILOGUE_H

#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_product.h"

/* D := activation(D + bias) + residual in these rows and columns of one problem of the batch, where
 * D is alpha*op(A)*op(B) + beta*C. Does nothing without an epilogue. */
void tgl_cpu_epilogue(const cpu_product *product, int64_t problem, cpu_range rows,
                      cpu_range columns);

#endif
