/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products of 8-bit types with scale factors, for tests on any device:
 * test_grouped_scales.c and test_sim_grouped_scales.c.
 */
#ifndef TGL_GROUPED_SCALE_CASES_H
#define TGL_GROUPED_SCALE_CASES_H

#include "scaled_case.h"

/* The size of a grouped product. m: all rows or, with TGL_GROUPED_MASKED, the rows of each group.
 */
typedef struct grouped_scale_size {
    int64_t m, n, k;
} grouped_scale_size;

/* The kinds of factors of A and of B. */
typedef struct scale_pair {
    tgl_scaling a, b;
} scale_pair;

enum { SCALE_PAIRS = 6 };

/* The pairs that are tested. scale_pair_is_of(): whether the library supports the pair for a
 * grouping; it supports factors for blocks of A only with TGL_GROUPED_MASKED. */
extern const scale_pair scale_pairs[SCALE_PAIRS];
bool scale_pair_is_of(int pair, tgl_grouping grouping);

/* A product with the groups of `list` and the factors of scale_pairs[pair]. Types, layouts, gaps in
 * memory, the scaling of D and the epilogue depend on `number`. error: member of scaled_case. */
scaled_case grouped_scale_case(unsigned number, const group_list *list,
                               const grouped_scale_size *size, int pair, const char *kernel,
                               double error);

/* Runs the case and fails unless it succeeds and all results are right. */
void check_grouped_scales(tgl_device *dev, const scaled_case *c);

#endif
