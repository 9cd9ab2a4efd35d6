/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls every function for products of a handle with one set of arguments.
 */
#ifndef TGL_CUBLAS_CALLS_H
#define TGL_CUBLAS_CALLS_H

#include "cublas_rig.h"

/* The arguments of all functions. A function uses those that it has; the types and the compute type
 * of the others are fixed. */
typedef struct cublas_call {
    cublasHandle_t handle;
    cublasOperation_t trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    const void *alpha, *beta;
    const void *A, *B; /* or arrays of pointers */
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
    cudaDataType type;           /* of the others */
    cublasComputeType_t compute; /* of the others */
    cublasStatus_t (*call)(const cublas_call *c);
} function_row;

extern const function_row cublas_functions[44];

/* The arguments of the call as recorder.h records them. */
recorded_call expected_record(const function_row *f, const cublas_call *c);

#endif
