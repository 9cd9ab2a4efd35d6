/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products of 8-bit types with scale factors, for any device: see test_grouped_scales.c and
 * test_sim_grouped_scales.c.
 */
#ifndef TGL_GROUPED_SCALE_CASES_H
#define TGL_GROUPED_SCALE_CASES_H

#include "scaled_case.h"

/* A grouped product of m rows (of MASKED: rows of each group). */
typedef struct grouped_scale_size {
    int64_t m, n, k;
} grouped_scale_size;

/* How A and B are scaled. */
typedef struct scale_pair {
    tgl_scaling a, b;
} scale_pair;

enum { SCALE_PAIRS = 6 };

/* Pairs that every grouping of rows has; the pair with A in blocks is of MASKED only. */
extern const scale_pair scale_pairs[SCALE_PAIRS];
bool scale_pair_is_of(int pair, tgl_grouping grouping);

/* A product with the groups of `list` and the factors of scale_pairs[pair]. Types, layouts, gaps in
 * memory, the scaling of D and the epilogue follow from `number`. error: of scaled_case. */
scaled_case grouped_scale_case(unsigned number, const group_list *list,
                               const grouped_scale_size *size, int pair, const char *kernel,
                               double error);

/* Runs the case and fails unless it succeeds and all results are right. */
void check_grouped_scales(tgl_device *dev, const scaled_case *c);

#endif
