/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks with few comparisons whether a product has only usual and valid arguments, and passes such
 * a product to the device.
 */
#include "api/small_calls.h"

#include <stddef.h>

/* Conditions that nearly always hold are combined with | into one test. The branches that && and ||
 * compile to take about as long as a product of 4 x 4 x 4. */

/* Whether a product of these types may be computed without a plan. */
static inline bool is_multiplied(tgl_type type)
{
    return (unsigned)type - TGL_F32 <= TGL_F64 - TGL_F32 || tgl_type_is_complex(type);
}

/* Runs a normalised product, if alpha and the pointers are valid, and the real part of alpha is not
 * 0. */
static inline bool run(const tgl_device *dev, const tgl_small_product *x)
{
    const bool is_single = tgl_type_is_single(x->type);
    const uintptr_t unaligned = is_single ? sizeof(float) - 1 : sizeof(double) - 1;
    const uintptr_t addresses = (uintptr_t)x->A | (uintptr_t)x->B | (uintptr_t)x->C;
    const bool has_null = (x->A == NULL) | (x->B == NULL) | (x->C == NULL);
    const bool is_zero = is_single ? (float)x->alpha == 0 : x->alpha == 0;
    return !(has_null | ((addresses & unaligned) != 0) | is_zero) &&
           dev->backend->run_small(dev, x);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

#define EXCHANGE(x, y)                                                                             \
    do {                                                                                           \
        __typeof__(x) old_x = (x), old_y = (y);                                                    \
        __asm__("" : "+r"(old_x), "+r"(old_y));                                                    \
        (x) = old_y;                                                                               \
        (y) = old_x;                                                                               \
    } while (0)

/* Takes conjugates into account. False: a transpose is invalid. */
static __attribute__((noinline)) bool take_conjugates(tgl_order order, tgl_transpose trans_a,
                                                      tgl_transpose trans_b, tgl_small_product *x)
{
    const tgl_transpose trans[] = {trans_a, trans_b};
    bool conjugates[2];
    for (int i = 0; i < 2; i++) {
        if (trans[i] < TGL_NO_TRANS || trans[i] > TGL_CONJ_NO_TRANS) return false;
        conjugates[i] = tgl_type_is_complex(x->type) && trans[i] >= TGL_CONJ_TRANS;
    }
    x->trans_a = trans_a == TGL_TRANS || trans_a == TGL_CONJ_TRANS;
    x->trans_b = trans_b == TGL_TRANS || trans_b == TGL_CONJ_TRANS;
    x->complex.conj_a = conjugates[order == TGL_COL_MAJOR]; /* of the exchanged matrices */
    x->complex.conj_b = conjugates[order != TGL_COL_MAJOR];
    return true;
}

/* EXCHANGE() exchanges members one by one; its asm keeps the compiler from exchanging two members
 * with one wide load. A wide load of members that were just stored one by one stalls the processor.
 * zero_is_tight: a leading dimension of 0 stands for the smallest one. */
static inline bool call(const tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                        tgl_transpose trans_b, bool zero_is_tight, tgl_small_product *x)
{
    if (dev == NULL || dev->backend->run_small == NULL) return false;
    x->trans_a = trans_a != TGL_NO_TRANS;
    x->trans_b = trans_b != TGL_NO_TRANS;
    if (((x->trans_a && trans_a != TGL_TRANS) || (x->trans_b && trans_b != TGL_TRANS)) &&
        !take_conjugates(order, trans_a, trans_b, x))
        return false;
    if (order == TGL_COL_MAJOR) { /* the row-major product of the transposed matrices */
        EXCHANGE(x->m, x->n);
        EXCHANGE(x->trans_a, x->trans_b);
        EXCHANGE(x->lda, x->ldb);
        EXCHANGE(x->A, x->B);
    } else if (order != TGL_ROW_MAJOR) {
        return false;
    }
    const int64_t row_a = x->trans_a ? x->m : x->k, row_b = x->trans_b ? x->k : x->n;
    if (zero_is_tight) {
        if (x->lda == 0) x->lda = row_a;
        if (x->ldb == 0) x->ldb = row_b;
        if (x->ldc == 0) x->ldc = x->n;
    }
    const bool are_short = (x->lda < row_a) | (x->ldb < row_b) | (x->ldc < x->n);
    /* Larger leading dimensions may exceed what tgl_problem_check() accepts. */
    const bool are_large = (x->lda | x->ldb | x->ldc) >> 31 != 0;
    return !(are_short | are_large) && run(dev, x);
}

bool tgl_small_call(const tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                    tgl_transpose trans_b, tgl_small_product *x)
{
    return call(dev, order, trans_a, trans_b, false, x);
}

/* Whether all members that a product need not set have their defaults. */
enum { SIZE_WITHOUT_GROUPS = offsetof(tgl_problem, grouping) }; /* of earlier versions */

static bool is_plain(const tgl_problem *p)
{
    const bool is_known = (p->size == SIZE_WITHOUT_GROUPS) | (p->size == sizeof *p);
    if (!is_known || !is_multiplied(p->type_a)) return false;
    if (p->size == sizeof *p && p->grouping != TGL_GROUPED_NONE) return false;
    const unsigned types = (p->type_b ^ p->type_a) | (p->type_c ^ p->type_a) | p->type_d |
                           p->type_accumulate | p->type_scale;
    const unsigned modes = (p->compute ^ TGL_COMPUTE_DEFAULT) | (p->scalars ^ TGL_SCALARS_HOST) |
                           (p->batching ^ TGL_STRIDED) | (p->scaling_a ^ TGL_SCALING_NONE) |
                           (p->scaling_b ^ TGL_SCALING_NONE) | (p->scaling_d ^ TGL_SCALING_NONE);
    const int64_t numbers = (p->batch ^ 1) | p->ldd | p->stride_a | p->stride_b | p->stride_c |
                            p->stride_d | p->alignment;
    return (types | modes) == 0 && numbers == 0;
}

bool tgl_small_gemm(const tgl_device *dev, const tgl_problem *p, double alpha, const void *A,
                    const void *B, double beta, void *C)
{
    if (dev == NULL || dev->backend->run_small == NULL || p == NULL || !is_plain(p)) return false;
    tgl_small_product x = {.type = p->type_a,
                           .m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .lda = p->lda,
                           .ldb = p->ldb,
                           .ldc = p->ldc,
                           .alpha = alpha,
                           .beta = beta,
                           .A = A,
                           .B = B,
                           .C = C};
    return call(dev, p->order, p->trans_a, p->trans_b, true, &x);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

void tgl_small_prepare(tgl_plan *plan, const tgl_plan_options *options)
{
    const tgl_shape *s = &plan->shape;
    const bool has_type = is_multiplied(s->type_a) && tgl_shape_is_all(s, s->type_a);
    if (plan->dev->backend->run_small == NULL || options->kernel != NULL || !has_type ||
        s->batch != 1 || s->grouping != TGL_GROUPED_NONE || !s->in_place || s->pointers ||
        s->device_scalars || !tgl_epilogue_is_none(&s->epilogue))
        return;
    plan->small = tgl_small_product_of(s);
}

/* Programs that were compiled before there were complex types pass a struct of this size. */
enum {
    SIZE_WITHOUT_IMAG = offsetof(tgl_operands, alpha_imag),
    SIZE_BEFORE_GROUPS = offsetof(tgl_operands, groups)
};

/* Whether a run has only A, B, C and scalars. */
static bool has_matrices_only(const tgl_operands *o)
{
    const bool is_known =
        (o->size == sizeof *o) | (o->size == SIZE_BEFORE_GROUPS) | (o->size == SIZE_WITHOUT_IMAG);
    if (o->size == sizeof *o && o->groups != NULL) return false;
    return is_known && o->alpha_at == NULL && o->beta_at == NULL && o->D == NULL &&
           o->A_array == NULL && o->B_array == NULL && o->C_array == NULL && o->D_array == NULL &&
           o->bias == NULL && o->residual == NULL && o->scale_a == NULL && o->scale_b == NULL &&
           o->scale_d == NULL && o->prepared_a == NULL && o->prepared_b == NULL;
}

static inline bool run_plan(const tgl_plan *plan, double alpha, double alpha_imag, const void *A,
                            const void *B, double beta, double beta_imag, void *C)
{
    tgl_small_product x = plan->small;
    x.alpha = alpha;
    x.beta = beta;
    x.complex.alpha_imag = alpha_imag;
    x.complex.beta_imag = beta_imag;
    x.A = plan->shape.swapped ? B : A;
    x.B = plan->shape.swapped ? A : B;
    x.C = C;
    return run(plan->dev, &x);
}

bool tgl_small_plan(const tgl_plan *plan, double alpha, const void *A, const void *B, double beta,
                    void *C)
{
    return plan != NULL && plan->small.m != 0 && run_plan(plan, alpha, 0, A, B, beta, 0, C);
}

bool tgl_small_plan_operands(const tgl_plan *plan, const tgl_operands *o)
{
    if (plan == NULL || plan->small.m == 0 || o == NULL || !has_matrices_only(o)) return false;
    const bool has_imag = o->size == sizeof *o;
    const double alpha_imag = has_imag ? o->alpha_imag : 0, beta_imag = has_imag ? o->beta_imag : 0;
    const bool is_real = !((alpha_imag != 0) | (beta_imag != 0));
    if (!is_real && !tgl_type_is_complex(plan->small.type)) return false;
    return run_plan(plan, o->alpha, alpha_imag, o->A, o->B, o->beta, beta_imag, o->C);
}
