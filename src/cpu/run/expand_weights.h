/* SPDX-License-Identifier: Apache-2.0
 *
 * Expands a block of weights (problem/weights.h) to the 16-bit type of the other operand.
 */
#ifndef TGL_CPU_EXPAND_WEIGHTS_H
#define TGL_CPU_EXPAND_WEIGHTS_H

#include "cpu/kernels/cpu_words.h"
#include "problem/run.h"

/* A block of the weights of a run: `lines` lines (rows of op(A) or columns of op(B)) from `line`
 * on, k steps from `first` on, of matrix `problem` of the batch. */
typedef struct cpu_weights_block {
    const tgl_shape *shape;
    const tgl_run *run;
    const cpu_conversions *conversions;
    int64_t problem, line, lines, first, k;
} cpu_weights_block;

/* Writes the block to `to`, in the order of the stored matrix and without padding, and returns the
 * description of this copy. to: memory for lines*k elements of 16 bits. */
cpu_words_source tgl_cpu_expand_weights(const cpu_weights_block *x, void *to);

#endif
