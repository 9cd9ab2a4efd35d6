/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes plans of readers' kernels. The launch list of a plan names its kernels and their launches.
 * For a reader's kernel, the list is the same as for a kernel of the ladder with the tile and block
 * size of the exercise, but the kernel is compiled from the reader's text.
 */
#include "learn_plan.h"

#include "api/handles.h"
#include "families/ladder_geometry.h"
#include "sim/sim_state.h"

#include <stdio.h>
#include <string.h>

static ladder_grid layout_of(const exercise *e)
{
    if (e->is_split) return SPLIT_X;
    return e->cluster > 0 || e->blocks_max > 0 ? PERSISTENT : TILES_XY;
}

static ladder_row row_of(const exercise *e, const char *file)
{
    return (ladder_row){.name = e->name,
                        .file = file,
                        .symbol = e->name,
                        .chapter = e->type == TGL_F16 ? HALF : FP32,
                        .block_m = e->block_m,
                        .block_n = e->block_n,
                        .threads = e->threads,
                        .layout = layout_of(e),
                        .shared = e->dynamic_shared,
                        .maps = e->maps,
                        .cluster = e->cluster > 0 ? e->cluster : 1};
}

/* Builds the launch list for *all, a partition that covers the whole product, with the kernel
 * compiled from `source`. */
static tgl_status make_list(const tgl_partition *all, const char *file, const char *source,
                            tgl_launch_list *list)
{
    tgl_list_builder builder;
    tgl_list_begin(&builder, list);
    tgl_ladder_launch(all, &builder);
    const tgl_status status = tgl_list_end(&builder);
    for (int i = 0; status == TGL_OK && i < list->kernel_count; i++)
        if (strcmp(list->kernels[i]->file, file) == 0) list->kernels[i]->source = source;
    return status;
}

tgl_status learn_plan_make(tgl_device *dev, const tgl_problem *problem, const exercise *e,
                           const char *file, const char *source, tgl_plan **plan)
{
    const ladder_row row = row_of(e, file);
    const tgl_family family = {.name = "learn", .rows = &row, .row_bytes = sizeof row};
    tgl_shape shape;
    tgl_launch_list list;
    tgl_chip chip = *dev->backend->chip(dev);
    if (e->blocks_max > 0 && strcmp(tgl_device_name(dev), "sim") == 0) chip.sms = e->blocks_max;
    *plan = NULL;
    CLI_TRY(tgl_shape_make(problem, true, &shape));
    const tgl_partition all = {.chip = &chip,
                               .shape = &shape,
                               .choice = {.family = &family},
                               .part = {0, 0, shape.m, shape.n},
                               .is_last = true};
    CLI_TRY(make_list(&all, file, source, &list));
    return tgl_plan_of_list(dev, &shape, &list, plan);
}

#ifdef TGL_NO_SIM
int learn_plan_lines(const tgl_plan *plan, learn_line *lines, int room)
{
    (void)plan, (void)lines, (void)room;
    return 0; /* without the simulator there are no counts */
}
#else
int learn_plan_lines(const tgl_plan *plan, learn_line *lines, int room)
{
    const tgl_sim_plan *made = plan->state;
    int count = 0;
    for (; count < made->report.count && count < room; count++) {
        const tgl_report_line *from = &made->report.lines[count];
        lines[count] = (learn_line){.line = from->line,
                                    .kind = 1u << from->kind,
                                    .access = tgl_access_name(from->kind),
                                    .requests = from->requests,
                                    .bytes = from->bytes,
                                    .sectors = from->sectors,
                                    .wavefronts = from->wavefronts,
                                    .conflicts = from->conflicts};
        snprintf(lines[count].target, sizeof lines[count].target, "%s", from->target);
    }
    return count;
}
#endif

_Static_assert(LEARN_GLOBAL_LOAD == 1u << TGL_GLOBAL_LOAD &&
                   LEARN_GLOBAL_STORE == 1u << TGL_GLOBAL_STORE &&
                   LEARN_SHARED_LOAD == 1u << TGL_SHARED_LOAD &&
                   LEARN_SHARED_STORE == 1u << TGL_SHARED_STORE &&
                   LEARN_ASYNC_COPY == 1u << TGL_ASYNC_COPY &&
                   LEARN_TMA_LOAD == 1u << TGL_TMA_LOAD && LEARN_TMA_STORE == 1u << TGL_TMA_STORE &&
                   LEARN_MMA == 1u << TGL_TENSOR_MMA && LEARN_WGMMA == 1u << TGL_TENSOR_LOAD,
               "the kinds are those of the simulator");
