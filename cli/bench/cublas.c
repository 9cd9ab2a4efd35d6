/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by cuBLAS and cuBLASLt.
 *
 * Both take column-major matrices. A row-major matrix is the column-major matrix of its transpose,
 * so C := op(A)*op(B) is computed as C^T := op(B)^T*op(A)^T: A and B, m and n are exchanged, and
 * the transpose flags stay.
 */
#include "cublas.h"
#include "cublas_types.h"
#include "cublaslt.h"
#include "elements.h"
#include "problem_options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct cublas_product {
    const cublas *lib;
    cublas_way way;
    tgl_problem problem;
    cublaslt_product light; /* used only for CUBLAS_LT_BEST */
};

const char *cublas_way_name(cublas_way way)
{
    return way == CUBLAS_DEFAULT ? "cublas" : "cublaslt";
}

/* Runs a product by the functions that most programs call, such as cublasSgemm(). They take neither
 * batches, TF32 nor a C of another type than A and B; see is_plain(). */
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
    return p->batch == 1 && cublas_scale_type(p->type_a) == cublas_data_type(p->type_a) &&
           problem_result_type(p) == p->type_a &&
           cublas_compute_type(p) != CUBLAS_COMPUTE_32F_FAST_TF32;
}

bool cublas_run(const cublas_product *x, operand_set s)
{
    if (x->way == CUBLAS_LT_BEST) return cublaslt_run(&x->light, s);
    return (is_plain(&x->problem) ? run_plain : run_ex)(x->lib, &x->problem, s) == 0;
}

/* Why cuBLAS is not used for a problem; NULL: it is used. Order and leading dimensions are not
 * checked, because the program passes only row-major and tight matrices. */
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
    if (way == CUBLAS_DEFAULT || cublaslt_choose(&x->light, c, o, message, message_size)) return x;
    cublas_release(x);
    return NULL;
}

void cublas_release(cublas_product *x)
{
    if (x == NULL) return;
    if (x->way == CUBLAS_LT_BEST) cublaslt_release(&x->light);
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
