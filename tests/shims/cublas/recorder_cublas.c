/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake libcublas.so.13 (recorder.h).
 */
#include "cublas_abi.h"
#include "recorder.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct cublasContext {
    cudaStream_t stream;
    int pointer_mode, math_mode, sms;
    void *workspace;
    size_t workspace_bytes;
};

static _Thread_local recorded_call latest;
static _Thread_local int reenters;

recorder_take_function recorder_take;
recorder_reenter_function recorder_reenter;

RECORDER_API recorded_call recorder_take(void)
{
    const recorded_call taken = latest;
    latest = (recorded_call){.function = NULL};
    return taken;
}

RECORDER_API void recorder_reenter(void)
{
    reenters = 1;
}

static cublasStatus_t record(const char *function, int count, const long long *words)
{
    latest = (recorded_call){.function = function, .count = count};
    memcpy(latest.words, words, (size_t)count * sizeof *words);
    return RECORDED;
}

#define W(x) ((long long)(x))
#define RECORD(function, ...)                                                                      \
    do {                                                                                           \
        const long long words[] = {__VA_ARGS__};                                                   \
        return record(function, (int)(sizeof words / sizeof words[0]), words);                     \
    } while (0)
#define SIZES W(handle), transa, transb, m, n, k

/* ---- Products -------------------------------------------------------------------------------- */

/* Calls another function of cuBLAS through the loader, as the real cuBLAS may do within a product.
 */
static cublasStatus_t reenter(cublasHandle_t handle, int64_t n, const void *scalar, const void *A,
                              void *C)
{
    reenters = 0;
    const int size = (int)n;
    __typeof__(&cublasGemmEx) gemm = (__typeof__(&cublasGemmEx))dlsym(RTLD_DEFAULT, "cublasGemmEx");
    return gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, scalar, A, CUDA_R_32F, size, A,
                CUDA_R_32F, size, scalar, C, CUDA_R_32F, size, CUBLAS_COMPUTE_32F,
                CUBLAS_GEMM_DEFAULT);
}

#define GEMM(function, T, I, ...)                                                                  \
    RECORDER_API cublasStatus_t function CUBLAS_GEMM_PARAMETERS(T, I)                              \
    {                                                                                              \
        if (reenters) return reenter(handle, n, alpha, A, C);                                      \
        RECORD(#function, SIZES, W(alpha), W(A), lda, W(B), ldb, W(beta), W(C), ldc);              \
    }
#define GEMM_BATCHED(function, T, I, ...)                                                          \
    RECORDER_API cublasStatus_t function CUBLAS_GEMM_BATCHED_PARAMETERS(T, I)                      \
    {                                                                                              \
        RECORD(#function, SIZES, W(alpha), W(A), lda, W(B), ldb, W(beta), W(C), ldc, batch);       \
    }
#define GEMM_STRIDED(function, T, I, ...)                                                          \
    RECORDER_API cublasStatus_t function CUBLAS_GEMM_STRIDED_PARAMETERS(T, I)                      \
    {                                                                                              \
        RECORD(#function, SIZES, W(alpha), W(A), lda, stride_a, W(B), ldb, stride_b, W(beta),      \
               W(C), ldc, stride_c, batch);                                                        \
    }

CUBLAS_TYPED_FUNCTIONS(GEMM, GEMM_BATCHED, GEMM_STRIDED)

#define GEMM_EX(function, I)                                                                       \
    RECORDER_API cublasStatus_t function CUBLAS_GEMM_EX_PARAMETERS(I)                              \
    {                                                                                              \
        RECORD(#function, SIZES, W(alpha), W(A), type_a, lda, W(B), type_b, ldb, W(beta), W(C),    \
               type_c, ldc, compute, algo);                                                        \
    }
#define GEMM_BATCHED_EX(function, I)                                                               \
    RECORDER_API cublasStatus_t function CUBLAS_GEMM_BATCHED_EX_PARAMETERS(I)                      \
    {                                                                                              \
        RECORD(#function, SIZES, W(alpha), W(A), type_a, lda, W(B), type_b, ldb, W(beta), W(C),    \
               type_c, ldc, batch, compute, algo);                                                 \
    }
#define GEMM_STRIDED_EX(function, I)                                                               \
    RECORDER_API cublasStatus_t function CUBLAS_GEMM_STRIDED_EX_PARAMETERS(I)                      \
    {                                                                                              \
        RECORD(#function, SIZES, W(alpha), W(A), type_a, lda, stride_a, W(B), type_b, ldb,         \
               stride_b, W(beta), W(C), type_c, ldc, stride_c, batch, compute, algo);              \
    }
CUBLAS_EX_FUNCTIONS(GEMM_EX, GEMM_BATCHED_EX, GEMM_STRIDED_EX)

/* ---- Handles --------------------------------------------------------------------------------- */

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int sms);

RECORDER_API cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

RECORDER_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

/* Functions that set or get a member of the handle. */
#define SET(function, T, name, member)                                                             \
    RECORDER_API cublasStatus_t function(cublasHandle_t handle, T name)                            \
    {                                                                                              \
        if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;                                  \
        handle->member = name;                                                                     \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    }
#define GET(function, T, name, member)                                                             \
    RECORDER_API cublasStatus_t function(cublasHandle_t handle, T *name)                           \
    {                                                                                              \
        if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;                                  \
        *(name) = handle->member;                                                                  \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    }
SET(cublasSetStream_v2, cudaStream_t, stream, stream)
GET(cublasGetStream_v2, cudaStream_t, stream, stream)
SET(cublasSetPointerMode_v2, cublasPointerMode_t, mode, pointer_mode)
GET(cublasGetPointerMode_v2, cublasPointerMode_t, mode, pointer_mode)
SET(cublasSetMathMode, cublasMath_t, mode, math_mode)
GET(cublasGetMathMode, cublasMath_t, mode, math_mode)
SET(cublasSetSmCountTarget, int, sms, sms)
GET(cublasGetSmCountTarget, int, sms, sms)

/* Checks the alignment, as the real function does. */
RECORDER_API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                                  size_t bytes)
{
    enum { INVALID_VALUE = 7 };
    if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((uintptr_t)workspace % 16 != 0) return INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}
