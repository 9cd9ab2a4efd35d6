/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of single calls of cuBLAS: a handle, a small product, and assertions that Tegula
 * computes a call or that cuBLAS gets it.
 */
#ifndef TGL_CUBLAS_CASE_H
#define TGL_CUBLAS_CASE_H

#include "cublas_calls.h"

/* The cuBLAS handle of the test program, and the F32 scalars 1 and 0. */
extern cublasHandle_t handle;
extern const float one, zero;

/* Turns the trace on and the library's own workspace off, and loads the libraries. Must be called
 * before the first test. Returns 0, or 1 if a library is missing. */
int load_with_trace(void);

/* Makes the handle. A group setup for cmocka_run_group_tests_name(). */
int make_handle(void **state);

/* small_call(): a product of two 8 x 8 matrices of F32, which Tegula computes. The arrays have room
 * for a batch of two. */
extern float small_a[160], small_b[160], small_c[160];
cublas_call small_call(void);

const function_row *row_of(const char *name);

/* Fails the test unless Tegula computes the call. */
void assert_served(const function_row *f, const cublas_call *c);

/* The argument of run_traced(), which stderr_of() calls to get the line of the trace. */
typedef struct traced_call {
    const function_row *f;
    const cublas_call *c;
    cublasStatus_t status;
} traced_call;
void run_traced(void *data); /* a traced_call */

/* Fails the test unless the call reaches cuBLAS with exactly these arguments, and the trace has the
 * reason. */
void assert_passed(const function_row *f, const cublas_call *c, const char *reason);

#endif
