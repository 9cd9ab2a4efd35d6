/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts the candidates that a family tries, and keeps the best.
 */
#include "plan/search.h"
#include "plan/limits.h"

#include <math.h>

const char tgl_needs_workspace[] = "it needs more workspace than the limit";

int64_t tgl_room_beside(const tgl_candidate *c, int64_t workspace_max)
{
    return workspace_max == TGL_WORKSPACE_DEFAULT
               ? TGL_WORKSPACE_MAX - (c->workspace_bytes - c->repacked_bytes)
               : workspace_max - c->workspace_bytes;
}

static void make_candidate(const tgl_search *search, const tgl_choice *choice, tgl_candidate *c)
{
    const tgl_chip *chip = search->chip;
    *c = (tgl_candidate){
        .choice = *choice, .rejected_status = TGL_UNSUPPORTED, .splits = 1, .launches = 1};
    choice->family->predict(chip, search->shape, c);
    if (c->rejected == NULL && tgl_room_beside(c, search->workspace_max) < 0)
        c->rejected = tgl_needs_workspace;
    if (c->rejected != NULL || !c->is_predicted) return;
    c->waves = c->blocks / ((double)chip->sms * c->resident);
    c->overhead = TGL_LAUNCH_SECONDS * (double)c->launches;
    c->seconds = fmax(c->compute, fmax(c->memory, c->l2)) + c->overhead;
}

bool tgl_take_better(const tgl_candidate *candidate, double one_block, tgl_candidate *best)
{
    const bool is_first = best->choice.family == NULL;
    const double seconds = candidate->seconds * (candidate->resident == 1 ? one_block : 1);
    const double least = best->seconds * (best->resident == 1 ? one_block : 1);
    const bool is_better =
        is_first || (candidate->rejected == NULL && (best->rejected != NULL || seconds < least));
    if (is_better) *best = *candidate;
    return is_better;
}

bool tgl_is_slower(double seconds, double limit)
{
    static const double ROUNDING = 1e-9; /* lower bounds and predictions are rounded differently */
    return seconds * (1 - ROUNDING) > limit;
}

bool tgl_search_excludes(const tgl_search *search, double seconds)
{
    const tgl_candidate *best = search->best;
    return best->choice.family != NULL && best->rejected == NULL &&
           tgl_is_slower(seconds, fmin(best->seconds, search->limit));
}

bool tgl_search_try(tgl_search *search, int first, int count, const int64_t *values, double least)
{
    tgl_candidate candidate;
    if (tgl_search_excludes(search, least)) return false;
    tgl_choice choice = search->asked;
    for (int i = 0; i < count; i++)
        choice.option[first + i] = values[i];
    make_candidate(search, &choice, &candidate);
    tgl_take_better(&candidate, 1, search->best);
    return candidate.rejected == NULL;
}
