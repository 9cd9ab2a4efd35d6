/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes contiguous elements of a matrix as f32. The type of the matrix is f32 or
 * shorter.
 */
#ifndef TGL_CPU_CONVERT_LINES_H
#define TGL_CPU_CONVERT_LINES_H

#include "cpu/kernels/kernels.h"

#include <string.h>

/* Reads as f32: to[i] := element index + i of `from`, an array of this type, for i < n. */
static inline void cpu_read_line(const cpu_conversions *convert, tgl_type type, float *to,
                                 const void *from, int64_t index, int64_t n)
{
    const char *at = (const char *)from + index * (int64_t)tgl_type_size(type);
    if (type == TGL_F32)
        memcpy(to, at, (size_t)n * sizeof *to);
    else
        convert->widen[cpu_short_of(type)](to, at, n);
}

/* Writes f32: element index + i of `to`, an array of this type, := from[i], for i < n. */
static inline void cpu_write_line(const cpu_conversions *convert, tgl_type type, void *to,
                                  int64_t index, const float *from, int64_t n)
{
    void *at = (char *)to + index * (int64_t)tgl_type_size(type);
    if (type == TGL_F32)
        memcpy(at, from, (size_t)n * sizeof *from);
    else
        convert->narrow[cpu_short_of(type)](at, from, n);
}

#endif
