/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks with few comparisons whether a product has only usual and valid arguments, and passes such
 * a product to the device.
 */
#include "api/small_calls.h"

#include <stddef.h>
#include <string.h>

/* Conditions that nearly always hold are combined with | into one test. With && and || each
 * condition would be a branch, and all these branches take about as long as a product of 4 x 4 x 4.
 */

/* Whether a device may compute products of this type without a plan: f32, f64, c64, c128. */
static inline bool is_multiplied(tgl_type type)
{
    return (unsigned)type - TGL_F32 <= TGL_F64 - TGL_F32 || tgl_type_is_complex(type);
}

/* Passes a normalised product to the device if the pointers are valid and the real part of alpha is
 * not 0. False: the product was not computed. */
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

/* Sets conj_a and conj_b of *complex. complex: NULL for real types. False: a transpose is
 * invalid. */
static __attribute__((noinline)) bool take_conjugates(tgl_order order, tgl_transpose trans_a,
                                                      tgl_transpose trans_b,
                                                      tgl_complex_part *complex)
{
    const tgl_transpose trans[] = {trans_a, trans_b};
    for (int i = 0; i < 2; i++)
        if (trans[i] < TGL_NO_TRANS || trans[i] > TGL_CONJ_NO_TRANS) return false;
    if (complex == NULL) return true;
    /* Column-major: A and B are exchanged. */
    complex->conj_a = trans[order == TGL_COL_MAJOR] >= TGL_CONJ_TRANS;
    complex->conj_b = trans[order != TGL_COL_MAJOR] >= TGL_CONJ_TRANS;
    return true;
}

/* Normalises the product and runs it. EXCHANGE() uses an asm, so that the compiler does not
 * exchange two members with one wide load: members that were just stored one by one would stall
 * such a load. zero_is_tight: true if a leading dimension of 0 means no padding. */
static inline bool call(const tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                        tgl_transpose trans_b, bool zero_is_tight, tgl_small_product *x)
{
    if (dev == NULL || dev->backend->run_small == NULL) return false;
    /* kind_a, kind_b: 0: none, 1: transpose, 2: conjugate transpose, 3: conjugate; greater:
     * invalid. */
    _Static_assert(TGL_TRANS == TGL_NO_TRANS + 1 && TGL_CONJ_TRANS == TGL_NO_TRANS + 2, "order");
    const unsigned kind_a = (unsigned)trans_a - TGL_NO_TRANS;
    const unsigned kind_b = (unsigned)trans_b - TGL_NO_TRANS;
    const bool is_unusual = (kind_a | kind_b) > 1;
    if (is_unusual && !take_conjugates(order, trans_a, trans_b, x->complex)) return false;
    bool swaps_a = kind_a - 1 <= 1, swaps_b = kind_b - 1 <= 1;
    if (order == TGL_COL_MAJOR) { /* computes C^T = op(B)^T * op(A)^T in row-major order */
        EXCHANGE(x->m, x->n);
        EXCHANGE(swaps_a, swaps_b);
        EXCHANGE(x->lda, x->ldb);
        EXCHANGE(x->A, x->B);
    } else if (order != TGL_ROW_MAJOR) {
        return false;
    }
    x->trans_a = swaps_a;
    x->trans_b = swaps_b;
    const int64_t row_a = swaps_a ? x->m : x->k, row_b = swaps_b ? x->k : x->n;
    if (zero_is_tight) {
        if (x->lda == 0) x->lda = row_a;
        if (x->ldb == 0) x->ldb = row_b;
        if (x->ldc == 0) x->ldc = x->n;
    }
    const bool are_short = (x->lda < row_a) | (x->ldb < row_b) | (x->ldc < x->n);
    /* Leading dimensions of 2^31 and more may exceed what tgl_problem_check() accepts. */
    const bool are_large = (x->lda | x->ldb | x->ldc) >> 31 != 0;
    return !(are_short | are_large) && run(dev, x);
}

bool tgl_small_call(const tgl_device *dev, tgl_order order, tgl_transpose trans_a,
                    tgl_transpose trans_b, tgl_small_product *x)
{
    return call(dev, order, trans_a, trans_b, false, x);
}

/* Whether *p has the size of an earlier version, and those of the members grouping, group_form,
 * ld_scale_a and ld_scale_b that the earlier version has are 0. */
static __attribute__((noinline)) bool is_plain_of_earlier(const tgl_problem *p)
{
    if (p->size == offsetof(tgl_problem, grouping)) return true;
    if (p->size != offsetof(tgl_problem, ld_scale_a) &&
        p->size != offsetof(tgl_problem, scale_group))
        return false;
    if ((p->grouping | (unsigned)p->group_form) != 0) return false;
    return p->size == offsetof(tgl_problem, ld_scale_a) || (p->ld_scale_a | p->ld_scale_b) == 0;
}

/* Whether all optional members have their default values. */
static bool is_plain(const tgl_problem *p)
{
    if (p->size == sizeof *p) {
        const unsigned groups = p->grouping | (unsigned)p->group_form;
        const unsigned weights = (unsigned)p->scale_group | p->type_zero_b;
        if ((groups | weights | p->ld_scale_a | p->ld_scale_b | p->stride_scale_b) != 0)
            return false;
    } else if (!is_plain_of_earlier(p)) {
        return false;
    }
    if (!is_multiplied(p->type_a)) return false;
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
                           .trans_a = false,
                           .trans_b = false,
                           .fetch_c = false,
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
                           .C = C,
                           .complex = NULL};
    tgl_complex_part complex;
    if (tgl_type_is_complex(p->type_a)) {
        complex = (tgl_complex_part){0};
        x.complex = &complex;
    }
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

/* Sizes of tgl_operands in earlier versions: the offset of the first member that the next version
 * added. */
enum {
    SIZE_BEFORE_IMAG = offsetof(tgl_operands, alpha_imag),
    SIZE_BEFORE_GROUPS = offsetof(tgl_operands, groups),
    SIZE_BEFORE_AMAX = offsetof(tgl_operands, amax_d),
    SIZE_BEFORE_ZERO = offsetof(tgl_operands, zero_b),
};

/* Whether *o has the size of an earlier version, and its members `groups` and `amax_d`, if it has
 * them, are NULL. */
static __attribute__((noinline)) bool has_plain_end_of_earlier(const tgl_operands *o)
{
    return o->size == SIZE_BEFORE_IMAG || o->size == SIZE_BEFORE_GROUPS ||
           (o->size == SIZE_BEFORE_AMAX && o->groups == NULL) ||
           (o->size == SIZE_BEFORE_ZERO && o->groups == NULL && o->amax_d == NULL);
}

static inline bool has_plain_end(const tgl_operands *o)
{
    if (o->size == sizeof *o) return o->groups == NULL && o->amax_d == NULL && o->zero_b == NULL;
    return has_plain_end_of_earlier(o);
}

/* Whether a run has only A, B, C and host scalars, and perhaps a workspace, which it does not use.
 */
static inline bool has_matrices_only(const tgl_operands *o)
{
    return o->alpha_at == NULL && o->beta_at == NULL && o->D == NULL && o->A_array == NULL &&
           o->B_array == NULL && o->C_array == NULL && o->D_array == NULL && o->bias == NULL &&
           o->residual == NULL && o->scale_a == NULL && o->scale_b == NULL && o->scale_d == NULL &&
           o->prepared_a == NULL && o->prepared_b == NULL;
}

/* Whether all bits of x and y are zero (+0.0), with one integer test. */
static inline bool are_zero(double x, double y)
{
    uint64_t x_bits, y_bits;
    memcpy(&x_bits, &x, sizeof x);
    memcpy(&y_bits, &y, sizeof y);
    return (x_bits | y_bits) == 0;
}

/* Runs a plan's product. complex: conjugates and imaginary parts; NULL for real types. */
static inline bool run_plan(const tgl_plan *plan, double alpha, const void *A, const void *B,
                            double beta, void *C, tgl_complex_part *complex)
{
    tgl_small_product x = plan->small;
    x.alpha = alpha;
    x.beta = beta;
    x.A = plan->shape.swapped ? B : A;
    x.B = plan->shape.swapped ? A : B;
    x.C = C;
    x.complex = complex;
    return run(plan->dev, &x);
}

static __attribute__((noinline)) bool run_complex(const tgl_plan *plan, double alpha,
                                                  double alpha_imag, const void *A, const void *B,
                                                  double beta, double beta_imag, void *C)
{
    tgl_complex_part complex = {alpha_imag, beta_imag, plan->shape.conj_a, plan->shape.conj_b};
    return run_plan(plan, alpha, A, B, beta, C, &complex);
}

bool tgl_small_plan(const tgl_plan *plan, double alpha, const void *A, const void *B, double beta,
                    void *C)
{
    if (plan == NULL || plan->small.m == 0) return false;
    if (tgl_type_is_complex(plan->small.type)) return run_complex(plan, alpha, 0, A, B, beta, 0, C);
    return run_plan(plan, alpha, A, B, beta, C, NULL);
}

bool tgl_small_plan_operands(const tgl_plan *plan, const tgl_operands *o)
{
    if (plan == NULL || plan->small.m == 0 || o == NULL) return false;
    if (!has_plain_end(o) || !has_matrices_only(o)) return false;
    const bool has_imag = o->size != SIZE_BEFORE_IMAG;
    if (tgl_type_is_complex(plan->small.type))
        return run_complex(plan, o->alpha, has_imag ? o->alpha_imag : 0, o->A, o->B, o->beta,
                           has_imag ? o->beta_imag : 0, o->C);
    if (has_imag && !are_zero(o->alpha_imag, o->beta_imag)) return false;
    return run_plan(plan, o->alpha, o->A, o->B, o->beta, o->C, NULL);
}
