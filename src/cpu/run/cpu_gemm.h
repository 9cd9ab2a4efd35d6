/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by tiles, with packing (cpu_gemm.c).
 */
#ifndef TGL_CPU_GEMM_H
#define TGL_CPU_GEMM_H

#include "cpu/run/cpu_product.h"

/* Computes in place: D := alpha*op(A)*op(B) + beta*D and the epilogue. */
void tgl_cpu_gemm(const cpu_product *product);

/* Computes in place, where k or alpha is 0: D := beta*D and the epilogue. */
void tgl_cpu_scale(const cpu_product *product);

#endif
