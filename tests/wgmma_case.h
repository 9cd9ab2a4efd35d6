/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of the kernel family wgmma: products of small integers, whose sums are exact, so
 * that results are compared bit by bit. The tests run on the simulator, or on the device that
 * TEGULA_TEST_DEVICE names.
 */
#ifndef WGMMA_CASE_H
#define WGMMA_CASE_H

#include "support.h"

typedef struct product {
    const char *kernel;
    tgl_type type, type_c, type_d; /* type_d: 0: D is C */
    int m, n, k;
    bool trans_a, trans_b;
    int pad_a, pad_b, pad_c;    /* unused elements after each row */
    int skip_a, skip_b, skip_c; /* unused elements before the matrix */
    int batch;                  /* 0 means 1 */
    bool shares_a;              /* all products of the batch have the same A */
    double alpha, beta;
    bool device_scalars;
    tgl_bias bias;
    tgl_activation activation; /* none or relu */
    bool residual;
    const char *expression; /* NULL, or a text for acc - c + row - 2 * col */
} product;

/* A matrix, or a batch of matrices, in host memory and in device memory. */
typedef struct matrix {
    tgl_type type;
    int64_t rows, cols, ld, skip, stride, count; /* count: number of all elements */
    char *host;
    void *device;
} matrix;

typedef struct operands {
    matrix A, B, C, D, bias, residual, scalars;
} operands;

operands make_operands(tgl_device *dev, const product *p);

void free_operands(tgl_device *dev, const operands *o);

tgl_problem problem_for(const product *p, const operands *o);

tgl_operands given_operands(const product *p, const operands *o);

double element_at(const matrix *x, int64_t batch, int64_t row, int64_t col);

/* Runs the product twice and checks the results, because the counters in the workspace must be zero
 * again after the first run. */
void run_product(tgl_device *dev, const product *p);

product basic_product(const char *kernel, tgl_type type, int m, int n, int k);

#endif
