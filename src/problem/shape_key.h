/* SPDX-License-Identifier: Apache-2.0
 *
 * A product as one line of text, under which measurements are stored (plan/wisdom.h).
 */
#ifndef TGL_SHAPE_KEY_H
#define TGL_SHAPE_KEY_H

#include "problem/shape.h"

enum { TGL_SHAPE_KEY_SIZE = 400 };

/* Writes the key of a product, "bf16,bf16,bf16,bf16 NT 1024x4096x512x1 ieee", followed by whatever
 * differs from contiguous matrices, D = C, host scalars and no epilogue. The key contains
 * everything that a kernel's speed depends on, and therefore not `swapped`. Returns text. The text
 * is empty if the product has no key, because it has scale factors, weights or groups, is a bundle,
 * or would have a key that is too long. */
const char *tgl_shape_key(const tgl_shape *shape, char text[TGL_SHAPE_KEY_SIZE]);

#endif
