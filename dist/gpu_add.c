/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds matrices in device memory, by products with k = 0.
 */
#include "gpu_add.h"

#include "dist_error.h"

#include <stdlib.h>

struct gpu_sum {
    tgl_type type;
    int64_t target_stride, source_stride, lines, count;
    tgl_plan *plan;
};

static tgl_status make_plan(tgl_device *dev, gpu_sum *sum)
{
    const tgl_type type_a = sum->type == TGL_I32 ? TGL_I8 : sum->type;
    tgl_problem problem;
    DIST_TRY(tgl_problem_init(&problem, sizeof problem, type_a, sum->lines, sum->count, 0));
    problem.type_c = sum->type;
    problem.ldc = sum->target_stride;
    const tgl_epilogue epilogue = {
        .size = sizeof epilogue, .residual = 1, .ld_residual = sum->source_stride};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
    const tgl_status status = tgl_plan_create(dev, &problem, &options, &sum->plan);
    return status == TGL_OK ? TGL_OK : dist_fail_local(status);
}

static tgl_status add_sum(gpu_sums *sums, gpu_sum *sum)
{
    if (sums->count == sums->room) {
        const int room = sums->room > 0 ? 2 * sums->room : 8;
        gpu_sum *list = realloc(sums->list, sizeof *list * (size_t)room);
        if (list == NULL) return dist_fail(TGL_NO_MEMORY, "no memory for a list of %d sums", room);
        sums->list = list;
        sums->room = room;
    }
    DIST_TRY(make_plan(sums->dev, sum));
    sums->list[sums->count++] = *sum;
    return TGL_OK;
}

tgl_status gpu_add(gpu_sums *sums, tgl_type type, void *target, int64_t target_stride,
                   const void *source, int64_t source_stride, int64_t lines, int64_t count)
{
    gpu_sum wanted = {type, target_stride, source_stride, lines, count, NULL};
    for (int i = 0; i < sums->count; i++) {
        const gpu_sum *s = &sums->list[i];
        if (s->type == type && s->lines == lines && s->count == count &&
            s->target_stride == target_stride && s->source_stride == source_stride)
            wanted.plan = s->plan;
    }
    if (wanted.plan == NULL) DIST_TRY(add_sum(sums, &wanted));
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = 1, .beta = 1, .C = target, .residual = source};
    const tgl_status status = tgl_plan_run_operands(wanted.plan, &operands, sums->stream);
    return status == TGL_OK ? TGL_OK : dist_fail_local(status);
}

void gpu_sums_free(gpu_sums *sums)
{
    for (int i = 0; i < sums->count; i++)
        tgl_plan_destroy(sums->list[i].plan);
    free(sums->list);
    sums->list = NULL;
    sums->count = sums->room = 0;
}
