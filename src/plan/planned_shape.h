/* SPDX-License-Identifier: Apache-2.0
 *
 * The product that is planned in place of the one that was asked for: the real product of a complex
 * one (complex.h), or the 16-bit product of weights (widen.h). Pre-passes expand the operands. A
 * kernel that reads some operands as they are stored needs no pre-pass for those: tgl_direct.
 */
#ifndef TGL_PLANNED_SHAPE_H
#define TGL_PLANNED_SHAPE_H

#include "plan/family.h"
#include "plan/widen.h"

/* Whether the shape has the operands that `direct` names. TGL_DIRECT_NONE names none and is for
 * every shape. */
bool tgl_direct_is_for(tgl_direct direct, const tgl_shape *s);

/* What the family reads without a pre-pass in this product. */
tgl_direct tgl_family_direct(const tgl_family *family, const tgl_shape *s);

/* The shape for a family that reads the operands `direct` as they are stored. tgl_direct_is_for()
 * must be true. */
tgl_shape tgl_planned_shape(const tgl_shape *s, tgl_direct direct);

/* The bytes of a workspace limit that remain for the planned product, as tgl_complex_rest(). */
int64_t tgl_planned_rest(const tgl_shape *s, int64_t limit, tgl_direct direct);

/* Predicted seconds of the pre-passes that expand operands; 0 if the product needs none. */
double tgl_planned_seconds(const tgl_chip *chip, const tgl_shape *s, tgl_direct direct);

/* Adds the pre-passes. The caller then adds the steps of the planned product and calls
 * tgl_planned_end() with the result. has_overlap: the chip has TGL_HAS_OVERLAP. */
tgl_widening tgl_planned_begin(const tgl_shape *s, tgl_direct direct, bool has_overlap,
                               tgl_list_builder *builder);

/* Completes the list: tgl_complex_end() or tgl_widen_end(). */
void tgl_planned_end(const tgl_shape *s, tgl_direct direct, tgl_widening widening, bool has_overlap,
                     tgl_list_builder *builder);

#endif
