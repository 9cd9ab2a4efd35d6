/* SPDX-License-Identifier: Apache-2.0
 *
 * The groups of grouped products: draws random groups, and finds the rows or the part of k of each
 * group by the rules of tegula.h, also for invalid ends or sizes.
 */
#ifndef TGL_GROUP_SPANS_H
#define TGL_GROUP_SPANS_H

#include "tegula/tegula.h"

enum { GROUPS_MAX = 600 };

/* The grouping of a product. */
typedef struct group_list {
    tgl_grouping grouping;
    tgl_group_form form;
    int count;
    int32_t groups[GROUPS_MAX]; /* ends or sizes, which may be invalid */
} group_list;

/* The rows or, with TGL_GROUPED_DEPTH, the part of k of a group: [first, end). */
typedef struct group_span {
    int64_t first, end;
} group_span;

/* Sets spans[i] for each group i. limit: number of rows, or k, of the whole matrix. */
void find_group_spans(const group_list *list, int64_t limit, group_span *spans);

/* Sets count and groups to random sizes (or ends) of `count` groups. Together they have at most
 * `total` rows or k; with TGL_GROUPED_MASKED each group has at most `total`. */
void draw_group_list(group_list *list, int count, int64_t total, uint64_t seed);

#endif
