/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers that are the same on every machine (xoshiro256**, seeded by splitmix64), and the
 * inputs of which accuracy is judged.
 */
#ifndef CLI_RANDOM_H
#define CLI_RANDOM_H

#include "tegula/tegula.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct random_state {
    uint64_t word[4];
} random_state;

/* Streams of one seed are independent of one another. */
void random_seed(random_state *r, uint64_t seed, uint64_t stream);

uint64_t random_bits(random_state *r);
double random_unit(random_state *r);   /* uniform in [0, 1) */
double random_normal(random_state *r); /* mean 0, deviation 1 */

/* Uniform in [least, most]. */
int64_t random_between(random_state *r, int64_t least, int64_t most);

/* True once in `times`. */
bool random_once_in(random_state *r, int times);

/* Kinds of inputs; each is hard for a product in its own way. */
typedef enum input_kind {
    INPUT_POSITIVE,  /* uniform (0,1): sums grow, nothing cancels */
    INPUT_SYMMETRIC, /* uniform (-1,1) */
    INPUT_NORMAL,    /* normal */
    INPUT_WIDE,      /* (U-0.5)*exp(phi*N), phi up to 4: exponents far apart */
    INPUT_CANCEL,    /* pairs of products that nearly cancel */
    INPUT_DENORMAL,  /* inputs or products below the smallest normal number */
    INPUT_SPECIAL,   /* uniform (-1,1) with infinities, NaN and zeros among them */
    INPUT_KINDS,
} input_kind;

const char *input_kind_name(input_kind kind);

/* Fills op(A), m x k, and op(B), k x n, both row-major, with numbers that `type` holds exactly. */
void random_inputs(random_state *r, input_kind kind, tgl_type type, int64_t m, int64_t n, int64_t k,
                   double *A, double *B);

/* count elements of `type`, uniform (-1,1): what products are timed with. */
void random_fill(random_state *r, tgl_type type, void *elements, int64_t count);

#endif
