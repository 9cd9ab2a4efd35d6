/* SPDX-License-Identifier: Apache-2.0
 *
 * The properties of the types of A and B that plans depend on: a table with a row for each type,
 * and two for int8, without and with scale factors.
 */
#ifndef TGL_CPU_TYPES_H
#define TGL_CPU_TYPES_H

#include "cpu/kernels/cpu_words.h"
#include "problem/shape.h"

/* Sets of enum values are bit masks. This is the bit of one value. */
#define CPU_BIT(value) (1u << (value))

typedef struct cpu_type {
    tgl_type type;    /* the type of A and B */
    unsigned scaled;  /* a set: bit 0 if the row is for products without scale factors, bit 1 if for
                         products with scale factors */
    unsigned results; /* a set of types: those that C and D may have */
    unsigned addends; /* a set of types: those that bias and residual may have */
    tgl_activation last_activation; /* the last supported activation, in the order of
                                       tgl_activation */
    bool fits_tiles;         /* register tiles multiply the elements as they are stored; false:
                                blocks are converted to f32, or multiplied by words */
    bool sums_are_integers;  /* sums are int32 modulo 2^32, and words (cpu_words.h) represent every
                                element; false: sums are f32 or f64, and some blocks cannot be
                                multiplied by words */
    cpu_word_kind words;     /* how the kernels of words (cpu_words.h) represent an element */
    unsigned word_modes;     /* set of the tgl_compute modes in which kernels of words are
                                permitted */
    int64_t steps_of_vector; /* maximum number of terms that a GEMV in blocks (cpu_blocks.c) adds up
                                in f32 at once; 0: it has no GEMV kernels for this type */
} cpu_type;

/* The row for the type of A and the use of scale factors; NULL: the cpu device does not support
 * them. */
const cpu_type *tgl_cpu_type_of(const tgl_shape *shape);

#endif
