/* SPDX-License-Identifier: Apache-2.0
 *
 * What differs between products by the type of A and B, as data: a row for each type.
 */
#ifndef TGL_CPU_TYPES_H
#define TGL_CPU_TYPES_H

#include "cpu/kernels/cpu_words.h"
#include "problem/shape.h"

/* A set of enum values is a bit mask; this is the bit of one value. */
#define CPU_BIT(value) (1u << (value))

typedef struct cpu_type {
    tgl_type type;                  /* the type of A and B */
    unsigned scaled;                /* set of: 0: products without scales; 1: with scales */
    unsigned results;               /* types that C and D may have */
    unsigned addends;               /* types that bias and residual may have */
    tgl_activation last_activation; /* values of tgl_activation up to this one are supported */
    bool fits_tiles;         /* register tiles multiply the elements as they are stored; else blocks
                                are converted to f32, or multiplied by words */
    bool sums_are_integers;  /* sums are int32 modulo 2^32, and kernels of words (cpu_words.h) can
                                multiply any elements. Else sums are f32 or f64, and some blocks
                                cannot be multiplied by words */
    cpu_word_kind words;     /* how words (cpu_words.h) write an element */
    unsigned word_modes;     /* set of the tgl_compute modes that permit kernels of words */
    int64_t steps_of_vector; /* GEMV that adds rows of a matrix in f32: the most steps of k; 0:
                                there are no kernels for GEMV */
} cpu_type;

/* The row of the type of A; NULL: the cpu device does not multiply it. */
const cpu_type *tgl_cpu_type_of(const tgl_shape *shape);

#endif
