/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers, made from bits that are the same on every machine (SplitMix64), and the inputs of
 * accuracy tests. The program and the tests share this generator.
 */
#ifndef CLI_RANDOM_H
#define CLI_RANDOM_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stdint.h>

/* The state of a random number generator. */
typedef uint64_t random_state;

/* Starts the generator. Different streams of the same seed give different numbers. */
void random_seed(random_state *r, uint64_t seed, uint64_t stream);

uint64_t random_bits(random_state *r);
double random_unit(random_state *r);   /* uniformly distributed in (0, 1) */
double random_normal(random_state *r); /* normally distributed with mean 0 and variance 1 */

/* Uniform in [low, high]. */
int64_t random_int(random_state *r, int64_t low, int64_t high);

/* True with probability 1/times. */
bool random_once_in(random_state *r, int times);

/* Distributions of the elements of A and B. In the formulas, U is a number drawn from UNIFORM_01
 * and N one drawn from NORMAL. */
typedef enum inputs {
    UNIFORM_01,   /* uniform in (0, 1): all products are positive, so none cancel */
    UNIFORM_11,   /* uniform in (-1, 1) */
    NORMAL,       /* normally distributed with mean 0 and variance 1 */
    WIDE,         /* (U - 0.5) * exp(phi*N) with phi up to 4, so that exponents differ widely */
    CANCELLATION, /* products that nearly cancel in pairs */
    DENORMAL,     /* inputs or products are below the smallest normal number */
    NON_FINITE,   /* uniform in (-1, 1), with some infinities, NaN and zeros of both signs */
    INPUTS_END,
    /* The following are for integers only. */
    EXTREMES = INPUTS_END, /* only the least and the greatest integer, for i8 -128 and 127 */
    LEAST,                 /* all are -128, which gives the greatest product; the sum of 2^17 such
                              products wraps */
} inputs;

const char *inputs_name(inputs kind);

/* Draws a distribution that suits the type: for floating point one of those before INPUTS_END, for
 * integers UNIFORM_11, UNIFORM_01, CANCELLATION, EXTREMES or LEAST. For integers the distributions
 * are scaled to the whole range of the type. */
inputs random_kind(random_state *r, tgl_type type);

/* Fills op(A) (m x k) and op(B) (k x n), both row-major, with numbers that `type` represents
 * exactly. */
void random_inputs(random_state *r, inputs kind, tgl_type type, int64_t m, int64_t n, int64_t k,
                   double *A, double *B);

/* Draws `count` numbers for C, a bias or a residual, for a product whose inputs are of this
 * kind. */
void random_addends(random_state *r, inputs kind, tgl_type type, int64_t count, double *X);

/* Draws `count` numbers of `type`, uniform in (-1, 1), or for integers over the whole range. Used
 * where no distribution of `inputs` is needed, as for products that are timed. */
void random_fill(random_state *r, tgl_type type, void *elements, int64_t count);

#endif
