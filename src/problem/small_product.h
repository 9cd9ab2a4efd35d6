/* SPDX-License-Identifier: Apache-2.0
 *
 * A product that a device may compute without a plan.
 */
#ifndef TGL_SMALL_PRODUCT_H
#define TGL_SMALL_PRODUCT_H

#include "problem/shape.h"

#include <stdbool.h>

/* The members that only a product of complex elements has. */
typedef struct tgl_complex_part {
    double alpha_imag, beta_imag;
    bool conj_a, conj_b;
} tgl_complex_part;

/* A small product C := alpha*op(A)*op(B) + beta*C, row-major, with checked arguments. A, B and C
 * have the same type: f32, f64, c64 or c128. op(A) is m x k. A call without a plan initialises all
 * members: otherwise gcc clears the struct first, which takes longer than the call's own work. */
typedef struct tgl_small_product {
    tgl_type type;
    bool trans_a, trans_b;
    bool fetch_c; /* C is not in a cache: each panel of op(B) prefetches C's part of the next one */
    int64_t m, n, k, lda, ldb, ldc;
    double alpha, beta; /* not rounded to the type; alpha is not 0 even after rounding */
    const void *A, *B;
    void *C;
    tgl_complex_part *complex; /* complex types: the members above; real types: NULL, or all zero */
} tgl_small_product;

/* The product of this shape, or of one problem of its batch. C is the shape's D. The caller sets
 * scalars, pointers and `complex`. */
static inline tgl_small_product tgl_small_product_of(const tgl_shape *s)
{
    return (tgl_small_product){
        .type = s->type_a,
        .trans_a = s->trans_a,
        .trans_b = s->trans_b,
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .lda = s->lda,
        .ldb = s->ldb,
        .ldc = s->ldd,
    };
}

#endif
