/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue: bias, activation and residual.
 */
#ifndef TGL_CPU_EPILOGUE_H
#define TGL_CPU_EPILOGUE_H

#include "cpu/kernels/shares.h"
#include "cpu/run/cpu_product.h"

/* D := activation(D + bias) + residual, for a part of D in one problem of the batch. On entry D
 * holds alpha*op(A)*op(B) + beta*C. Does nothing if the plan has no epilogue. */
void tgl_cpu_epilogue(const cpu_product *product, int64_t problem, cpu_range rows,
                      cpu_range columns);

#endif
