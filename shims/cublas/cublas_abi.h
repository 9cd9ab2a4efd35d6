/* SPDX-License-Identifier: Apache-2.0
 *
 * The declarations of cuBLAS 12 and 13 that libtegula_cublas.so needs: types, values of enums, and
 * the functions that it replaces or calls. The library is built without the CUDA toolkit. Names,
 * types and values are those of NVIDIA's documentation; an enum is an int, as C compilers pass it.
 * Where NVIDIA's own headers are installed, the tests (cublas_constants.c) are also compiled with
 * NVIDIA's headers, and compare their declarations with the ones here.
 */
#ifndef TGL_CUBLAS_ABI_H
#define TGL_CUBLAS_ABI_H

#include "cublas_parameters.h"

#include <stddef.h>
#include <stdint.h>

/* ---- Types and values ------------------------------------------------------------------------ */

typedef struct cublasContext *cublasHandle_t, *cublasLtHandle_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct cublasLtMatmulDesc *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayout *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulAlgo_t cublasLtMatmulAlgo_t;
typedef uint16_t cublas_half; /* __half */
typedef struct cuComplex {
    float x, y;
} cuComplex;
typedef struct cuDoubleComplex {
    double x, y;
} cuDoubleComplex;

typedef int cublasStatus_t;
enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1 };

typedef int cublasOperation_t;
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };

typedef int cudaDataType;
enum {
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

typedef int cublasComputeType_t;
enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

typedef int cublasMath_t;
enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1, /* F32 inputs may be rounded to 16 bits */
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16, /* a flag that is combined with one of
                                                              the modes above */
};

typedef int cublasPointerMode_t; /* whether alpha and beta are in host or device memory */
enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };

typedef int cublasGemmAlgo_t;
enum {
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_ALGO23 = 23,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO15_TENSOR_OP = 115,
};

typedef int cublasLtMatmulDescAttributes_t;
enum {
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,       /* int32_t */
    CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,         /* int32_t: cudaDataType of alpha and beta */
    CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,       /* int32_t */
    CUBLASLT_MATMUL_DESC_TRANSA = 3,             /* int32_t */
    CUBLASLT_MATMUL_DESC_TRANSB = 4,             /* int32_t */
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,           /* uint32_t */
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,       /* const void * */
    CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10, /* int64_t */
    CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,   /* const void *: scale on the device; NULL: 1 */
    CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,   /* const void * */
    CUBLASLT_MATMUL_DESC_D_SCALE_POINTER = 20,   /* const void * */
    CUBLASLT_MATMUL_DESC_AMAX_D_POINTER = 21,    /* void *: receives the largest |D| (FP8 D) */
    CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,        /* int8_t; 1: FP8 sums of less precision */
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,    /* int32_t; -1: the type of D */
    CUBLASLT_MATMUL_DESC_A_SCALE_MODE = 31,      /* int32_t: cublasLtMatmulMatrixScale_t */
    CUBLASLT_MATMUL_DESC_B_SCALE_MODE = 32,      /* int32_t */
};

typedef int cublasLtMatmulMatrixScale_t; /* since CUDA 12.8 */
enum {
    CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F = 0,
    /* Since CUDA 12.9: */
    CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F = 3,  /* per row of op(A) or column of op(B) */
    CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F = 4,     /* the same, and per 128 of k */
    CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F = 5, /* per 128 rows or columns, and 128 of k */
};

typedef int cublasLtEpilogue_t;
enum {
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_RELU = 2,
    CUBLASLT_EPILOGUE_BIAS = 4, /* bias: one element per row of D */
    CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    CUBLASLT_EPILOGUE_GELU = 32, /* the tanh() approximation of GELU */
    CUBLASLT_EPILOGUE_GELU_BIAS = 36,
};

typedef int cublasLtMatrixLayoutAttribute_t;
enum {
    CUBLASLT_MATRIX_LAYOUT_TYPE = 0,                 /* uint32_t: cudaDataType */
    CUBLASLT_MATRIX_LAYOUT_ORDER = 1,                /* int32_t */
    CUBLASLT_MATRIX_LAYOUT_ROWS = 2,                 /* uint64_t */
    CUBLASLT_MATRIX_LAYOUT_COLS = 3,                 /* uint64_t */
    CUBLASLT_MATRIX_LAYOUT_LD = 4,                   /* int64_t */
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          /* int32_t */
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, /* int64_t: number of elements */
};

typedef int cublasLtOrder_t;
enum { CUBLASLT_ORDER_COL = 0 };

/* ---- Functions that are replaced ------------------------------------------------------------- */

#define GEMM(function, T, I, ...) cublasStatus_t function CUBLAS_GEMM_PARAMETERS(T, I);
#define GEMM_BATCHED(function, T, I, ...)                                                          \
    cublasStatus_t function CUBLAS_GEMM_BATCHED_PARAMETERS(T, I);
#define GEMM_STRIDED(function, T, I, ...)                                                          \
    cublasStatus_t function CUBLAS_GEMM_STRIDED_PARAMETERS(T, I);
#define GEMM_EX(function, I)         cublasStatus_t function CUBLAS_GEMM_EX_PARAMETERS(I);
#define GEMM_BATCHED_EX(function, I) cublasStatus_t function CUBLAS_GEMM_BATCHED_EX_PARAMETERS(I);
#define GEMM_STRIDED_EX(function, I) cublasStatus_t function CUBLAS_GEMM_STRIDED_EX_PARAMETERS(I);
CUBLAS_TYPED_FUNCTIONS(GEMM, GEMM_BATCHED, GEMM_STRIDED)
CUBLAS_EX_FUNCTIONS(GEMM_EX, GEMM_BATCHED_EX, GEMM_STRIDED_EX)
#undef GEMM
#undef GEMM_BATCHED
#undef GEMM_STRIDED
#undef GEMM_EX
#undef GEMM_BATCHED_EX
#undef GEMM_STRIDED_EX

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t a, const void *B,
                              cublasLtMatrixLayout_t b, const void *beta, const void *C,
                              cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream);

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);

/* ---- Functions of cuBLAS that are called ----------------------------------------------------- */

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);
cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int *sms);

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType scale);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc);
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute, void *value,
                                              size_t size, size_t *written);
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void *value, size_t size, size_t *written);

#endif
