/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking up measurements.
 */
#include "plan/tuned.h"

#include <math.h>
#include <string.h>

/* Columns: chip, layout, m, n, k, batch, configuration, splits, strips. */
static const tgl_tuned table[] = {
#include "plan/tuned_h200.inc"
    {.chip = NULL},
};

/* How far apart shapes may be: the sum of the dimensions' distances in powers of two. Half a power
 * is 1.4 times as many rows, or a fifth more of all three. */
static const double NEAR = 0.5;
static const double SLOWER = 1.1;

const tgl_tuned *tgl_tuned_at(int index)
{
    const int rows = (int)(sizeof table / sizeof table[0]) - 1;
    return index >= 0 && index < rows ? &table[index] : NULL;
}

/* Whether both shapes allow the same wide copies: tiles that suit fours do not suit single floats.
 */
static bool is_alike(const tgl_tuned *row, const tgl_gemm_shape *s)
{
    const int64_t a = s->trans_a ? s->m : 0, row_a = s->trans_a ? row->m : 0;
    const int64_t b = s->trans_b ? 0 : s->n, row_b = s->trans_b ? 0 : row->n;
    return (a % 4 == 0) == (row_a % 4 == 0) && (b % 4 == 0) == (row_b % 4 == 0);
}

static double apart(int64_t x, int64_t y)
{
    return fabs(log2((double)x / (double)y));
}

const tgl_tuned *tgl_tuned_find(const char *chip, const tgl_gemm_shape *s)
{
    const tgl_tuned *row, *nearest = NULL;
    double least = NEAR;
    if (s->k == 0) return NULL;
    for (int i = 0; (row = tgl_tuned_at(i)) != NULL; i++) {
        if (strcmp(row->chip, chip) != 0 || (row->layout[0] == 'T') != s->trans_a ||
            (row->layout[1] == 'T') != s->trans_b || !is_alike(row, s))
            continue;
        const double distance = apart(row->m, s->m) + apart(row->n, s->n) + apart(row->k, s->k) +
                                apart(row->batch, s->batch);
        if (distance > least || (nearest != NULL && distance == least)) continue;
        least = distance;
        nearest = row;
    }
    return nearest;
}

bool tgl_tuned_is_for(const tgl_tuned *row, const tgl_gemm_shape *s)
{
    return row->m == s->m && row->n == s->n && row->k == s->k && row->batch == s->batch;
}

bool tgl_tuned_holds(const tgl_tuned *row, const tgl_gemm_shape *s, const tgl_candidate *tuned,
                     const tgl_candidate *predicted)
{
    if (tuned->plan.row == NULL || tuned->rejected != NULL) return false;
    return tgl_tuned_is_for(row, s) || tuned->seconds <= SLOWER * predicted->seconds;
}
