/* SPDX-License-Identifier: Apache-2.0
 *
 * A product as one line of text, under which measurements are stored (plan/wisdom.h).
 */
#ifndef TGL_SHAPE_KEY_H
#define TGL_SHAPE_KEY_H

#include "problem/shape.h"

enum { TGL_SHAPE_KEY_SIZE = 400 };

/* Writes the key of a product, "bf16,bf16,bf16,bf16 NT 1024x4096x512x1 ieee", followed by whatever
 * differs from contiguous matrices, D = C, host scalars and no epilogue. Two shapes have equal keys
 * if and only if a kernel is equally fast for both; `swapped` is not in it. Returns text, which is
 * empty if the product has no key (scale factors). */
const char *tgl_shape_key(const tgl_shape *shape, char text[TGL_SHAPE_KEY_SIZE]);

#endif
