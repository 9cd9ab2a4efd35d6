/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a random list of products (tgl_grouped_list()) and compares it with a reference. The
 * elements are small integers, so the results are exact.
 */
#ifndef TGL_PRODUCT_LIST_CASE_H
#define TGL_PRODUCT_LIST_CASE_H

#include "support.h"

typedef struct product_list_case {
    int count;
    int64_t side; /* maximum of m, n and k; m, n and k may be 0 */
    uint64_t seed;
    bool is_mixed; /* true: types, transposes, orders and alignments are random; false: all products
                      have those below */
    tgl_type type;
    tgl_compute compute;
    bool trans_a, trans_b;
    bool is_aligned; /* sizes are multiples of 16 elements, addresses of 16 bytes */
} product_list_case;

/* The list in memory. All matrices are in one block of device memory. The bytes between them are
 * 255, which gives NaN in floating-point types and -1 in integers. */
typedef struct product_list {
    const product_list_case *c;
    tgl_problem *problems;
    tgl_operands *operands;
    size_t bytes;
    char *before, *expected; /* the block before and after the products */
    char *device;
} product_list;

/* Makes the list and uploads the block. */
product_list make_product_list(tgl_device *dev, const product_list_case *c);
void free_product_list(tgl_device *dev, product_list *list);

/* assert_products() fails the test unless the block has the expected results, assert_no_products()
 * unless the block is unchanged. The message describes the case. */
void assert_products(tgl_device *dev, const product_list *list);
void assert_no_products(tgl_device *dev, const product_list *list);

/* Makes, runs, checks and frees a list. */
void check_product_list(tgl_device *dev, const product_list_case *c);

#endif
