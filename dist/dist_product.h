/* SPDX-License-Identifier: Apache-2.0
 *
 * The products that a rank computes on its own device, and the list of their tgl_plans.
 */
#ifndef DIST_PRODUCT_H
#define DIST_PRODUCT_H

#include "tegula/dist.h"

#include <stdbool.h>

typedef struct planned_product planned_product;

/* A rank's device, and the plans of the products that have run. */
typedef struct dist_products {
    tgl_device *dev;
    const tgl_epilogue *epilogue; /* for products with has_epilogue; NULL: none */
    void *stream;
    planned_product *list;
    int count, room;
} dist_products;

/* A local product: C := alpha*op(A)*op(B) + beta*C or, if problem.type_d is not 0, D := this value.
 * With has_epilogue, bias and activation are then applied to it. residual: a matrix with C's type
 * and leading dimension, which is added last; NULL: none. */
typedef struct dist_product {
    tgl_problem problem;
    bool has_epilogue;
    double alpha, beta;
    const void *A, *B, *bias, *residual;
    void *C, *D;
} dist_product;

/* Enqueues a product in products->stream. If no plan in the list fits its sizes, leading
 * dimensions, types and epilogue, creates one first. */
tgl_status dist_multiply(dist_products *products, const dist_product *product);
void dist_products_free(dist_products *products);

#endif
