/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the options of the family simt that are worth trying: how many tiles are split over K, by
 * how many blocks, and whether the first split of a tile is deeper than the others.
 */
#include "families/simt_geometry.h"

enum {
    SPLITS_OF_TAIL_MAX = 8, /* maximum number of splits of a tile, if only tiles of the last wave or
                               the last two waves are split, and all splits have the same depth */
    SPLITS_UNEVEN_MAX = 5,  /* the same, if the first split is deeper than the others */
};

/* Fraction of the time by which the small splits of a tile should end before its large one.
 * STRIP_...: if the product has strips (rows or columns of D beside the tiles), because the
 * launches of strips run in that time. */
static const double EARLY_SHARE = 0.04, STRIP_EARLY_SHARE = 0.08;

/* The next number of splits to try: one more up to 8, then an increase of about a fifth, rounded up
 * to a multiple of 8 for whole clusters. */
static int simt_next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + (splits / 5 + 7) / 8 * 8;
}

/* Splits each tile from `whole` on into one large split and several small ones. The small splits
 * run in the slots (room for a block on an SM) that get no large split. Their depth is such that
 * they end a little before the large splits: one that ends early costs little, one that ends late
 * prolongs the launch. */
static void search_uneven(tgl_search *search, const simt_bound *bound, int64_t whole)
{
    const simt_geometry *g = bound->g;
    const int resident = bound->resident;
    const int64_t rest = g->step.tiles - whole, slots = (int64_t)search->chip->sms * resident;
    /* Slots that get no large split. */
    const int64_t early = slots * tgl_ceil_div(rest, slots) - rest;
    const double overhead = tgl_simt_split_overhead(search->chip, search->shape, g, resident);
    const double share = 1 - (search->has_strips ? STRIP_EARLY_SHARE : EARLY_SHARE);
    const int step = simt_depth_of_step(g->row);
    if (early == 0) return;
    for (int i = 2; i <= SPLITS_UNEVEN_MAX; i++) {
        const int64_t rounds = tgl_ceil_div(rest * (i - 1), early); /* rounds of small splits */
        const double depth = (double)search->shape->k - (double)(rounds - 1) * overhead;
        const int64_t chunk_max = (int64_t)(share * depth / (double)(rounds + i - 1));
        const int64_t chunk = chunk_max - chunk_max % step;
        if (chunk < tgl_simt_least_depth(g->row)) break;
        const int64_t values[] = {i, whole, chunk};
        tgl_search_try(search, SIMT_SPLITS, 3, values,
                       tgl_simt_least_of_uneven(bound, i, whole, chunk));
    }
}

/* Tries to split all tiles, unless one split fewer would already give two waves. For a single
 * product, also tries to split only the tiles of the last wave or of the last two waves. */
void tgl_simt_search(tgl_search *in)
{
    simt_geometry g;
    simt_bound bound;
    const tgl_shape *s = in->shape;
    const int resident = in->best->resident;
    if (tgl_simt_make_geometry(in->chip, s, &in->best->choice, &g) != NULL) return;
    tgl_simt_bound_start(in->chip, s, &g, resident, &bound);
    if (tgl_search_excludes(in, tgl_simt_least_of_all(&bound))) return;
    const int64_t tiles = g.step.tiles, slots = (int64_t)in->chip->sms * resident;
    const int64_t whole = tiles / slots * slots;
    const int splits_max = (int)tgl_min64(s->k / tgl_simt_least_depth(g.row), TGL_SPLITS_MAX);
    for (int i = 2; i <= splits_max && bound.tiles * (double)(i - 1) < (double)(2 * slots) &&
                    !tgl_search_excludes(in, tgl_simt_least_of_splits(&bound, i));
         i = simt_next_splits(i)) {
        const int64_t splits = i;
        tgl_search_try(in, SIMT_SPLITS, 1, &splits, tgl_simt_least_of_even(&bound, i, 0));
    }
    if (s->batch > 1) return;
    for (int64_t from = whole; from >= 0 && from >= whole - slots; from -= slots) {
        if (from == tiles) continue;
        search_uneven(in, &bound, from);
        for (int i = 2; i <= splits_max && i <= SPLITS_OF_TAIL_MAX && whole > 0; i++) {
            const int64_t values[] = {i, from};
            tgl_search_try(in, SIMT_SPLITS, 2, values, tgl_simt_least_of_even(&bound, i, from));
        }
    }
}
