/* SPDX-License-Identifier: Apache-2.0
 *
 * The GEMM functions of cuBLAS. They differ in the element type, in how the matrices of a batch are
 * passed, and in the type of the sizes. Each function describes its product in a cublas_product,
 * and calls the function that it replaces if Tegula does not compute the product.
 */
#include "cublas_shim.h"

/* The members of cublas_product that every function sets in the same way. */
#define COMMON(name)                                                                               \
    .routine = (name), .trans_a = transa, .trans_b = transb, .m = m, .n = n, .k = k,               \
    .alpha = alpha, .beta = beta, .lda = lda, .ldb = ldb, .ldc = ldc, .ldd = ldc, .A = A, .B = B,  \
    .C = C, .D = (void *)C, .epilogue = CUBLASLT_EPILOGUE_DEFAULT

/* The type members of a cublas_product if all matrices have the same element type. */
#define ALIKE(data_type, compute_type)                                                             \
    .type_a = (data_type), .type_b = (data_type), .type_c = (data_type), .type_d = (data_type),    \
    .type_scale = (data_type), .compute = (compute_type)

#define STRIDES                                                                                    \
    .stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c, .stride_d = stride_c,        \
    .batch = batch

/* ---- Functions for one element type ---------------------------------------------------------- */

#define GEMM(function, T, I, data_type, compute_type)                                              \
    CUBLAS_EXPORT cublasStatus_t function CUBLAS_GEMM_PARAMETERS(T, I)                             \
    {                                                                                              \
        cublas_product p = {COMMON(#function), ALIKE(data_type, compute_type), .batch = 1};        \
        if (cublas_serve_handle(handle, &p)) return CUBLAS_STATUS_SUCCESS;                         \
        return CUBLAS_FORWARD(                                                                     \
            &p, function, (handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)); \
    }

#define GEMM_BATCHED(function, T, I, data_type, compute_type)                                      \
    CUBLAS_EXPORT cublasStatus_t function CUBLAS_GEMM_BATCHED_PARAMETERS(T, I)                     \
    {                                                                                              \
        cublas_product p = {COMMON(#function), ALIKE(data_type, compute_type), .batch = batch,     \
                            .is_pointers = true};                                                  \
        if (cublas_serve_handle(handle, &p)) return CUBLAS_STATUS_SUCCESS;                         \
        return CUBLAS_FORWARD(                                                                     \
            &p, function,                                                                          \
            (handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, batch));        \
    }

#define GEMM_STRIDED(function, T, I, data_type, compute_type)                                      \
    CUBLAS_EXPORT cublasStatus_t function CUBLAS_GEMM_STRIDED_PARAMETERS(T, I)                     \
    {                                                                                              \
        cublas_product p = {COMMON(#function), ALIKE(data_type, compute_type), STRIDES};           \
        if (cublas_serve_handle(handle, &p)) return CUBLAS_STATUS_SUCCESS;                         \
        return CUBLAS_FORWARD(&p, function,                                                        \
                              (handle, transa, transb, m, n, k, alpha, A, lda, stride_a, B, ldb,   \
                               stride_b, beta, C, ldc, stride_c, batch));                          \
    }

CUBLAS_TYPED_FUNCTIONS(GEMM, GEMM_BATCHED, GEMM_STRIDED)

/* ---- Functions for any types ----------------------------------------------------------------- */

/* The type of alpha and beta of the functions *Ex, which depends on the compute type and, for
 * complex matrices, on the matrix type. */
static cudaDataType scale_of(cublasComputeType_t compute, cudaDataType type_a)
{
    if (type_a == CUDA_C_32F || type_a == CUDA_C_64F) return type_a;
    const bool is_f16 = compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
    const bool is_f64 = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
    const bool is_i32 = compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC;
    return is_f16 ? CUDA_R_16F : is_f64 ? CUDA_R_64F : is_i32 ? CUDA_R_32I : CUDA_R_32F;
}

/* Whether an algorithm is known. The known algorithms are hints, which have no effect on current
 * GPUs. Calls with CUBLAS_GEMM_AUTOTUNE or an unknown number are left to cuBLAS. */
static bool is_known(cublasGemmAlgo_t algo)
{
    return (algo >= CUBLAS_GEMM_DEFAULT && algo <= CUBLAS_GEMM_ALGO23) ||
           (algo >= CUBLAS_GEMM_DEFAULT_TENSOR_OP && algo <= CUBLAS_GEMM_ALGO15_TENSOR_OP);
}

static bool serve_ex(cublasHandle_t handle, cublasGemmAlgo_t algo, cublas_product *p)
{
    return is_known(algo) ? cublas_serve_handle(handle, p) : cublas_refuse(p, "algorithm %d", algo);
}

#define TYPES                                                                                      \
    .type_a = type_a, .type_b = type_b, .type_c = type_c, .type_d = type_c, .compute = compute,    \
    .type_scale = scale_of(compute, type_a)

#define GEMM_EX(function, I)                                                                       \
    CUBLAS_EXPORT cublasStatus_t function CUBLAS_GEMM_EX_PARAMETERS(I)                             \
    {                                                                                              \
        cublas_product p = {COMMON(#function), TYPES, .batch = 1};                                 \
        if (serve_ex(handle, algo, &p)) return CUBLAS_STATUS_SUCCESS;                              \
        return CUBLAS_FORWARD(&p, function,                                                        \
                              (handle, transa, transb, m, n, k, alpha, A, type_a, lda, B, type_b,  \
                               ldb, beta, C, type_c, ldc, compute, algo));                         \
    }

#define GEMM_BATCHED_EX(function, I)                                                               \
    CUBLAS_EXPORT cublasStatus_t function CUBLAS_GEMM_BATCHED_EX_PARAMETERS(I)                     \
    {                                                                                              \
        cublas_product p = {COMMON(#function), TYPES, .batch = batch, .is_pointers = true};        \
        if (serve_ex(handle, algo, &p)) return CUBLAS_STATUS_SUCCESS;                              \
        return CUBLAS_FORWARD(&p, function,                                                        \
                              (handle, transa, transb, m, n, k, alpha, A, type_a, lda, B, type_b,  \
                               ldb, beta, C, type_c, ldc, batch, compute, algo));                  \
    }

#define GEMM_STRIDED_EX(function, I)                                                               \
    CUBLAS_EXPORT cublasStatus_t function CUBLAS_GEMM_STRIDED_EX_PARAMETERS(I)                     \
    {                                                                                              \
        cublas_product p = {COMMON(#function), TYPES, STRIDES};                                    \
        if (serve_ex(handle, algo, &p)) return CUBLAS_STATUS_SUCCESS;                              \
        return CUBLAS_FORWARD(&p, function,                                                        \
                              (handle, transa, transb, m, n, k, alpha, A, type_a, lda, stride_a,   \
                               B, type_b, ldb, stride_b, beta, C, type_c, ldc, stride_c, batch,    \
                               compute, algo));                                                    \
    }

CUBLAS_EX_FUNCTIONS(GEMM_EX, GEMM_BATCHED_EX, GEMM_STRIDED_EX)
