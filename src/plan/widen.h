/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of weights of 8 or 4 bits (problem/weights.h) are planned as products of 16-bit
 * matrices. A pre-pass (kernels/gemm/widen.cu) expands the weights to the type of the other operand
 * in scratch memory, and the kernel families see the 16-bit product only: their launches get
 * pointers to the expanded matrix. A family that reads weights directly (TGL_DIRECT_WEIGHTS)
 * gets the shape with weights, and there is no pre-pass.
 */
#ifndef TGL_WIDEN_H
#define TGL_WIDEN_H

#include "plan/chips.h"
#include "plan/launch_list.h"

/* The shape of the 16-bit product that computes a product of weights. For a shape without weights,
 * the shape itself. */
tgl_shape tgl_widened_shape(const tgl_shape *shape);

/* Bytes of the expanded weights; 0 for a shape without weights, or if k is 0. */
int64_t tgl_widened_bytes(const tgl_shape *shape);

/* The bytes of a workspace limit that remain for the 16-bit product, as tgl_complex_rest(). */
int64_t tgl_widened_rest(const tgl_shape *shape, int64_t limit);

/* Predicted seconds of the pre-pass; 0 for a shape without weights, or if k is 0. */
double tgl_widen_seconds(const tgl_chip *chip, const tgl_shape *shape);

/* What tgl_widen_begin() leaves to tgl_widen_end(). */
typedef struct tgl_widening {
    int64_t scratch; /* offset of the expanded weights in the scratch */
    int first_step;  /* the first step after the pre-pass */
} tgl_widening;

/* Adds the pre-pass of a product of weights, after which the caller adds the steps of the 16-bit
 * product. Does nothing for other shapes. has_overlap: the chip has TGL_HAS_OVERLAP. */
tgl_widening tgl_widen_begin(const tgl_shape *shape, bool has_overlap, tgl_list_builder *builder);

/* Completes the list: makes the steps of the 16-bit product read the expanded weights. */
void tgl_widen_end(const tgl_shape *shape, tgl_widening widening, tgl_list_builder *builder);

#endif
