/* SPDX-License-Identifier: Apache-2.0
 *
 * The groups of grouped products: see check_groups.h.
 */
#include "check_groups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Drawing --------------------------------------------------------------------------------- */

void check_groups_draw(random_state *r, tgl_problem *p)
{
    static const tgl_grouping all[] = {TGL_GROUPED_ROWS, TGL_GROUPED_ROWS, TGL_GROUPED_DEPTH,
                                       TGL_GROUPED_MASKED};
    p->grouping = all[random_int(r, 0, 3)];
    p->group_form = p->grouping == TGL_GROUPED_MASKED || random_once_in(r, 2) ? TGL_GROUP_SIZES
                                                                              : TGL_GROUP_ENDS;
    if (p->grouping != TGL_GROUPED_DEPTH) p->order = TGL_ROW_MAJOR;
    if (p->batch > 1) return; /* a batch of small products: they become the groups */
    p->batch = random_int(r, 1, random_once_in(r, 4) ? 40 : 9);
    if (p->grouping == TGL_GROUPED_MASKED) p->m = (p->m + p->batch - 1) / p->batch;
}

void check_groups_join(check_case *c, tgl_problem *p)
{
    const bool rows = p->grouping == TGL_GROUPED_ROWS, depth = p->grouping == TGL_GROUPED_DEPTH;
    if (rows || depth) p->stride_a = c->a.view.batch = 0;
    if (depth) p->stride_b = c->b.view.batch = 0;
    if (rows) p->stride_c = p->stride_d = c->c.view.batch = c->d.view.batch = 0;
}

/* Draws the size of the next group. left: the rows or k that the last `groups` groups, this one
 * among them, divide among them. */
static int64_t draw_group(random_state *r, int64_t left, int64_t groups)
{
    const int64_t even = left / groups;
    if (random_once_in(r, 4)) return 0;
    if (random_once_in(r, 4)) return even / 16 * 16;
    return random_int(r, 0, 2 * even + 1 < left ? 2 * even + 1 : left);
}

/* Draws the sizes. With TGL_GROUPED_MASKED each group has at most `total` rows. Otherwise all
 * groups together have at most `total` rows or k. */
static void draw_sizes(random_state *r, check_case *c, int64_t total)
{
    const int64_t count = c->problem.batch;
    const bool is_masked = c->problem.grouping == TGL_GROUPED_MASKED;
    const int64_t whole = random_once_in(r, 4) ? random_int(r, 0, count - 1) : -1;
    int64_t left = total;
    for (int64_t g = 0; g < count; g++) {
        check_group *group = &c->groups[g];
        group->first = is_masked ? 0 : total - left;
        if (whole >= 0)
            group->size = g == whole ? left : 0;
        else if (is_masked)
            group->size = random_once_in(r, 4) ? total : draw_group(r, total, 1);
        else
            group->size = draw_group(r, left, count - g);
        left -= is_masked ? 0 : group->size;
    }
}

bool check_groups_fill(random_state *r, check_case *c)
{
    const tgl_problem *p = &c->problem;
    if (p->grouping == TGL_GROUPED_NONE) return true;
    const bool depth = p->grouping == TGL_GROUPED_DEPTH, ends = p->group_form == TGL_GROUP_ENDS;
    c->groups = malloc(((size_t)p->batch + 1) * sizeof *c->groups);
    c->group_numbers = malloc(((size_t)p->batch + 1) * sizeof *c->group_numbers);
    if (c->groups == NULL || c->group_numbers == NULL) return false;
    draw_sizes(r, c, depth ? p->k : p->m);
    for (int64_t g = 0; g < p->batch; g++) {
        check_group *group = &c->groups[g];
        group->bound = c->bound;
        c->group_numbers[g] = (int32_t)(group->size + (ends ? group->first : 0));
        if (!depth || c->bound == 0) continue;
        tgl_problem own = *p;
        own.k = group->size;
        group->bound =
            error_bound_of(&own, c->cuts_sums) + (c->bound - error_bound_of(p, c->cuts_sums));
    }
    return true;
}

/* ---- What a group has ------------------------------------------------------------------------ */

bool check_groups_has_row(const check_case *c, int64_t b, int64_t i)
{
    if (c->groups == NULL || c->problem.grouping == TGL_GROUPED_DEPTH) return true;
    return i >= c->groups[b].first && i < c->groups[b].first + c->groups[b].size;
}

int64_t check_groups_depth(const check_case *c, int64_t b, int64_t *first)
{
    const bool depth = c->groups != NULL && c->problem.grouping == TGL_GROUPED_DEPTH;
    *first = depth ? c->groups[b].first : 0;
    return depth ? c->groups[b].size : c->problem.k;
}

double check_groups_bound(const check_case *c, int64_t b)
{
    return c->groups != NULL ? c->groups[b].bound : c->bound;
}

int64_t check_groups_results(const check_case *c)
{
    return c->problem.grouping == TGL_GROUPED_ROWS ? 1 : c->problem.batch;
}

int64_t check_groups_result(const check_case *c, int64_t b)
{
    return c->problem.grouping == TGL_GROUPED_ROWS ? 0 : b;
}

void check_groups_describe(const check_case *c, char *text, size_t size)
{
    enum { SHOWN = 8 };
    static const char *const names[] = {"", "rows", "depth", "masked"};
    const tgl_problem *p = &c->problem;
    text[0] = '\0';
    if (c->groups == NULL) return;
    snprintf(text, size, " groups=%s,%s sizes=", names[p->grouping],
             p->group_form == TGL_GROUP_ENDS ? "ends" : "sizes");
    for (int64_t g = 0; g < p->batch && g <= SHOWN; g++) {
        const size_t length = strlen(text);
        if (g < SHOWN)
            snprintf(text + length, size - length, "%s%" PRId64, g > 0 ? "," : "",
                     c->groups[g].size);
        else
            snprintf(text + length, size - length, ",...");
    }
}
