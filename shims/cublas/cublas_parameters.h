/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of cuBLAS that multiply matrices, and their parameters. The parameters differ in
 * the element type T and in the type of sizes I: int, or int64_t where the name ends in _64.
 */
#ifndef TGL_CUBLAS_PARAMETERS_H
#define TGL_CUBLAS_PARAMETERS_H

#define CUBLAS_GEMM_PARAMETERS(T, I)                                                               \
    (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, I m, I n, I k,     \
     const T *alpha, const T *A, I lda, const T *B, I ldb, const T *beta, T *C, I ldc)

#define CUBLAS_GEMM_BATCHED_PARAMETERS(T, I)                                                       \
    (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, I m, I n, I k,     \
     const T *alpha, const T *const A[], I lda, const T *const B[], I ldb, const T *beta,          \
     T *const C[], I ldc, I batch)

#define CUBLAS_GEMM_STRIDED_PARAMETERS(T, I)                                                       \
    (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, I m, I n, I k,     \
     const T *alpha, const T *A, I lda, long long stride_a, const T *B, I ldb, long long stride_b, \
     const T *beta, T *C, I ldc, long long stride_c, I batch)

#define CUBLAS_GEMM_EX_PARAMETERS(I)                                                               \
    (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, I m, I n, I k,     \
     const void *alpha, const void *A, cudaDataType type_a, I lda, const void *B,                  \
     cudaDataType type_b, I ldb, const void *beta, void *C, cudaDataType type_c, I ldc,            \
     cublasComputeType_t compute, cublasGemmAlgo_t algo)

#define CUBLAS_GEMM_BATCHED_EX_PARAMETERS(I)                                                       \
    (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, I m, I n, I k,     \
     const void *alpha, const void *const A[], cudaDataType type_a, I lda, const void *const B[],  \
     cudaDataType type_b, I ldb, const void *beta, void *const C[], cudaDataType type_c, I ldc,    \
     I batch, cublasComputeType_t compute, cublasGemmAlgo_t algo)

#define CUBLAS_GEMM_STRIDED_EX_PARAMETERS(I)                                                       \
    (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, I m, I n, I k,     \
     const void *alpha, const void *A, cudaDataType type_a, I lda, long long stride_a,             \
     const void *B, cudaDataType type_b, I ldb, long long stride_b, const void *beta, void *C,     \
     cudaDataType type_c, I ldc, long long stride_c, I batch, cublasComputeType_t compute,         \
     cublasGemmAlgo_t algo)

/* Lists the functions for one element type with both integer types, as calls of a macro:
 * GEMM(function, T, I, type of the elements, compute type). */
#define CUBLAS_BOTH_SIZES(GEMM, name, T, data_type, compute_type)                                  \
    GEMM(name, T, int, data_type, compute_type)                                                    \
    GEMM(name##_64, T, int64_t, data_type, compute_type)

/* The functions for one element type. version: the suffix (_v2 or nothing) of the function for a
 * single product. */
#define CUBLAS_FUNCTIONS_OF(GEMM, GEMM_BATCHED, GEMM_STRIDED, name, version, T, data_type,         \
                            compute_type)                                                          \
    CUBLAS_BOTH_SIZES(GEMM, name##version, T, data_type, compute_type)                             \
    CUBLAS_BOTH_SIZES(GEMM_BATCHED, name##Batched, T, data_type, compute_type)                     \
    CUBLAS_BOTH_SIZES(GEMM_STRIDED, name##StridedBatched, T, data_type, compute_type)

/* The functions for all element types. A function with 3m in its name computes the same product as
 * the one without. */
#define CUBLAS_TYPED_FUNCTIONS(GEMM, GEMM_BATCHED, GEMM_STRIDED)                                   \
    CUBLAS_FUNCTIONS_OF(GEMM, GEMM_BATCHED, GEMM_STRIDED, cublasSgemm, _v2, float, CUDA_R_32F,     \
                        CUBLAS_COMPUTE_32F)                                                        \
    CUBLAS_FUNCTIONS_OF(GEMM, GEMM_BATCHED, GEMM_STRIDED, cublasDgemm, _v2, double, CUDA_R_64F,    \
                        CUBLAS_COMPUTE_64F)                                                        \
    CUBLAS_FUNCTIONS_OF(GEMM, GEMM_BATCHED, GEMM_STRIDED, cublasHgemm, , cublas_half, CUDA_R_16F,  \
                        CUBLAS_COMPUTE_16F)                                                        \
    CUBLAS_FUNCTIONS_OF(GEMM, GEMM_BATCHED, GEMM_STRIDED, cublasCgemm, _v2, cuComplex, CUDA_C_32F, \
                        CUBLAS_COMPUTE_32F)                                                        \
    CUBLAS_FUNCTIONS_OF(GEMM, GEMM_BATCHED, GEMM_STRIDED, cublasZgemm, _v2, cuDoubleComplex,       \
                        CUDA_C_64F, CUBLAS_COMPUTE_64F)                                            \
    CUBLAS_FUNCTIONS_OF(GEMM, GEMM_BATCHED, GEMM_STRIDED, cublasCgemm3m, , cuComplex, CUDA_C_32F,  \
                        CUBLAS_COMPUTE_32F)                                                        \
    CUBLAS_BOTH_SIZES(GEMM, cublasZgemm3m, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F)

/* The functions that get the element types as arguments (*Ex): GEMM(function, I) for each. */
#define CUBLAS_EX_FUNCTIONS(GEMM, GEMM_BATCHED, GEMM_STRIDED)                                      \
    GEMM(cublasGemmEx, int)                                                                        \
    GEMM(cublasGemmEx_64, int64_t)                                                                 \
    GEMM_BATCHED(cublasGemmBatchedEx, int)                                                         \
    GEMM_BATCHED(cublasGemmBatchedEx_64, int64_t)                                                  \
    GEMM_STRIDED(cublasGemmStridedBatchedEx, int)                                                  \
    GEMM_STRIDED(cublasGemmStridedBatchedEx_64, int64_t)

#endif
