/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers of random problems: see check_buffer.h.
 */
#include "check_buffer.h"
#include "elements.h"

#include <stdlib.h>

size_t check_buffer_bytes(const check_buffer *buffer)
{
    return (size_t)buffer->size * tgl_type_size(buffer->type);
}

bool check_buffer_make_image(check_buffer *buffer)
{
    buffer->image = malloc(check_buffer_bytes(buffer));
    return buffer->image != NULL;
}

int64_t check_view_index(const check_view *v, int64_t b, int64_t i, int64_t j)
{
    return v->offset + b * v->batch + i * v->row + j * v->column;
}

double check_buffer_get(const check_buffer *buffer, int64_t b, int64_t i, int64_t j, int part)
{
    return element_get(buffer->type, buffer->image,
                       check_view_index(&buffer->view, b, i, j) * element_parts(buffer->type) +
                           part);
}

void check_buffer_set(check_buffer *buffer, int64_t at, int part, double x)
{
    element_set(buffer->type, buffer->image, at * element_parts(buffer->type) + part, x);
}
