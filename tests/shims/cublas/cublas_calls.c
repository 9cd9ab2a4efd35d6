/* SPDX-License-Identifier: Apache-2.0 */
#include "cublas_calls.h"

#include <string.h>

#define SIZES(I) c->handle, c->trans_a, c->trans_b, (I)c->m, (I)c->n, (I)c->k

#define GEMM(function, T, I)                                                                       \
    static cublasStatus_t call_##function(const cublas_call *c)                                    \
    {                                                                                              \
        return function(SIZES(I), (const T *)c->alpha, (const T *)c->A, (I)c->lda,                 \
                        (const T *)c->B, (I)c->ldb, (const T *)c->beta, (T *)c->C, (I)c->ldc);     \
    }
#define GEMM_BATCHED(function, T, I)                                                               \
    static cublasStatus_t call_##function(const cublas_call *c)                                    \
    {                                                                                              \
        return function(SIZES(I), (const T *)c->alpha, (const T *const *)c->A, (I)c->lda,          \
                        (const T *const *)c->B, (I)c->ldb, (const T *)c->beta, (T *const *)c->C,   \
                        (I)c->ldc, (I)c->batch);                                                   \
    }
#define GEMM_STRIDED(function, T, I)                                                               \
    static cublasStatus_t call_##function(const cublas_call *c)                                    \
    {                                                                                              \
        return function(SIZES(I), (const T *)c->alpha, (const T *)c->A, (I)c->lda, c->stride_a,    \
                        (const T *)c->B, (I)c->ldb, c->stride_b, (const T *)c->beta, (T *)c->C,    \
                        (I)c->ldc, c->stride_c, (I)c->batch);                                      \
    }
#define GEMM_EX(function, I)                                                                       \
    static cublasStatus_t call_##function(const cublas_call *c)                                    \
    {                                                                                              \
        return function(SIZES(I), c->alpha, c->A, c->type_a, (I)c->lda, c->B, c->type_b,           \
                        (I)c->ldb, c->beta, c->C, c->type_c, (I)c->ldc, c->compute, c->algo);      \
    }
#define GEMM_BATCHED_EX(function, I)                                                               \
    static cublasStatus_t call_##function(const cublas_call *c)                                    \
    {                                                                                              \
        return function(SIZES(I), c->alpha, (const void *const *)c->A, c->type_a, (I)c->lda,       \
                        (const void *const *)c->B, c->type_b, (I)c->ldb, c->beta,                  \
                        (void *const *)c->C, c->type_c, (I)c->ldc, (I)c->batch, c->compute,        \
                        c->algo);                                                                  \
    }
#define GEMM_STRIDED_EX(function, I)                                                               \
    static cublasStatus_t call_##function(const cublas_call *c)                                    \
    {                                                                                              \
        return function(SIZES(I), c->alpha, c->A, c->type_a, (I)c->lda, c->stride_a, c->B,         \
                        c->type_b, (I)c->ldb, c->stride_b, c->beta, c->C, c->type_c, (I)c->ldc,    \
                        c->stride_c, (I)c->batch, c->compute, c->algo);                            \
    }

GEMM(cublasSgemm_v2, float, int)
GEMM(cublasDgemm_v2, double, int)
GEMM(cublasHgemm, cublas_half, int)
GEMM(cublasSgemm_v2_64, float, int64_t)
GEMM(cublasDgemm_v2_64, double, int64_t)
GEMM(cublasHgemm_64, cublas_half, int64_t)
GEMM_BATCHED(cublasSgemmBatched, float, int)
GEMM_BATCHED(cublasDgemmBatched, double, int)
GEMM_BATCHED(cublasHgemmBatched, cublas_half, int)
GEMM_BATCHED(cublasSgemmBatched_64, float, int64_t)
GEMM_BATCHED(cublasDgemmBatched_64, double, int64_t)
GEMM_BATCHED(cublasHgemmBatched_64, cublas_half, int64_t)
GEMM_STRIDED(cublasSgemmStridedBatched, float, int)
GEMM_STRIDED(cublasDgemmStridedBatched, double, int)
GEMM_STRIDED(cublasHgemmStridedBatched, cublas_half, int)
GEMM_STRIDED(cublasSgemmStridedBatched_64, float, int64_t)
GEMM_STRIDED(cublasDgemmStridedBatched_64, double, int64_t)
GEMM_STRIDED(cublasHgemmStridedBatched_64, cublas_half, int64_t)
GEMM_EX(cublasGemmEx, int)
GEMM_EX(cublasGemmEx_64, int64_t)
GEMM_BATCHED_EX(cublasGemmBatchedEx, int)
GEMM_BATCHED_EX(cublasGemmBatchedEx_64, int64_t)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx, int)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx_64, int64_t)

#define ROW(function, kind, is_64, type, compute)                                                  \
    {                                                                                              \
#function, kind, is_64, false, type, compute, call_##function                              \
    }
#define ROW_EX(function, kind, is_64)                                                              \
    {                                                                                              \
#function, kind, is_64, true, CUDA_R_32F, CUBLAS_COMPUTE_32F, call_##function              \
    }

/* name, kind of batch, 64-bit sizes, element type, compute type */
const function_row cublas_functions[24] = {
    ROW(cublasSgemm_v2, ONE, false, CUDA_R_32F, CUBLAS_COMPUTE_32F),
    ROW(cublasDgemm_v2, ONE, false, CUDA_R_64F, CUBLAS_COMPUTE_64F),
    ROW(cublasHgemm, ONE, false, CUDA_R_16F, CUBLAS_COMPUTE_16F),
    ROW(cublasSgemm_v2_64, ONE, true, CUDA_R_32F, CUBLAS_COMPUTE_32F),
    ROW(cublasDgemm_v2_64, ONE, true, CUDA_R_64F, CUBLAS_COMPUTE_64F),
    ROW(cublasHgemm_64, ONE, true, CUDA_R_16F, CUBLAS_COMPUTE_16F),
    ROW(cublasSgemmBatched, POINTERS, false, CUDA_R_32F, CUBLAS_COMPUTE_32F),
    ROW(cublasDgemmBatched, POINTERS, false, CUDA_R_64F, CUBLAS_COMPUTE_64F),
    ROW(cublasHgemmBatched, POINTERS, false, CUDA_R_16F, CUBLAS_COMPUTE_16F),
    ROW(cublasSgemmBatched_64, POINTERS, true, CUDA_R_32F, CUBLAS_COMPUTE_32F),
    ROW(cublasDgemmBatched_64, POINTERS, true, CUDA_R_64F, CUBLAS_COMPUTE_64F),
    ROW(cublasHgemmBatched_64, POINTERS, true, CUDA_R_16F, CUBLAS_COMPUTE_16F),
    ROW(cublasSgemmStridedBatched, STRIDED, false, CUDA_R_32F, CUBLAS_COMPUTE_32F),
    ROW(cublasDgemmStridedBatched, STRIDED, false, CUDA_R_64F, CUBLAS_COMPUTE_64F),
    ROW(cublasHgemmStridedBatched, STRIDED, false, CUDA_R_16F, CUBLAS_COMPUTE_16F),
    ROW(cublasSgemmStridedBatched_64, STRIDED, true, CUDA_R_32F, CUBLAS_COMPUTE_32F),
    ROW(cublasDgemmStridedBatched_64, STRIDED, true, CUDA_R_64F, CUBLAS_COMPUTE_64F),
    ROW(cublasHgemmStridedBatched_64, STRIDED, true, CUDA_R_16F, CUBLAS_COMPUTE_16F),
    ROW_EX(cublasGemmEx, ONE, false),
    ROW_EX(cublasGemmEx_64, ONE, true),
    ROW_EX(cublasGemmBatchedEx, POINTERS, false),
    ROW_EX(cublasGemmBatchedEx_64, POINTERS, true),
    ROW_EX(cublasGemmStridedBatchedEx, STRIDED, false),
    ROW_EX(cublasGemmStridedBatchedEx_64, STRIDED, true),
};

static void add(recorded_call *r, long long word)
{
    r->words[r->count++] = word;
}

/* A matrix: its pointer, then its type, leading dimension and stride if the function has them. */
static void add_matrix(recorded_call *r, const function_row *f, const void *matrix, int type,
                       int64_t ld, int64_t stride)
{
    add(r, (long long)matrix);
    if (f->is_ex) add(r, type);
    add(r, ld);
    if (f->kind == STRIDED) add(r, stride);
}

recorded_call expected_record(const function_row *f, const cublas_call *c)
{
    recorded_call r = {.function = f->name};
    const long long first[] = {(long long)c->handle, c->trans_a, c->trans_b, c->m, c->n, c->k,
                               (long long)c->alpha};
    for (size_t i = 0; i < COUNT_OF(first); i++)
        add(&r, first[i]);
    add_matrix(&r, f, c->A, c->type_a, c->lda, c->stride_a);
    add_matrix(&r, f, c->B, c->type_b, c->ldb, c->stride_b);
    add(&r, (long long)c->beta);
    add_matrix(&r, f, c->C, c->type_c, c->ldc, c->stride_c);
    if (f->kind != ONE) add(&r, c->batch);
    if (f->is_ex) add(&r, c->compute), add(&r, c->algo);
    return r;
}
