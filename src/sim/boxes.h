/* SPDX-License-Identifier: Apache-2.0
 *
 * The boxes that TMA copies: where their elements are in global and in shared memory. Nothing here
 * checks or records accesses.
 */
#ifndef TGL_SIM_BOXES_H
#define TGL_SIM_BOXES_H

#include "../../kernels/lib/tma_map.h"

#include <stddef.h>
#include <stdint.h>

/* A row of a box: its elements along dimension 0, at fixed indices of the other dimensions. */
typedef struct tgl_box_row {
    char *from;          /* address of the row's first element that is inside the tensor */
    size_t first, bytes; /* byte offset of that element in the row; bytes of the row that are inside
                            the tensor */
    size_t to;           /* byte offset of the row in the box, before the swizzle */
} tgl_box_row;

/* The number of rows of a box, the bytes of a row, and the bytes of the box. */
int64_t tgl_box_rows(const struct tgl_tensor_map *map);
size_t tgl_box_row_bytes(const struct tgl_tensor_map *map);
size_t tgl_box_bytes(const struct tgl_tensor_map *map);

/* Row `number`, from 0, of the box whose first element has the indices `at` in the tensor. */
tgl_box_row tgl_box_row_at(const struct tgl_tensor_map *map, const int *at, int64_t number);

/* Copies a box from global to shared memory, with its swizzle. Elements outside the tensor are
 * 0. A tensor of TF32 is rounded to TF32. */
void tgl_box_to_shared(const struct tgl_tensor_map *map, const int *at, char *shared);

/* Copies a box from shared memory to `data`, row after row without gaps, undoing the swizzle. */
void tgl_box_from_shared(const struct tgl_tensor_map *map, const char *shared, char *data);

#endif
