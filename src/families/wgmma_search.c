/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the options of the family wgmma that are worth trying: clusters, split-K, and the
 * transposed product.
 */
#include "families/wgmma_geometry.h"

#include <limits.h>

enum {
    /* Maximum number of splits that are added in a cluster. Clusters of 4 blocks cannot fill all
     * SMs of the chip: 256x4096x14336 NT in bf16 takes 105 us on an H200 with them, and 58 us with
     * sums in the workspace (docs/notes/2026-11-26-gpu-planner.md). */
    SPLITS_IN_CLUSTER_MAX = 2,
};

/* Values of options; 0: the default. */
typedef struct wgmma_values {
    int64_t splits, rows, columns, whole, in_cluster;
} wgmma_values;

/* The search for the tiles of D, or of D^T. A way is how the left operand reaches wgmma: from
 * shared memory, or through registers. If both ways are possible, all other options are tried with
 * each of them. */
typedef struct orientation {
    tgl_search *in;
    int64_t exchanged;
    /* The ways to try. 0: the left operand from shared memory; 1: through registers. */
    int ways[2];
    int way_count;
    wgmma_bound bounds[2]; /* lower bounds of each way */
    int64_t tile_rows, tile_columns;
    double tiles;   /* tiles of the batch */
    int splits_max; /* maximum number of splits */
} orientation;

static int64_t value_or_unset(int64_t value)
{
    return value > 0 ? value : TGL_UNSET;
}

/* The choice with these options. way 0: the left operand from shared memory; 1: through
 * registers. */
static tgl_choice choice_of(const orientation *o, const wgmma_values *w, int way)
{
    tgl_choice choice = o->in->asked;
    choice.option[WGMMA_SPLITS] = w->splits > 0 ? w->splits : 1;
    choice.option[WGMMA_EXCHANGED] = o->exchanged;
    choice.option[WGMMA_CLUSTER] = w->rows > 0 ? w->rows : 1;
    choice.option[WGMMA_WHOLE] = value_or_unset(w->whole);
    choice.option[WGMMA_IN_CLUSTER] = value_or_unset(w->in_cluster);
    choice.option[WGMMA_LEFT_REGISTERS] = value_or_unset(way);
    choice.option[WGMMA_COLUMNS] = w->columns > 1 ? w->columns : TGL_UNSET;
    return choice;
}

static void wgmma_try(orientation *o, wgmma_values w)
{
    for (int i = 0; i < o->way_count; i++) {
        const tgl_choice choice = choice_of(o, &w, o->ways[i]);
        const double least = tgl_wgmma_least_of_options(&o->bounds[i], &choice);
        tgl_search_try(o->in, WGMMA_SPLITS, WGMMA_COLUMNS + 1, &choice.option[WGMMA_SPLITS], least);
    }
}

/* Whether no choice with `splits` or more splits can be the fastest. */
static bool excludes_splits(orientation *o, int splits)
{
    for (int i = 0; i < o->way_count; i++)
        if (!tgl_search_excludes(o->in, tgl_wgmma_least_of_splits(&o->bounds[i], splits)))
            return false;
    return true;
}

/* Tries all clusters that have less than twice as many rows and columns of tiles as D. */
static void try_clusters(orientation *o)
{
    for (int high = 1; high <= WGMMA_CLUSTER_MAX; high *= 2)
        for (int wide = 1; high * wide <= WGMMA_CLUSTER_MAX; wide *= 2)
            if (high < 2 * o->tile_rows && wide < 2 * o->tile_columns)
                wgmma_try(o, (wgmma_values){.rows = high, .columns = wide});
}

/* Tries to split all tiles, unless one split fewer would already give two waves. The sums are added
 * in the workspace or in clusters. If they are added in the workspace, the same split of two
 * neighbouring tiles may share an operand. */
static void wgmma_try_splits(orientation *o)
{
    for (int i = 2; i <= o->splits_max && o->tiles * (i - 1) < 2 * o->in->chip->sms;
         i = tgl_next_splits(i)) {
        if (i > SPLITS_IN_CLUSTER_MAX && excludes_splits(o, i)) return;
        wgmma_try(o, (wgmma_values){.splits = i});
        if (o->tile_rows > 1) wgmma_try(o, (wgmma_values){.splits = i, .rows = 2});
        if (o->tile_columns > 1) wgmma_try(o, (wgmma_values){.splits = i, .columns = 2});
        if (i <= SPLITS_IN_CLUSTER_MAX) wgmma_try(o, (wgmma_values){.splits = i, .in_cluster = 1});
    }
}

/* If the tiles of the last wave fill at most half of it, tries to split them. */
static void try_tail(orientation *o)
{
    const wgmma_row *t = tgl_choice_row(&o->in->asked);
    const int64_t slots = (int64_t)o->in->chip->sms * t->min_blocks;
    if (o->tiles <= (double)slots || o->tiles > INT_MAX) return;
    const int64_t tiles = (int64_t)o->tiles, whole = tiles / slots * slots, rest = tiles - whole;
    for (int i = 2; rest > 0 && i <= o->splits_max && i * rest <= slots && !excludes_splits(o, i);
         i = tgl_next_splits(i))
        wgmma_try(o, (wgmma_values){.splits = i, .whole = whole});
}

/* Keeps only the ways of the left operand with which some options may be the fastest. */
static void choose_ways(orientation *o)
{
    const int way_max =
        wgmma_tries_registers(o->in->shape, &o->in->asked, o->exchanged != 0) ? 1 : 0;
    o->way_count = 0;
    for (int way = 0; way <= way_max; way++) {
        wgmma_bound *bound = &o->bounds[o->way_count];
        const tgl_choice choice = choice_of(o, &(wgmma_values){.splits = 1}, way);
        if (tgl_wgmma_bound_start(o->in->chip, o->in->shape, &choice, bound) == NULL &&
            !tgl_search_excludes(o->in, tgl_wgmma_least_of_all(bound)))
            o->ways[o->way_count++] = way;
    }
}

static void search_orientation(tgl_search *in, bool exchanged)
{
    const tgl_shape *s = in->shape;
    const wgmma_row *t = tgl_choice_row(&in->asked);
    orientation o;
    o.in = in;
    o.exchanged = exchanged;
    choose_ways(&o);
    if (o.way_count == 0) return;
    o.tile_rows = tgl_ceil_div(exchanged ? s->n : s->m, t->bm);
    o.tile_columns = tgl_ceil_div(exchanged ? s->m : s->n, t->bn);
    o.tiles = o.bounds[0].tiles;
    o.splits_max =
        (int)tgl_min64(s->k / (WGMMA_SPLIT_DEPTH_MIN * o.bounds[0].g.bk), TGL_SPLITS_MAX);
    try_clusters(&o);
    if (t->alternates) return; /* consumers that alternate split no tiles */
    wgmma_try_splits(&o);
    try_tail(&o);
}

void tgl_wgmma_search(tgl_search *in)
{
    search_orientation(in, false);
    search_orientation(in, true);
}
