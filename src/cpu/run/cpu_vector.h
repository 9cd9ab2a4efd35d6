/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix times vector (GEMV).
 */
#ifndef TGL_CPU_VECTOR_H
#define TGL_CPU_VECTOR_H

#include "cpu/run/cpu_product.h"

/* Runs CPU_PATH_VECTOR in place: D := epilogue(alpha*op(A)*op(B) + beta*D), where D is one row or
 * one column. */
void tgl_cpu_vector(const cpu_product *product);

/* Computes a product of one row or column without a plan, with the same bits as with a plan. False:
 * the product is too large, and nothing is computed. */
bool tgl_cpu_small_vector(const cpu_kernels *kernels, const tgl_small_product *product);

#endif
