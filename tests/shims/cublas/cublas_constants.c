/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of shims/cublas/cublas_abi.h, or those of NVIDIA's headers with the same names.
 * Compiled once with each; test_cublas_constants.c compares them.
 */
#include "cublas_constants.h"
#include "cublas_names.h"

#define VALUE(name)                                                                                \
    {                                                                                              \
#name, name                                                                                \
    }
#define SIZE(type)                                                                                 \
    {                                                                                              \
        "sizeof " #type, sizeof(type)                                                              \
    }

const cublas_constant CONSTANTS[] = {
    VALUE(CUBLAS_STATUS_SUCCESS),
    VALUE(CUBLAS_STATUS_NOT_INITIALIZED),
    VALUE(CUBLAS_OP_N),
    VALUE(CUBLAS_OP_T),
    VALUE(CUBLAS_OP_C),
    VALUE(CUDA_R_32F),
    VALUE(CUDA_R_64F),
    VALUE(CUDA_R_16F),
    VALUE(CUDA_R_16BF),
    VALUE(CUDA_C_32F),
    VALUE(CUDA_C_64F),
    VALUE(CUBLAS_COMPUTE_16F),
    VALUE(CUBLAS_COMPUTE_16F_PEDANTIC),
    VALUE(CUBLAS_COMPUTE_32F),
    VALUE(CUBLAS_COMPUTE_32F_PEDANTIC),
    VALUE(CUBLAS_COMPUTE_64F),
    VALUE(CUBLAS_COMPUTE_64F_PEDANTIC),
    VALUE(CUBLAS_COMPUTE_32F_FAST_16F),
    VALUE(CUBLAS_COMPUTE_32F_FAST_16BF),
    VALUE(CUBLAS_COMPUTE_32F_FAST_TF32),
    VALUE(CUBLAS_DEFAULT_MATH),
    VALUE(CUBLAS_TENSOR_OP_MATH),
    VALUE(CUBLAS_PEDANTIC_MATH),
    VALUE(CUBLAS_TF32_TENSOR_OP_MATH),
    VALUE(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
    VALUE(CUBLAS_POINTER_MODE_HOST),
    VALUE(CUBLAS_POINTER_MODE_DEVICE),
    VALUE(CUBLAS_GEMM_DEFAULT),
    VALUE(CUBLAS_GEMM_ALGO23),
    VALUE(CUBLAS_GEMM_DEFAULT_TENSOR_OP),
    VALUE(CUBLAS_GEMM_ALGO15_TENSOR_OP),
    VALUE(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE),
    VALUE(CUBLASLT_MATMUL_DESC_SCALE_TYPE),
    VALUE(CUBLASLT_MATMUL_DESC_POINTER_MODE),
    VALUE(CUBLASLT_MATMUL_DESC_TRANSA),
    VALUE(CUBLASLT_MATMUL_DESC_TRANSB),
    VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE),
    VALUE(CUBLASLT_MATMUL_DESC_BIAS_POINTER),
    VALUE(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE),
    VALUE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE),
    VALUE(CUBLASLT_EPILOGUE_DEFAULT),
    VALUE(CUBLASLT_EPILOGUE_RELU),
    VALUE(CUBLASLT_EPILOGUE_BIAS),
    VALUE(CUBLASLT_EPILOGUE_RELU_BIAS),
    VALUE(CUBLASLT_EPILOGUE_GELU),
    VALUE(CUBLASLT_EPILOGUE_GELU_BIAS),
    VALUE(CUBLASLT_MATRIX_LAYOUT_TYPE),
    VALUE(CUBLASLT_MATRIX_LAYOUT_ORDER),
    VALUE(CUBLASLT_MATRIX_LAYOUT_ROWS),
    VALUE(CUBLASLT_MATRIX_LAYOUT_COLS),
    VALUE(CUBLASLT_MATRIX_LAYOUT_LD),
    VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT),
    VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET),
    VALUE(CUBLASLT_ORDER_COL),
    SIZE(cublasStatus_t),
    SIZE(cublasOperation_t),
    SIZE(cudaDataType),
    SIZE(cuComplex),
    SIZE(cuDoubleComplex),
    SIZE(cublasComputeType_t),
    SIZE(cublasMath_t),
    SIZE(cublasPointerMode_t),
    SIZE(cublasGemmAlgo_t),
    SIZE(cublasLtMatmulDescAttributes_t),
    SIZE(cublasLtEpilogue_t),
    SIZE(cublasLtMatrixLayoutAttribute_t),
    SIZE(cublasLtOrder_t),
    SIZE(cublasHandle_t),
    SIZE(cublasLtHandle_t),
    SIZE(cublasLtMatmulDesc_t),
    SIZE(cublasLtMatrixLayout_t),
    SIZE(cudaStream_t),
    {NULL, 0},
};
