/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of the kernel family accurate: products with their operands, a reference, and the
 * result of FFMA, a loop of fused multiply-adds over k, for the same operands. The tests run on the
 * simulator, whose tensor cores add as Hopper's do, or on the device that TEGULA_TEST_DEVICE names.
 */
#ifndef ACCURATE_CASE_H
#define ACCURATE_CASE_H

#include "support.h"

typedef struct product {
    const char *name, *kernel;
    int m, n, k, batch; /* batch: 0 means 1 */
    bool trans_a, trans_b, shares_a;
    int pad, skip; /* unused elements after each row of A and B, and before each matrix */
    float alpha, beta;
    bool device_scalars, separate_d;
    tgl_bias bias;
    tgl_activation activation;
    bool residual;
    tgl_type type_c; /* 0: F32 */
} product;

/* op(A) and op(B) of all products of the batch, row-major and tight, and the other operands. */
typedef struct data {
    float *a, *b, *c, *bias, *residual;
} data;

/* Whether the next case belongs to the part of the sweep that this program runs (support.h). */
bool is_mine(void);

/* Random numbers: uniform in (0, 1), uniform in (-1, 1), and normal. */
typedef double draw_fn(void);
double uniform(void);
double symmetric(void);
double normal(void);

float *floats(int64_t count);
data make_data(const product *p);
void free_data(data *d);
void fill(float *x, int64_t count, draw_fn *draw);
void fill_both(const product *p, data *d, draw_fn *draw);
float *a_at(const product *p, const data *d, int row, int i);
float *b_at(const product *p, const data *d, int i, int col);

enum { LISTED_MAX = 127 /* of 64 lines */, BELOW = -28 /* so much smaller than the largest */ };

/* Sets row `row` of op(A) to ones, except `count` small elements of about 2^exponent. Column `col`
 * of op(B) becomes zero wherever the row is one, so that the product of the row and the column is
 * the sum of the products of the small elements. */
void hide(const product *p, data *d, int row, int col, int count, int exponent);

/* An element of the product without alpha, beta and epilogue. */
typedef struct truth {
    double sum, absolute; /* the sum to about 2^-53, and the sum of the absolute values */
    float ffma;           /* the sum by FFMA */
} truth;
truth truth_of(const product *p, const data *d, int z, int row, int col);

/* Computes the product on the device. Returns the result, row-major and tight. */
float *compute(tgl_device *dev, const product *p, const data *d);
/* Computes the product and checks its errors, in units of 2^-24 (|alpha||A||B| + |beta C|). The
 * greatest error may be at most the larger of 10 and 1.1 times FFMA's. has_small_rms: the RMS error
 * may be at most half of FFMA's. */
void check_errors(tgl_device *dev, const product *p, const data *d, bool has_small_rms);
product square(const char *name, int k);
int batch_of(const product *p);

/* The names of all configurations of the family. */
enum { ACCURATE_KERNELS = 6 };
extern const char *const accurate_kernels[ACCURATE_KERNELS];

#endif
