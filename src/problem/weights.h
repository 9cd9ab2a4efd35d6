/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights: a matrix of integers of 8 or 4 bits that is multiplied by a matrix of F16 or BF16. An
 * element is w = (q - zero) * factor (tgl_type in tegula.h). The normalised shape describes the
 * product of two matrices of 16 bits; this struct says how the weights lie in memory.
 */
#ifndef TGL_WEIGHTS_H
#define TGL_WEIGHTS_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* A line is a column of op(B), or a row of op(A) if the shape is swapped. The factor and the zero
 * point of element p of a line of matrix i have the index
 *     p / group * ld + line * line_step + i * stride */
typedef struct tgl_weights {
    tgl_type type; /* I8 or I4; 0: the shape has no weights, and the other members are 0 */
    bool is_a;     /* the weights are A of the shape, because it is swapped */
    bool has_factors, has_zeros;
    int64_t group; /* number of successive k that share a factor, at least 1; k if the factors are
                      not per group */
    int64_t ld, line_step, stride;
} tgl_weights;

/* Checks what a problem says of weights. Its sizes and types must be valid. */
tgl_status tgl_weights_check(const tgl_problem *p);

/* The weights of a checked problem. */
tgl_weights tgl_weights_of(const tgl_problem *p);

static inline bool tgl_weights_is_same(const tgl_weights *x, const tgl_weights *y)
{
    return x->type == y->type && x->is_a == y->is_a && x->has_factors == y->has_factors &&
           x->has_zeros == y->has_zeros && x->group == y->group && x->ld == y->ld &&
           x->line_step == y->line_step && x->stride == y->stride;
}

#endif
