/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls the functions of cuBLAS for products, all with the same struct of arguments.
 */
#ifndef TGL_CUBLAS_CALLS_H
#define TGL_CUBLAS_CALLS_H

#include "cublas_rig.h"

/* The arguments of all functions. A function uses those that it has. Functions without arguments
 * for the types have fixed ones (function_row). */
typedef struct cublas_call {
    cublasHandle_t handle;
    cublasOperation_t trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    const void *alpha, *beta;
    const void *A, *B; /* matrices, or arrays of pointers to them */
    void *C;
    cudaDataType type_a, type_b, type_c;
    cublasComputeType_t compute;
    cublasGemmAlgo_t algo;
} cublas_call;

typedef enum batch_kind { ONE, POINTERS, STRIDED } batch_kind;

typedef struct function_row {
    const char *name;
    batch_kind kind;
    bool is_64, is_ex;
    cudaDataType type;           /* fixed element type, unless is_ex */
    cublasComputeType_t compute; /* fixed compute type, unless is_ex */
    cublasStatus_t (*call)(const cublas_call *c);
} function_row;

extern const function_row cublas_functions[44];

/* The record that the fake cuBLAS (recorder.h) makes of this call. */
recorded_call expected_record(const function_row *f, const cublas_call *c);

#endif
