/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out with few comparisons that a product is plain and valid, and passes it to the device.
 */
#include "api/small_product.h"

static bool has_product(const tgl_small_product *x)
{
    return x->type == TGL_F32 ? (float)x->alpha != 0 : x->alpha != 0;
}

/* Runs a normalised product, if alpha and the pointers are valid. */
static bool run(const tgl_device *dev, const tgl_small_product *x)
{
    const uintptr_t unaligned = x->type == TGL_F32 ? sizeof(float) - 1 : sizeof(double) - 1;
    const uintptr_t addresses = (uintptr_t)x->A | (uintptr_t)x->B | (uintptr_t)x->C;
    return x->A != NULL && x->B != NULL && x->C != NULL && (addresses & unaligned) == 0 &&
           has_product(x) && dev->backend->run_small(dev, x);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

#define EXCHANGE(x, y)                                                                             \
    do {                                                                                           \
        const __typeof__(x) old = (x);                                                             \
        (x) = (y);                                                                                 \
        (y) = old;                                                                                 \
    } while (0)

/* Not one copy of the struct: reading words together that were just written one by one stalls the
 * processor. */
bool tgl_small_call(const tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                    tgl_transpose trans_b, tgl_small_product *x)
{
    if (dev == NULL || dev->backend->run_small == NULL) return false;
    x->trans_a = trans_a != TGL_NO_TRANS;
    x->trans_b = trans_b != TGL_NO_TRANS;
    if ((x->trans_a && trans_a != TGL_TRANS) || (x->trans_b && trans_b != TGL_TRANS)) return false;
    if (order == TGL_COL_MAJOR) { /* the row-major product of the transposed matrices */
        EXCHANGE(x->m, x->n);
        EXCHANGE(x->trans_a, x->trans_b);
        EXCHANGE(x->lda, x->ldb);
        EXCHANGE(x->A, x->B);
    } else if (order != TGL_ROW_MAJOR) {
        return false;
    }
    /* Larger leading dimensions may exceed what tgl_problem_check() accepts. */
    const bool are_small = (x->lda | x->ldb | x->ldc) >> 31 == 0;
    return x->lda >= (x->trans_a ? x->m : x->k) && x->ldb >= (x->trans_b ? x->k : x->n) &&
           x->ldc >= x->n && are_small && run(dev, x);
}

/* Whether all members that a product of f32 or f64 need not set have their defaults. */
static bool is_plain(const tgl_problem *p)
{
    return p->size == sizeof *p && (p->type_a == TGL_F32 || p->type_a == TGL_F64) &&
           p->type_b == p->type_a && p->type_c == p->type_a && p->type_d == 0 &&
           p->type_accumulate == 0 && p->compute == TGL_COMPUTE_DEFAULT &&
           p->scalars == TGL_SCALARS_HOST && p->batch == 1 && p->batching == TGL_STRIDED &&
           (p->ldd | p->stride_a | p->stride_b | p->stride_c | p->stride_d | p->alignment) == 0 &&
           p->scaling_a == TGL_SCALING_NONE && p->scaling_b == TGL_SCALING_NONE &&
           p->scaling_d == TGL_SCALING_NONE && p->type_scale == 0;
}

/* A leading dimension, where 0 means no padding. */
static int64_t leading(int64_t given, bool rows, int64_t row, int64_t column)
{
    return given != 0 ? given : rows ? row : column;
}

bool tgl_small_gemm(const tgl_device *dev, const tgl_problem *p, double alpha, const void *A,
                    const void *B, double beta, void *C)
{
    if (dev == NULL || dev->backend->run_small == NULL || p == NULL || !is_plain(p)) return false;
    const bool row_major = p->order == TGL_ROW_MAJOR;
    tgl_small_product x = {
        .type = p->type_a,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .lda = leading(p->lda, row_major == (p->trans_a == TGL_NO_TRANS), p->k, p->m),
        .ldb = leading(p->ldb, row_major == (p->trans_b == TGL_NO_TRANS), p->n, p->k),
        .ldc = leading(p->ldc, row_major, p->n, p->m),
        .alpha = alpha,
        .beta = beta,
        .A = A,
        .B = B,
        .C = C,
    };
    return tgl_small_call(dev, p->order, p->trans_a, p->trans_b, &x);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

void tgl_small_prepare(tgl_plan *plan, const tgl_plan_options *options)
{
    const tgl_shape *s = &plan->shape;
    const bool has_type = tgl_shape_is_all(s, TGL_F32) || tgl_shape_is_all(s, TGL_F64);
    if (plan->dev->backend->run_small == NULL || options->kernel != NULL || !has_type ||
        s->batch != 1 || !s->in_place || s->pointers || s->device_scalars ||
        !tgl_epilogue_is_none(&s->epilogue))
        return;
    plan->small = (tgl_small_product){
        .type = s->type_a,
        .trans_a = s->trans_a,
        .trans_b = s->trans_b,
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .lda = s->lda,
        .ldb = s->ldb,
        .ldc = s->ldc,
    };
}

/* Whether a run has only A, B, C and scalars. */
static bool has_matrices_only(const tgl_operands *o)
{
    return o->size == sizeof *o && o->alpha_at == NULL && o->beta_at == NULL && o->D == NULL &&
           o->A_array == NULL && o->B_array == NULL && o->C_array == NULL && o->D_array == NULL &&
           o->bias == NULL && o->residual == NULL && o->scale_a == NULL && o->scale_b == NULL &&
           o->scale_d == NULL && o->prepared_a == NULL && o->prepared_b == NULL;
}

bool tgl_small_plan(const tgl_plan *plan, double alpha, const void *A, const void *B, double beta,
                    void *C)
{
    if (plan == NULL || plan->small.m == 0) return false;
    tgl_small_product x = plan->small;
    x.alpha = alpha;
    x.beta = beta;
    x.A = plan->shape.swapped ? B : A;
    x.B = plan->shape.swapped ? A : B;
    x.C = C;
    return run(plan->dev, &x);
}

bool tgl_small_plan_operands(const tgl_plan *plan, const tgl_operands *o)
{
    return o != NULL && has_matrices_only(o) &&
           tgl_small_plan(plan, o->alpha, o->A, o->B, o->beta, o->C);
}
