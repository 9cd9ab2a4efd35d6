/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the family accurate share: products with their operands, a reference, and
 * FFMA's result for the same operands. They run on the simulator, whose tensor cores add as
 * Hopper's do, or on the device that TEGULA_TEST_DEVICE names.
 */
#ifndef ACCURATE_CASE_H
#define ACCURATE_CASE_H

#include "support.h"

typedef struct product {
    const char *name, *kernel;
    int m, n, k, batch; /* batch: 0: 1 */
    bool trans_a, trans_b, shares_a;
    int pad, skip; /* elements between rows of A and B, and before them */
    float alpha, beta;
    bool device_scalars, separate_d;
    tgl_bias bias;
    tgl_activation activation;
    bool residual;
    tgl_type type_c; /* 0: F32 */
} product;

/* op(A) and op(B), row-major and tight, problem after problem, and C. */
typedef struct data {
    float *a, *b, *c, *bias, *residual;
} data;

/* Whether the next case is in this program's part of the sweep. */
bool is_mine(void);

/* Random numbers of U(0,1), U(-1,1) and N(0,1). */
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

/* Sets row `row` of op(A) to ones, except `count` small elements. Column `col` of op(B) is zero
 * wherever the row is one, so that their product is the sum of the small elements' products. */
void hide(const product *p, data *d, int row, int col, int count, int exponent);

/* The product before the epilogue: exact to about 2^-53, the sum of absolute values, and FFMA's. */
typedef struct truth {
    double sum, absolute;
    float ffma;
} truth;
truth truth_of(const product *p, const data *d, int z, int row, int col);

/* The result, row-major and tight. */
float *compute(tgl_device *dev, const product *p, const data *d);
/* The greatest error may be the larger of 10 and 1.1 times FFMA's. has_small_rms: the RMS error may
 * be half of FFMA's. */
void check_errors(tgl_device *dev, const product *p, const data *d, bool has_small_rms);
product square(const char *name, int k);
int batch_of(const product *p);

/* Every configuration. */
enum { ACCURATE_KERNELS = 6 };
extern const char *const accurate_kernels[ACCURATE_KERNELS];

#endif
