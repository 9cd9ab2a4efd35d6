/* SPDX-License-Identifier: Apache-2.0
 *
 * Products that a device computes without a plan (tgl_backend.run_small), because they take less
 * time than finding or running a plan. The functions return false if the device has no such
 * function, and for every argument that is invalid or unusual. In these cases the caller calls the
 * general functions, which give the result or the error.
 */
#ifndef TGL_SMALL_CALLS_H
#define TGL_SMALL_CALLS_H

#include "backend/backend.h"

/* A call with the arguments of tgl_sgemm() or a similar function. *x must have the caller's type,
 * m, n, k, leading dimensions, alpha, beta and pointers; it is changed. */
bool tgl_small_call(const tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                    tgl_transpose trans_b, tgl_small_product *x);

/* A call with the arguments of tgl_gemm(). */
bool tgl_small_gemm(const tgl_device *dev, const tgl_problem *problem, double alpha, const void *A,
                    const void *B, double beta, void *C);

/* Sets plan->small if run_small() of the device can compute runs of the plan. */
void tgl_small_prepare(tgl_plan *plan, const tgl_plan_options *options);

/* Run a plan, with the arguments of tgl_plan_run() and of tgl_plan_run_operands(). */
bool tgl_small_plan(const tgl_plan *plan, double alpha, const void *A, const void *B, double beta,
                    void *C);
bool tgl_small_plan_operands(const tgl_plan *plan, const tgl_operands *operands);

#endif
