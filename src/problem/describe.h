/* SPDX-License-Identifier: Apache-2.0
 *
 * A problem as text, for tgl_plan_explain().
 */
#ifndef TGL_DESCRIBE_H
#define TGL_DESCRIBE_H

#include "base/text.h"
#include "problem/shape.h"

/* The floating-point operations of all products of the batch. */
double tgl_shape_flops(const tgl_shape *shape);

/* Writes the types of A, B, C and D: "f32" if all are equal, else each of them. */
void tgl_text_types(tgl_text *out, const tgl_shape *shape);

/* Writes the problem's formula, types, sizes, arithmetic intensity and epilogue. */
void tgl_text_problem(tgl_text *out, const tgl_shape *shape);

#endif
