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

/* Computes a product whose op(B) has at most CPU_SMALL_PANELS panels. If B is transposed, k is at
 * most CPU_SMALL. */
void tgl_cpu_multiply_small(const cpu_kernels *kernels, const tgl_small_product *product);

/* Runs CPU_PATH_SMALL in place: D := epilogue(alpha*op(A)*op(B) + beta*D) for each product of the
 * batch. */
void tgl_cpu_small_run(const cpu_product *product);

#endif
