/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs products of the probe family and checks the results.
 */
#include "probe_case.h"
#include "probe_family.h"
#include "support.h"

static const probe_case cases[] = {
    {.m = 64, .n = 64, .k = 128, .alpha = 1, .beta = 0},
    {.m = 64, .n = 64, .k = 128, .offset = 1, .alpha = 1, .beta = 0},
    {.m = 33, .n = 45, .k = 100, .alpha = 2, .beta = -0.5, .is_beyond = true},
    {.m = 33, .n = 45, .k = 100, .offset = 3, .alpha = 2, .beta = -0.5, .is_beyond = true},
    {.m = 70, .n = 31, .k = 37, .alpha = -1, .beta = 1, .gives_workspace = true},
    {.m = 70, .n = 31, .k = 37, .lda = 40, .alpha = -1, .beta = 0, .is_beyond = true},
    {.m = 1, .n = 1, .k = 1, .offset = 2, .alpha = 1, .beta = 0, .gives_workspace = true},
    {.m = 40, .n = 40, .k = 300, .lda = 304, .offset = 2, .alpha = 1, .beta = 2, .is_beyond = true},
    {.m = 40, .n = 40, .k = 50, .alpha = 0, .beta = 2, .is_beyond = true},
    {.m = 40, .n = 40, .k = 50, .alpha = 0, .beta = 0},
    {.m = 20, .n = 50, .k = 0, .alpha = 1, .beta = -1},
};

const probe_case *probe_case_at(int index)
{
    return index >= 0 && index < (int)COUNT_OF(cases) ? &cases[index] : NULL;
}

tgl_problem probe_problem(const probe_case *c)
{
    tgl_problem problem = problem_of(TGL_F32, c->m, c->n, c->k);
    problem.lda = c->lda;
    return problem;
}

tgl_status list_of_probe(tgl_device *dev, const tgl_problem *problem, tgl_shape *shape,
                         tgl_launch_list *list)
{
    const tgl_chip *chip = dev->backend->chip(dev);
    tgl_partition whole = {
        .chip = chip, .shape = shape, .choice = {.family = &probe_family}, .is_last = true};
    tgl_list_builder builder;
    TGL_TRY(tgl_shape_make(problem, true, shape));
    const char *reason = probe_family.unsupported_reason(shape, chip);
    if (reason != NULL) return tgl_fail(TGL_UNSUPPORTED, "%s", reason);
    for (int i = 0; i < TGL_OPTIONS_MAX; i++)
        whole.choice.option[i] = TGL_UNSET;
    whole.part = (tgl_rectangle){0, 0, shape->m, shape->n};
    tgl_list_begin(&builder, list);
    probe_family.launch(&whole, &builder);
    return tgl_list_end(&builder);
}

tgl_status plan_of_probe(tgl_device *dev, const tgl_problem *problem, tgl_plan **plan)
{
    tgl_shape shape;
    tgl_launch_list list;
    *plan = NULL;
    TGL_TRY(list_of_probe(dev, problem, &shape, &list));
    return tgl_plan_of_list(dev, &shape, &list, plan);
}

/* ---- Operands -------------------------------------------------------------------------------- */

static void upload(tgl_device *dev, void *to, const void *from, size_t bytes)
{
    assert_status(tgl_upload(dev, to, from, bytes, NULL), TGL_OK);
}

static float *new_floats(size_t bytes, int seed)
{
    float *x = malloc(bytes + 1);
    assert_non_null(x);
    for (size_t i = 0; i < bytes / sizeof *x; i++)
        x[i] = (float)((int)(i * 7 + (size_t)seed) % 13 - 6);
    return x;
}

static int64_t lda_of(const probe_case *c)
{
    return c->lda > 0 ? c->lda : c->k;
}

void probe_operands_make(tgl_device *dev, const probe_case *c, size_t workspace, probe_operands *x)
{
    *x = (probe_operands){.size_A = ((size_t)(c->m * lda_of(c)) + (size_t)c->offset) * 4,
                          .size_B = (size_t)(c->k * c->n) * 4,
                          .size_C = (size_t)(c->m * c->n) * 4};
    x->host_A = new_floats(x->size_A, 0);
    x->host_B = new_floats(x->size_B, 3);
    x->host_C = new_floats(x->size_C, 5);
    x->expected = new_floats(x->size_C, 0);
    for (int64_t i = 0; i < c->m * c->n && c->beta == 0; i++)
        x->host_C[i] = NAN;
    assert_status(tgl_alloc(dev, x->size_A, &x->allocated_A), TGL_OK);
    assert_status(tgl_alloc(dev, x->size_B, &x->B), TGL_OK);
    assert_status(tgl_alloc(dev, x->size_C, &x->C), TGL_OK);
    if (c->gives_workspace) assert_status(tgl_alloc(dev, workspace, &x->workspace), TGL_OK);
    x->A = x->allocated_A != NULL ? (float *)x->allocated_A + c->offset : NULL;
    if (x->size_B > 0) upload(dev, x->B, x->host_B, x->size_B);
    probe_set_beyond(dev, c, c->is_beyond, x);
    probe_reset(dev, x);
}

void probe_operands_free(tgl_device *dev, probe_operands *x)
{
    tgl_free(dev, x->allocated_A);
    tgl_free(dev, x->B);
    tgl_free(dev, x->C);
    tgl_free(dev, x->workspace);
    free(x->host_A);
    free(x->host_B);
    free(x->host_C);
    free(x->expected);
}

static void compute(const probe_case *c, bool is_negated, probe_operands *x)
{
    const float *A = x->host_A + c->offset;
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < c->k && c->alpha != 0; p++)
                sum += (double)A[i * lda_of(c) + p] * (double)x->host_B[p * c->n + j];
            const double old = c->beta != 0 ? c->beta * (double)x->host_C[i * c->n + j] : 0;
            x->expected[i * c->n + j] = (float)((is_negated ? -1 : 1) * (c->alpha * sum + old));
        }
}

void probe_set_beyond(tgl_device *dev, const probe_case *c, bool is_beyond, probe_operands *x)
{
    const bool has_product = c->alpha != 0 && c->k > 0;
    if (c->k > 0)
        x->host_A[c->offset + (c->m / 2) * lda_of(c) + c->k / 2] =
            is_beyond ? -(float)PROBE_THRESHOLD - 1 : 1;
    compute(c, is_beyond && has_product, x);
    if (x->size_A > 0) upload(dev, x->allocated_A, x->host_A, x->size_A);
}

void probe_reset(tgl_device *dev, probe_operands *x)
{
    upload(dev, x->C, x->host_C, x->size_C);
}

/* ---- Running --------------------------------------------------------------------------------- */

tgl_status probe_run(const tgl_plan *plan, const probe_case *c, const probe_operands *x,
                     void *stream)
{
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = c->alpha,
                                   .beta = c->beta,
                                   .A = x->A,
                                   .B = x->B,
                                   .C = x->C,
                                   .workspace = x->workspace,
                                   .workspace_bytes =
                                       x->workspace != NULL ? tgl_plan_workspace_size(plan) : 0};
    return tgl_plan_run_operands(plan, &operands, stream);
}

void probe_check(tgl_device *dev, const probe_case *c, const probe_operands *x)
{
    float *found = new_floats(x->size_C, 0);
    assert_status(tgl_download(dev, found, x->C, x->size_C, NULL), TGL_OK);
    for (int64_t i = 0; i < c->m * c->n; i++)
        if (found[i] != x->expected[i])
            fail_msg("%lld x %lld x %lld, offset %d: C(%lld, %lld) is %g, not %g", (long long)c->m,
                     (long long)c->n, (long long)c->k, c->offset, (long long)(i / c->n),
                     (long long)(i % c->n), (double)found[i], (double)x->expected[i]);
    free(found);
}

static void assert_ok(tgl_status status)
{
    char text[2048];
    if (status == TGL_OK) return;
    tgl_last_error(text, sizeof text);
    fail_msg("%s: %s", tgl_status_name(status), text);
}

void probe_case_run(tgl_device *dev, const probe_case *c)
{
    const tgl_problem problem = probe_problem(c);
    probe_operands x;
    tgl_plan *plan;
    assert_ok(plan_of_probe(dev, &problem, &plan));
    probe_operands_make(dev, c, tgl_plan_workspace_size(plan), &x);
    for (int again = 0; again < 2; again++) {
        probe_reset(dev, &x);
        assert_ok(probe_run(plan, c, &x, NULL));
        probe_check(dev, c, &x);
    }
    probe_operands_free(dev, &x);
    tgl_plan_destroy(plan);
}
