/* SPDX-License-Identifier: Apache-2.0
 *
 * A product as one line of text, under which measurements are stored (plan/wisdom.h).
 */
#ifndef TGL_SHAPE_KEY_H
#define TGL_SHAPE_KEY_H

#include "problem/shape.h"

enum { TGL_SHAPE_KEY_SIZE = 400 };

/* "bf16,bf16,bf16,bf16 NT 1024x4096x512x1 ieee", and behind it everything that differs from tight
 * matrices, D = C, scalars of the host and no epilogue. Two shapes have the same text if and only
 * if a kernel that is fast for one is as fast for the other: `swapped` is left out. Returns text;
 * an empty text if the product has no key (scale factors). */
const char *tgl_shape_key(const tgl_shape *shape, char text[TGL_SHAPE_KEY_SIZE]);

#endif
