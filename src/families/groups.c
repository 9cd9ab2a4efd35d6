/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid and the pre-pass of grouped products: see groups.h.
 */
#include "families/groups.h"
#include "families/prepass.h"

#include "../../kernels/lib/group_table.h"

#include <stddef.h>

_Static_assert((int)TGL_GROUPS_ROWS == (int)TGL_GROUPED_ROWS &&
                   (int)TGL_GROUPS_DEPTH == (int)TGL_GROUPED_DEPTH &&
                   (int)TGL_GROUPS_MASKED == (int)TGL_GROUPED_MASKED,
               "the kernels have the values of tgl_grouping");

enum { THREADS = 256 /* block size of gemm/groups.cu */ };

tgl_shape tgl_groups_part_shape(const tgl_partition *of)
{
    return of->shape->grouping != TGL_GROUPED_NONE ? tgl_shape_of_even_groups(of->shape)
                                                   : tgl_part_shape(of->shape, &of->part);
}

int64_t tgl_group_spans_max(const tgl_shape *s, int tile)
{
    /* Each group may end in a partial tile. */
    if (s->grouping == TGL_GROUPED_ROWS) return s->m / tile + s->batch;
    return s->grouping == TGL_GROUPED_MASKED ? s->batch * tgl_ceil_div(s->m, tile) : s->batch;
}

const char *tgl_groups_set_grid(const tgl_shape *s, int bm, int bn, tgl_gemm_step *step)
{
    step->group_tile = bm;
    if (!tgl_has_groups_of_rows(s)) return NULL;
    const double tiles = (double)tgl_group_spans_max(s, bm) * (double)tgl_ceil_div(s->n, bn);
    if (tiles > TGL_GRID_X_MAX) return tgl_grid_too_large;
    step->tiles = step->blocks = (int64_t)tiles;
    step->batch_step = (int)s->batch;
    step->loops_over_batch = true; /* tiles of all groups are in gridDim.x */
    step->args.tiles_whole = (int)step->tiles;
    step->args.raster = TGL_RASTER;
    return NULL;
}

int64_t tgl_groups_add_step(const tgl_partition *of, int tile, int band_max,
                            tgl_list_builder *builder)
{
    const tgl_shape *s = of->shape;
    const bool is_depth = s->grouping == TGL_GROUPED_DEPTH;
    const int64_t span = (int64_t)sizeof(struct tgl_group_span);
    const int64_t table = span * (1 + tgl_group_spans_max(s, tile));
    const int64_t at = tgl_list_scratch(builder, table + (is_depth ? span * s->batch : 0));
    const struct tgl_groups_args args = {.count = (int)s->batch,
                                         .limit = (int)(is_depth ? s->k : s->m),
                                         .tile = tile,
                                         .band_max = band_max,
                                         .grouping = (int)s->grouping,
                                         .has_sizes = s->group_form == TGL_GROUP_SIZES};
    const tgl_kernel kernel = {.name = "groups",
                               .file = "gemm/groups.cu",
                               .symbol = "groups",
                               .parameters = "struct tgl_groups_args"};
    tgl_launch launch = tgl_prepass_launch(of, tgl_list_kernel(builder, &kernel), 1, THREADS);
    launch.condition_count = 0; /* runs without a product need the table, too: they compute D :=
                                   beta*C of the groups' rows */
    tgl_list_step(builder, "groups");
    tgl_list_launch(builder, &launch, &args, sizeof args);
    tgl_list_patch_value(builder, TGL_VALUE_OPERAND, TGL_AT_GROUPS,
                         offsetof(struct tgl_groups_args, groups), 0);
    tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0, offsetof(struct tgl_groups_args, table),
                         at);
    if (is_depth)
        tgl_list_patch_value(builder, TGL_VALUE_SCRATCH, 0,
                             offsetof(struct tgl_groups_args, unsorted), at + table);
    return at;
}
