/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a matrix of any floating-point type or of int8, as f32.
 */
#ifndef TGL_CPU_CONVERT_LINES_H
#define TGL_CPU_CONVERT_LINES_H

#include "cpu/kernels/cpu_words.h"

/* to[i] := element index + i of a matrix of this type, i < n. */
void tgl_cpu_read_line(const cpu_conversions *convert, tgl_type type, float *to, const void *from,
                       int64_t index, int64_t n);

/* Element index + i of a matrix of this type := from[i], i < n. */
void tgl_cpu_write_line(const cpu_conversions *convert, tgl_type type, void *to, int64_t index,
                        const float *from, int64_t n);

/* Converts a block and stores its rows, as they are in memory, one after the other. */
void tgl_cpu_read_block(const cpu_conversions *convert, tgl_type type, float *to,
                        const cpu_words_source *from);

/* to[p] := step p of a vector, which is a block of one line. gathered: memory for its elements. */
void tgl_cpu_read_vector(const cpu_conversions *convert, tgl_type type, float *to, char *gathered,
                         const cpu_words_source *from);

#endif
