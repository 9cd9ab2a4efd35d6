/* SPDX-License-Identifier: Apache-2.0 */
#include "cublas_calls.h"

#include <string.h>

#define SIZES(I) c->handle, c->trans_a, c->trans_b, (I)c->m, (I)c->n, (I)c->k

#define GEMM(function, T, I, ...)                                                                  \
    static cublasStatus_t call_##function(const cublas_call *c)                                    \
    {                                                                                              \
        return function(SIZES(I), (const T *)c->alpha, (const T *)c->A, (I)c->lda,                 \
                        (const T *)c->B, (I)c->ldb, (const T *)c->beta, (T *)c->C, (I)c->ldc);     \
    }
#define GEMM_BATCHED(function, T, I, ...)                                                          \
    static cublasStatus_t call_##function(const cublas_call *c)                                    \
    {                                                                                              \
        return function(SIZES(I), (const T *)c->alpha, (const T *const *)c->A, (I)c->lda,          \
                        (const T *const *)c->B, (I)c->ldb, (const T *)c->beta, (T *const *)c->C,   \
                        (I)c->ldc, (I)c->batch);                                                   \
    }
#define GEMM_STRIDED(function, T, I, ...)                                                          \
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

CUBLAS_TYPED_FUNCTIONS(GEMM, GEMM_BATCHED, GEMM_STRIDED)
CUBLAS_EX_FUNCTIONS(GEMM_EX, GEMM_BATCHED_EX, GEMM_STRIDED_EX)

#define ROW_ONE(function, T, I, ...)                                                               \
    {#function, ONE, sizeof(I) == 8, false, __VA_ARGS__, call_##function},
#define ROW_BATCHED(function, T, I, ...)                                                           \
    {#function, POINTERS, sizeof(I) == 8, false, __VA_ARGS__, call_##function},
#define ROW_STRIDED(function, T, I, ...)                                                           \
    {#function, STRIDED, sizeof(I) == 8, false, __VA_ARGS__, call_##function},
#define ROW_EX(function, kind, I)                                                                  \
    {#function, kind, sizeof(I) == 8, true, CUDA_R_32F, CUBLAS_COMPUTE_32F, call_##function},
#define ROW_ONE_EX(function, I)     ROW_EX(function, ONE, I)
#define ROW_BATCHED_EX(function, I) ROW_EX(function, POINTERS, I)
#define ROW_STRIDED_EX(function, I) ROW_EX(function, STRIDED, I)

/* Columns: see function_row. */
const function_row cublas_functions[44] = {
    CUBLAS_TYPED_FUNCTIONS(ROW_ONE, ROW_BATCHED, ROW_STRIDED)
        CUBLAS_EX_FUNCTIONS(ROW_ONE_EX, ROW_BATCHED_EX, ROW_STRIDED_EX)};

static void add(recorded_call *r, long long word)
{
    r->words[r->count++] = word;
}

/* Adds the arguments for a matrix: its pointer, its leading dimension, and its type and stride if
 * the function has them. */
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
