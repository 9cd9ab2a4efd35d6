/* SPDX-License-Identifier: Apache-2.0
 *
 * The groups of grouped products: random ones, and what tegula.h says about any ends or sizes.
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
    int32_t groups[GROUPS_MAX]; /* ends or sizes, possible or not */
} group_list;

/* A group has rows, or K, [first, end). */
typedef struct group_span {
    int64_t first, end;
} group_span;

/* Sets `spans`, one for each group. limit: rows, or K, of all groups. */
void find_group_spans(const group_list *list, int64_t limit, group_span *spans);

/* Sets count and groups: random sizes (or ends) of `count` groups that have at most `total`
 * together; of MASKED, each at most `total`. */
void draw_group_list(group_list *list, int count, int64_t total, uint64_t seed);

#endif
