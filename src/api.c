/* SPDX-License-Identifier: Apache-2.0
 *
 * Products: the public calls check and normalise their arguments (problem.c) and hand what remains
 * to the device's backend.
 */
#include "device.h"
#include "plan_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_SIZE = 160 };

static const tgl_plan_options no_options = {.size = sizeof no_options};

/* ---- Plans ----------------------------------------------------------------------------------- */

static void free_plan(tgl_plan *plan)
{
    free(plan->expression);
    free(plan);
}

/* The epilogue and all that depends on the device. */
static tgl_status complete_plan(tgl_plan *plan, const tgl_plan_options *options, void *stream)
{
    char message[MESSAGE_SIZE];
    tgl_status status = tgl_epilogue_make(options->epilogue, &plan->shape, &plan->expression,
                                          message, sizeof message);
    if (status != TGL_OK) return tgl_fail(plan->dev, status, "%s", message);
    if (tgl_shape_is_empty(&plan->shape)) return TGL_OK;
    return plan->dev->backend->prepare(plan, options, stream);
}

/* options: NULL for a plan of tgl_gemm(), whose stream follows. */
static tgl_status try_plan(tgl_device *dev, const tgl_gemm_shape *shape,
                           const tgl_plan_options *options, void *stream, tgl_plan **out)
{
    tgl_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a plan");
    plan->dev = dev;
    plan->shape = *shape;
    plan->kernel = "none";
    plan->is_one_shot = options == NULL;
    atomic_init(&plan->users, 1);
    tgl_status status = complete_plan(plan, options != NULL ? options : &no_options, stream);
    if (status != TGL_OK) {
        free_plan(plan);
        return status;
    }
    *out = plan;
    return TGL_OK;
}

/* Where memory is short, the plans that tgl_gemm() keeps give way. */
static tgl_status create_plan(tgl_device *dev, const tgl_gemm_shape *shape,
                              const tgl_plan_options *options, void *stream, tgl_plan **out)
{
    const tgl_status status = try_plan(dev, shape, options, stream, out);
    if (status != TGL_NO_MEMORY) return status;
    tgl_plan_cache_clear(dev->plans);
    return try_plan(dev, shape, options, stream, out);
}

void tgl_plan_retain(tgl_plan *plan)
{
    atomic_fetch_add_explicit(&plan->users, 1, memory_order_relaxed);
}

void tgl_plan_release(tgl_plan *plan)
{
    if (plan == NULL) return;
    if (atomic_fetch_sub_explicit(&plan->users, 1, memory_order_acq_rel) > 1) return;
    if (plan->state != NULL) plan->dev->backend->unprepare(plan);
    free_plan(plan);
}

static tgl_status run_plan(const tgl_plan *plan, double alpha, double beta,
                           const tgl_operands *operands, void *stream)
{
    char message[MESSAGE_SIZE];
    tgl_run run;
    tgl_status status =
        tgl_run_make(&plan->shape, alpha, beta, operands, &run, message, sizeof message);
    if (status != TGL_OK) return tgl_fail(plan->dev, status, "%s", message);
    if (tgl_shape_is_empty(&plan->shape)) return TGL_OK;
    return plan->dev->backend->run(plan, &run, stream);
}

static bool has_kernel(const tgl_device *dev, const char *name)
{
    const char *known;
    for (int i = 0; (known = tgl_kernel_name(dev, i)) != NULL; i++)
        if (strcmp(known, name) == 0) return true;
    return false;
}

tgl_status tgl_plan_create(tgl_device *dev, const tgl_problem *problem,
                           const tgl_plan_options *options, tgl_plan **plan)
{
    if (plan == NULL) return TGL_BAD_ARGUMENT;
    *plan = NULL;
    if (dev == NULL) return TGL_BAD_ARGUMENT;
    if (options != NULL && options->size != sizeof *options)
        return tgl_fail(dev, TGL_BAD_ARGUMENT, "options.size is %zu; this version knows %zu",
                        options->size, sizeof *options);
    char message[MESSAGE_SIZE];
    tgl_gemm_shape shape;
    tgl_status status = tgl_shape_make(problem, true, &shape, message, sizeof message);
    if (status != TGL_OK) return tgl_fail(dev, status, "%s", message);
    if (options == NULL) options = &no_options;
    if (options->splits < 0)
        return tgl_fail(dev, TGL_BAD_ARGUMENT, "options.splits is %d; it must not be negative",
                        options->splits);
    if (options->whole_tiles < 0)
        return tgl_fail(dev, TGL_BAD_ARGUMENT,
                        "options.whole_tiles is %lld; it must not be negative",
                        (long long)options->whole_tiles);
    if (options->split_depth < 0)
        return tgl_fail(dev, TGL_BAD_ARGUMENT,
                        "options.split_depth is %lld; it must not be negative",
                        (long long)options->split_depth);
    if ((int)options->strips < TGL_STRIPS_AUTO || options->strips > TGL_STRIPS_ALWAYS)
        return tgl_fail(dev, TGL_BAD_ARGUMENT, "options.strips is %d, which is not a tgl_strips",
                        (int)options->strips);
    if (options->kernel != NULL && !has_kernel(dev, options->kernel))
        return tgl_fail(dev, TGL_UNKNOWN_KERNEL, "the device %s has no kernel \"%s\"", dev->name,
                        options->kernel);
    return create_plan(dev, &shape, options, NULL, plan);
}

void tgl_plan_destroy(tgl_plan *plan)
{
    tgl_plan_release(plan);
}

tgl_status tgl_plan_run(const tgl_plan *plan, double alpha, const void *A, const void *B,
                        double beta, void *C, void *stream)
{
    if (plan == NULL) return TGL_BAD_ARGUMENT;
    const tgl_operands operands = {.size = sizeof operands, .A = A, .B = B, .C = C};
    return run_plan(plan, alpha, beta, &operands, stream);
}

tgl_status tgl_plan_run_operands(const tgl_plan *plan, double alpha, double beta,
                                 const tgl_operands *operands, void *stream)
{
    return plan == NULL ? TGL_BAD_ARGUMENT : run_plan(plan, alpha, beta, operands, stream);
}

const char *tgl_plan_kernel(const tgl_plan *plan)
{
    return plan != NULL ? plan->kernel : "";
}

size_t tgl_plan_explain(const tgl_plan *plan, char *text, size_t size)
{
    if (text == NULL) size = 0;
    if (size > 0) text[0] = '\0';
    if (plan == NULL) return 0;
    if (plan->state != NULL) return plan->dev->backend->explain(plan, text, size);
    int length = snprintf(text, size, "nothing to do: C has no elements\n");
    return length < 0 ? 0 : (size_t)length;
}

tgl_status tgl_plan_counters(const tgl_plan *plan, tgl_counters *counters)
{
    if (plan == NULL || counters == NULL) return TGL_BAD_ARGUMENT;
    if (counters->size != sizeof *counters)
        return tgl_fail(plan->dev, TGL_BAD_ARGUMENT, "counters.size is %zu; this version knows %zu",
                        counters->size, sizeof *counters);
    if (plan->dev->backend->counters == NULL)
        return tgl_fail(plan->dev, TGL_UNSUPPORTED, "the %s device does not count; use \"sim\"",
                        plan->dev->backend->name);
    if (plan->state == NULL)
        return tgl_fail(plan->dev, TGL_UNSUPPORTED, "nothing runs: C has no elements");
    return plan->dev->backend->counters(plan, counters);
}

/* ---- One-shot calls -------------------------------------------------------------------------- */

static tgl_status gemm(tgl_device *dev, const tgl_problem *problem, bool zero_is_tight,
                       tgl_batching batching, double alpha, double beta,
                       const tgl_operands *operands, void *stream)
{
    if (dev == NULL) return TGL_BAD_ARGUMENT;
    char message[MESSAGE_SIZE];
    tgl_gemm_shape shape;
    tgl_status status = tgl_shape_make(problem, zero_is_tight, &shape, message, sizeof message);
    if (status != TGL_OK) return tgl_fail(dev, status, "%s", message);
    if (problem->batching != batching)
        return tgl_fail(dev, TGL_BAD_BATCHING, "batching is %s; use %s",
                        shape.pointers ? "TGL_POINTERS" : "TGL_STRIDED",
                        shape.pointers ? "tgl_gemm_batched()" : "tgl_gemm()");

    tgl_plan *plan = tgl_plan_cache_find(dev->plans, &shape);
    if (plan == NULL) {
        TGL_TRY(create_plan(dev, &shape, NULL, stream, &plan));
        tgl_plan_cache_keep(dev->plans, plan);
    }
    status = run_plan(plan, alpha, beta, operands, stream);
    tgl_plan_release(plan);
    return status;
}

tgl_status tgl_gemm(tgl_device *dev, const tgl_problem *problem, double alpha, const void *A,
                    const void *B, double beta, void *C, void *stream)
{
    const tgl_operands operands = {.size = sizeof operands, .A = A, .B = B, .C = C};
    return gemm(dev, problem, true, TGL_STRIDED, alpha, beta, &operands, stream);
}

tgl_status tgl_gemm_batched(tgl_device *dev, const tgl_problem *problem, double alpha,
                            const void *const *A, const void *const *B, double beta, void *const *C,
                            void *stream)
{
    const tgl_operands operands = {
        .size = sizeof operands, .A_array = A, .B_array = B, .C_array = C};
    return gemm(dev, problem, true, TGL_POINTERS, alpha, beta, &operands, stream);
}

/* BLAS, unlike tgl_problem, does not take a leading dimension of 0 for a tight matrix. */
static tgl_status blas_gemm(tgl_device *dev, tgl_type type, tgl_order order, tgl_transpose trans_a,
                            tgl_transpose trans_b, int64_t m, int64_t n, int64_t k, double alpha,
                            const void *A, int64_t lda, const void *B, int64_t ldb, double beta,
                            void *C, int64_t ldc)
{
    tgl_problem problem = tgl_problem_make(type, m, n, k);
    problem.order = order;
    problem.trans_a = trans_a;
    problem.trans_b = trans_b;
    problem.lda = lda;
    problem.ldb = ldb;
    problem.ldc = ldc;
    const tgl_operands operands = {.size = sizeof operands, .A = A, .B = B, .C = C};
    return gemm(dev, &problem, false, TGL_STRIDED, alpha, beta, &operands, NULL);
}

tgl_status tgl_sgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a, tgl_transpose trans_b,
                     int64_t m, int64_t n, int64_t k, float alpha, const float *A, int64_t lda,
                     const float *B, int64_t ldb, float beta, float *C, int64_t ldc)
{
    return blas_gemm(dev, TGL_F32, order, trans_a, trans_b, m, n, k, alpha, A, lda, B, ldb, beta, C,
                     ldc);
}

tgl_status tgl_dgemm(tgl_device *dev, tgl_order order, tgl_transpose trans_a, tgl_transpose trans_b,
                     int64_t m, int64_t n, int64_t k, double alpha, const double *A, int64_t lda,
                     const double *B, int64_t ldb, double beta, double *C, int64_t ldc)
{
    return blas_gemm(dev, TGL_F64, order, trans_a, trans_b, m, n, k, alpha, A, lda, B, ldb, beta, C,
                     ldc);
}
