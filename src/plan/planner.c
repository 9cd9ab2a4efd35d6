/* SPDX-License-Identifier: Apache-2.0
 *
 * Enumerates candidates and chooses one. A candidate is a configuration of a kernel family with its
 * options and its predicted time. Strips are the last rows or columns of D beyond the whole tiles,
 * if launches of their own compute them (family.h).
 */
#include "plan/planner.h"
#include "base/integers.h"
#include "plan/planned_shape.h"
#include "plan/planner_refuse.h"
#include "plan/search.h"
#include "plan/tuned.h"

#include <limits.h>
#include <math.h>

static const double STRIP_SECONDS = 1e-6; /* launch overhead of each strip, in seconds */
/* Factor on the predicted time of a strip candidate with one block per SM. Such a block starts
 * late, because it has to wait until an SM has no block of tiles left. */
static const double ONE_BLOCK_PENALTY = 1.2;

/* ---- One candidate --------------------------------------------------------------------------- */

static bool has_fixed_options(const tgl_choice *choice)
{
    for (int i = 0; i < TGL_OPTIONS_MAX; i++)
        if (choice->option[i] != TGL_UNSET) return true;
    return false;
}

/* A result of search_for_strip(): the best candidate for a strip of m x n if `room` bytes of
 * workspace are free. With less room it is still the best one, provided that its workspace fits. */
typedef struct kept_strip {
    int64_t m, n, room;
    tgl_choice choice;
    const char *rejected;
    double seconds, overhead;
    int64_t workspace_bytes;
} kept_strip;

/* The state of a search for the best candidate of a product. strips: results of search_for_strip().
 * They are kept because tiles of different sizes often leave the same strip. */
enum { STRIPS_KEPT = 16 };
typedef struct planning {
    const tgl_chip *chip;
    const tgl_shape *asked;
    struct planned { /* indexed by tgl_direct; set only where tgl_direct_is_for(index, asked) */
        tgl_shape shape;
        int64_t workspace_max; /* workspace limit in bytes */
        double seconds;        /* predicted time of the pre-passes */
    } of[TGL_DIRECT_COUNT];
    double limit; /* seconds of the best candidate so far: slower ones need not be found */
    kept_strip strips[STRIPS_KEPT];
    int strip_count;
} planning;

/* A lower bound of the time of a configuration, in seconds, over all options and without strips. */
static double least_seconds(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice)
{
    return choice->family->least_seconds == NULL
               ? 0
               : choice->family->least_seconds(chip, shape, choice);
}

/* The best candidate of a configuration for the whole shape, without strips. has_strips: the caller
 * will add strips to it. */
static void choose_whole(const planning *p, const tgl_shape *shape, const tgl_choice *asked,
                         bool has_strips, int64_t workspace_max, tgl_candidate *best)
{
    tgl_search search = {p->chip, shape, *asked, has_strips, workspace_max, best, p->limit};
    *best = (tgl_candidate){.choice.family = NULL};
    const char *reason = tgl_family_unsupported(asked->family, shape, p->chip);
    if (reason != NULL) {
        *best = (tgl_candidate){
            .choice = *asked, .rejected = reason, .rejected_status = TGL_UNSUPPORTED};
        return;
    }
    tgl_search_try(&search, 0, 0, NULL, 0);
    if (best->rejected == tgl_needs_workspace && !has_fixed_options(asked) &&
        asked->family->shrink != NULL)
        asked->family->shrink(&search);
    if (has_fixed_options(asked) || best->rejected != NULL || asked->family->search == NULL) return;
    asked->family->search(&search);
}

/* ---- Strips ---------------------------------------------------------------------------------- */

static const char *no_strips_reason(const tgl_family *family, const tgl_shape *s)
{
    if (family->tile == NULL) return "this kernel does not support strips";
    if (s->grouping != TGL_GROUPED_NONE) return "strips are not supported for groups";
    if (s->pointers) return "strips are not supported for arrays of pointers";
    if (tgl_shape_has_blocked_scales(s)) return "strips are not supported with scales of blocks";
    if (s->epilogue.expression != NULL)
        return "strips are not supported with an epilogue expression";
    if (s->batch > TGL_GRID_YZ_MAX)
        return "strips are not supported for batches of several launches";
    return NULL;
}

/* The number of rows or columns beyond the last whole tile, if a strip can compute them; else 0. */
static int64_t strip_width(int64_t size, int tile)
{
    return size > tile && size % tile <= TGL_STRIP_WIDTH_MAX ? size % tile : 0;
}

/* Divides D into whole tiles (*tiles) and strips: the columns to the right of the tiles, and the
 * rows below them. Returns the number of strips; if it is 0, *why is the reason. */
static int find_strips(const tgl_choice *choice, const tgl_shape *s, tgl_rectangle *tiles,
                       tgl_rectangle strips[TGL_STRIPS_MAX], const char **why)
{
    int count = 0, rows, columns;
    *why = no_strips_reason(choice->family, s);
    if (*why != NULL) return 0;
    choice->family->tile(choice->configuration, &rows, &columns);
    const int64_t below = strip_width(s->m, rows), right = strip_width(s->n, columns);
    const int64_t m = s->m - below, n = s->n - right;
    *tiles = (tgl_rectangle){0, 0, m, n};
    if (right > 0) strips[count++] = (tgl_rectangle){0, n, s->m, right};
    if (below > 0) strips[count++] = (tgl_rectangle){m, 0, below, n};
    if (count == 0) *why = "whole tiles do not leave 1 to 16 rows or columns of D";
    return count;
}

/* The best candidate for a strip of this shape, of all families with serves_strips. A candidate
 * with a single block per SM must be faster by the factor ONE_BLOCK_PENALTY. */
static void search_for_strip(const planning *p, const tgl_shape *shape, int64_t workspace_max,
                             tgl_candidate *best)
{
    const int64_t lines = tgl_min64(shape->m, shape->n);
    tgl_choice choice;
    tgl_candidate c;
    *best = (tgl_candidate){.choice.family = NULL};
    for (int i = 0; tgl_configuration_at(i, &choice); i++) {
        const bool is_served = best->choice.family != NULL && best->rejected == NULL;
        const int made_for = tgl_choice_lines(&choice);
        if (!choice.family->serves_strips || (is_served && made_for >= 2 * lines)) continue;
        choose_whole(p, shape, &choice, false, workspace_max, &c);
        tgl_take_better(&c, ONE_BLOCK_PENALTY, best);
    }
}

/* As search_for_strip(), but keeps the result for later calls with the same size. room: free bytes
 * of workspace. */
static const kept_strip *choose_for_strip(planning *p, const tgl_shape *shape, int64_t room)
{
    for (int i = 0; i < p->strip_count; i++) {
        const kept_strip *kept = &p->strips[i];
        if (kept->m == shape->m && kept->n == shape->n && room <= kept->room &&
            kept->workspace_bytes <= room)
            return kept;
    }
    tgl_candidate best;
    search_for_strip(p, shape, room, &best);
    kept_strip *made = &p->strips[p->strip_count < STRIPS_KEPT ? p->strip_count++ : 0];
    *made = (kept_strip){shape->m,      shape->n,     room,          best.choice,
                         best.rejected, best.seconds, best.overhead, best.workspace_bytes};
    return made;
}

/* The time that the SMs are idle in the last wave, as seconds of the whole chip. */
static double idle_seconds(const tgl_chip *chip, const tgl_candidate *c)
{
    const double rounds = ceil(c->blocks / chip->sms);
    if (c->is_uneven) return 0;
    return c->compute * (1 - c->blocks / (rounds * chip->sms));
}

/* Adds a strip to the candidate, and the strip's time. If launches can overlap, the strip starts
 * when the last block of tiles has started, and uses the idle SMs first: only the rest of its time
 * is added. Otherwise it starts when all tiles have ended. */
static void add_strip(const tgl_chip *chip, const tgl_rectangle *part, const kept_strip *alone,
                      tgl_candidate *c)
{
    const bool overlaps = (chip->features & TGL_HAS_OVERLAP) != 0;
    double idle = overlaps ? idle_seconds(chip, c) : 0;
    double rest = alone->seconds - alone->overhead;
    for (int i = 0; i < c->strip_count; i++)
        idle -= c->strips[i].seconds;
    if (idle > 0) rest = fmax(rest - idle, 0);
    tgl_strip *strip = &c->strips[c->strip_count++];
    strip->part = *part;
    strip->choice = alone->choice;
    strip->seconds = alone->seconds;
    strip->adds = STRIP_SECONDS + rest;
    c->workspace_bytes += alone->workspace_bytes;
    c->seconds += strip->adds;
}

/* The best candidate of a configuration with all its strips; best->rejected is set if there is
 * none. without: the best candidate without strips, which the result must beat; NULL if strips are
 * required. */
static void choose_with_strips(planning *p, const tgl_shape *shape, const tgl_choice *asked,
                               const tgl_candidate *without, tgl_candidate *best)
{
    tgl_rectangle tiles, strips[TGL_STRIPS_MAX];
    const char *why;
    const int count = find_strips(asked, shape, &tiles, strips, &why);
    *best = (tgl_candidate){.choice = *asked, .rejected = why, .rejected_status = TGL_UNSUPPORTED};
    if (count == 0) return;
    const tgl_shape main_part = tgl_part_shape(shape, &tiles);
    choose_whole(p, &main_part, asked, true, p->of[TGL_DIRECT_NONE].workspace_max, best);
    for (int i = 0; i < count && best->rejected == NULL; i++) {
        const tgl_shape few = tgl_part_shape(shape, &strips[i]);
        if (without != NULL &&
            (!(best->seconds < without->seconds) ||
             tgl_is_slower(best->seconds + (count - i) * STRIP_SECONDS, p->limit))) {
            best->rejected = "it is not faster with strips";
            return;
        }
        const kept_strip *alone =
            choose_for_strip(p, &few, tgl_room_beside(best, p->of[TGL_DIRECT_NONE].workspace_max));
        if (alone->rejected != NULL)
            best->rejected = alone->rejected;
        else
            add_strip(p->chip, &strips[i], alone, best);
    }
}

/* Begins a search for a product. workspace_max: limit of the workspace of the whole product. */
static void plan_for(planning *p, const tgl_chip *chip, const tgl_shape *asked,
                     int64_t workspace_max)
{
    const tgl_shape even = tgl_shape_of_even_groups(asked);
    p->chip = chip;
    p->asked = asked;
    p->limit = INFINITY;
    p->strip_count = 0;
    for (int i = 0; i < TGL_DIRECT_COUNT; i++) {
        const tgl_direct direct = (tgl_direct)i;
        if (!tgl_direct_is_for(direct, asked)) continue;
        p->of[i].shape = tgl_planned_shape(&even, direct);
        p->of[i].workspace_max = tgl_planned_rest(asked, workspace_max, direct);
        p->of[i].seconds = tgl_planned_seconds(chip, asked, direct);
    }
}

/* The product that the family computes if the candidate has no strips. */
static const struct planned *planned_for(const planning *p, const tgl_family *family)
{
    return &p->of[tgl_family_direct(family, p->asked)];
}

static void add_pre_passes(const struct planned *of, tgl_candidate *c)
{
    c->overhead += of->seconds;
    c->seconds += of->seconds;
}

/* The best candidate of a configuration. strips=-1: with strips if they are predicted to be faster;
 * 0: without; 1: strips are required. */
static void choose_of(planning *p, const tgl_shape *shape, const tgl_choice *asked, int strips,
                      tgl_candidate *best)
{
    tgl_candidate c;
    tgl_rectangle tiles, parts[TGL_STRIPS_MAX];
    const char *why;
    const struct planned *whole = planned_for(p, asked->family);
    if (strips == 1) {
        choose_with_strips(p, shape, asked, NULL, best);
        add_pre_passes(&p->of[TGL_DIRECT_NONE], best);
    } else {
        choose_whole(p, &whole->shape, asked, false, whole->workspace_max, best);
        add_pre_passes(whole, best);
        if (strips == -1 && best->rejected == NULL && best->is_predicted) {
            choose_with_strips(p, shape, asked, best, &c);
            add_pre_passes(&p->of[TGL_DIRECT_NONE], &c);
            tgl_take_better(&c, 1, best);
        }
    }
    best->may_have_strips = find_strips(asked, shape, &tiles, parts, &why) > 0;
}

void tgl_planner_best_of(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                         int strips, int64_t workspace_max, tgl_candidate *best)
{
    const tgl_chip known = tgl_chip_with_usual_rates(chip);
    planning p;
    plan_for(&p, &known, shape, workspace_max);
    choose_of(&p, &p.of[TGL_DIRECT_NONE].shape, choice, strips, best);
}

/* ---- The choice ------------------------------------------------------------------------------ */

/* Compares the best candidate of configuration `index` with *best. Of equal predictions the one
 * with the lowest index wins, whatever the order of comparison. c: memory for the new candidate.
 * *best_index: the configuration of *best. */
static void compare(planning *p, const tgl_shape *shape, int index, tgl_candidate *c,
                    tgl_candidate *best, int *best_index)
{
    tgl_choice choice;
    tgl_configuration_at(index, &choice);
    choose_of(p, shape, &choice, -1, c);
    const bool is_equal = best->choice.family != NULL && index < *best_index &&
                          (c->rejected == NULL) == (best->rejected == NULL) &&
                          (c->rejected != NULL || c->seconds == best->seconds);
    if (is_equal) *best = *c;
    if (is_equal || tgl_take_better(c, 1, best)) *best_index = index;
    if (best->rejected == NULL) p->limit = best->seconds;
}

/* A lower bound of the time of a configuration, in seconds, with or without strips. */
static double least_of(const planning *p, const tgl_shape *shape, const tgl_choice *choice)
{
    tgl_rectangle tiles, strips[TGL_STRIPS_MAX];
    const char *why;
    const tgl_shape *own = &planned_for(p, choice->family)->shape;
    if (tgl_family_unsupported(choice->family, own, p->chip) != NULL) return INFINITY;
    const double whole = least_seconds(p->chip, own, choice);
    const int count = find_strips(choice, shape, &tiles, strips, &why);
    if (count == 0) return whole;
    const tgl_shape main_part = tgl_part_shape(shape, &tiles);
    return fmin(whole, least_seconds(p->chip, &main_part, choice) + count * STRIP_SECONDS);
}

/* The configurations that have not been compared yet, with lower bounds of their times. */
enum { CONFIGURATIONS_MAX = 256 };
typedef struct ranking {
    struct ranked {
        int index;
        double least;
    } entries[CONFIGURATIONS_MAX];
    int count;
} ranking;

/* Removes from the ranking the configuration in [first, end) with the smallest lower bound, and all
 * whose bound exceeds `limit`. Returns the index of that configuration; -1: none is left. */
static int take_first(ranking *r, int first, int end, double limit)
{
    int kept = 0, next = -1;
    for (int i = 0; i < r->count; i++) {
        const struct ranked entry = r->entries[i];
        if (tgl_is_slower(entry.least, limit)) continue;
        if (entry.index >= first && entry.index < end &&
            (next < 0 || entry.least < r->entries[next].least))
            next = kept;
        r->entries[kept++] = entry;
    }
    r->count = kept;
    if (next < 0) return -1;
    const int index = r->entries[next].index;
    r->count--;
    for (int i = next; i < r->count; i++)
        r->entries[i] = r->entries[i + 1];
    return index;
}

/* Compares the configurations of the ranking in order of their lower bounds, until no bound is
 * below the best time. Begins with the configuration of each family that has the family's lowest
 * bound, because the bounds of some families are closer to their predictions than others'. */
static void compare_ranked(planning *p, const tgl_shape *shape, ranking *r, tgl_candidate *best,
                           int *best_index)
{
    tgl_candidate c;
    const tgl_family *family;
    int next;
    for (int i = 0, first = 0; (family = tgl_family_at(i)) != NULL;
         first += family->row_count, i++) {
        if (tgl_family_unsupported(family, &planned_for(p, family)->shape, p->chip) != NULL)
            continue;
        next = take_first(r, first, first + family->row_count, p->limit);
        if (next >= 0) compare(p, shape, next, &c, best, best_index);
    }
    while ((next = take_first(r, 0, INT_MAX, p->limit)) >= 0)
        compare(p, shape, next, &c, best, best_index);
}

/* The best candidate by predicted time. Configurations that are made for few rows or columns
 * (tgl_family.lines) are compared first. Once one of them supports the product, configurations that
 * are made for at least twice as many rows or columns as the product has are skipped. */
static void choose_predicted(planning *p, const tgl_shape *shape, tgl_candidate *best)
{
    /* Complex rows or columns may count twice (families/thin.h). */
    const bool is_complex = tgl_type_is_complex(p->asked->type_a);
    const int64_t lines =
        is_complex ? 2 * tgl_min64(p->asked->m, p->asked->n) : tgl_min64(shape->m, shape->n);
    /* Whether a configuration that is made for few rows or columns supports the product. */
    bool is_streamed = false;
    ranking r;
    int best_index = 0;
    tgl_choice choice;
    tgl_candidate c;
    r.count = 0;
    *best = (tgl_candidate){.choice.family = NULL};
    for (int i = 0; i < CONFIGURATIONS_MAX && tgl_configuration_at(i, &choice); i++) {
        const int made_for = tgl_choice_lines(&choice);
        if (choice.family->is_on_request || (is_streamed && made_for >= 2 * lines)) continue;
        if (made_for == 0) {
            r.entries[r.count++] = (struct ranked){i, least_of(p, shape, &choice)};
            continue;
        }
        compare(p, shape, i, &c, best, &best_index);
        is_streamed = is_streamed || c.rejected == NULL;
    }
    compare_ranked(p, shape, &r, best, &best_index);
}

/* Replaces the choice if the tuned table has an entry for this shape or a similar one. Whether
 * there are strips is as in the entry if the entry is for this shape, else as predicted. */
static void consult_tuned(planning *p, const tgl_shape *shape, tgl_candidate *best)
{
    const char *chip = p->chip->name;
    const tgl_tuned *tuned = tgl_tuned_find(chip, shape, NULL);
    tgl_request row;
    tgl_candidate c;
    if (tuned == NULL || tgl_request_make(tuned->kernel, 0, &row) != TGL_OK || !row.is_named)
        return;
    const int strips = tgl_tuned_is_for(tuned, chip, shape) ? row.strips : -1;
    p->limit = INFINITY;
    choose_of(p, shape, &row.choice, strips, &c);
    if (!tgl_tuned_holds(tuned, chip, shape, &c, best)) return;
    *best = c;
    best->is_tuned = true;
}

tgl_status tgl_planner_estimate(const tgl_chip *chip, const tgl_shape *asked,
                                const tgl_request *request, tgl_candidate *choice)
{
    const tgl_chip known = tgl_chip_with_usual_rates(chip);
    planning p;
    plan_for(&p, &known, asked, request->workspace_max);
    const tgl_shape *shape = &p.of[TGL_DIRECT_NONE].shape;
    TGL_TRY(tgl_planner_check(chip, asked, shape, request));
    if (request->is_named) {
        choose_of(&p, shape, &request->choice, request->strips, choice);
    } else {
        choose_predicted(&p, shape, choice);
        const bool reads_weights = choice->choice.family->reads == TGL_DIRECT_WEIGHTS;
        if (shape->grouping == TGL_GROUPED_NONE && !reads_weights) consult_tuned(&p, shape, choice);
    }
    return choice->rejected != NULL ? tgl_planner_refuse(p.chip, choice, asked, request) : TGL_OK;
}
