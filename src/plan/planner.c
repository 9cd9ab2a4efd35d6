/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists candidates and chooses.
 */
#include "plan/planner.h"
#include "plan/tuned.h"

#include <stdio.h>

enum { SPLITS_MOST = 256, TAIL_SPLITS_MOST = 8, LEAST_TILES = 4 };

/* What is the same for all candidates of a configuration. */
typedef struct search {
    const tgl_chip_facts *chip;
    const tgl_gemm_shape *shape;
    const tgl_gemm_row *row;
    tgl_candidate *best; /* so far; its row is NULL before the first */
} search;

/* Takes the candidate if it is better than the best so far. */
static void consider(const tgl_candidate *candidate, tgl_candidate *best)
{
    const bool is_first = best->plan.row == NULL;
    if (is_first || (candidate->rejected == NULL &&
                     (best->rejected != NULL || candidate->seconds < best->seconds)))
        *best = *candidate;
}

static void try_split(const search *s, int splits, int64_t whole, int blocks)
{
    const tgl_gemm_split split = {.splits = splits,
                                  .cluster_most = s->chip->cluster_most,
                                  .multiprocessors = s->chip->multiprocessors,
                                  .whole = whole,
                                  .blocks = blocks};
    tgl_candidate candidate;
    tgl_candidate_make(s->chip, s->shape, s->row, &split, &candidate);
    consider(&candidate, s->best);
}

/* Splits worth a try: all up to 8, then in steps of about a fifth, and of whole clusters. */
static int next_splits(int splits)
{
    return splits < 8 ? splits + 1 : splits + (splits / 5 + 7) / 8 * 8;
}

/* All tiles while they do not fill the chip; after that the last wave, or the last two. */
static void search_simt(const search *s, const tgl_candidate *unsplit)
{
    const int64_t tiles = unsplit->plan.tiles_m * unsplit->plan.tiles_n;
    const int64_t slots = (int64_t)s->chip->multiprocessors * unsplit->resident;
    const int64_t whole = tiles / slots * slots;
    const int64_t deepest = s->shape->k / ((int64_t)LEAST_TILES * s->row->simt.bk);
    const int most = deepest < SPLITS_MOST ? (int)deepest : SPLITS_MOST;
    for (int i = 2; i <= most && tiles * s->shape->batch * (i - 1) < 2 * slots; i = next_splits(i))
        try_split(s, i, 0, 0);
    if (s->shape->batch > 1 || whole == 0) return;
    for (int i = 2; i <= most && i <= TAIL_SPLITS_MOST; i++)
        for (int64_t from = whole; from >= 0 && from >= whole - slots; from -= slots)
            if (from < tiles) try_split(s, i, from, 0);
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
    try_split(s, 1, 0, (int)tgl_ceil_div(tiles, turns));
    if (deepest < 2) return;
    try_split(s, (int)(units < deepest ? units : deepest), 0, (int)slots);
    for (int64_t splits = 2; splits <= deepest && splits * tiles <= slots; splits++)
        try_split(s, (int)splits, 0, 0);
}

void tgl_planner_best_of_row(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                             const tgl_gemm_row *row, int splits, tgl_candidate *best)
{
    const search s = {chip, shape, row, best};
    *best = (tgl_candidate){.plan.row = NULL};
    try_split(&s, splits, 0, 0); /* 0 is as good as 1 */
    if (splits != 0 || best->rejected != NULL) return;
    const tgl_candidate unsplit = *best;
    switch (row->family) {
    case TGL_SIMT:
        search_simt(&s, &unsplit);
        break;
    case TGL_SKINNY:
        search_skinny(&s, &unsplit);
        break;
    case TGL_SMALL_BATCH:
        try_split(&s, 1, 0, s.chip->multiprocessors * unsplit.resident);
        break;
    case TGL_MATVEC: /* has one way */
        break;
    }
}

/* As the options split a configuration that they name. */
static void choose_of_row(const tgl_chip_facts *chip, const tgl_gemm_shape *shape,
                          const tgl_gemm_row *row, const tgl_plan_options *options,
                          tgl_candidate *best)
{
    if (options->splits < 2 || options->whole_tiles == 0) {
        tgl_planner_best_of_row(chip, shape, row, options->splits, best);
        return;
    }
    const search s = {chip, shape, row, best};
    *best = (tgl_candidate){.plan.row = NULL};
    try_split(&s, options->splits, options->whole_tiles, 0);
}

void tgl_planner_choose(const tgl_chip_facts *chip, const tgl_gemm_shape *shape, int splits,
                        tgl_candidate *best)
{
    const tgl_gemm_row *row;
    tgl_candidate c;
    *best = (tgl_candidate){.plan.row = NULL};
    const int64_t small = shape->m < shape->n ? shape->m : shape->n;
    bool is_streamed = false; /* by as few rows or columns as there are */
    for (int i = 0; (row = tgl_gemm_row_at(i)) != NULL; i++) {
        if (is_streamed && row->count >= 2 * small) continue;
        tgl_planner_best_of_row(chip, shape, row, splits, &c);
        is_streamed = is_streamed || (row->count > 0 && c.rejected == NULL);
        consider(&c, best);
    }
    if (splits != 0) return;
    const tgl_tuned *tuned = tgl_tuned_find(chip->name, shape);
    if (tuned == NULL) return;
    row = tgl_gemm_row_find(tuned->kernel);
    if (row == NULL) return;
    tgl_planner_best_of_row(chip, shape, row, tuned->splits, &c);
    if (!tgl_tuned_holds(tuned, shape, &c, best)) return;
    *best = c;
    best->is_tuned = true;
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
    if (options->kernel != NULL && row == NULL)
        return REJECT(TGL_UNKNOWN_KERNEL, "no kernel is called \"%s\"", options->kernel);
    if (row != NULL)
        choose_of_row(chip, shape, row, options, choice);
    else
        tgl_planner_choose(chip, shape, options->splits, choice);
    if (choice->rejected != NULL)
        return REJECT(
            choice->rejected == tgl_gemm_grid_too_large ? TGL_GRID_TOO_LARGE : TGL_UNSUPPORTED,
            "%s cannot serve m=%lld n=%lld k=%lld: %s", choice->plan.row->name, (long long)shape->m,
            (long long)shape->n, (long long)shape->k, choice->rejected);
    return TGL_OK;
}
