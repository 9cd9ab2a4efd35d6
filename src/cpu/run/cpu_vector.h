/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix times vector.
 */
#ifndef TGL_CPU_VECTOR_H
#define TGL_CPU_VECTOR_H

#include "cpu/run/cpu_product.h"

/* As tgl_cpu_gemm(), for one row or column of C. */
void tgl_cpu_vector(const cpu_product *product);

/* Computes one row or column without a plan; same bits as by a plan. False: it is too large. */
bool tgl_cpu_small_vector(const cpu_kernels *kernels, const tgl_small_product *product);

#endif
