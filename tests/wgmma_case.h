/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the family wgmma share: products of small integers, whose sums are exact, so
 * that results are compared bit by bit. They run on the simulator, or on the device that
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
    int pad_a, pad_b, pad_c;    /* elements that rows are longer than need be */
    int skip_a, skip_b, skip_c; /* elements before the matrix */
    int batch;                  /* 0: 1 */
    bool shares_a;              /* all problems of the batch have one A */
    double alpha, beta;
    bool device_scalars;
    tgl_bias bias;
    tgl_activation activation; /* none or relu */
    bool residual;
    const char *expression; /* acc - c + row - 2 * col */
} product;

/* A matrix, or a batch of them, in host memory and that of the device. */
typedef struct matrix {
    tgl_type type;
    int64_t rows, cols, ld, skip, stride, count; /* count: elements in all */
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

/* Runs it twice: the counters have to be zero again after the first run. */
void run_product(tgl_device *dev, const product *p);

product basic_product(const char *kernel, tgl_type type, int m, int n, int k);

#endif
