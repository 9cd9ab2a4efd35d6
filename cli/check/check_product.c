/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a case (a random problem with its memory and reference, case_data.h) by a plan or by
 * tgl_gemm(), and compares the result. In some cases this file plays the caller who provides the
 * workspace (tgl_operands.workspace).
 */
#include "check_product.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 10, WORKSPACE_GUARD = 256, WORKSPACE_NOISE = 1 << 20 };

/* The byte that fills the guard after a workspace. Before the first run it also fills the beginning
 * of the workspace, because a plan must not rely on zeros there. */
enum { GUARD_BYTE = 0xa5 };

/* A plan for a case, and the workspace that it runs in. */
typedef struct case_plan {
    tgl_plan *plan;    /* NULL: tgl_gemm() is called instead */
    bool has_strips;   /* whether the kernel string has strips=1 (check_case.strips) */
    size_t needs;      /* number of bytes of workspace that the plan requires */
    bool has_prepared; /* whether the plan uses a prepared form of A or B */
    void *workspace;   /* the caller's workspace, followed by a guard; NULL: the plan uses the
                          device's workspace */
} case_plan;

/* ---- The caller's workspace ------------------------------------------------------------------ */

/* Allocates the caller's workspace with its guard, and fills the guard and the beginning. */
static tgl_status add_workspace(tgl_device *dev, case_plan *plan)
{
    const size_t noise = plan->needs < WORKSPACE_NOISE ? plan->needs : WORKSPACE_NOISE;
    unsigned char *host = malloc(noise + WORKSPACE_GUARD);
    if (host == NULL) return TGL_NO_MEMORY;
    memset(host, GUARD_BYTE, noise + WORKSPACE_GUARD);
    tgl_status status = tgl_alloc(dev, plan->needs + WORKSPACE_GUARD, &plan->workspace);
    if (status == TGL_OK) status = tgl_upload(dev, plan->workspace, host, noise, NULL);
    if (status == TGL_OK)
        status =
            tgl_upload(dev, (char *)plan->workspace + plan->needs, host, WORKSPACE_GUARD, NULL);
    free(host);
    return status;
}

/* Sets *verdict if the guard after the workspace has changed. */
static tgl_status compare_workspace(tgl_device *dev, const case_plan *plan, check_verdict *verdict)
{
    unsigned char guard[WORKSPACE_GUARD], after[WORKSPACE_GUARD];
    if (plan->workspace == NULL) return TGL_OK;
    memset(guard, GUARD_BYTE, sizeof guard);
    const tgl_status status =
        tgl_download(dev, after, (const char *)plan->workspace + plan->needs, sizeof after, NULL);
    if (status == TGL_OK && verdict->text[0] == '\0' && memcmp(after, guard, sizeof guard) != 0)
        snprintf(verdict->text, sizeof verdict->text, "memory behind the workspace was written");
    return status;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Uploads the result's buffer, runs the product, and downloads the buffer to memory->back. a, b:
 * prepared operands, or NULL. */
static tgl_status multiply_with(tgl_device *dev, const check_case *c, const case_plan *plan,
                                const case_memory *memory, const tgl_prepared *a,
                                const tgl_prepared *b)
{
    tgl_operands o = case_operands(c, memory);
    const check_buffer *result = check_case_result(c);
    void *place = case_result_at(c, memory);
    CLI_TRY(tgl_upload(dev, place, result->image, check_buffer_bytes(result), NULL));
    o.prepared_a = a;
    o.prepared_b = b;
    o.workspace = plan->workspace;
    o.workspace_bytes = plan->workspace != NULL ? plan->needs : 0;
    if (plan->plan != NULL)
        CLI_TRY(tgl_plan_run_operands(plan->plan, &o, NULL));
    else if (c->problem.batching == TGL_POINTERS)
        CLI_TRY(tgl_gemm_batched(dev, &c->problem, c->alpha, o.A_array, o.B_array, c->beta,
                                 o.C_array, NULL));
    else if (o.groups != NULL)
        CLI_TRY(
            tgl_grouped_gemm(dev, &c->problem, c->alpha, o.A, o.B, c->beta, o.C, o.groups, NULL));
    else
        CLI_TRY(tgl_gemm(dev, &c->problem, c->alpha, o.A, o.B, c->beta, o.C, NULL));
    return tgl_download(dev, memory->back, place, check_buffer_bytes(result), NULL);
}

static tgl_status multiply_once(tgl_device *dev, const check_case *c, const case_plan *plan,
                                const case_memory *memory)
{
    return multiply_with(dev, c, plan, memory, NULL, NULL);
}

/* Sets *verdict if the latest result differs from the first one in any bit. what: name of the
 * latest run, for the message. */
static void compare_bits(const check_case *c, const case_memory *memory, const char *what,
                         check_verdict *verdict)
{
    const size_t bytes = check_buffer_bytes(check_case_result(c));
    if (verdict->text[0] == '\0' && memcmp(memory->back, memory->first, bytes) != 0)
        snprintf(verdict->text, sizeof verdict->text, "%s gives other bits than the first", what);
}

/* Runs the product again RUNS - 1 times. Sets *verdict if a result differs from the first one in
 * any bit. */
static tgl_status repeat_product(tgl_device *dev, const check_case *c, const case_plan *plan,
                                 const case_memory *memory, check_verdict *verdict)
{
    for (int i = 1; i < RUNS; i++) {
        char what[60];
        snprintf(what, sizeof what, "run %d of the same product", i + 1);
        CLI_TRY(multiply_once(dev, c, plan, memory));
        compare_bits(c, memory, what, verdict);
    }
    return TGL_OK;
}

/* Runs the product with prepared operands. Sets *verdict if the result differs from that of the
 * first run in any bit. */
static tgl_status run_prepared(tgl_device *dev, const check_case *c, case_plan *plan,
                               const case_memory *memory, check_verdict *verdict)
{
    const tgl_operands o = case_operands(c, memory);
    tgl_prepared *a = NULL, *b = NULL;
    tgl_status status = TGL_OK;
    if (c->prepared_a && o.A != NULL)
        status = tgl_operand_prepare(plan->plan, TGL_SIDE_A, o.A, NULL, &a);
    if (status == TGL_OK && c->prepared_b && o.B != NULL)
        status = tgl_operand_prepare(plan->plan, TGL_SIDE_B, o.B, NULL, &b);
    if (status == TGL_OK) status = multiply_with(dev, c, plan, memory, a, b);
    if (status == TGL_OK) compare_bits(c, memory, "a run with prepared operands", verdict);
    plan->has_prepared = tgl_prepared_size(a) > 0 || tgl_prepared_size(b) > 0;
    tgl_prepared_destroy(a);
    tgl_prepared_destroy(b);
    return status;
}

/* Runs the plan as often as the case requires. Sets *verdict if a result is wrong, or if an input
 * or the guard of the workspace was written. */
static tgl_status judge_kernel(tgl_device *dev, const check_case *c, case_plan *plan,
                               const case_memory *memory, check_tally *tally,
                               check_verdict *verdict)
{
    CLI_TRY(multiply_once(dev, c, plan, memory));
    check_case_compare(c, memory->back, &tally->errors, verdict);
    memcpy(memory->first, memory->back, check_buffer_bytes(check_case_result(c)));
    if (c->prepared_a || c->prepared_b) CLI_TRY(run_prepared(dev, c, plan, memory, verdict));
    if (c->again) CLI_TRY(repeat_product(dev, c, plan, memory, verdict));
    CLI_TRY(case_compare_inputs(dev, c, memory, verdict));
    return compare_workspace(dev, plan, verdict);
}

/* ---- Planning -------------------------------------------------------------------------------- */

/* Makes a plan for a case from a kernel string. */
static tgl_status make_plan_of(tgl_device *dev, const check_case *c, const char *kernel,
                               tgl_plan **plan)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = kernel,
                                      .epilogue = c->epilogue.size > 0 ? &c->epilogue : NULL};
    return tgl_plan_create(dev, &c->problem, &options, plan);
}

/* Makes a plan for a case from the name of a kernel and the case's options. If the kernel does not
 * support strips (case_data.h) for the case, the plan is made without them. */
static tgl_status make_named_plan(tgl_device *dev, const check_case *c, const check_subject *s,
                                  case_plan *plan)
{
    char kernel[160];
    const bool wants_strips = s->options[CHECK_STRIPS] && c->strips;
    check_kernel_string(s, c, wants_strips, kernel, sizeof kernel);
    const tgl_status status = make_plan_of(dev, c, kernel, &plan->plan);
    plan->has_strips = wants_strips && status == TGL_OK;
    if (!wants_strips || status != TGL_UNSUPPORTED) return status;
    check_kernel_string(s, c, false, kernel, sizeof kernel);
    return make_plan_of(dev, c, kernel, &plan->plan);
}

/* Whether the planner's choice must run as a plan, because tgl_gemm() does not support the case. */
static bool needs_plan(const check_case *c)
{
    return c->epilogue.size > 0 || c->d.size > 0 || c->problem.scalars != TGL_SCALARS_HOST ||
           c->alpha_imag != 0 || c->beta_imag != 0 || c->own_workspace || c->prepared_a ||
           c->prepared_b;
}

static tgl_status make_plan(tgl_device *dev, const check_case *c, const check_subject *s,
                            case_plan *plan)
{
    tgl_status status = TGL_OK;
    if (strcmp(s->name, "auto") != 0)
        status = make_named_plan(dev, c, s, plan);
    else if (needs_plan(c))
        status = make_plan_of(dev, c, NULL, &plan->plan);
    plan->needs = tgl_plan_workspace_size(plan->plan);
    if (status == TGL_OK && c->own_workspace && plan->needs > 0) status = add_workspace(dev, plan);
    return status;
}

/* Sets *verdict for a plan whose run returned TGL_UNSUPPORTED, which only the creation of a plan
 * may return. Keeps the verdict of an earlier run. */
static tgl_status blame_run(check_verdict *verdict)
{
    char detail[200] = "";
    tgl_last_error(detail, sizeof detail);
    if (verdict->text[0] == '\0')
        snprintf(verdict->text, sizeof verdict->text, "a run of the plan: %s, %s",
                 tgl_status_name(TGL_UNSUPPORTED), detail);
    return TGL_OK;
}

tgl_status check_product(tgl_device *dev, const check_case *c, const case_memory *memory,
                         const check_subject *s, check_tally *tally, check_verdict *verdict)
{
    case_plan plan = {0};
    verdict->text[0] = '\0';
    tgl_status status = make_plan(dev, c, s, &plan);
    if (status == TGL_OK) status = judge_kernel(dev, c, &plan, memory, tally, verdict);
    if (status == TGL_UNSUPPORTED && plan.plan != NULL) status = blame_run(verdict);
    if (status != TGL_UNSUPPORTED)
        check_tally_case(tally, s, c, plan.has_strips, plan.workspace != NULL, plan.has_prepared);
    tgl_free(dev, plan.workspace);
    tgl_plan_destroy(plan.plan);
    return status;
}
