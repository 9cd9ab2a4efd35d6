/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products as a loop of products: see host_groups.h.
 */
#include "api/host_groups.h"
#include "api/handles.h"

#include <stdio.h>

/* Group `index`: the rows of D, or the indices along K, [first, first + size). */
typedef struct host_group {
    int64_t index, first, size;
} host_group;

static bool is_of_depth(const tgl_shape *s)
{
    return s->grouping == TGL_GROUPED_DEPTH;
}

/* Advances *group to the next group. Its index is -1 before the first one. */
static tgl_status next_group(const tgl_shape *s, const int32_t *groups, host_group *group)
{
    const bool is_masked = s->grouping == TGL_GROUPED_MASKED;
    const int64_t limit = is_of_depth(s) ? s->k : s->m, index = group->index + 1;
    const int64_t first = is_masked || index == 0 ? 0 : group->first + group->size;
    const int64_t size = groups[index] - (s->group_form == TGL_GROUP_SIZES ? 0 : first);
    if (size < 0)
        return tgl_fail(TGL_BAD_GROUPS, "group %lld has %lld %s", (long long)index, (long long)size,
                        is_of_depth(s) ? "of k" : "rows");
    if (size > limit - first)
        return tgl_fail(TGL_BAD_GROUPS, "group %lld ends at %lld, and %s is %lld", (long long)index,
                        (long long)(first + size), is_of_depth(s) ? "k" : "m", (long long)limit);
    *group = (host_group){index, first, size};
    return TGL_OK;
}

static const host_group before_first = {.index = -1};

static tgl_status check_groups(const tgl_shape *s, const int32_t *groups)
{
    host_group group = before_first;
    for (int64_t i = 0; i < s->batch; i++)
        TGL_TRY(next_group(s, groups, &group));
    return TGL_OK;
}

/* The shape of one group of this size (rows, or K). */
static tgl_shape shape_of_group(const tgl_shape *s, int64_t size)
{
    tgl_shape own = *s;
    own.grouping = TGL_GROUPED_NONE;
    own.group_form = TGL_GROUP_ENDS;
    own.batch = 1;
    own.stride_a = own.stride_b = own.stride_c = own.stride_d = 0;
    own.epilogue.stride_bias = own.epilogue.stride_residual = 0;
    if (is_of_depth(s))
        own.k = size;
    else
        own.m = size;
    return own;
}

static void move(tgl_run *run, tgl_operand operand, tgl_type type, int64_t elements)
{
    const char *at = run->at[operand];
    if (at != NULL) run->at[operand] = at + elements * (int64_t)tgl_type_size(type);
}

/* Moves the pointer to scale factors to the factors of the group. rows: the scaling of A or D,
 * whose rows may be those of all groups; TGL_SCALING_NONE for B. */
static void move_scales(const tgl_shape *s, tgl_run *run, tgl_operand operand, tgl_scaling rows,
                        const host_group *g)
{
    const bool is_by_row = rows == TGL_SCALING_LINE || rows == TGL_SCALING_LINE_128;
    const int64_t row = is_of_depth(s) || !is_by_row ? 0 : g->first;
    move(run, operand, s->type_scale, g->index * tgl_scales_stride(s, operand) + row);
}

/* The operands of the run that computes one group. */
static tgl_run run_of_group(const tgl_shape *s, const tgl_run *run, const host_group *g)
{
    const tgl_shape_epilogue *e = &s->epilogue;
    const int64_t row = is_of_depth(s) ? 0 : g->first, k = is_of_depth(s) ? g->first : 0;
    tgl_run own = *run;
    move(&own, TGL_AT_A, s->type_a,
         g->index * s->stride_a + (s->trans_a ? row + k * s->lda : row * s->lda + k));
    move(&own, TGL_AT_B, s->type_b, g->index * s->stride_b + (s->trans_b ? k : k * s->ldb));
    move(&own, TGL_AT_C, s->type_c, g->index * s->stride_c + row * s->ldc);
    move(&own, TGL_AT_D, s->type_d, g->index * s->stride_d + row * s->ldd);
    move(&own, TGL_AT_BIAS, e->type_bias,
         g->index * e->stride_bias + (e->bias == TGL_BIAS_ROW ? row : 0));
    move(&own, TGL_AT_RESIDUAL, e->type_residual,
         g->index * e->stride_residual + row * e->ld_residual);
    move_scales(s, &own, TGL_AT_SCALE_A, s->scaling_a, g);
    move_scales(s, &own, TGL_AT_SCALE_B, TGL_SCALING_NONE, g);
    move_scales(s, &own, TGL_AT_SCALE_D, s->scaling_d, g);
    own.at[TGL_AT_GROUPS] = NULL;
    own.workspace = NULL;
    if (is_of_depth(s) && g->size == 0) { /* a group without product: D := beta*C */
        own.has_product = false;
        own.alpha = own.alpha_imag = 0;
        own.at[TGL_AT_A] = own.at[TGL_AT_B] = NULL;
    }
    return own;
}

/* Gets the plan of a group from the cache. If `plan` has an epilogue or a kernel named by the
 * caller, makes a new plan, because the cache has none of this kind. Nothing is measured: every run
 * may have groups of other sizes. */
static tgl_status plan_group(const tgl_plan *plan, const tgl_shape *shape, tgl_plan **made)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = plan->asked,
                                      .workspace_limit = plan->workspace_limit,
                                      .effort = TGL_EFFORT_ESTIMATE};
    if (plan->asked == NULL && tgl_epilogue_is_none(&shape->epilogue))
        return tgl_plan_find_estimate(plan->dev, shape, made);
    return tgl_plan_make(plan->dev, shape, &options, made);
}

tgl_status tgl_host_groups_prepare(tgl_plan *plan)
{
    const tgl_shape even = tgl_shape_of_even_groups(&plan->shape);
    const tgl_shape shape = shape_of_group(&even, is_of_depth(&even) ? even.k : even.m);
    tgl_plan *one;
    TGL_TRY(plan_group(plan, &shape, &one));
    snprintf(plan->kernel, sizeof plan->kernel, "%s", one->kernel);
    tgl_plan_release(one);
    return TGL_OK;
}

tgl_status tgl_host_groups_run(const tgl_plan *plan, const tgl_run *run)
{
    const tgl_shape *s = &plan->shape;
    const int32_t *groups = run->at[TGL_AT_GROUPS];
    host_group group = before_first;
    if (s->k > 0 || !is_of_depth(s)) TGL_TRY(check_groups(s, groups));
    for (int64_t i = 0; i < s->batch; i++) {
        if (s->k > 0 || !is_of_depth(s))
            TGL_TRY(next_group(s, groups, &group));
        else
            group = (host_group){.index = i};
        const tgl_shape shape = shape_of_group(s, group.size);
        if (tgl_shape_is_empty(&shape)) continue;
        const tgl_run own = run_of_group(s, run, &group);
        tgl_plan *one;
        TGL_TRY(plan_group(plan, &shape, &one));
        const tgl_status status = plan->dev->backend->run(one, &own, NULL);
        tgl_plan_release(one);
        TGL_TRY(status);
    }
    return TGL_OK;
}
