/* SPDX-License-Identifier: Apache-2.0
 *
 * Creating and destroying plans. The planner makes the launch list of a device that has a chip. A
 * device without a chip has a planner of its own.
 */
#include "api/effort.h"
#include "api/host_groups.h"
#include "api/settings.h"
#include "api/small_calls.h"
#include "base/no_cancel.h"
#include "plan/measured_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allocates a plan without kernels. NULL: out of memory; the error message is set. */
static tgl_plan *new_plan(tgl_device *dev, const tgl_shape *shape)
{
    tgl_plan *plan = calloc(1, sizeof *plan);
    tgl_plan_variants *variants = calloc(1, sizeof *variants);
    if (plan == NULL || variants == NULL) {
        free(plan);
        free(variants);
        tgl_set_error("no memory for a plan");
        return NULL;
    }
    plan->dev = dev;
    plan->shape = *shape;
    snprintf(plan->kernel, sizeof plan->kernel, "none");
    atomic_init(&plan->users, 1);
    plan->variants = variants;
    return plan;
}

static void free_plan(tgl_plan *plan)
{
    if (plan->state != NULL) plan->dev->backend->unprepare(plan);
    tgl_plan_release(atomic_load(&plan->variants->fallback));
    tgl_plan_release(atomic_load(&plan->variants->unaligned));
    free(plan->variants);
    tgl_list_free(&plan->list);
    free(plan->asked);
    free(plan->expression);
    free(plan);
}

void tgl_plan_retain(tgl_plan *plan)
{
    atomic_fetch_add_explicit(&plan->users, 1, memory_order_relaxed);
}

void tgl_plan_release(tgl_plan *plan)
{
    if (plan == NULL) return;
    if (atomic_fetch_sub_explicit(&plan->users, 1, memory_order_acq_rel) > 1) return;
    free_plan(plan);
}

/* Checks the workspace limit of a grouped product again. The candidates were checked without the
 * table of groups, which is in the workspace, too. */
static tgl_status check_groups_workspace(const tgl_plan *plan, int64_t limit)
{
    if (plan->shape.grouping == TGL_GROUPED_NONE || limit == TGL_WORKSPACE_DEFAULT ||
        (int64_t)plan->workspace <= limit)
        return TGL_OK;
    return tgl_fail(TGL_UNSUPPORTED,
                    "grouped products need workspace: here %zu bytes, and the limit is %lld",
                    plan->workspace, (long long)limit);
}

/* Makes the plan of a device with a chip: the planner chooses the kernels, the device compiles and
 * loads them. */
static tgl_status plan_launches(tgl_plan *plan, const tgl_plan_options *options)
{
    tgl_device *dev = plan->dev;
    const tgl_chip *chip = dev->backend->chip(dev);
    tgl_request request;
    TGL_TRY(tgl_request_make(options->kernel, options->workspace_limit, &request));
    if (tgl_shape_is_empty(&plan->shape)) return TGL_OK;
    request.wisdom = dev->wisdom;
    tgl_plan_measure(dev, &plan->shape, &request, options);
    TGL_TRY(tgl_planner_choose(chip, &plan->shape, &request, &plan->choice));
    TGL_TRY(tgl_planner_list(chip, &plan->shape, &plan->choice, &plan->list));
    plan->workspace = tgl_list_workspace(&plan->list);
    tgl_candidate_string(&plan->choice, plan->kernel, sizeof plan->kernel);
    TGL_TRY(check_groups_workspace(plan, request.workspace_max));
    return dev->backend->prepare(plan, NULL);
}

/* Checks that the device has the kernel that a kernel string names (NAME or NAME:OPTIONS). A device
 * without a chip parses the options itself when it prepares the plan. */
static tgl_status check_kernel(const tgl_device *dev, const char *kernel)
{
    const char *known;
    const size_t name = strcspn(kernel, ":");
    for (int i = 0; (known = dev->backend->kernel_name(dev, i)) != NULL; i++) {
        if (strlen(known) == name && memcmp(known, kernel, name) == 0) return TGL_OK;
    }
    return tgl_fail(TGL_UNKNOWN_KERNEL, "the device %s has no kernel \"%s\"", dev->name, kernel);
}

/* Makes the plan of a device without a chip (the cpu), which has its own planner. */
static tgl_status plan_alone(tgl_plan *plan, const tgl_plan_options *options)
{
    if (options->kernel != NULL) TGL_TRY(check_kernel(plan->dev, options->kernel));
    if (options->workspace_limit < -1)
        return tgl_fail(TGL_BAD_ARGUMENT, "workspace_limit is %lld; it must be at least -1",
                        (long long)options->workspace_limit);
    if (tgl_shape_is_empty(&plan->shape)) return TGL_OK;
    if (plan->shape.grouping != TGL_GROUPED_NONE) return tgl_host_groups_prepare(plan);
    char kernel[TGL_KERNEL_STRING_SIZE];
    tgl_settings_measure(plan->dev, &plan->shape, options);
    return plan->dev->backend->prepare(plan, tgl_settings_choose(plan, options, kernel));
}

static tgl_status complete_plan(tgl_plan *plan, const tgl_plan_options *options)
{
    TGL_TRY(tgl_effort_check(options));
    plan->workspace_limit = options->workspace_limit;
    if (options->kernel != NULL && (plan->asked = strdup(options->kernel)) == NULL)
        return tgl_fail(TGL_NO_MEMORY, "no memory for a plan");
    TGL_TRY(tgl_epilogue_make(options->epilogue, &plan->shape, &plan->expression));
    return plan->dev->backend->chip != NULL ? plan_launches(plan, options)
                                            : plan_alone(plan, options);
}

tgl_status tgl_plan_make(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options,
                         tgl_plan **out)
{
    TGL_NO_CANCEL;
    tgl_plan *plan = new_plan(dev, shape);
    if (plan == NULL) return TGL_NO_MEMORY;
    const tgl_status status = complete_plan(plan, options);
    if (status != TGL_OK) {
        free_plan(plan);
        return status;
    }
    tgl_small_prepare(plan, options);
    *out = plan;
    return TGL_OK;
}

/* Moves a launch list that no family built into a plan. */
static tgl_status take_list(tgl_plan *plan, tgl_launch_list *list)
{
    plan->list = *list;
    *list = (tgl_launch_list){.steps = NULL};
    if (plan->dev->backend->chip == NULL)
        return tgl_fail(TGL_UNSUPPORTED, "the device %s runs no launch lists", plan->dev->name);
    if (tgl_shape_is_empty(&plan->shape)) return TGL_OK;
    plan->workspace = tgl_list_workspace(&plan->list);
    if (plan->list.kernel_count > 0)
        snprintf(plan->kernel, sizeof plan->kernel, "%s", plan->list.kernels[0]->name);
    return plan->dev->backend->prepare(plan, NULL);
}

tgl_status tgl_plan_of_list(tgl_device *dev, const tgl_shape *shape, tgl_launch_list *list,
                            tgl_plan **plan)
{
    *plan = new_plan(dev, shape);
    if (*plan == NULL) {
        tgl_list_free(list);
        return TGL_NO_MEMORY;
    }
    const tgl_status status = take_list(*plan, list);
    if (status == TGL_OK) return TGL_OK;
    free_plan(*plan);
    *plan = NULL;
    return status;
}
