/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by cuBLAS and cuBLASLt.
 *
 * Both take column-major matrices. A row-major matrix is the column-major matrix of its transpose,
 * so C := op(A)*op(B) is computed as C^T := op(B)^T*op(A)^T: A and B, m and n are exchanged, and
 * the transpose flags stay.
 */
#include "cublas_state.h"
#include "elements.h"
#include "problem_options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

const char *cublas_way_name(cublas_way way)
{
    return way == CUBLAS_DEFAULT ? "cublas" : "cublaslt";
}

int cublas_operation(tgl_transpose trans)
{
    return trans == TGL_NO_TRANS     ? CUBLAS_OP_N
           : trans == TGL_CONJ_TRANS ? CUBLAS_OP_C
                                     : CUBLAS_OP_T;
}

int64_t cublas_result_stride(const tgl_problem *p)
{
    return p->type_d != 0 ? p->stride_d : p->stride_c;
}

/* Columns: type; cudaDataType; cublasComputeType_t; type of alpha and beta; 0 and 1 of that type,
 * complex numbers as pairs. */
static const float f32[][2] = {{0, 0}, {1, 0}};
static const double f64[][2] = {{0, 0}, {1, 0}};
static const int32_t i32[] = {0, 1};
static const struct type_row {
    tgl_type type;
    int data, compute, scale;
    const void *scalars[2];
} types[] = {
    {TGL_F32, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_F64, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, {f64[0], f64[1]}},
    {TGL_F16, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_BF16, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_F8_E4M3, CUDA_R_8F_E4M3, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_F8_E5M2, CUDA_R_8F_E5M2, CUBLAS_COMPUTE_32F, CUDA_R_32F, {f32[0], f32[1]}},
    {TGL_I8, CUDA_R_8I, CUBLAS_COMPUTE_32I, CUDA_R_32I, {&i32[0], &i32[1]}},
    {TGL_I32, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, {&i32[0], &i32[1]}},
    {TGL_C64, CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F, {f32[0], f32[1]}},
    {TGL_C128, CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F, {f64[0], f64[1]}},
};

static const struct type_row *row_of(tgl_type type)
{
    const int count = (int)(sizeof types / sizeof types[0]);
    for (int i = 0; i < count; i++)
        if (types[i].type == type) return &types[i];
    return &types[0];
}

int cublas_data_type(tgl_type type)
{
    return row_of(type)->data;
}

int cublas_scale_type(tgl_type type)
{
    return row_of(type)->scale;
}

int cublas_compute_type(const tgl_problem *p)
{
    const bool is_single = p->type_a == TGL_F32 || p->type_a == TGL_C64;
    return is_single && p->compute == TGL_COMPUTE_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                       : row_of(p->type_a)->compute;
}

const void *cublas_scalar(const tgl_problem *p, int value)
{
    return row_of(p->type_a)->scalars[value];
}

/* Runs a single product of one type without TF32 by the functions that most programs call, as
 * cublasSgemm(). */
static cublasStatus_t run_plain(const cublas *c, const tgl_problem *p, operand_set s)
{
    const int trans_a = cublas_operation(p->trans_a), trans_b = cublas_operation(p->trans_b);
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)stored_a(p).ld,
              ldb = (int)stored_b(p).ld;
    const void *one = cublas_scalar(p, 1), *zero = cublas_scalar(p, 0);
    const cublas_functions *call = &c->call;
    return (p->type_a == TGL_F64    ? call->cublasDgemm
            : p->type_a == TGL_C64  ? call->cublasCgemm
            : p->type_a == TGL_C128 ? call->cublasZgemm
                                    : call->cublasSgemm)(c->handle, trans_b, trans_a, n, m, k, one,
                                                         s.B, ldb, s.A, lda, zero, s.C, n);
}

static cublasStatus_t run_ex(const cublas *c, const tgl_problem *p, operand_set s)
{
    const int trans_a = cublas_operation(p->trans_a), trans_b = cublas_operation(p->trans_b);
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)stored_a(p).ld,
              ldb = (int)stored_b(p).ld;
    const int type_a = cublas_data_type(p->type_a), type_b = cublas_data_type(p->type_b);
    const int type_c = cublas_data_type(problem_result_type(p)), compute = cublas_compute_type(p);
    const void *one = cublas_scalar(p, 1), *zero = cublas_scalar(p, 0);
    if (p->batch == 1)
        return c->call.cublasGemmEx(c->handle, trans_b, trans_a, n, m, k, one, s.B, type_b, ldb,
                                    s.A, type_a, lda, zero, s.C, type_c, n, compute,
                                    CUBLAS_GEMM_DEFAULT);
    return c->call.cublasGemmStridedBatchedEx(
        c->handle, trans_b, trans_a, n, m, k, one, s.B, type_b, ldb, p->stride_b, s.A, type_a, lda,
        p->stride_a, zero, s.C, type_c, n, cublas_result_stride(p), (int)p->batch, compute,
        CUBLAS_GEMM_DEFAULT);
}

static bool is_plain(const tgl_problem *p)
{
    return p->batch == 1 && row_of(p->type_a)->scale == row_of(p->type_a)->data &&
           problem_result_type(p) == p->type_a &&
           cublas_compute_type(p) != CUBLAS_COMPUTE_32F_FAST_TF32;
}

bool cublas_run(const cublas_product *x, operand_set s)
{
    if (x->way == CUBLAS_LT_BEST) return cublaslt_run(x, &x->algo, s) == 0;
    return (is_plain(&x->problem) ? run_plain : run_ex)(x->lib, &x->problem, s) == 0;
}

/* Why cuBLAS is not used for a problem; NULL: it is. The bench has row-major, tight matrices
 * only. */
static const char *unsupported_reason(const tgl_problem *p, cublas_way way)
{
    const bool is_f8 = p->type_a == TGL_F8_E4M3 || p->type_a == TGL_F8_E5M2;
    if (is_f8 && way == CUBLAS_DEFAULT) return "only cuBLASLt takes 8-bit floating-point types";
    if (p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX || p->batch > INT_MAX)
        return "the sizes do not fit its integers";
    if (p->trans_a == TGL_CONJ_NO_TRANS || p->trans_b == TGL_CONJ_NO_TRANS)
        return "it has no conjugate without transpose";
    if (!element_is_known(p->type_a) || p->type_a != p->type_b) return "it does not take the types";
    return NULL;
}

cublas_product *cublas_prepare(cublas *c, cublas_way way, const operands *o, char *message,
                               size_t message_size)
{
    const tgl_problem *p = &o->problem;
    const char *reason = unsupported_reason(p, way);
    if (reason != NULL) {
        snprintf(message, message_size, "%s", reason);
        return NULL;
    }
    cublas_product *x = calloc(1, sizeof *x);
    if (x == NULL) {
        snprintf(message, message_size, "no memory");
        return NULL;
    }
    *x = (cublas_product){.lib = c, .way = way, .problem = *p};
    if (way == CUBLAS_DEFAULT || cublaslt_choose(x, o, message, message_size)) return x;
    cublas_release(x);
    return NULL;
}

void cublas_release(cublas_product *x)
{
    if (x == NULL) return;
    const cublas_functions *call = &x->lib->call;
    if (x->C != NULL) call->cublasLtMatrixLayoutDestroy(x->C);
    if (x->B != NULL) call->cublasLtMatrixLayoutDestroy(x->B);
    if (x->A != NULL) call->cublasLtMatrixLayoutDestroy(x->A);
    if (x->desc != NULL) call->cublasLtMatmulDescDestroy(x->desc);
    tgl_free(x->lib->dev, x->workspace);
    free(x);
}

tgl_status cublas_multiply(cublas *c, const operands *o, bool *is_done)
{
    char why[200];
    cublas_product *product = cublas_prepare(c, CUBLAS_DEFAULT, o, why, sizeof why);
    *is_done = product != NULL && cublas_run(product, operands_for(o, 0));
    const tgl_status status = tgl_device_sync(o->dev);
    cublas_release(product);
    return status;
}
