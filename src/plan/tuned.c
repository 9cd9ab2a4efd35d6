/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds entries of the tuned table.
 */
#include "plan/tuned.h"

#include <math.h>
#include <string.h>

/* Columns: chip, type, layout, m, n, k, batch, kernel string. */
static const tgl_tuned table[] = {
#include "plan/tuned_h200.inc"
};

/* Maximum distance of a similar shape. The distance is the sum over m, n, k and batch of
 * |log2(ratio of the sizes)|; 0.5 is a factor of 1.4 in one dimension, or of 1.12 in each of
 * three. */
static const double NEAR = 0.5;
/* Maximum ratio of predicted times: an entry for a similar shape / the best candidate. */
static const double SLOWER = 1.1;

enum { WIDE_BYTES = 16 }; /* bytes of the widest copies and stores of the kernels */

const tgl_tuned *tgl_tuned_at(int index)
{
    const int rows = (int)(sizeof table / sizeof table[0]);
    return index >= 0 && index < rows ? &table[index] : NULL;
}

/* Whether rows of this many elements can be copied with the widest instructions. */
static bool is_wide(tgl_type type, int64_t elements)
{
    return elements * (int64_t)tgl_type_size(type) % WIDE_BYTES == 0;
}

/* Whether both shapes allow the same copy widths along M and N. Tiles for wide copies are slow with
 * single elements, and tiles for single elements are slow where wide copies are possible. */
static bool is_alike(const tgl_tuned *row, const tgl_shape *s)
{
    const int64_t a = s->trans_a ? s->m : 0, row_a = s->trans_a ? row->m : 0;
    const int64_t b = s->trans_b ? 0 : s->n, row_b = s->trans_b ? 0 : row->n;
    return is_wide(s->type_a, a) == is_wide(s->type_a, row_a) &&
           is_wide(s->type_b, b) == is_wide(s->type_b, row_b);
}

static double log2_ratio(int64_t x, int64_t y)
{
    return fabs(log2((double)x / (double)y));
}

/* Whether two sizes differ by more than a factor of 2: their distance alone is then above 1, and
 * thus above NEAR. */
static bool is_far(int64_t x, int64_t y)
{
    return x > 2 * y || y > 2 * x;
}

/* The type as the table names it. Types that are not listed have their own names:
 *   "tf32"   F32 that may be rounded to TF32, which has kernels of its own
 *   "bf16"   bf16 and f16, which have the same kernels
 *   "e4m3"   e4m3 and e5m2; "fast" with TGL_COMPUTE_FAST, whose kernels have other tiles */
static const char *tuned_type(const tgl_shape *s)
{
    const bool is_tf32 = s->type_a == TGL_F32 && s->compute == TGL_COMPUTE_TF32;
    if (tgl_type_is_f8(s->type_a)) return s->compute == TGL_COMPUTE_FAST ? "fast" : "e4m3";
    return is_tf32 ? "tf32" : s->type_a == TGL_F16 ? "bf16" : tgl_type_name(s->type_a);
}

/* Whether C and D have the types that were measured: those of A and B; int32 for int8; any 16-bit
 * type for 8-bit floating-point types. */
static bool has_measured_results(const tgl_shape *s)
{
    if (tgl_type_is_f8(s->type_a))
        return tgl_type_is_f8(s->type_b) && tgl_type_size(s->type_c) == 2 &&
               tgl_type_size(s->type_d) == 2;
    if (s->type_a == TGL_I8)
        return s->type_b == TGL_I8 && s->type_c == TGL_I32 && s->type_d == TGL_I32;
    return tgl_shape_is_all(s, s->type_a);
}

static bool is_of_type(const tgl_tuned *row, const tgl_shape *s)
{
    return strcmp(row->type, tuned_type(s)) == 0 && has_measured_results(s) &&
           (row->layout[0] == 'T') == s->trans_a && (row->layout[1] == 'T') == s->trans_b;
}

/* The chip in the table whose rows serve `chip`. The rows of H200 are used as advice for H100,
 * which has the same tensor cores, but a slower memory and less L2 (tgl_tuned_is_for()). */
static const char *measured_chip(const char *chip)
{
    return strcmp(chip, "h100") == 0 ? "h200" : chip;
}

const tgl_tuned *tgl_tuned_find(const char *chip, const tgl_shape *s, const tgl_tuned *except)
{
    const tgl_tuned *row, *nearest = NULL;
    chip = measured_chip(chip);
    double least = NEAR;
    if (s->k == 0) return NULL;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        if (is_far(row->m, s->m) || is_far(row->n, s->n) || is_far(row->k, s->k)) continue;
        if (row == except || strcmp(row->chip, chip) != 0 || !is_of_type(row, s) ||
            !is_alike(row, s))
            continue;
        const double distance = log2_ratio(row->m, s->m) + log2_ratio(row->n, s->n) +
                                log2_ratio(row->k, s->k) + log2_ratio(row->batch, s->batch);
        if (distance > least || (nearest != NULL && distance == least)) continue;
        least = distance;
        nearest = row;
    }
    return nearest;
}

/* Whether the matrix allows the same copy width as the matrix that was measured, which was
 * contiguous with rows of `row` elements. */
static bool has_measured_width(tgl_type type, int64_t row, int64_t lines, int64_t ld, int64_t batch,
                               int64_t stride)
{
    if (is_wide(type, ld) != is_wide(type, row)) return false;
    return batch == 1 || (stride > 0 && is_wide(type, stride) == is_wide(type, row * lines));
}

bool tgl_tuned_is_for(const tgl_tuned *row, const char *chip, const tgl_shape *s)
{
    return strcmp(row->chip, chip) == 0 && row->m == s->m && row->n == s->n && row->k == s->k &&
           row->batch == s->batch && is_of_type(row, s) && s->in_place && !s->device_scalars &&
           !s->pointers && tgl_epilogue_is_none(&s->epilogue) &&
           has_measured_width(s->type_a, s->trans_a ? s->m : s->k, s->trans_a ? s->k : s->m, s->lda,
                              s->batch, s->stride_a) &&
           has_measured_width(s->type_b, s->trans_b ? s->k : s->n, s->trans_b ? s->n : s->k, s->ldb,
                              s->batch, s->stride_b) &&
           has_measured_width(s->type_d, s->n, s->m, s->ldd, s->batch, s->stride_d);
}

bool tgl_tuned_holds(const tgl_tuned *row, const char *chip, const tgl_shape *s,
                     const tgl_candidate *tuned, const tgl_candidate *predicted)
{
    if (tuned->choice.family == NULL || tuned->rejected != NULL) return false;
    if (predicted->rejected != NULL) return true;
    if (tgl_tuned_is_for(row, chip, s) && !predicted->choice.family->is_emulation) return true;
    return tuned->seconds <= SLOWER * predicted->seconds;
}
