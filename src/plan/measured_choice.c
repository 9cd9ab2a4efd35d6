/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a candidate by measured times, and lists the candidates that are worth measuring. The
 * measured times are in the wisdom (wisdom.h), a file in which a line has the time of one kernel
 * for one product. A measurement replaces the planner's choice only by a candidate that the planner
 * could have chosen: the kernel string of a line is parsed and checked like a kernel string that a
 * caller gives, and the arithmetic stays the same.
 */
#include "plan/measured_choice.h"
#include "plan/planned_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* Whether the family rounds the inputs of this product, which TGL_COMPUTE_ACCURATE and
 * TGL_COMPUTE_TF32 permit. */
static bool is_rounding(const tgl_family *family, const tgl_shape *shape, const tgl_chip *chip)
{
    if (family->is_emulation) return true;
    if (shape->compute != TGL_COMPUTE_TF32) return false;
    tgl_shape exact = tgl_planned_shape(shape, TGL_DIRECT_NONE);
    exact.compute = TGL_COMPUTE_IEEE;
    return tgl_family_unsupported(family, &exact, chip) != NULL;
}

static bool has_same_arithmetic(const tgl_chip *chip, const tgl_shape *shape,
                                const tgl_family *family, const tgl_candidate *choice)
{
    return !family->is_on_request &&
           is_rounding(family, shape, chip) == is_rounding(choice->choice.family, shape, chip);
}

/* ---- Lines of the wisdom --------------------------------------------------------------------- */

bool tgl_planner_source(const tgl_chip *chip, const tgl_shape *shape, const tgl_candidate *c,
                        char source[TGL_SOURCE_SIZE])
{
    tgl_launch_list list;
    source[0] = '\0';
    if (tgl_planner_list(chip, shape, c, &list) != TGL_OK) return false;
    tgl_wisdom_source(&list, source);
    tgl_list_free(&list);
    return true;
}

/* Makes the candidate to which the time in a line of the wisdom belongs. choice: the planner's
 * choice without wisdom. False: the planner could not have chosen it for this request. */
static bool make_candidate(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                           const tgl_candidate *choice, const tgl_measured *line, tgl_candidate *c)
{
    char kernel[TGL_KERNEL_STRING_SIZE];
    tgl_request asked;
    if (tgl_request_make(line->kernel, 0, &asked) != TGL_OK ||
        !has_same_arithmetic(chip, shape, asked.choice.family, choice))
        return false;
    tgl_planner_best_of(chip, shape, &asked.choice, asked.strips, request->workspace_max, c);
    return c->rejected == NULL &&
           strcmp(tgl_candidate_string(c, kernel, sizeof kernel), line->kernel) == 0;
}

/* Counts a stale line of the wisdom, and keeps the reason. */
static void note_stale(tgl_consulted *said, const char *why)
{
    said->stale++;
    said->why_stale = why;
}

/* Considers a line of the wisdom. The caller passes the lines in the order of tgl_wisdom_find(), so
 * that the first usable line determines *best. own: the kernel string of the planner's choice
 * without wisdom. */
static void consider(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                     const tgl_candidate *choice, const char *own, const tgl_measured *line,
                     tgl_consulted *said, tgl_candidate *best)
{
    char source[TGL_SOURCE_SIZE];
    tgl_candidate c;
    if (line->stale != NULL) {
        note_stale(said, line->stale);
    } else if (!make_candidate(chip, shape, request, choice, line, &c)) {
        said->unusable++;
    } else if (!tgl_planner_source(chip, shape, &c, source) || strcmp(source, line->source) != 0) {
        note_stale(said, "of another source of the kernel");
    } else {
        said->measured++;
        if (strcmp(line->kernel, own) == 0) {
            said->has_choice = true;
            said->has_sustained = said->has_sustained || line->is_sustained;
        }
        if (said->chosen.kernel != NULL) return;
        said->chosen = *line;
        *best = c;
    }
}

void tgl_planner_consult(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                         bool all, tgl_candidate *choice, tgl_consulted *said)
{
    char own[TGL_KERNEL_STRING_SIZE];
    tgl_measured *lines;
    tgl_candidate best;
    int faster = 0; /* lines that cannot be used and are faster than the chosen one */
    *said = (tgl_consulted){.measured = 0};
    if (choice->rejected != NULL) return;
    const int count = tgl_wisdom_find(request->wisdom, shape, &lines);
    if (count == 0) return;
    tgl_candidate_string(choice, own, sizeof own);
    for (int i = 0; i < count; i++) {
        const bool is_settled = said->chosen.kernel != NULL && (faster == 0 || said->has_choice);
        if (is_settled && !all) break;
        consider(chip, shape, request, choice, own, &lines[i], said, &best);
        if (said->chosen.kernel == NULL) faster = said->unusable;
    }
    free(lines);
    /* If a faster line cannot be used, for example because of the workspace limit, the chosen line
     * counts only if the planner's own choice was measured, too. Otherwise the planner's own choice
     * might be faster than all usable lines. */
    if (faster > 0 && !said->has_choice) said->chosen.kernel = NULL;
    if (said->chosen.kernel == NULL) return;
    *choice = best;
    choice->is_measured = true;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

/* A candidate is not measured if its predicted time exceeds MUCH_SLOWER times the predicted time
 * of the planner's choice. The factor is large, because predictions were wrong by up to a factor
 * of 3. */
static const double MUCH_SLOWER = 4;

/* An entry of a list of candidates to measure. */
typedef struct ranked_candidate {
    tgl_candidate candidate;
    char kernel[TGL_KERNEL_STRING_SIZE];
    bool is_first; /* it is the best candidate of its family */
} ranked_candidate;

typedef struct candidate_list {
    ranked_candidate *items;
    int count, room;
} candidate_list;

static int by_seconds(const void *x, const void *y)
{
    const ranked_candidate *a = x, *b = y;
    if (a->candidate.seconds != b->candidate.seconds)
        return a->candidate.seconds < b->candidate.seconds ? -1 : 1;
    return strcmp(a->kernel, b->kernel);
}

static int by_rank(const void *x, const void *y)
{
    const ranked_candidate *a = x, *b = y;
    return a->is_first != b->is_first ? (a->is_first ? -1 : 1) : by_seconds(x, y);
}

static void add_candidate(candidate_list *list, const tgl_candidate *c, const tgl_candidate *choice)
{
    if (list->count == list->room || c->rejected != NULL || !c->is_predicted ||
        c->seconds > MUCH_SLOWER * choice->seconds)
        return;
    ranked_candidate *item = &list->items[list->count++];
    item->candidate = *c;
    tgl_candidate_string(c, item->kernel, sizeof item->kernel);
}

static void add_all(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                    const tgl_candidate *choice, candidate_list *list)
{
    tgl_choice configuration;
    tgl_candidate c;
    for (int i = 0; tgl_configuration_at(i, &configuration); i++) {
        if (!has_same_arithmetic(chip, shape, configuration.family, choice)) continue;
        for (int strips = 0; strips <= 1; strips++) {
            tgl_planner_best_of(chip, shape, &configuration, strips, request->workspace_max, &c);
            add_candidate(list, &c, choice);
        }
    }
}

static void mark_first_of_families(candidate_list *list)
{
    for (int i = 0; i < list->count; i++) {
        list->items[i].is_first = true;
        for (int j = 0; j < i; j++)
            if (list->items[j].candidate.choice.family == list->items[i].candidate.choice.family)
                list->items[i].is_first = false;
    }
}

/* Appends the candidates of the list to out[0..count-1], except those whose kernel string is
 * already in out. Returns the new number of candidates. */
static int copy_list(const candidate_list *list, int count, tgl_candidate *out)
{
    char other[TGL_KERNEL_STRING_SIZE];
    for (int i = 0; i < list->count; i++) {
        bool is_new = true;
        for (int j = 0; j < count && is_new; j++)
            is_new = strcmp(list->items[i].kernel,
                            tgl_candidate_string(&out[j], other, sizeof other)) != 0;
        if (is_new) out[count++] = list->items[i].candidate;
    }
    return count;
}

/* Allocates a list and the caller's array for `room` candidates each. False: out of memory. */
static bool allocate(int room, candidate_list *list, tgl_candidate **out)
{
    *list = (candidate_list){.items = calloc((size_t)room + 1, sizeof *list->items), .room = room};
    *out = calloc((size_t)room + 1, sizeof **out);
    return list->items != NULL && *out != NULL;
}

int tgl_planner_promising(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                          const tgl_candidate *choice, tgl_candidate **list)
{
    tgl_choice configuration;
    candidate_list made;
    int room = 0, count = 0;
    while (tgl_configuration_at(room / 2, &configuration))
        room += 2;
    if (allocate(room, &made, list)) {
        add_all(chip, shape, request, choice, &made);
        qsort(made.items, (size_t)made.count, sizeof *made.items, by_seconds);
        mark_first_of_families(&made);
        qsort(made.items, (size_t)made.count, sizeof *made.items, by_rank);
        (*list)[count++] = *choice;
        count = copy_list(&made, count, *list);
    }
    free(made.items);
    return count;
}

/* ---- Variants -------------------------------------------------------------------------------- */

/* The index of an option in family->options; -1: the family has no such option. */
static int option_of(const tgl_family *family, const char *name)
{
    for (int i = 0; family->options[i] != NULL; i++)
        if (strcmp(family->options[i], name) == 0) return i;
    return -1;
}

/* Adds the candidate that differs from `of` in one option, which gets this value; adds none if the
 * value is negative or that of `of`. The planner chooses the option `whole` anew, because the best
 * number of tiles that are computed without split-K depends on the other options. */
static void add_variant(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                        const tgl_candidate *choice, const tgl_request *of, int option, int value,
                        candidate_list *list)
{
    tgl_choice varied = of->choice;
    tgl_candidate c;
    const int whole = option_of(varied.family, "whole");
    if (value < 0 || varied.option[option] == value) return;
    varied.option[option] = value;
    if (whole >= 0) varied.option[whole] = TGL_UNSET;
    tgl_planner_best_of(chip, shape, &varied, of->strips, request->workspace_max, &c);
    add_candidate(list, &c, choice);
}

int tgl_planner_variants(const tgl_chip *chip, const tgl_shape *shape, const tgl_request *request,
                         const tgl_candidate *choice, const char *kernel, tgl_candidate **list)
{
    enum { VALUES = 4, NONE = -1, DEPTH_MIN = 64 /* minimum K of a split */ };
    tgl_request of;
    candidate_list made;
    int count = 0;
    *list = NULL;
    if (tgl_request_make(kernel, 0, &of) != TGL_OK || !of.is_named) return 0;
    const int at = option_of(of.choice.family, "splits");
    const int splits = at >= 0 && of.choice.option[at] > 1 ? (int)of.choice.option[at] : 1;
    const int more =
        tgl_planned_shape(shape, TGL_DIRECT_NONE).k / DEPTH_MIN >= 2 * splits ? 2 * splits : NONE;
    const struct {
        const char *option;
        int values[VALUES];
    } varied[] = {
        {"splits",
         {splits - 1 > 0 ? splits - 1 : NONE, splits / 2 > 0 ? splits / 2 : NONE,
          more != NONE ? splits + 1 : NONE, more}},
        {"exchanged", {0, 1, NONE, NONE}},
        {"cluster", {1, 2, 4, NONE}},
        {"columns", {1, 2, 4, NONE}},
        {"in_cluster", {0, 1, NONE, NONE}},
    };
    enum { VARIED = sizeof varied / sizeof varied[0] };
    if (allocate(VARIED * VALUES, &made, list)) {
        for (int i = 0; i < VARIED * VALUES; i++) {
            const int option = option_of(of.choice.family, varied[i / VALUES].option);
            if (option >= 0)
                add_variant(chip, shape, request, choice, &of, option,
                            varied[i / VALUES].values[i % VALUES], &made);
        }
        qsort(made.items, (size_t)made.count, sizeof *made.items, by_seconds);
        count = copy_list(&made, 0, *list);
    }
    free(made.items);
    return count;
}

tgl_status tgl_planner_choose(const tgl_chip *chip, const tgl_shape *shape,
                              const tgl_request *request, tgl_candidate *choice)
{
    tgl_consulted said;
    TGL_TRY(tgl_planner_estimate(chip, shape, request, choice));
    if (!request->is_named) tgl_planner_consult(chip, shape, request, false, choice, &said);
    return TGL_OK;
}
