/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers that are the same on every machine (SplitMix64), and the inputs of accuracy tests.
 * The program and the tests share this generator.
 */
#ifndef CLI_RANDOM_H
#define CLI_RANDOM_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stdint.h>

/* The state of a generator; any value is a seed. */
typedef uint64_t random_state;

/* Starts the generator. Different streams of one seed give different numbers. */
void random_seed(random_state *r, uint64_t seed, uint64_t stream);

uint64_t random_bits(random_state *r);
double random_unit(random_state *r);   /* uniform in (0, 1) */
double random_normal(random_state *r); /* mean 0, variance 1 */

/* Uniform in [low, high]. */
int64_t random_int(random_state *r, int64_t low, int64_t high);

/* True with probability 1/times. */
bool random_once_in(random_state *r, int times);

/* Distributions of the elements of A and B. */
typedef enum inputs {
    UNIFORM_01,   /* (0, 1): all products are positive, none cancel */
    UNIFORM_11,   /* (-1, 1) */
    NORMAL,       /* mean 0, variance 1 */
    WIDE,         /* (U - 0.5) * exp(phi*N), phi up to 4: exponents far apart */
    CANCELLATION, /* pairs of products that nearly cancel */
    DENORMAL,     /* inputs or products below the smallest normal number */
    NON_FINITE,   /* (-1, 1), with infinities, NaN and zeros of both signs among them */
    INPUTS_END,
    /* Kinds of integers. */
    EXTREMES = INPUTS_END, /* only the least and the greatest integer: -128, 127 */
    LEAST,                 /* all are -128: the greatest product; 2^17 of them wrap the sum */
} inputs;

const char *inputs_name(inputs kind);

/* Draws a kind that the type supports. Integers are scaled to all numbers of the type; they have no
 * denormal and no non-finite numbers. */
inputs random_kind(random_state *r, tgl_type type);

/* Fills op(A) (m x k) and op(B) (k x n), both row-major, with numbers that `type` represents
 * exactly. */
void random_inputs(random_state *r, inputs kind, tgl_type type, int64_t m, int64_t n, int64_t k,
                   double *A, double *B);

/* Draws `count` numbers for C, a bias or a residual of a product whose inputs are of this kind. */
void random_addends(random_state *r, inputs kind, tgl_type type, int64_t count, double *X);

/* Draws `count` elements of `type`, uniform in (-1, 1), or all integers of the type. Products are
 * timed with these. */
void random_fill(random_state *r, tgl_type type, void *elements, int64_t count);

#endif
