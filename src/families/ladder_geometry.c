/* SPDX-License-Identifier: Apache-2.0
 *
 * The geometry of the rungs: see ladder_geometry.h.
 */
#include "families/ladder_geometry.h"
#include "base/integers.h"

#include <limits.h>

/* Sets the splits of rung 26: 2 * SMs / tiles, rounded down, because two blocks fit on an SM; but
 * at most k / DEPTH_MIN, rounded up. */
static void ladder_split(const tgl_chip *chip, const tgl_shape *s, ladder_geometry *g)
{
    enum { DEPTH = 16 /* BK of ladder/26_split_k.cu */, DEPTH_MIN = 128 };
    const int64_t tiles = g->x;
    const int64_t wanted = tiles > 0 ? 2 * (int64_t)chip->sms / tiles : 1;
    const int64_t splits = tgl_min64(wanted, tgl_ceil_div(s->k, DEPTH_MIN));
    if (splits < 2) return;
    g->k_chunk = tgl_round_up(tgl_ceil_div(s->k, splits), DEPTH);
    g->splits = (int)tgl_ceil_div(s->k, g->k_chunk);
    g->x = tiles * g->splits;
    g->sums = g->x * g->row->block_m * g->row->block_n * (int64_t)sizeof(float);
    g->counters = tiles * (int64_t)sizeof(unsigned);
}

bool tgl_ladder_has_tma_rows(const tgl_shape *s, int64_t lines, int64_t ld)
{
    return !s->unaligned && (lines <= 1 || ld * 2 % TGL_MAP_ALIGNMENT == 0);
}

/* Adds a pre-pass for an operand that TMA cannot read: it copies the operand to the workspace. */
static void repack(const tgl_shape *s, tgl_operand operand, int64_t lines, int64_t length,
                   int64_t ld, ladder_geometry *g)
{
    if (lines == 0 || length == 0 || tgl_ladder_has_tma_rows(s, lines, ld)) return;
    tgl_repack *r = &g->repacks[g->repack_count++];
    *r = (tgl_repack){.operand = operand,
                      .type = TGL_F16,
                      .lines = lines,
                      .length = length,
                      .ld = ld,
                      .count = 1,
                      .scratch = g->repacked};
    g->repacked += tgl_round_up(tgl_repack_bytes(r), TGL_WORKSPACE_ALIGNMENT);
}

/* Sets the grid of a rung with clusters. Each cluster takes a column of `cluster` tiles at a time,
 * one tile for each block. */
static void count_clusters(const tgl_chip *chip, const tgl_shape *s, ladder_geometry *g)
{
    const ladder_row *row = g->row;
    const int64_t tiles =
        tgl_ceil_div(s->m, (int64_t)row->block_m * row->cluster) * tgl_ceil_div(s->n, row->block_n);
    g->too_many = tiles > INT_MAX / row->cluster;
    g->x = tgl_min64(tiles, chip->sms / row->cluster) * row->cluster;
    g->y = 1;
}

ladder_geometry tgl_ladder_geometry_of(const ladder_row *row, const tgl_chip *chip,
                                       const tgl_shape *s)
{
    ladder_geometry g = {.row = row, .splits = 1, .k_chunk = s->k > 0 ? s->k : 1};
    g.x = tgl_ceil_div(s->n, row->block_n);
    g.y = tgl_ceil_div(s->m, row->block_m);
    if (row->layout == TILES_X || row->layout == SPLIT_X) {
        g.x *= g.y;
        g.y = 1;
    }
    if (row->layout == SPLIT_X) ladder_split(chip, s, &g);
    if (row->layout == PERSISTENT) count_clusters(chip, s, &g);
    if (row->maps > 0) {
        repack(s, TGL_AT_A, s->m, s->k, s->lda, &g);
        repack(s, TGL_AT_B, s->k, s->n, s->ldb, &g);
    }
    return g;
}
