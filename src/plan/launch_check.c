/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a complete launch list: it detects mistakes in the code of a kernel family, and grids that
 * no chip can launch.
 */
#include "plan/bundle.h"
#include "plan/launch_list.h"
#include "plan/limits.h"

enum { POINTER_BYTES = 8, TENSOR_MAP_BYTES = 128, TENSOR_MAP_ALIGNMENT = 64 };

static int value_bytes(tgl_value value)
{
    switch (value) {
    case TGL_VALUE_OPERAND:
    case TGL_VALUE_SCRATCH:
    case TGL_VALUE_SCALARS:
    case TGL_VALUE_COUNTERS:
    case TGL_VALUE_KEPT:
        return POINTER_BYTES;
    case TGL_VALUE_ALPHA_F32:
    case TGL_VALUE_BETA_F32:
    case TGL_VALUE_ALPHA_I32:
    case TGL_VALUE_BETA_I32:
    case TGL_VALUE_COUNT:
        return 4;
    case TGL_VALUE_SAVED_C:
    case TGL_VALUE_ALPHA_F64:
    case TGL_VALUE_BETA_F64:
        return 8;
    case TGL_VALUE_COMPLEX_ALPHA:
    case TGL_VALUE_COMPLEX_BETA:
        return 16;
    case TGL_VALUE_BUNDLE:
        return (int)sizeof(struct tgl_bundle_table);
    case TGL_VALUE_TENSOR_MAP:
        return TENSOR_MAP_BYTES;
    }
    return TGL_ARGUMENT_BYTES_MAX + 1;
}

/* Whether the operand has a pre-pass whose result later runs can reuse, and the offset is inside
 * this result. */
static bool is_in_kept(const tgl_launch_list *list, int operand, int64_t offset)
{
    return operand >= 0 && operand < TGL_KEPT_OPERANDS && offset >= 0 &&
           offset < list->kept_bytes[operand];
}

/* Why a patch is invalid, a static text; NULL: it is valid. */
static const char *patch_fault(const tgl_launch_list *list, const tgl_launch *launch,
                               const tgl_patch *p)
{
    const int bytes = value_bytes(p->value);
    const int alignment = bytes == TENSOR_MAP_BYTES ? TENSOR_MAP_ALIGNMENT
                          : bytes > POINTER_BYTES   ? POINTER_BYTES
                                                    : bytes;
    if (p->at < 0 || p->at + bytes > launch->argument_bytes) return "a patch outside the arguments";
    if (p->at % alignment != 0) return "a patch that is not aligned";
    switch (p->value) {
    case TGL_VALUE_OPERAND:
        return p->index < 0 || p->index >= TGL_OPERANDS ? "a patch with no such operand" : NULL;
    case TGL_VALUE_TENSOR_MAP:
        return p->index < 0 || p->index >= list->map_count ? "a patch with no such map" : NULL;
    case TGL_VALUE_SCRATCH:
    case TGL_VALUE_SCALARS:
        return p->offset < 0 || (size_t)p->offset > list->scratch_bytes
                   ? "a patch outside the scratch"
                   : NULL;
    case TGL_VALUE_COUNTERS:
        return p->offset < 0 || (size_t)p->offset > list->counter_bytes
                   ? "a patch outside the counters"
                   : NULL;
    case TGL_VALUE_KEPT:
        return is_in_kept(list, p->index, p->offset) ? NULL : "a patch outside an operand's block";
    default:
        return NULL;
    }
}

/* Why step `step` must not test flag `index`, a static text; NULL: it may. */
static const char *flag_fault(const tgl_launch_list *list, int index, int step)
{
    if (index < 0) return NULL;
    if (index >= list->flag_count) return "a launch with no such flag";
    const tgl_flag *flag = &list->flags[index];
    if (flag->set_by < 0 || flag->set_by >= step) return "a flag that no earlier step sets";
    if (flag->cleared_by < step || flag->cleared_by >= list->step_count)
        return "a flag that is not cleared by the step that looks at it, or a later one";
    if (flag->offset < 0 || flag->offset % 4 != 0 ||
        (size_t)flag->offset + 4 > list->counter_bytes || flag->mask == 0)
        return "a flag outside the counters";
    return NULL;
}

static const char *condition_fault(const tgl_launch *launch)
{
    if (launch->condition_count < 0 || launch->condition_count > TGL_CONDITIONS_MAX)
        return "too many conditions";
    for (int i = 0; i < launch->condition_count; i++) {
        const tgl_condition *c = &launch->conditions[i];
        const bool is_alignment = c->kind == TGL_IF_ALIGNED || c->kind == TGL_IF_MISALIGNED;
        if (is_alignment && (unsigned)c->operand >= TGL_OPERANDS)
            return "a condition on no operand";
        if (is_alignment && (c->alignment < 1 || (c->alignment & (c->alignment - 1)) != 0))
            return "an alignment that is no power of two";
        if (c->kind == TGL_IF_NOT_KEPT && (unsigned)c->operand >= TGL_KEPT_OPERANDS)
            return "a condition on an operand that is never kept";
    }
    return NULL;
}

static const char *cluster_fault(const tgl_launch *launch)
{
    unsigned blocks = 1;
    for (int i = 0; i < 3; i++) {
        const unsigned edge = launch->cluster[i];
        if (edge < 1 || launch->grid[i] % edge != 0)
            return "a cluster that does not divide the grid";
        blocks *= edge;
    }
    return blocks > TGL_CLUSTER_MAX ? "a cluster of too many blocks" : NULL;
}

static const char *launch_fault(const tgl_launch_list *list, int step, const tgl_launch *launch)
{
    const char *fault = condition_fault(launch);
    if (launch->kernel == NULL || launch->threads < 1) return "a launch without kernel or threads";
    if (launch->repeats < 1 || launch->count < 1 || launch->last_count < 1)
        return "a launch without problems";
    if (fault == NULL) fault = cluster_fault(launch);
    if (fault == NULL) fault = flag_fault(list, launch->flag, step);
    for (int i = 0; i < launch->patch_count && fault == NULL; i++)
        fault = patch_fault(list, launch, &launch->patches[i]);
    return fault;
}

static tgl_status check_tensor(const tgl_launch_list *list, const tgl_tensor *t)
{
    bool ok = t->operand >= 0 && t->operand < TGL_OPERANDS && t->rank >= 1 &&
              t->rank <= TGL_TENSOR_RANK_MAX &&
              (t->base == TGL_VALUE_OPERAND || t->base == TGL_VALUE_SCRATCH ||
               (t->base == TGL_VALUE_KEPT && is_in_kept(list, t->operand, t->offset)));
    for (int i = 0; i < t->rank && ok; i++)
        ok = t->size[i] > 0 && t->box[i] >= 1 && t->box[i] <= 256 &&
             (i == 0 || t->stride[i] % 16 == 0);
    return ok ? TGL_OK : tgl_fail(TGL_BAD_ARGUMENT, "a launch list has an invalid tensor map");
}

static tgl_status check_launch(const tgl_launch_list *list, int step, const tgl_launch *launch)
{
    const char *fault = launch_fault(list, step, launch);
    if (fault != NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "step %d (%s) of a launch list has %s", step,
                        list->steps[step].what, fault);
    if (launch->grid[0] < 1 || launch->grid[0] > TGL_GRID_X_MAX || launch->grid[1] < 1 ||
        launch->grid[1] > TGL_GRID_YZ_MAX || launch->grid[2] < 1 ||
        launch->grid[2] > TGL_GRID_YZ_MAX ||
        (launch->count_in_grid_z && launch->count > TGL_GRID_YZ_MAX))
        return tgl_fail(TGL_GRID_TOO_LARGE, "%s would need a grid of %u x %u x %u blocks",
                        launch->kernel->name, launch->grid[0], launch->grid[1], launch->grid[2]);
    return TGL_OK;
}

tgl_status tgl_list_check(const tgl_launch_list *list)
{
    for (int i = 0; i < list->map_count; i++)
        TGL_TRY(check_tensor(list, &list->maps[i]));
    for (int i = 0; i < list->step_count; i++)
        for (int j = 0; j < list->steps[i].launch_count; j++)
            TGL_TRY(check_launch(list, i, &list->steps[i].launches[j]));
    return TGL_OK;
}
