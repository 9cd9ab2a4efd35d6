/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that ranks have of a distributed matrix, whole or by panels.
 */
#include "dist_spread.h"

static dist_window panel_of(const dist_spread *spread, dist_window whole, int rank, int64_t step)
{
    const int64_t index = (spread->start[rank] + step) % spread->panels;
    const int64_t begin = index * spread->panel, end = begin + spread->panel, length = whole.end;
    whole.begin = begin < length ? begin : length;
    whole.end = end < length ? end : length;
    return whole;
}

dist_rect dist_rect_at(const dist_spread *spread, int rank, int64_t step)
{
    dist_rect rect;
    for (int side = 0; side < 2; side++) {
        const dist_axis *axis = &spread->axis[side];
        const dist_window whole = dist_window_whole(axis, dist_axis_part(axis, rank));
        rect.window[side] = (int)spread->loop == side ? panel_of(spread, whole, rank, step) : whole;
        if (rank >= spread->ranks) rect.window[side].end = rect.window[side].begin;
    }
    return rect;
}

int64_t dist_rect_lines(const dist_rect *rect)
{
    return rect->window[DIST_OUTER].end - rect->window[DIST_OUTER].begin;
}

int64_t dist_rect_width(const dist_rect *rect)
{
    return rect->window[DIST_INNER].end - rect->window[DIST_INNER].begin;
}

int64_t dist_rect_shared(const dist_rect *x, const dist_rect *y)
{
    const int64_t lines = dist_overlap_count(x->window[DIST_OUTER], y->window[DIST_OUTER]);
    return lines == 0 ? 0
                      : lines * dist_overlap_count(x->window[DIST_INNER], y->window[DIST_INNER]);
}
