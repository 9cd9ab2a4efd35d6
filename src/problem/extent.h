/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that matrices occupy, without an overflow of int64_t.
 */
#ifndef TGL_EXTENT_H
#define TGL_EXTENT_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* Elements of a matrix from its first to its last one, including padding; -1 if they exceed
 * int64_t. lines: number of contiguous lines, which are rows of a row-major matrix; length:
 * elements per line; ld: elements from line to line. */
int64_t tgl_extent(int64_t lines, int64_t length, int64_t ld);

/* Whether the bytes of a batch of matrices fit in int64_t. extent: a result of tgl_extent();
 * stride: elements from matrix to matrix. */
bool tgl_is_addressable(int64_t extent, int64_t batch, int64_t stride, tgl_type type);

#endif
