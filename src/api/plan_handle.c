/* SPDX-License-Identifier: Apache-2.0
 *
 * The public functions of plans: creating, running and describing them.
 */
#include "api/handles.h"
#include "api/host_groups.h"
#include "api/plan_cache.h"
#include "api/prepared.h"
#include "api/settings.h"
#include "api/small_calls.h"
#include "backend/backend_stack.h"
#include "plan/plan_text.h"
#include "problem/struct_size.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The smallest accepted sizes of the structs: the sizes in their first versions. */
static const size_t least_options_size = TGL_SIZE_UP_TO(tgl_plan_options, workspace_limit);
static const size_t least_counters_size = TGL_SIZE_UP_TO(tgl_counters, needed_bytes);

static const tgl_plan_options no_options = {.size = sizeof no_options};
static const tgl_plan_options estimate = {.size = sizeof estimate, .effort = TGL_EFFORT_ESTIMATE};

/* ---- Making ---------------------------------------------------------------------------------- */

/* Makes a plan. If memory is exhausted, frees the cached plans of tgl_gemm() and the device's spare
 * memory, and tries again. */
static tgl_status make_plan(tgl_device *dev, const tgl_shape *shape,
                            const tgl_plan_options *options, tgl_plan **out)
{
    TGL_TRY(tgl_check_stack(dev->backend));
    const tgl_status status = tgl_plan_make(dev, shape, options, out);
    if (status != TGL_NO_MEMORY) return status;
    tgl_plan_cache_clear(dev->plans);
    if (dev->backend->trim != NULL) dev->backend->trim(dev);
    return tgl_plan_make(dev, shape, options, out);
}

/* Whether plans of the device's cache are measured. */
static bool measures(const tgl_device *dev)
{
    return dev->effort == TGL_EFFORT_MEASURE && dev->wisdom != NULL;
}

tgl_status tgl_plan_find(tgl_device *dev, const tgl_shape *shape, void *stream, tgl_plan **plan)
{
    tgl_plan *cached = tgl_plan_cache_find(dev->plans, shape);
    *plan = cached;
    if (cached != NULL && !cached->is_provisional) return TGL_OK;
    const bool is_captured = measures(dev) && dev->backend->trials->is_captured(dev, stream);
    if (cached != NULL && is_captured) return TGL_OK;
    *plan = NULL;
    tgl_plan_release(cached);
    TGL_TRY(make_plan(dev, shape, is_captured ? &estimate : &no_options, plan));
    /* A plan made during a capture is not cached: no kernel was measured for it, so that the next
     * call outside of the capture makes a better one. */
    if (!is_captured) tgl_plan_cache_keep(dev->plans, *plan);
    return TGL_OK;
}

tgl_status tgl_plan_find_estimate(tgl_device *dev, const tgl_shape *shape, tgl_plan **plan)
{
    *plan = tgl_plan_cache_find(dev->plans, shape);
    if (*plan != NULL) return TGL_OK;
    TGL_TRY(make_plan(dev, shape, &estimate, plan));
    (*plan)->is_provisional = measures(dev);
    tgl_plan_cache_keep(dev->plans, *plan);
    return TGL_OK;
}

tgl_status tgl_plan_create(tgl_device *dev, const tgl_problem *problem,
                           const tgl_plan_options *options, tgl_plan **plan)
{
    if (plan == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the output pointer for the plan is NULL");
    *plan = NULL;
    if (dev == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the device is NULL");
    tgl_plan_options copy;
    const void *read = &no_options;
    if (options != NULL)
        TGL_TRY(tgl_struct_read(options, sizeof copy, least_options_size, "options", &copy, &read));
    tgl_shape shape;
    TGL_TRY(tgl_device_shape(dev, problem, true, &shape));
    return make_plan(dev, &shape, read, plan);
}

void tgl_plan_destroy(tgl_plan *plan)
{
    tgl_plan_release(plan);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Checks the caller's workspace, if the run has one and the plan needs one. */
static tgl_status check_workspace(const tgl_plan *plan, const tgl_run *run)
{
    if (run->workspace == NULL || plan->workspace == 0) return TGL_OK;
    if (run->workspace_bytes < plan->workspace)
        return tgl_fail(TGL_BAD_WORKSPACE, "the workspace has %zu bytes; the plan needs %zu",
                        run->workspace_bytes, plan->workspace);
    if ((uintptr_t)run->workspace % TGL_WORKSPACE_ALIGNMENT != 0)
        return tgl_fail(TGL_BAD_WORKSPACE, "the workspace is not aligned to %d bytes",
                        TGL_WORKSPACE_ALIGNMENT);
    return TGL_OK;
}

/* Gets a variant of a plan (handles.h); the first call makes it. variant: a member of
 * plan->variants. The variant uses the plan's expression. No lock is used, because a child process
 * could inherit it locked; if several threads make the variant at the same time, one of their
 * results is kept. */
static tgl_status find_variant(const tgl_plan *plan, tgl_plan_variant *variant,
                               const tgl_shape *shape, const tgl_plan_options *options,
                               tgl_plan **found)
{
    tgl_plan *present = atomic_load(variant);
    if (present == NULL) {
        TGL_TRY(make_plan(plan->dev, shape, options, found));
        if (atomic_compare_exchange_strong(variant, &present, *found)) return TGL_OK;
        tgl_plan_release(*found);
    }
    *found = present;
    return TGL_OK;
}

/* Runs the variant without workspace. If it cannot be made, returns TGL_NO_MEMORY, and the error
 * message also says why the device had no memory for the workspace. */
static tgl_status run_fallback(const tgl_plan *plan, const tgl_run *run, void *stream)
{
    char why[200];
    snprintf(why, sizeof why, "%s", tgl_error());
    const tgl_plan_options options = {
        .size = sizeof options, .workspace_limit = -1, .effort = TGL_EFFORT_ESTIMATE};
    tgl_plan *fallback;
    tgl_shape shape = plan->shape;
    shape.unaligned = true; /* the fallback must serve all runs of the plan, whatever their
                               alignment */
    if (find_variant(plan, &plan->variants->fallback, &shape, &options, &fallback) != TGL_OK)
        return tgl_fail(TGL_NO_MEMORY, "%s; and without workspace: %s", why, tgl_error());
    return plan->dev->backend->run(fallback, run, stream);
}

/* Replaces *plan by its variant for matrices that begin at any element. The variant uses the kernel
 * that the caller named, if this kernel supports such matrices. If the variant needs more workspace
 * than the plan, the device provides the workspace. */
static tgl_status take_unaligned(const tgl_plan **plan, tgl_run *run)
{
    const tgl_plan *owner = *plan;
    tgl_plan_variant *variant = &owner->variants->unaligned;
    tgl_plan *unaligned;
    tgl_plan_options options = {
        .size = sizeof options,
        .kernel = owner->asked,
        .workspace_limit = owner->workspace_limit,
        .effort = TGL_EFFORT_ESTIMATE,
    };
    tgl_shape shape = owner->shape;
    shape.unaligned = true;
    tgl_status status = find_variant(owner, variant, &shape, &options, &unaligned);
    if (status == TGL_UNSUPPORTED && options.kernel != NULL) {
        options.kernel = NULL;
        status = find_variant(owner, variant, &shape, &options, &unaligned);
    }
    TGL_TRY(status);
    *plan = unaligned;
    if ((*plan)->workspace > owner->workspace) run->workspace = NULL;
    return TGL_OK;
}

tgl_status tgl_plan_run_operands(const tgl_plan *plan, const tgl_operands *operands, void *stream)
{
    if (plan == NULL) return tgl_fail(TGL_BAD_ARGUMENT, "the plan is NULL");
    if (tgl_small_plan_operands(plan, operands)) return TGL_OK;
    tgl_run run;
    TGL_TRY(tgl_run_make(&plan->shape, operands, &run));
    TGL_TRY(tgl_prepared_take(plan, operands, &run));
    if (tgl_host_has_groups(plan)) return tgl_host_groups_run(plan, &run);
    if (plan->state == NULL) return TGL_OK;
    TGL_TRY(check_workspace(plan, &run));
    if (!tgl_list_takes(&plan->list, &run)) TGL_TRY(take_unaligned(&plan, &run));
    const tgl_status status = plan->dev->backend->run(plan, &run, stream);
    return status == TGL_NO_WORKSPACE ? run_fallback(plan, &run, stream) : status;
}

tgl_status tgl_plan_run(const tgl_plan *plan, double alpha, const void *A, const void *B,
                        double beta, void *C, void *stream)
{
    if (tgl_small_plan(plan, alpha, A, B, beta, C)) return TGL_OK;
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = alpha, .beta = beta, .A = A, .B = B, .C = C};
    return tgl_plan_run_operands(plan, &operands, stream);
}

/* ---- Descriptions of a plan ------------------------------------------------------------------ */

size_t tgl_plan_workspace_size(const tgl_plan *plan)
{
    return plan != NULL ? plan->workspace : 0;
}

const char *tgl_plan_kernel(const tgl_plan *plan)
{
    return plan != NULL ? plan->kernel : "";
}

/* Sets *request to the request from which the planner made the plan. False: the caller named a
 * kernel, D is empty, or tgl_plan_of_list() made the plan. */
static bool request_of(const tgl_plan *plan, tgl_request *request)
{
    if (plan->asked != NULL || plan->choice.choice.family == NULL ||
        tgl_request_make(NULL, plan->workspace_limit, request) != TGL_OK)
        return false;
    request->wisdom = plan->dev->wisdom;
    return true;
}

/* Writes what the wisdom (the file of measured kernel times) contains about the plan's product. */
static void explain_wisdom(const tgl_plan *plan, tgl_text *out)
{
    const tgl_device *dev = plan->dev;
    tgl_request request;
    if (request_of(plan, &request))
        tgl_text_wisdom(out, dev->backend->chip(dev), &plan->shape, &request);
}

/* Describes the launches of a plan on a device with a chip. */
static void explain_launches(const tgl_plan *plan, tgl_text *out)
{
    const tgl_device *dev = plan->dev;
    tgl_text_problem(out, &plan->shape);
    for (int i = 0; i < plan->list.step_count; i++) {
        const tgl_step *step = &plan->list.steps[i];
        if (step->launch_count > 0) tgl_text_launch(out, step, &step->launches[0]);
    }
    dev->backend->explain(plan, out);
    if (plan->choice.choice.family != NULL)
        tgl_text_choice(out, dev->backend->chip(dev), &plan->shape, &plan->choice);
    tgl_text_add(out, "workspace   %zu bytes\n", plan->workspace);
    explain_wisdom(plan, out);
}

/* Describes a plan of a device without a chip. */
static void explain_alone(const tgl_plan *plan, tgl_text *out)
{
    plan->dev->backend->explain(plan, out);
    if (plan->asked == NULL) tgl_settings_explain(plan, out);
}

size_t tgl_plan_explain(const tgl_plan *plan, char *text, size_t size)
{
    tgl_text out = {text, text != NULL ? size : 0, 0};
    if (out.size > 0) text[0] = '\0';
    if (plan == NULL) return 0;
    if (tgl_host_has_groups(plan))
        tgl_text_add(&out, "groups      a product of its own for each group\n");
    else if (plan->state == NULL)
        tgl_text_add(&out, "nothing to do: C has no elements\n");
    else if (plan->dev->backend->chip == NULL)
        explain_alone(plan, &out);
    else
        explain_launches(plan, &out);
    return out.length;
}

/* Finds the time of the plan's kernel in the wisdom (the file of measured kernel times). The plan's
 * kernel need not be the fastest any more, because other kernels may have been measured since. */
static tgl_status find_measured(const tgl_plan *plan, tgl_measured *measured)
{
    char source[TGL_SOURCE_SIZE];
    tgl_measured *lines = NULL;
    bool is_found = false;
    const int count = plan->asked == NULL && plan->choice.is_measured
                          ? tgl_wisdom_find(plan->dev->wisdom, &plan->shape, &lines)
                          : 0;
    if (count > 0) tgl_wisdom_source(&plan->list, source);
    for (int i = 0; i < count && !is_found; i++) {
        is_found = lines[i].stale == NULL && strcmp(lines[i].kernel, plan->kernel) == 0 &&
                   strcmp(lines[i].source, source) == 0;
        if (is_found) *measured = lines[i];
    }
    free(lines);
    return is_found ? TGL_OK
                    : tgl_fail(TGL_UNSUPPORTED, "the kernel of this plan was not measured");
}

tgl_status tgl_plan_set_peer(const tgl_plan *plan, double ratio)
{
    tgl_measured line;
    if (plan == NULL || !(ratio > 0) || isinf(ratio))
        return tgl_fail(TGL_BAD_ARGUMENT, plan == NULL
                                              ? "the plan is NULL"
                                              : "the ratio is not a finite number above 0");
    TGL_TRY(find_measured(plan, &line));
    line.kernel = tgl_wisdom_peer_kernel;
    memcpy(line.source, tgl_wisdom_peer_source, sizeof line.source);
    line.seconds *= ratio;
    line.samples = 1;
    line.spread = 0;
    tgl_wisdom_add(plan->dev->wisdom, &plan->shape, &line);
    return TGL_OK;
}

tgl_status tgl_plan_peer(const tgl_plan *plan, double *ratio)
{
    tgl_measured line, peer;
    if (plan == NULL || ratio == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "%s is NULL", plan == NULL ? "the plan" : "ratio");
    TGL_TRY(find_measured(plan, &line));
    if (!tgl_wisdom_peer(plan->dev->wisdom, &plan->shape, line.is_sustained, &peer))
        return tgl_fail(TGL_UNSUPPORTED, "no time of another library is known for this product");
    *ratio = peer.seconds / line.seconds;
    return TGL_OK;
}

size_t tgl_plan_trace(const tgl_plan *plan, char *text, size_t size)
{
    tgl_text out = {text, text != NULL ? size : 0, 0};
    if (out.size > 0) text[0] = '\0';
    if (plan != NULL && plan->state != NULL && plan->dev->backend->trace != NULL)
        plan->dev->backend->trace(plan, &out);
    return out.length;
}

tgl_status tgl_plan_counters(const tgl_plan *plan, tgl_counters *counters)
{
    if (plan == NULL || counters == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT, "%s NULL", plan == NULL ? "the plan is" : "counters is");
    const size_t size = counters->size;
    if (size < least_counters_size)
        return tgl_fail(TGL_BAD_ARGUMENT,
                        "counters.size is %zu; set it to sizeof(tgl_counters), which is %zu in "
                        "this version of the library",
                        size, sizeof *counters);
    if (plan->dev->backend->counters == NULL)
        return tgl_fail(TGL_UNSUPPORTED,
                        "the device %s does not count memory accesses; use \"sim\"",
                        plan->dev->backend->name);
    if (plan->state == NULL)
        return tgl_fail(TGL_UNSUPPORTED,
                        "there are no counters: C has no elements, so nothing runs");
    tgl_counters all = {.size = sizeof all};
    TGL_TRY(plan->dev->backend->counters(plan, &all));
    all.size = size;
    memcpy(counters, &all, size < sizeof all ? size : sizeof all);
    return TGL_OK;
}
