/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the conversion of a type. Elements of f32 are copied.
 */
#include "cpu/run/convert_lines.h"

#include <string.h>

void tgl_cpu_read_line(const cpu_conversions *convert, tgl_type type, float *to, const void *from,
                       int64_t index, int64_t n)
{
    if (type == TGL_F32)
        memcpy(to, (const float *)from + index, (size_t)n * sizeof *to);
    else
        convert->widen[cpu_short_of(type)](
            to, (const char *)from + index * (int64_t)tgl_type_size(type), n);
}

void tgl_cpu_write_line(const cpu_conversions *convert, tgl_type type, void *to, int64_t index,
                        const float *from, int64_t n)
{
    if (type == TGL_F32)
        memcpy((float *)to + index, from, (size_t)n * sizeof *from);
    else
        convert->narrow[cpu_short_of(type)]((uint16_t *)to + index, from, n);
}

void tgl_cpu_read_block(const cpu_conversions *convert, tgl_type type, float *to,
                        const cpu_words_source *from)
{
    const int64_t rows = from->k_contiguous ? from->lines : from->k;
    const int64_t n = from->k_contiguous ? from->k : from->lines;
    for (int64_t i = 0; i < rows; i++)
        tgl_cpu_read_line(convert, type, to + i * n, from->from, i * from->ld, n);
}

void tgl_cpu_read_vector(const cpu_conversions *convert, tgl_type type, float *to, char *gathered,
                         const cpu_words_source *from)
{
    const size_t element = tgl_type_size(type);
    if (from->k_contiguous || from->ld == 1) {
        tgl_cpu_read_line(convert, type, to, from->from, 0, from->k);
        return;
    }
    for (int64_t p = 0; p < from->k; p++)
        memcpy(gathered + p * (int64_t)element,
               (const char *)from->from + p * from->ld * (int64_t)element, element);
    tgl_cpu_read_line(convert, type, to, gathered, 0, from->k);
}
