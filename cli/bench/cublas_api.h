/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations of the functions of cuBLAS, cuBLASLt and the driver that the program calls, so that
 * no CUDA header is needed at build time. Names, types and values follow their public
 * documentation; functions with versions are looked up by their versioned names (cublasCreate is
 * cublasCreate_v2).
 */
#ifndef CLI_CUBLAS_API_H
#define CLI_CUBLAS_API_H

#include <stddef.h>
#include <stdint.h>

typedef int cublasStatus_t; /* 0: success */
typedef void *cublasHandle_t, *cublasLtHandle_t;
typedef void *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t, *cublasLtMatmulPreference_t;

enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum { /* cudaDataType_t */
       CUDA_R_32F = 0,
       CUDA_R_64F = 1,
       CUDA_R_16F = 2,
       CUDA_R_8I = 3,
       CUDA_C_32F = 4,
       CUDA_C_64F = 5,
       CUDA_R_32I = 10,
       CUDA_R_16BF = 14,
       CUDA_R_8F_E4M3 = 28,
       CUDA_R_8F_E5M2 = 29,
};
enum {
    CUBLAS_COMPUTE_32F = 68, /* cublasComputeType_t */
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum { CUBLAS_GEMM_DEFAULT = -1 };
enum {
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,
};
enum { CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6 };
enum { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 };

typedef struct cublasLtMatmulAlgo_t {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

/* The common type of the functions of one element type, such as cublasSgemm(), with element
 * pointers replaced by void pointers. */
typedef cublasStatus_t cublas_typed_gemm(cublasHandle_t handle, int transa, int transb, int m,
                                         int n, int k, const void *alpha, const void *A, int lda,
                                         const void *B, int ldb, const void *beta, void *C,
                                         int ldc);

typedef struct cublas_functions {
    cublasStatus_t (*cublasCreate)(cublasHandle_t *handle);
    cublasStatus_t (*cublasDestroy)(cublasHandle_t handle);
    cublasStatus_t (*cublasGetVersion)(cublasHandle_t handle, int *version);
    cublas_typed_gemm *cublasSgemm, *cublasDgemm, *cublasCgemm, *cublasZgemm;
    cublasStatus_t (*cublasGemmEx)(cublasHandle_t handle, int transa, int transb, int m, int n,
                                   int k, const void *alpha, const void *A, int type_a, int lda,
                                   const void *B, int type_b, int ldb, const void *beta, void *C,
                                   int type_c, int ldc, int compute, int algo);
    cublasStatus_t (*cublasGemmStridedBatchedEx)(cublasHandle_t handle, int transa, int transb,
                                                 int m, int n, int k, const void *alpha,
                                                 const void *A, int type_a, int lda,
                                                 long long stride_a, const void *B, int type_b,
                                                 int ldb, long long stride_b, const void *beta,
                                                 void *C, int type_c, int ldc, long long stride_c,
                                                 int batch, int compute, int algo);

    cublasStatus_t (*cublasLtCreate)(cublasLtHandle_t *handle);
    cublasStatus_t (*cublasLtDestroy)(cublasLtHandle_t handle);
    cublasStatus_t (*cublasLtMatmulDescCreate)(cublasLtMatmulDesc_t *desc, int compute, int scale);
    cublasStatus_t (*cublasLtMatmulDescDestroy)(cublasLtMatmulDesc_t desc);
    cublasStatus_t (*cublasLtMatmulDescSetAttribute)(cublasLtMatmulDesc_t desc, int attribute,
                                                     const void *value, size_t size);
    cublasStatus_t (*cublasLtMatrixLayoutCreate)(cublasLtMatrixLayout_t *layout, int type,
                                                 uint64_t rows, uint64_t cols, int64_t ld);
    cublasStatus_t (*cublasLtMatrixLayoutDestroy)(cublasLtMatrixLayout_t layout);
    cublasStatus_t (*cublasLtMatrixLayoutSetAttribute)(cublasLtMatrixLayout_t layout, int attribute,
                                                       const void *value, size_t size);
    cublasStatus_t (*cublasLtMatmulPreferenceCreate)(cublasLtMatmulPreference_t *preference);
    cublasStatus_t (*cublasLtMatmulPreferenceDestroy)(cublasLtMatmulPreference_t preference);
    cublasStatus_t (*cublasLtMatmulPreferenceSetAttribute)(cublasLtMatmulPreference_t preference,
                                                           int attribute, const void *value,
                                                           size_t size);
    cublasStatus_t (*cublasLtMatmulAlgoGetHeuristic)(
        cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t A,
        cublasLtMatrixLayout_t B, cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D,
        cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t *results,
        int *found);
    cublasStatus_t (*cublasLtMatmul)(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                     const void *alpha, const void *A, cublasLtMatrixLayout_t a,
                                     const void *B, cublasLtMatrixLayout_t b, const void *beta,
                                     const void *C, cublasLtMatrixLayout_t c, void *D,
                                     cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
                                     void *workspace, size_t workspace_size, void *stream);

    /* Functions of the driver. */
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease)(int device);
    int (*cuCtxPushCurrent)(void *context);
    int (*cuCtxPopCurrent)(void **context);
} cublas_functions;

#endif
