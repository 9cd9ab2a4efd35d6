/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products (tgl_grouping) of the families with serves_groups. The planner chooses a kernel
 * as if all groups had equal size, that is for a batch (tgl_shape_of_even_groups()). The launch
 * list then has one more step: the pre-pass gemm/groups.cu makes the table of
 * kernels/lib/group_table.h in the workspace. An entry of the table, a span, is a row of tiles of
 * one group; for groups along K it is a whole group. The main kernel has the macro GROUPED and
 * reads its tiles from the table.
 */
#ifndef TGL_FAMILY_GROUPS_H
#define TGL_FAMILY_GROUPS_H

#include "families/gemm_step.h"

/* Whether the groups divide the rows of D; otherwise they divide K, or there are none. */
static inline bool tgl_has_groups_of_rows(const tgl_shape *s)
{
    return s->grouping == TGL_GROUPED_ROWS || s->grouping == TGL_GROUPED_MASKED;
}

/* The macro GROUPED of the kernels. */
static inline int tgl_grouped_macro(const tgl_shape *s)
{
    return tgl_has_groups_of_rows(s) ? 1 : s->grouping == TGL_GROUPED_DEPTH ? 2 : 0;
}

static const char tgl_no_splits_of_groups[] = "tiles of grouped products are not split over K";

/* The shape from which a family computes its geometry: the shape of the part of D or, for grouped
 * products, all of D with groups of equal size. */
tgl_shape tgl_groups_part_shape(const tgl_partition *of);

/* The maximum number of spans in the table: one for each row of tiles, or for each group. tile:
 * rows of a tile. */
int64_t tgl_group_spans_max(const tgl_shape *shape, int tile);

/* For kernels whose blocks compute one tile each: sets group_tile. For groups of rows, replaces the
 * step's grid for groups of equal size by one for groups of any size. Returns NULL, or why the grid
 * is impossible. */
const char *tgl_groups_set_grid(const tgl_shape *shape, int bm, int bn, tgl_gemm_step *step);

/* Adds the step with the pre-pass. Returns the offset of the table in the workspace. tile: rows of
 * a tile; band_max: the most rows of tiles in a band. */
int64_t tgl_groups_add_step(const tgl_partition *of, int tile, int band_max,
                            tgl_list_builder *builder);

#endif
