/* SPDX-License-Identifier: Apache-2.0
 *
 * A product that a device may compute without a plan.
 */
#ifndef TGL_SMALL_PRODUCT_H
#define TGL_SMALL_PRODUCT_H

#include "problem/shape.h"

#include <stdbool.h>

/* What a product of complex elements has beside the members of a real one. */
typedef struct tgl_complex_part {
    double alpha_imag, beta_imag;
    bool conj_a, conj_b;
} tgl_complex_part;

/* C := alpha*op(A)*op(B) + beta*C, row-major, with checked arguments. A, B and C are all of one
 * type: f32, f64, c64 or c128. op(A) is m x k. */
typedef struct tgl_small_product {
    tgl_type type;
    bool trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    double alpha, beta; /* not rounded to the type; alpha would not be 0 after rounding */
    const void *A, *B;
    void *C;
    tgl_complex_part *complex; /* of complex types; of real ones NULL, or all members are 0 */
} tgl_small_product;

/* The product of this shape, or one product of its batch. The caller sets the scalars and pointers,
 * also `complex`.
 * Member C stands for D of the shape. */
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
