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
 * if and only if a kernel is equally fast for both; the key does not contain `swapped`. Returns
 * text. It is empty if the product has no key: with scale factors or groups, or if the key would be
 * too long. */
const char *tgl_shape_key(const tgl_shape *shape, char text[TGL_SHAPE_KEY_SIZE]);

#endif
