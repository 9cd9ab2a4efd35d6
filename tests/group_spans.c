/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws groups of grouped products and finds the rows or k of each (group_spans.h).
 */
#include "group_spans.h"

#include "support.h"

void find_group_spans(const group_list *list, int64_t limit, group_span *spans)
{
    int64_t end = 0;
    for (int i = 0; i < list->count; i++) {
        const int64_t first = list->grouping == TGL_GROUPED_MASKED ? 0 : end;
        const int64_t given = list->groups[i];
        end = list->form == TGL_GROUP_SIZES ? first + (given > 0 ? given : 0) : given;
        end = end < first ? first : end > limit ? limit : end;
        spans[i] = (group_span){first, end};
    }
}

void draw_group_list(group_list *list, int count, int64_t total, uint64_t seed)
{
    random_state r;
    random_seed(&r, seed, 2);
    int64_t left = total, end = 0;
    list->count = count;
    for (int i = 0; i < count; i++) {
        const int64_t size_max = 2 * total / count + 1;
        int64_t size =
            random_once_in(&r, 4) ? 0 : random_int(&r, 0, size_max < left ? size_max : left);
        if (list->grouping == TGL_GROUPED_MASKED) size = random_int(&r, 0, total);
        left -= list->grouping == TGL_GROUPED_MASKED ? 0 : size;
        end += size;
        list->groups[i] = (int32_t)(list->form == TGL_GROUP_SIZES ? size : end);
    }
}
