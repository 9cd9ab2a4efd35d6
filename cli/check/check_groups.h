/* SPDX-License-Identifier: Apache-2.0
 *
 * The groups of a grouped product of `tegula check`. In the functions below a case without groups
 * is a batch, each product of which has all rows and the whole k.
 */
#ifndef CLI_CHECK_GROUPS_H
#define CLI_CHECK_GROUPS_H

#include "case_data.h"

/* Draws the grouping and the number of groups. *p has the sizes of one product. */
void check_groups_draw(random_state *r, tgl_problem *p);

/* Sets the batch strides to 0 of the matrices that contain all groups, one behind the other. */
void check_groups_join(check_case *c, tgl_problem *p);

/* Draws the size of each group. Groups may be empty or of about equal size, or one group may have
 * everything. Sets the bound of each group; c->bound is the one for the whole k. False: out of
 * memory. */
bool check_groups_fill(random_state *r, check_case *c);

/* Whether product b computes row i of its D. */
bool check_groups_has_row(const check_case *c, int64_t b, int64_t i);

/* The part of k of product b: *first and the returned length. */
int64_t check_groups_depth(const check_case *c, int64_t b, int64_t *first);

/* The maximum error e that passes in product b. */
double check_groups_bound(const check_case *c, int64_t b);

/* Number of matrices D, and the index of the one of product b. */
int64_t check_groups_results(const check_case *c);
int64_t check_groups_result(const check_case *c, int64_t b);

/* Writes the grouping and the first sizes, as " groups=rows,sizes sizes=5,0,2"; "": no groups. */
void check_groups_describe(const check_case *c, char *text, size_t size);

#endif
