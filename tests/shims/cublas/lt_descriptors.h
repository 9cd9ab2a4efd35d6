/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes descriptors and layouts of cuBLASLt by its functions, with the prototypes in NVIDIA's
 * documentation. The test fails if one of these calls fails.
 */
#ifndef TGL_LT_DESCRIPTORS_H
#define TGL_LT_DESCRIPTORS_H

#include "cublas_matrices.h"

/* A handle without a device, for which a real cuBLASLt returns an error. */
extern cublasLtHandle_t lt_handle;

/* Whether the fake cuBLASLt is used, which records the calls that reach it. */
extern bool lt_is_recorded;

cublasLtMatmulDesc_t make_desc(int compute, int scale);
void set_desc(cublasLtMatmulDesc_t desc, int attribute, const void *value, size_t size);
void set_int(cublasLtMatmulDesc_t desc, int attribute, int32_t value);
cublasLtMatrixLayout_t make_layout(int type, int64_t rows, int64_t cols, int64_t ld);
void set_layout(cublasLtMatrixLayout_t layout, int attribute, const void *value, size_t size);
void drop_desc(cublasLtMatmulDesc_t desc);
void drop_layout(cublasLtMatrixLayout_t layout);

/* Turns the trace on and the library's own workspace off, and loads the cuBLASLt that the first
 * argument of main() names, or the fake one. Must be called before the first test. Returns 0, 77 if
 * the named library is missing, or 1 if another one is. */
int lt_load(int argc, char **argv);

/* Makes the handle. A group setup for cmocka_run_group_tests_name(). */
int lt_make_handle(void **state);

#endif
