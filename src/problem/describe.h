/* SPDX-License-Identifier: Apache-2.0
 *
 * A problem as text, for tgl_plan_explain().
 */
#ifndef TGL_DESCRIBE_H
#define TGL_DESCRIBE_H

#include "base/text.h"
#include "problem/shape.h"

/* Floating-point operations of all products of the batch. */
double tgl_shape_flops(const tgl_shape *shape);

/* Writes "f32" if A, B, C and D are of one type, else the type of each. */
void tgl_text_types(tgl_text *out, const tgl_shape *shape);

/* Writes the problem's formula, types, sizes, arithmetic intensity and epilogue to *out. */
void tgl_text_problem(tgl_text *out, const tgl_shape *shape);

#endif
