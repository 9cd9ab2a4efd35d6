/* SPDX-License-Identifier: Apache-2.0
 *
 * Places the operands of a trial in one block of memory (the set), and fills them with random
 * elements.
 */
#include "backend/trial_operands.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* ---- Places ---------------------------------------------------------------------------------- */

/* Adds an operand behind the other operands of the set. */
static void add_operand(tgl_trial_set *set, tgl_operand which, tgl_type type, int64_t elements)
{
    const size_t bytes = (size_t)elements * tgl_type_size(type);
    set->operands[which] = (tgl_trial_operand){set->bytes, bytes, type};
    set->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Elements from the beginning of a batch of matrices to its end. lines, length: rows and row length
 * of one matrix as it is stored; ld: elements from line to line. */
static int64_t extent(const tgl_shape *s, int64_t lines, int64_t length, int64_t ld, int64_t stride)
{
    return tgl_extent(lines, length, ld) + (s->batch - 1) * stride;
}

/* Adds a batch of matrices to the set. Parameters as of extent(). */
static void add_matrices(const tgl_shape *s, tgl_trial_set *set, tgl_operand which, tgl_type type,
                         int64_t lines, int64_t length, int64_t ld, int64_t stride)
{
    const int64_t all = extent(s, lines, length, ld, stride);
    const double used = (double)lines * (double)length * (double)(stride != 0 ? s->batch : 1);
    add_operand(set, which, type, all);
    if (used < (double)all) set->gaps += (size_t)((double)all - used) * tgl_type_size(type);
}

static void add_epilogue(const tgl_shape *s, tgl_trial_set *set)
{
    const tgl_shape_epilogue *e = &s->epilogue;
    const int64_t length = e->bias == TGL_BIAS_ROW ? s->m : s->n;
    if (e->bias != TGL_BIAS_NONE)
        add_operand(set, TGL_AT_BIAS, e->type_bias, extent(s, 1, length, length, e->stride_bias));
    if (e->residual)
        add_operand(set, TGL_AT_RESIDUAL, e->type_residual,
                    extent(s, s->m, s->n, e->ld_residual, e->stride_residual));
    if (e->amax) add_operand(set, TGL_AT_AMAX, TGL_F32, 1);
}

/* Adds the scale factors of an operand. */
static void add_scale(const tgl_shape *s, tgl_trial_set *set, tgl_operand operand)
{
    const int64_t count = tgl_scales_count(s, operand);
    if (count > 0) add_operand(set, operand, s->type_scale, count);
}

void tgl_trial_set_make(const tgl_shape *s, tgl_trial_set *set)
{
    const int64_t a_lines = s->trans_a ? s->k : s->m, a_length = s->trans_a ? s->m : s->k;
    const int64_t b_lines = s->trans_b ? s->n : s->k, b_length = s->trans_b ? s->k : s->n;
    *set = (tgl_trial_set){.bytes = 0};
    add_matrices(s, set, TGL_AT_A, s->type_a, a_lines, a_length, s->lda, s->stride_a);
    add_matrices(s, set, TGL_AT_B, s->type_b, b_lines, b_length, s->ldb, s->stride_b);
    add_matrices(s, set, TGL_AT_D, s->type_d, s->m, s->n, s->ldd, s->stride_d);
    set->operands[TGL_AT_C] = set->operands[TGL_AT_D];
    if (!s->in_place) add_matrices(s, set, TGL_AT_C, s->type_c, s->m, s->n, s->ldc, s->stride_c);
    add_scale(s, set, TGL_AT_SCALE_A);
    add_scale(s, set, TGL_AT_SCALE_B);
    add_scale(s, set, TGL_AT_SCALE_D);
    if (s->device_scalars) add_operand(set, TGL_AT_ALPHA, tgl_shape_scalar_type(s), 1);
    add_epilogue(s, set);
}

bool tgl_trial_reads(tgl_operand operand)
{
    return operand == TGL_AT_A || operand == TGL_AT_B || operand == TGL_AT_ALPHA ||
           operand == TGL_AT_BIAS || operand == TGL_AT_RESIDUAL || operand == TGL_AT_SCALE_A ||
           operand == TGL_AT_SCALE_B || operand == TGL_AT_SCALE_D;
}

/* ---- Random elements ------------------------------------------------------------------------- */

/* The next random number, by the generator xorshift64*. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

/* Writes a random element. F32, F64, BF16 and complex parts are in [-1, 1]. Integers have any
 * value. F16 and 8-bit floats have any sign and fraction, and an exponent below that of 1. */
static void draw_element(tgl_type type, uint64_t *state, void *element)
{
    const uint64_t bits = draw(state) >> 11; /* 53 bits */
    const double value = (double)bits * 0x1p-52 - 1;
    const float single = (float)value;
    /* F16: any sign and fraction, exponents from 2^-5 to 2^-1. */
    const uint16_t half = (uint16_t)((bits & 0x83ff) | (10 + bits / 65536 % 5) << 10);
    uint32_t word;
    memcpy(&word, &single, sizeof word);
    const uint16_t brain = (uint16_t)(word >> 16);
    /* E5M2 is the upper byte of an F16. E4M3: any sign and fraction, exponent 2^-4. */
    const uint8_t quarter =
        type == TGL_F8_E5M2 ? (uint8_t)(half >> 8) : (uint8_t)((bits & 0x9f) | 0x18);
    const double pair[2] = {value, (double)(bits % 1000003) / 1000003};
    const float single_pair[2] = {single, (float)pair[1]};
    const size_t size = tgl_type_size(type);
    memcpy(element,
           type == TGL_C128       ? (const void *)pair
           : type == TGL_C64      ? (const void *)single_pair
           : type == TGL_F64      ? (const void *)&value
           : type == TGL_F32      ? (const void *)&single
           : type == TGL_F16      ? (const void *)&half
           : type == TGL_BF16     ? (const void *)&brain
           : tgl_type_is_f8(type) ? (const void *)&quarter
                                  : (const void *)&bits,
           size);
}

/* The caller repeats these elements to fill larger operands. PERIOD is a prime, so that
 * neighbouring rows do not begin at the same element of the period. */
size_t tgl_trial_draw(const tgl_trial_operand *x, char *memory)
{
    enum { PERIOD = 262139 };
    const size_t size = tgl_type_size(x->type), period = PERIOD * size;
    const size_t bytes = x->bytes < period ? x->bytes : period;
    uint64_t state = 0x9e3779b97f4a7c15u + x->offset;
    for (size_t i = 0; i < bytes; i += size)
        draw_element(x->type, &state, memory + i);
    return bytes;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

tgl_run tgl_trial_run(const tgl_shape *s, const tgl_trial_set *set, const char *memory)
{
    const double unknown = (double)NAN;
    tgl_run run = {.alpha = s->device_scalars ? unknown : 1,
                   .beta = s->device_scalars ? unknown : 0,
                   .has_product = true};
    for (int i = 0; i < TGL_OPERANDS; i++)
        if (set->operands[i].bytes > 0) run.at[i] = memory + set->operands[i].offset;
    return run;
}
