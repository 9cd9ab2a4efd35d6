/* SPDX-License-Identifier: Apache-2.0
 *
 * What differs between products by the type of A and B, as data: a row for each type.
 */
#ifndef TGL_CPU_TYPES_H
#define TGL_CPU_TYPES_H

#include "cpu/kernels/cpu_words.h"
#include "problem/shape.h"

/* A set of values of an enum has the bit of each value. */
#define CPU_BIT(value) (1u << (value))

typedef struct cpu_type {
    tgl_type type;                  /* of A and B */
    unsigned results;               /* types that C and D may have */
    unsigned addends;               /* types that bias and residual may have */
    tgl_activation last_activation; /* the last one of tgl_activation that is applied */
    bool fits_tiles;         /* register tiles multiply the elements as they are stored; else blocks
                                are converted to f32, or multiplied by words */
    bool sums_are_integers;  /* exact, in int32 modulo 2^32; words multiply all elements. Else sums
                                are of f32 or f64, and words do not multiply some blocks */
    cpu_word_kind words;     /* how words multiply it */
    unsigned word_modes;     /* the tgl_compute modes in which they may */
    int64_t steps_of_vector; /* most steps of k of a vector times rows of a matrix, in f32 */
} cpu_type;

/* The row of the type of A; NULL: the cpu device does not multiply it. */
const cpu_type *tgl_cpu_type_of(const tgl_shape *shape);

#endif
