/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of single calls share: one handle, a small product, and whether Tegula computes a
 * call or cuBLAS gets it.
 */
#ifndef TGL_CUBLAS_CASE_H
#define TGL_CUBLAS_CASE_H

#include "cublas_calls.h"

/* The handle of a test program, and scalars of F32. */
extern cublasHandle_t handle;
extern const float one, zero;

/* Turns the trace on and the library's own workspace off, and loads the libraries. Before the first
 * test; returns 77 if a library is not there. */
int load_with_trace(void);

/* Makes the handle; for cmocka_run_group_tests_name(). */
int make_handle(void **state);

/* A product of two 8 x 8 matrices of F32 that Tegula computes. There is room for batches of two. */
extern float small_a[160], small_b[160], small_c[160];
cublas_call small_call(void);

const function_row *row_of(const char *name);

/* Tegula computes the call. */
void assert_served(const function_row *f, const cublas_call *c);

/* A call for stderr_of(), which returns the line of the trace. */
typedef struct traced_call {
    const function_row *f;
    const cublas_call *c;
    cublasStatus_t status;
} traced_call;
void run_traced(void *data); /* a traced_call */

/* The call reaches cuBLAS with these arguments and no other, and the trace gives the reason. */
void assert_passed(const function_row *f, const cublas_call *c, const char *reason);

#endif
