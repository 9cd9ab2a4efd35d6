/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking up measurements.
 */
#include "plan/tuned.h"

#include <math.h>
#include <string.h>

/* Columns: chip, type, layout, m, n, k, batch, kernel string. */
static const tgl_tuned table[] = {
#include "plan/tuned_h200.inc"
    {.chip = NULL},
};

/* How far apart shapes may be: the sum of the dimensions' distances in powers of two. Half a power
 * is 1.4 times as many rows, or a fifth more of all three. */
static const double NEAR = 0.5;
static const double SLOWER =
    1.1; /* than predicted to be best, that a row of a shape nearby may be */

enum { WIDE_BYTES = 16 }; /* of the widest copies and stores */

const tgl_tuned *tgl_tuned_at(int index)
{
    const int rows = (int)(sizeof table / sizeof table[0]) - 1;
    return index >= 0 && index < rows ? &table[index] : NULL;
}

/* Whether lines that begin so many elements apart allow the widest copies. */
static bool is_wide(const tgl_shape *s, int64_t elements)
{
    return elements * (int64_t)tgl_type_size(s->type_d) % WIDE_BYTES == 0;
}

/* Whether both shapes allow the same wide copies along M and N: tiles that suit wide copies do not
 * suit single elements. */
static bool is_alike(const tgl_tuned *row, const tgl_shape *s)
{
    const int64_t a = s->trans_a ? s->m : 0, row_a = s->trans_a ? row->m : 0;
    const int64_t b = s->trans_b ? 0 : s->n, row_b = s->trans_b ? 0 : row->n;
    return is_wide(s, a) == is_wide(s, row_a) && is_wide(s, b) == is_wide(s, row_b);
}

static double apart(int64_t x, int64_t y)
{
    return fabs(log2((double)x / (double)y));
}

static bool is_of_type(const tgl_tuned *row, const tgl_shape *s)
{
    return strcmp(row->type, tgl_type_name(s->type_a)) == 0 && tgl_shape_is_all(s, s->type_a) &&
           (row->layout[0] == 'T') == s->trans_a && (row->layout[1] == 'T') == s->trans_b;
}

const tgl_tuned *tgl_tuned_find(const char *chip, const tgl_shape *s)
{
    const tgl_tuned *row, *nearest = NULL;
    double least = NEAR;
    if (s->k == 0) return NULL;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        if (strcmp(row->chip, chip) != 0 || !is_of_type(row, s) || !is_alike(row, s)) continue;
        const double distance = apart(row->m, s->m) + apart(row->n, s->n) + apart(row->k, s->k) +
                                apart(row->batch, s->batch);
        if (distance > least || (nearest != NULL && distance == least)) continue;
        least = distance;
        nearest = row;
    }
    return nearest;
}

/* Whether lines of a matrix, and the matrices of a batch, begin where the widest copies can go if
 * and only if they do in a tight matrix with lines of `row` elements. */
static bool lies_as_measured(const tgl_shape *s, int64_t row, int64_t lines, int64_t ld,
                             int64_t stride)
{
    if (is_wide(s, ld) != is_wide(s, row)) return false;
    return s->batch == 1 || (stride > 0 && is_wide(s, stride) == is_wide(s, row * lines));
}

bool tgl_tuned_is_for(const tgl_tuned *row, const tgl_shape *s)
{
    return row->m == s->m && row->n == s->n && row->k == s->k && row->batch == s->batch &&
           is_of_type(row, s) && s->in_place && !s->device_scalars && !s->pointers &&
           tgl_epilogue_is_none(&s->epilogue) &&
           lies_as_measured(s, s->trans_a ? s->m : s->k, s->trans_a ? s->k : s->m, s->lda,
                            s->stride_a) &&
           lies_as_measured(s, s->trans_b ? s->k : s->n, s->trans_b ? s->n : s->k, s->ldb,
                            s->stride_b) &&
           lies_as_measured(s, s->n, s->m, s->ldd, s->stride_d);
}

bool tgl_tuned_holds(const tgl_tuned *row, const tgl_shape *s, const tgl_candidate *tuned,
                     const tgl_candidate *predicted)
{
    if (tuned->choice.family == NULL || tuned->rejected != NULL) return false;
    if (tgl_tuned_is_for(row, s) || predicted->rejected != NULL) return true;
    return tuned->seconds <= SLOWER * predicted->seconds;
}
