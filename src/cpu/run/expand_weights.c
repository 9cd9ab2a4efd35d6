/* SPDX-License-Identifier: Apache-2.0
 *
 * w := round((q - zero) * factor), for short runs of contiguous elements. Each run is first
 * expanded to int8, then computed in f32, and then rounded to 16 bits. See expand_weights.h.
 */
#include "cpu/run/expand_weights.h"
#include "base/integers.h"
#include "cpu/run/convert_lines.h"

enum { RUN = 256 }; /* elements that are expanded at once; their buffers are on the stack */

/* A run of contiguous elements of the stored matrix. The index of the factor of element i is
 * factor + i * step. */
typedef struct element_run {
    int64_t at, length;   /* index of the first element in the memory of all matrices of the batch;
                             number of elements */
    int64_t factor, step; /* step is 0 or 1 */
} element_run;

/* The low and the high half of a byte as signed integers of 4 bits. */
static int8_t low_half(uint8_t byte)
{
    return (int8_t)(((byte & 15) ^ 8) - 8);
}

static int8_t high_half(uint8_t byte)
{
    return (int8_t)((byte >> 4 ^ 8) - 8);
}

static void read_integers(tgl_type type, const void *matrix, int64_t at, int64_t n, int8_t *q)
{
    const uint8_t *bytes = (const uint8_t *)matrix + tgl_type_bytes(type, at + 1) - 1;
    if (type == TGL_I8) {
        memcpy(q, bytes, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t half = at % 2 + i;
        q[i] = half % 2 == 0 ? low_half(bytes[half / 2]) : high_half(bytes[half / 2]);
    }
}

/* Expands at most RUN elements. */
static void expand_run(const cpu_weights_block *x, const element_run *r, void *to)
{
    const tgl_weights *w = &x->shape->weights;
    const void *const *at = x->run->at;
    const float *factors = at[w->is_a ? TGL_AT_SCALE_A : TGL_AT_SCALE_B];
    const int8_t *zeros = at[TGL_AT_ZEROS];
    int8_t q[RUN];
    float values[RUN];
    read_integers(w->type, at[w->is_a ? TGL_AT_A : TGL_AT_B], r->at, r->length, q);
    for (int64_t i = 0; i < r->length; i++)
        values[i] = q[i];
    for (int64_t i = 0; w->has_zeros && i < r->length; i++)
        values[i] -= zeros[r->factor + i * r->step];
    for (int64_t i = 0; w->has_factors && i < r->length; i++)
        values[i] *= factors[r->factor + i * r->step];
    cpu_write_line(x->conversions, x->shape->type_a, to, 0, values, r->length);
}

/* How many elements of a contiguous row are expanded at once: at most RUN, at most `left`, the rest
 * of the row, and if the row is along k, at most the rest of the group. p: the step of k of the
 * first element. */
static int64_t length_of_run(const tgl_weights *w, bool k_contiguous, int64_t p, int64_t left)
{
    const int64_t limit = tgl_min64(left, RUN);
    return k_contiguous ? tgl_min64(limit, w->group - p % w->group) : limit;
}

cpu_words_source tgl_cpu_expand_weights(const cpu_weights_block *x, void *to)
{
    const tgl_shape *s = x->shape;
    const tgl_weights *w = &s->weights;
    const bool k_contiguous = w->is_a ? !s->trans_a : s->trans_b;
    const int64_t ld = w->is_a ? s->lda : s->ldb, stride = w->is_a ? s->stride_a : s->stride_b;
    const int64_t rows = k_contiguous ? x->lines : x->k, length = k_contiguous ? x->k : x->lines;
    uint16_t *row = to;
    for (int64_t i = 0; i < rows; i++, row += length)
        for (int64_t j = 0, n; j < length; j += n) {
            const int64_t line = x->line + (k_contiguous ? i : j);
            const int64_t p = x->first + (k_contiguous ? j : i);
            n = length_of_run(w, k_contiguous, p, length - j);
            const element_run run = {
                .at = x->problem * stride + (k_contiguous ? line * ld + p : p * ld + line),
                .length = n,
                .factor = p / w->group * w->ld + line * w->line_step + x->problem * w->stride,
                .step = k_contiguous ? 0 : w->line_step,
            };
            expand_run(x, &run, row + j);
        }
    return (cpu_words_source){to, length, k_contiguous, x->lines, x->k};
}
