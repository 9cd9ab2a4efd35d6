/* SPDX-License-Identifier: Apache-2.0
 *
 * How the families skinny and gemv see a product: a big operand with many lines (rows of A or
 * columns of B), times a small one with few. Complex products: kernels/lib/thin_lines.h.
 */
#ifndef TGL_THIN_H
#define TGL_THIN_H

#include "families/cost.h"
#include "plan/limits.h"

typedef struct tgl_thin {
    bool big_a;                        /* A is the big operand, else B */
    bool k_major;                      /* the big operand is K-major */
    int64_t length, count;             /* lines of the big operand, and of the small one */
    int big_parts, small_parts, pairs; /* macros BIG_PARTS, SMALL_PARTS and PAIRS */
} tgl_thin;

static inline tgl_thin tgl_thin_of(const tgl_shape *s)
{
    const bool is_complex = s->pairs_b != 0;
    const int64_t columns = is_complex ? s->n / 2 : s->n;
    tgl_thin t = {.big_a = s->m > columns};
    t.k_major = t.big_a ? !s->trans_a : s->trans_b;
    t.big_parts = is_complex && !t.k_major ? 2 : 1;
    t.small_parts = is_complex && t.k_major ? 2 : 1;
    t.length = (t.big_a ? s->m : columns) * t.big_parts;
    t.count = (t.big_a ? columns : s->m) * t.small_parts;
    /* The kernel's PAIRS conjugates the expanded operand as B. If A is expanded, 2 and 3, A*conj(B)
     * and conj(A)*B, are exchanged. */
    const bool expands_a = t.big_a != t.k_major;
    t.pairs = expands_a && (s->pairs_b == 2 || s->pairs_b == 3) ? 5 - s->pairs_b : s->pairs_b;
    return t;
}

/* Returns NULL, or why a kernel for `count` lines of the small operand cannot compute the product:
 * a static text. Kernels count the lines of both operands in 31 bits. If a complex A is expanded,
 * these are twice m, which may be more than TGL_EXTENT_MAX although m is not. */
static inline const char *tgl_thin_unsupported(const tgl_thin *t, int count)
{
    _Static_assert(TGL_EXTENT_MAX == 2147482623, "the sentence says so");
    if (t->count > count)
        return t->small_parts == 2 ? "it takes fewer rows or columns, and a complex one counts as "
                                     "two if the other operand is K-major"
               : count == 1        ? "it takes one row or column"
                                   : "it takes fewer rows or columns";
    if (t->length > TGL_EXTENT_MAX)
        return "it takes up to 2147482623 rows or columns, and a complex one counts as two if its "
               "operand is MN-major";
    return NULL;
}

/* tgl_copy_width() of the big operand, and of the small one along K. If the small operand has one
 * line in memory, its leading dimension does not matter. */
static inline int tgl_thin_width(const tgl_shape *s, const tgl_thin *t)
{
    return tgl_copy_width(s, t->k_major ? 0 : t->length, t->big_a ? s->lda : s->ldb,
                          t->big_a ? s->stride_a : s->stride_b);
}

static inline int tgl_thin_small_width(const tgl_shape *s, const tgl_thin *t)
{
    const bool is_line = s->pairs_b != 0 && t->count == t->small_parts;
    return tgl_copy_width(s, 0,
                          is_line    ? 0
                          : t->big_a ? s->ldb
                                     : s->lda,
                          t->big_a ? s->stride_b : s->stride_a);
}

#endif
