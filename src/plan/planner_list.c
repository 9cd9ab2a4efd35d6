/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the launch list of a candidate.
 */
#include "plan/planned_shape.h"
#include "plan/planner.h"

tgl_rectangle tgl_candidate_tiles(const tgl_shape *shape, const tgl_candidate *c)
{
    tgl_rectangle tiles = {0, 0, shape->m, shape->n};
    for (int i = 0; i < c->strip_count; i++) {
        if (c->strips[i].part.row > 0) tiles.m = c->strips[i].part.row;
        if (c->strips[i].part.col > 0) tiles.n = c->strips[i].part.col;
    }
    return tiles;
}

tgl_direct tgl_candidate_direct(const tgl_shape *asked, const tgl_candidate *c)
{
    return c->strip_count == 0 ? tgl_family_direct(c->choice.family, asked) : TGL_DIRECT_NONE;
}

tgl_status tgl_planner_list(const tgl_chip *chip, const tgl_shape *asked, const tgl_candidate *c,
                            tgl_launch_list *list)
{
    const tgl_chip known = tgl_chip_with_usual_rates(chip);
    const tgl_direct direct = tgl_candidate_direct(asked, c);
    const tgl_shape planned = tgl_planned_shape(asked, direct), *shape = &planned;
    const bool has_overlap = (chip->features & TGL_HAS_OVERLAP) != 0;
    const tgl_partition tiles = {.chip = &known,
                                 .shape = shape,
                                 .choice = c->choice,
                                 .part = tgl_candidate_tiles(shape, c),
                                 .is_last = c->strip_count == 0};
    tgl_list_builder builder;
    tgl_list_begin(&builder, list);
    const tgl_widening widening = tgl_planned_begin(asked, direct, has_overlap, &builder);
    tiles.choice.family->launch(&tiles, &builder);
    for (int i = 0; i < c->strip_count; i++) {
        const tgl_partition strip = {.chip = &known,
                                     .shape = shape,
                                     .choice = c->strips[i].choice,
                                     .part = c->strips[i].part,
                                     .is_strip = true,
                                     .is_last = i + 1 == c->strip_count};
        strip.choice.family->launch(&strip, &builder);
    }
    tgl_planned_end(asked, direct, widening, has_overlap, &builder);
    return tgl_list_end(&builder);
}
