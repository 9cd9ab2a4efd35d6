/* SPDX-License-Identifier: Apache-2.0
 *
 * The products that a rank computes with its device, and the list of their plans.
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

/* A local product: C := alpha*op(A)*op(B) + beta*C, or D := ... if the problem has a D. With
 * has_epilogue also bias and activation. residual: a matrix with C's type and leading dimension,
 * which is added last; NULL: none. */
typedef struct dist_product {
    tgl_problem problem;
    bool has_epilogue;
    double alpha, beta;
    const void *A, *B, *bias, *residual;
    void *C, *D;
} dist_product;

tgl_status dist_multiply(dist_products *products, const dist_product *product);
void dist_products_free(dist_products *products);

#endif
