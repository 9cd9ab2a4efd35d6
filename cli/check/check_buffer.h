/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of an operand of a random problem: matrices with padding and guards (case_data.h) in a
 * buffer.
 */
#ifndef CLI_CHECK_BUFFER_H
#define CLI_CHECK_BUFFER_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* The index in its buffer of element (i, j) of op(X[b]), or of C[b]: offset + b*batch + i*row +
 * j*column, in elements. */
typedef struct check_view {
    int64_t offset, batch, row, column;
} check_view;

/* A buffer and the matrices in it. */
typedef struct check_buffer {
    check_view view;
    tgl_type type;
    int64_t size;         /* number of elements, guards included */
    unsigned char *image; /* the buffer's contents before the product */
    bool null; /* the product gets NULL instead of the buffer's address, because it must not access
                  the buffer */
} check_buffer;

/* check_buffer_bytes(): the size of a buffer in bytes. check_buffer_make_image(): allocates its
 * image; false: out of memory. */
size_t check_buffer_bytes(const check_buffer *buffer);
bool check_buffer_make_image(check_buffer *buffer);

/* The index of an element in its buffer. */
int64_t check_view_index(const check_view *v, int64_t b, int64_t i, int64_t j);

/* check_buffer_get(): reads part `part` (0: real, 1: imaginary) of element (i, j) of matrix b from
 * the image. check_buffer_set(): writes part `part` of the element with index `at` in the buffer to
 * the image. */
double check_buffer_get(const check_buffer *buffer, int64_t b, int64_t i, int64_t j, int part);
void check_buffer_set(check_buffer *buffer, int64_t at, int part, double x);

#endif
