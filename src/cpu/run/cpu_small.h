/* SPDX-License-Identifier: Apache-2.0
 *
 * Small products, without workspace.
 */
#ifndef TGL_CPU_SMALL_H
#define TGL_CPU_SMALL_H

#include "backend/backend.h"
#include "cpu/run/cpu_product.h"

/* The member `run_small` of tgl_backend (backend.h): computes a small product without a plan.
 * False: the product is not small, and nothing is computed. */
bool tgl_cpu_run_small(const tgl_device *dev, const tgl_small_product *product);

/* Computes a product with k <= CPU_SMALL: cuts C into parts of at most CPU_SMALL rows and columns,
 * which are small products. */
void tgl_cpu_multiply_strips(const cpu_kernels *kernels, const tgl_small_product *product);

/* Runs CPU_PATH_SMALL in place: D := epilogue(alpha*op(A)*op(B) + beta*D) for each product of the
 * batch. */
void tgl_cpu_small_run(const cpu_product *product);

#endif
