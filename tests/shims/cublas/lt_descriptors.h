/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors and layouts of cuBLASLt, by its functions with the prototypes of NVIDIA's
 * documentation. A test fails where a call of them does.
 */
#ifndef TGL_LT_DESCRIPTORS_H
#define TGL_LT_DESCRIPTORS_H

#include "cublas_matrices.h"

/* No device has it: cuBLASLt returns an error for it. */
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

/* Turns the trace on and the library's own workspace off, and loads the first argument of main(),
 * or the fake cuBLASLt. Before the first test; returns 77 if a library is not there. */
int lt_load(int argc, char **argv);

/* Makes the handle; for cmocka_run_group_tests_name(). */
int lt_make_handle(void **state);

#endif
