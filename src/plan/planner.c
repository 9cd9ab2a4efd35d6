/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists candidates and chooses.
 */
#include "plan/planner.h"
#include "plan/tuned.h"

#include <stdio.h>

enum { SPLITS_MOST = 256, TAIL_SPLITS_MOST = 8, UNEVEN_SPLITS_MOST = 5, LEAST_TILES = 4 };
static const double EARLY_SHARE = 0.04, STRIP_EARLY_SHARE = 0.08;
static const double WAITING = 1.2; /* counts the time of a strip that has to wait for room */

/* What is the same for all candidates of a configuration. */
typedef struct search {
    const tgl_chip_facts *chip;
    const tgl_gemm_shape *shape;
    const tgl_gemm_row *row;
    bool has_strips;     /* are to follow */
    tgl_candidate *best; /* so far; its row is NULL before the first */
} search;

/* The chip, with usual numbers for what its driver does not tell and what is not known of one so
 * old: of predictions that are not finite, none would be the least. */
static tgl_chip_facts with_usual_rates(const tgl_chip_facts *chip)
{
    enum { USUAL_LANES = 64, USUAL_MHZ = 1500 };
    tgl_chip_facts known = *chip;
    if (known.fp32_lanes <= 0) known.fp32_lanes = USUAL_LANES;
    if (known.clock_mhz <= 0) known.clock_mhz = USUAL_MHZ;
    if (known.l2_rate <= 0)
        known.l2_rate = tgl_chip_l2_rate(known.multiprocessors, known.clock_mhz);
    return known;
}

/* Takes the candidate if it is better than the best so far. whole: by what the time of those
 * counts whose blocks need all of a multiprocessor. */
static void take_better(const tgl_candidate *candidate, double whole, tgl_candidate *best)
{
    const bool is_first = best->plan.row == NULL;
    const double seconds = candidate->seconds * (candidate->resident == 1 ? whole : 1);
    const double least = best->seconds * (best->resident == 1 ? whole : 1);
    if (is_first || (candidate->rejected == NULL && (best->rejected != NULL || seconds < least)))
        *best = *candidate;
}

static void consider(const tgl_candidate *candidate, tgl_candidate *best)
{
    take_better(candidate, 1, best);
}

static void try_split(const search *s, tgl_gemm_split split)
{
    tgl_candidate candidate;
    split.cluster_most = s->chip->cluster_most;
    split.multiprocessors = s->chip->multiprocessors;
    tgl_candidate_make(s->chip, s->shape, s->row, &split, &candidate);
    consider(&candidate, s->best);
}

/* Splits worth a try: all up to 8, then in steps of about a fifth, and of whole clusters. */
static int next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + (splits / 5 + 7) / 8 * 8;
}

/* Of k, that a block is worth. */
static int64_t least_depth(const tgl_simt_row *row)
{
    return (int64_t)(row->slices > 1 ? 2 * row->slices : LEAST_TILES) * row->bk;
}

/* Of tiles from `whole` on, one large piece each, and so little left for small ones that these, on
 * the slots that get no large one, end before the large ones do: by EARLY_SHARE, since it costs
 * little to begin the last small one early, and much to begin it late, or by what strips take. */
static void search_uneven(const search *s, const tgl_candidate *unsplit, int64_t whole)
{
    const int64_t tiles = unsplit->plan.tiles_m * unsplit->plan.tiles_n, rest = tiles - whole;
    const int64_t slots = (int64_t)s->chip->multiprocessors * unsplit->resident;
    const int64_t early = slots * tgl_ceil_div(rest, slots) - rest; /* slots */
    const double overhead = tgl_piece_overhead(s->chip, &unsplit->plan, unsplit->resident);
    const double share = 1 - (s->has_strips ? STRIP_EARLY_SHARE : EARLY_SHARE);
    const int step = tgl_simt_step(&s->row->simt);
    if (early == 0) return;
    for (int i = 2; i <= UNEVEN_SPLITS_MOST; i++) {
        const int64_t turns = tgl_ceil_div(rest * (i - 1), early); /* of small pieces */
        const double depth = (double)s->shape->k - (double)(turns - 1) * overhead;
        const int64_t most = (int64_t)(share * depth / (double)(turns + i - 1));
        const int64_t chunk = most - most % step;
        if (chunk < least_depth(&s->row->simt)) break;
        try_split(s, (tgl_gemm_split){.splits = i, .whole = whole, .chunk = chunk});
    }
}

/* All tiles while they do not fill the chip; after that the last wave, or the last two. */
static void search_simt(const search *s, const tgl_candidate *unsplit)
{
    const int64_t tiles = unsplit->plan.tiles_m * unsplit->plan.tiles_n;
    const int64_t slots = (int64_t)s->chip->multiprocessors * unsplit->resident;
    const int64_t whole = tiles / slots * slots;
    const int64_t deepest = s->shape->k / least_depth(&s->row->simt);
    const int most = deepest < SPLITS_MOST ? (int)deepest : SPLITS_MOST;
    const double all = (double)tiles * (double)s->shape->batch;
    for (int i = 2; i <= most && all * (i - 1) < (double)(2 * slots); i = next_splits(i))
        try_split(s, (tgl_gemm_split){.splits = i});
    if (s->shape->batch > 1) return;
    for (int64_t from = whole; from >= 0 && from >= whole - slots; from -= slots) {
        if (from == tiles) continue;
        search_uneven(s, unsplit, from);
        for (int i = 2; i <= most && i <= TAIL_SPLITS_MOST && whole > 0; i++)
            try_split(s, (tgl_gemm_split){.splits = i, .whole = from});
    }
}

/* Whole tiles, as many for each block; or all work in equal shares for as many blocks as the chip
 * holds; or tiles in equal parts, a block each. */
static void search_skinny(const search *s, const tgl_candidate *unsplit)
{
    enum { UNITS = 24 }; /* of work for a block: what one more or less matters little */
    const int64_t batch = s->shape->batch, tiles = unsplit->plan.blocks;
    const int64_t slots =
        tgl_ceil_div((int64_t)s->chip->multiprocessors * unsplit->resident, batch);
    const int64_t deepest = tgl_ceil_div(s->shape->k, tgl_skinny_step(&unsplit->plan));
    const int64_t turns = tgl_ceil_div(tiles, slots), units = tgl_ceil_div(UNITS * slots, tiles);
    try_split(s, (tgl_gemm_split){.splits = 1, .blocks = (int)tgl_ceil_div(tiles, turns)});
    if (deepest < 2) return;
    const int shares = (int)(units < deepest ? units : deepest);
    try_split(s, (tgl_gemm_split){.splits = shares, .blocks = (int)slots});
    for (int64_t splits = 2; splits <= deepest && splits * tiles <= slots; splits++)
        try_split(s, (tgl_gemm_split){.splits = (int)splits});
}

/* The best candidate of a configuration, without the strips that are to follow if has_strips. */
static void choose_whole(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                         const tgl_gemm_row *row, const tgl_plan_options *asked, bool has_strips,
                         tgl_candidate *best)
{
    const search s = {chip, shape, row, has_strips, best};
    const bool is_split = asked->splits > 1;
    *best = (tgl_candidate){.plan.row = NULL};
    try_split(&s, (tgl_gemm_split){.splits = asked->splits, /* 0 is as good as 1 */
                                   .whole = is_split ? asked->whole_tiles : 0,
                                   .chunk = is_split ? asked->split_depth : 0});
    if (asked->splits != 0 || best->rejected != NULL) return;
    const tgl_candidate unsplit = *best;
    switch (row->family) {
    case TGL_SIMT:
        search_simt(&s, &unsplit);
        break;
    case TGL_SKINNY:
        search_skinny(&s, &unsplit);
        break;
    case TGL_SMALL_BATCH:
        try_split(&s, (tgl_gemm_split){.splits = 1,
                                       .blocks = s.chip->multiprocessors * unsplit.resident});
        break;
    case TGL_MATVEC: /* has one way */
        break;
    }
}

/* The best of the configurations for few rows or columns that suit so few best. Beside tiles, a
 * block that needs all of a multiprocessor has to wait for one: it must be much faster to be worth
 * it. */
static void choose_for_strip(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                             tgl_candidate *best)
{
    static const tgl_plan_options any = {.size = sizeof any};
    const int64_t small = shape->m < shape->n ? shape->m : shape->n;
    const tgl_gemm_row *row;
    tgl_candidate c;
    *best = (tgl_candidate){.plan.row = NULL};
    for (int i = 0; (row = tgl_gemm_row_at(i)) != NULL; i++) {
        const bool is_served = best->plan.row != NULL && best->rejected == NULL;
        if (row->count == 0 || (is_served && row->count >= 2 * small)) continue;
        choose_whole(chip, shape, row, &any, false, &c);
        take_better(&c, WAITING, best);
    }
}

/* The best candidate of a configuration with strips, all of them; best->rejected where there can be
 * none. without: the best candidate that has none, which it must be faster than; NULL if strips are
 * demanded. */
static void choose_with_strips(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                               const tgl_gemm_row *row, const tgl_plan_options *asked,
                               const tgl_candidate *without, tgl_candidate *best)
{
    tgl_gemm_part tiles, strips[TGL_STRIPS_MOST];
    const char *why;
    const int count = tgl_gemm_strips(row, shape, &tiles, strips, &why);
    *best = (tgl_candidate){.plan.row = row, .rejected = why};
    if (count == 0) return;
    choose_whole(chip, &tiles.shape, row, asked, true, best);
    for (int i = 0; i < count && best->rejected == NULL; i++) {
        tgl_candidate alone;
        if (without != NULL && !(best->seconds < without->seconds)) {
            best->rejected = "it is no faster with strips";
            return;
        }
        choose_for_strip(chip, &strips[i].shape, &alone);
        if (alone.rejected != NULL)
            best->rejected = alone.rejected;
        else
            tgl_candidate_add_strip(chip, &strips[i], &alone, best);
    }
}

static void choose_of_row(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                          const tgl_gemm_row *row, const tgl_plan_options *asked,
                          tgl_candidate *best)
{
    tgl_candidate c;
    if (asked->strips == TGL_STRIPS_ALWAYS) {
        choose_with_strips(chip, shape, row, asked, NULL, best);
        return;
    }
    choose_whole(chip, shape, row, asked, false, best);
    if (asked->strips == TGL_STRIPS_NEVER || best->rejected != NULL) return;
    choose_with_strips(chip, shape, row, asked, best, &c);
    consider(&c, best);
}

void tgl_planner_best_of_row(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                             const tgl_gemm_row *row, const tgl_plan_options *asked,
                             tgl_candidate *best)
{
    const tgl_chip_facts known = with_usual_rates(chip);
    choose_of_row(&known, shape, row, asked, best);
}

/* The best candidate by prediction. */
static void choose_predicted(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                             const tgl_plan_options *asked, tgl_candidate *best)
{
    const tgl_gemm_row *row;
    tgl_candidate c;
    *best = (tgl_candidate){.plan.row = NULL};
    const int64_t small = shape->m < shape->n ? shape->m : shape->n;
    bool is_streamed = false; /* by as few rows or columns as there are */
    for (int i = 0; (row = tgl_gemm_row_at(i)) != NULL; i++) {
        if (is_streamed && row->count >= 2 * small) continue;
        choose_of_row(chip, shape, row, asked, &c);
        is_streamed = is_streamed || (row->count > 0 && c.rejected == NULL);
        consider(&c, best);
    }
}

/* Strips are as they were measured for just this shape, else as predicted to be best. */
void tgl_planner_choose(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                        const tgl_plan_options *asked, tgl_candidate *best)
{
    const tgl_plan_options of_any = {
        .size = sizeof of_any, .splits = asked->splits, .strips = asked->strips};
    const tgl_chip_facts known = with_usual_rates(chip);
    tgl_candidate c;
    choose_predicted(&known, shape, &of_any, best);
    const tgl_tuned *tuned = asked->splits == 0 ? tgl_tuned_find(chip->name, shape) : NULL;
    const tgl_gemm_row *row = tuned != NULL ? tgl_gemm_row_find(tuned->kernel) : NULL;
    if (row == NULL) return;
    tgl_plan_options as_tuned = {
        .size = sizeof as_tuned, .splits = tuned->splits, .strips = asked->strips};
    if (asked->strips == TGL_STRIPS_AUTO && tgl_tuned_is_for(tuned, shape))
        as_tuned.strips = tuned->strips;
    choose_of_row(&known, shape, row, &as_tuned, &c);
    if (!tgl_tuned_holds(tuned, shape, &c, best)) return;
    *best = c;
    best->is_tuned = true;
}

int tgl_candidate_parts(const tgl_candidate *c, const tgl_gemm_shape *shape,
                        tgl_gemm_part parts[TGL_PARTS_MOST])
{
    int64_t m = shape->m, n = shape->n;
    for (int i = 0; i < c->strip_count; i++) {
        parts[1 + i] = c->strips[i].part;
        if (parts[1 + i].row > 0) m = parts[1 + i].row;
        if (parts[1 + i].col > 0) n = parts[1 + i].col;
    }
    tgl_gemm_part_make(shape, 0, 0, m, n, &parts[0]);
    parts[0].plan = c->plan;
    return 1 + c->strip_count;
}

/* Writes the sentence and yields the status; `message` and `message_size` are in scope. */
#define REJECT(status, ...) (snprintf(message, message_size, __VA_ARGS__), (status))

tgl_status tgl_planner_plan(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                            const tgl_plan_options *options, tgl_candidate *choice, char *message,
                            size_t message_size)
{
    const tgl_gemm_row *row = options->kernel != NULL ? tgl_gemm_row_find(options->kernel) : NULL;
    const char *lacks = tgl_gemm_lacks(shape);
    if (lacks != NULL) return REJECT(TGL_UNSUPPORTED, "%s", lacks);
    if (options->kernel != NULL && tgl_kernel_find(options->kernel) != NULL)
        return REJECT(TGL_UNSUPPORTED,
                      "%s is of the ladder, whose kernels are not planned: each runs in one way",
                      options->kernel);
    if (options->kernel != NULL && row == NULL)
        return REJECT(TGL_UNKNOWN_KERNEL, "no kernel is called \"%s\"", options->kernel);
    if (row != NULL)
        tgl_planner_best_of_row(chip, shape, row, options, choice);
    else
        tgl_planner_choose(chip, shape, options, choice);
    if (choice->rejected != NULL)
        return REJECT(
            choice->rejected == tgl_gemm_grid_too_large ? TGL_GRID_TOO_LARGE : TGL_UNSUPPORTED,
            "%s cannot serve m=%lld n=%lld k=%lld: %s", choice->plan.row->name, (long long)shape->m,
            (long long)shape->n, (long long)shape->k, choice->rejected);
    return TGL_OK;
}
