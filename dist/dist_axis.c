/* SPDX-License-Identifier: Apache-2.0
 *
 * Block-cyclic axes (dist_axis.h explains part, local index and window): converts between local and
 * global indices, and finds the elements that two distributions share.
 */
#include "dist_axis.h"

dist_axis dist_axis_even(int64_t size, int parts, int stride)
{
    const int64_t even = size > 0 ? (size - 1) / parts + 1 : 1;
    return (dist_axis){size, even, even, parts, 0, stride};
}

int dist_axis_part(const dist_axis *axis, int rank)
{
    return rank / axis->stride % axis->parts;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static int64_t block_of(const dist_axis *axis, int64_t index)
{
    return index < axis->first ? 0 : 1 + (index - axis->first) / axis->block;
}

static int64_t block_begin(const dist_axis *axis, int64_t block)
{
    return block == 0 ? 0 : axis->first + (block - 1) * axis->block;
}

/* The index of a part's first block. Every axis->parts-th block after it is in the part, too. */
static int64_t first_block(const dist_axis *axis, int part)
{
    return (part - axis->source + axis->parts) % axis->parts;
}

int64_t dist_axis_before(const dist_axis *axis, int part, int64_t index)
{
    if (index > axis->size) index = axis->size;
    const int64_t block = block_of(axis, index), start = first_block(axis, part);
    const int64_t whole = block > start ? (block - 1 - start) / axis->parts + 1 : 0;
    int64_t count = whole * axis->block;
    if (start == 0 && whole > 0) count += axis->first - axis->block;
    if (block % axis->parts == start) count += index - block_begin(axis, block);
    return count;
}

int64_t dist_axis_length(const dist_axis *axis, int part)
{
    return dist_axis_before(axis, part, axis->size);
}

int64_t dist_axis_index(const dist_axis *axis, int part, int64_t local, int64_t *rest)
{
    int64_t block = first_block(axis, part);
    if (block == 0 && local < axis->first) {
        *rest = axis->first - local;
        return local;
    }
    if (block == 0) {
        local -= axis->first;
        block = axis->parts;
    }
    block += local / axis->block * axis->parts;
    *rest = axis->block - local % axis->block;
    return block_begin(axis, block) + local % axis->block;
}

/* ---- Windows --------------------------------------------------------------------------------- */

dist_window dist_window_whole(const dist_axis *axis, int part)
{
    return (dist_window){axis, part, 0, dist_axis_length(axis, part)};
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

dist_overlap dist_overlap_start(dist_window x, dist_window y)
{
    return (dist_overlap){.x = x, .y = y, .at = x.begin};
}

/* Finds the next run of shared elements that lies within one block of each axis. */
static bool next_in_block(dist_overlap *o, dist_run *run)
{
    const dist_window *x = &o->x, *y = &o->y;
    while (o->at < x->end) {
        int64_t rest_x, rest_y;
        const int64_t index = dist_axis_index(x->axis, x->part, o->at, &rest_x);
        rest_x = smaller(rest_x, x->end - o->at);
        const int64_t local = larger(dist_axis_before(y->axis, y->part, index), y->begin);
        if (local >= y->end) break;
        const int64_t found = dist_axis_index(y->axis, y->part, local, &rest_y);
        if (found >= index + rest_x) {
            o->at = dist_axis_before(x->axis, x->part, found);
            continue;
        }
        const int64_t skipped = found - index;
        const int64_t length = smaller(rest_x - skipped, smaller(rest_y, y->end - local));
        *run = (dist_run){o->at + skipped - x->begin, local - y->begin, length};
        o->at += skipped + length;
        return true;
    }
    o->at = x->end;
    return false;
}

bool dist_overlap_next(dist_overlap *o, dist_run *run)
{
    dist_run next;
    while (next_in_block(o, &next)) {
        dist_run *waiting = &o->waiting;
        if (waiting->length > 0 && next.x == waiting->x + waiting->length &&
            next.y == waiting->y + waiting->length) {
            waiting->length += next.length;
            continue;
        }
        *run = *waiting;
        *waiting = next;
        if (run->length > 0) return true;
    }
    *run = o->waiting;
    o->waiting.length = 0;
    return run->length > 0;
}

int64_t dist_overlap_count(dist_window x, dist_window y)
{
    dist_overlap overlap = dist_overlap_start(x, y);
    int64_t count = 0;
    for (dist_run run; next_in_block(&overlap, &run);)
        count += run.length;
    return count;
}

bool dist_overlap_is_whole(dist_window x, dist_window y, int64_t *offset)
{
    dist_overlap overlap = dist_overlap_start(x, y);
    dist_run run;
    *offset = 0;
    if (x.begin >= x.end) return true;
    if (!dist_overlap_next(&overlap, &run) || run.length != x.end - x.begin) return false;
    *offset = y.begin + run.y;
    return true;
}
