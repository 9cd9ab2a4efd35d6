/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of cuBLAS's functions, which differ in the element type T and in the type of sizes
 * I: int, or int64_t where the name ends in _64.
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

#endif
