/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by register tiles in blocking loops, with packing.
 */
#ifndef TGL_CPU_GEMM_H
#define TGL_CPU_GEMM_H

#include "cpu/run/cpu_product.h"

/* Runs CPU_PATH_GEMM in place: D := epilogue(alpha*op(A)*op(B) + beta*D). */
void tgl_cpu_gemm(const cpu_product *product);

/* Runs CPU_PATH_SCALE in place, for k = 0 or alpha = 0: D := epilogue(beta*D). */
void tgl_cpu_scale(const cpu_product *product);

#endif
