/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the family wgmma that are worth trying: clusters, split-K, and the transposed
 * product.
 */
#include "families/wgmma_geometry.h"

#include <limits.h>

enum {
    SPLIT_DEPTH_MIN = 4, /* minimum depth of a split, in steps of K */
    /* Maximum number of splits that are added in a cluster. Not all clusters of 4 blocks fit on the
     * chip at once: a product took 105 us with them and 58 us with the workspace
     * (docs/notes/2026-11-26-gpu-planner.md). */
    SPLITS_IN_CLUSTER_MAX = 2,
};

/* Values of options; 0: the default. */
typedef struct wgmma_values {
    int64_t splits, exchanged, rows, columns, whole, in_cluster;
} wgmma_values;

static int64_t value_or_unset(int64_t value)
{
    return value > 0 ? value : TGL_UNSET;
}

/* Tries the options. If the left operand may go through registers, also tries them with that. */
static void wgmma_try(tgl_search *in, wgmma_values w)
{
    const tgl_shape *s = in->shape;
    const bool is_left_along_k = w.exchanged ? s->trans_b : !s->trans_a;
    int64_t values[] = {[WGMMA_SPLITS] = w.splits > 0 ? w.splits : 1,
                        [WGMMA_EXCHANGED] = w.exchanged,
                        [WGMMA_CLUSTER] = w.rows > 0 ? w.rows : 1,
                        [WGMMA_WHOLE] = value_or_unset(w.whole),
                        [WGMMA_IN_CLUSTER] = value_or_unset(w.in_cluster),
                        [WGMMA_LEFT_REGISTERS] = TGL_UNSET,
                        [WGMMA_COLUMNS] = w.columns > 1 ? w.columns : TGL_UNSET};
    tgl_search_try(in, WGMMA_SPLITS, WGMMA_COLUMNS + 1, values);
    if (!wgmma_is_tf32(s) || is_left_along_k) return;
    if (!tgl_wgmma_has_room_for_left(tgl_choice_row(&in->asked))) return;
    values[WGMMA_LEFT_REGISTERS] = 1;
    tgl_search_try(in, WGMMA_SPLITS, WGMMA_COLUMNS + 1, values);
}

/* Tries all clusters with less than twice as many rows and columns as D has tiles. */
static void try_clusters(tgl_search *in, int64_t exchanged, int64_t tile_rows, int64_t tile_columns)
{
    for (int high = 1; high <= WGMMA_CLUSTER_MAX; high *= 2)
        for (int wide = 1; high * wide <= WGMMA_CLUSTER_MAX; wide *= 2)
            if (high < 2 * tile_rows && wide < 2 * tile_columns)
                wgmma_try(in,
                          (wgmma_values){.exchanged = exchanged, .rows = high, .columns = wide});
}

/* Tries to split all tiles, with sums in the workspace or in clusters. most: maximum splits. */
static void wgmma_try_splits(tgl_search *in, int64_t exchanged, double tiles, int most)
{
    for (int i = 2; i <= most && tiles * (i - 1) < 2 * in->chip->sms; i = tgl_next_splits(i)) {
        wgmma_try(in, (wgmma_values){.splits = i, .exchanged = exchanged});
        if (i <= SPLITS_IN_CLUSTER_MAX)
            wgmma_try(in, (wgmma_values){.splits = i, .exchanged = exchanged, .in_cluster = 1});
    }
}

/* Tries to split the tiles of the last wave, if they fill at most half of it. */
static void try_tail(tgl_search *in, int64_t exchanged, double tiles, int most)
{
    const wgmma_row *t = tgl_choice_row(&in->asked);
    const int64_t slots = (int64_t)in->chip->sms * t->min_blocks;
    if (tiles <= (double)slots || tiles > INT_MAX) return;
    const int64_t whole = (int64_t)tiles / slots * slots, rest = (int64_t)tiles - whole;
    for (int64_t i = 2; rest > 0 && i <= most && i * rest <= slots; i++)
        wgmma_try(in, (wgmma_values){.splits = i, .exchanged = exchanged, .whole = whole});
}

void tgl_wgmma_search(tgl_search *in)
{
    const tgl_shape *s = in->shape;
    const int bk = WGMMA_LINE_BYTES / (int)tgl_type_size(s->type_a);
    const wgmma_row *t = tgl_choice_row(&in->asked);
    const int most = (int)tgl_min64(s->k / (SPLIT_DEPTH_MIN * bk), TGL_SPLITS_MAX);
    for (int exchanged = 0; exchanged < 2; exchanged++) {
        const int64_t left = exchanged ? s->n : s->m, right = exchanged ? s->m : s->n;
        const int64_t tile_rows = tgl_ceil_div(left, t->bm);
        const int64_t tile_columns = tgl_ceil_div(right, t->bn);
        const double tiles = (double)tile_rows * (double)tile_columns * (double)s->batch;
        try_clusters(in, exchanged, tile_rows, tile_columns);
        wgmma_try_splits(in, exchanged, tiles, most);
        try_tail(in, exchanged, tiles, most);
    }
}
