/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt's algorithm for a product: the fastest of those that its heuristic proposes.
 */
#include "cublaslt.h"
#include "cublas_types.h"
#include "problem_options.h"

#include <math.h>
#include <stdio.h>

enum { CANDIDATES = 16, TRIALS = 5 };
/* Size of the workspace in bytes: 32 MB, which NVIDIA recommends for Hopper (cuBLAS documentation
 * of cublasSetWorkspace()). */
static const size_t workspace_wanted = (size_t)32 << 20;

static cublasStatus_t make_layout(const cublas *c, const tgl_problem *p, tgl_type type,
                                  int64_t rows, int64_t cols, int64_t stride,
                                  cublasLtMatrixLayout_t *layout)
{
    const int32_t batch = (int32_t)p->batch;
    cublasStatus_t status = c->call.cublasLtMatrixLayoutCreate(
        layout, cublas_data_type(type), (uint64_t)rows, (uint64_t)cols, rows);
    if (status != 0 || batch == 1) return status;
    status = c->call.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                      &batch, sizeof batch);
    if (status != 0) return status;
    return c->call.cublasLtMatrixLayoutSetAttribute(
        *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
}

/* Describes the stored matrices as column-major ones, with rows and columns exchanged. */
static cublasStatus_t describe_matrices(cublaslt_product *x)
{
    const cublas_functions *call = &x->lib->call;
    const tgl_problem *p = &x->problem;
    const int32_t first = cublas_operation(p->trans_b), second = cublas_operation(p->trans_a);
    cublasStatus_t status = call->cublasLtMatmulDescCreate(&x->desc, cublas_compute_type(p),
                                                           cublas_scale_type(p->type_a));
    if (status == 0)
        status = call->cublasLtMatmulDescSetAttribute(x->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                                                      sizeof first);
    if (status == 0)
        status = call->cublasLtMatmulDescSetAttribute(x->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                                      sizeof second);
    const int8_t is_fast = p->compute == TGL_COMPUTE_FAST;
    if (status == 0 && is_fast)
        status = call->cublasLtMatmulDescSetAttribute(x->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                                      &is_fast, sizeof is_fast);
    if (status == 0)
        status = make_layout(x->lib, p, p->type_b, stored_b(p).ld, p->k + p->n - stored_b(p).ld,
                             p->stride_b, &x->A);
    if (status == 0)
        status = make_layout(x->lib, p, p->type_a, stored_a(p).ld, p->m + p->k - stored_a(p).ld,
                             p->stride_a, &x->B);
    if (status == 0)
        status = make_layout(x->lib, p, problem_result_type(p), p->n, p->m, cublas_result_stride(p),
                             &x->C);
    return status;
}

static cublasStatus_t run_with(const cublaslt_product *x, const cublasLtMatmulAlgo_t *algo,
                               operand_set s)
{
    const cublas *c = x->lib;
    return c->call.cublasLtMatmul(c->light, x->desc, cublas_scalar(&x->problem, 1), s.B, x->A, s.A,
                                  x->B, cublas_scalar(&x->problem, 0), s.C, x->C, s.C, x->C, algo,
                                  x->workspace, x->workspace_size, NULL);
}

/* The mean seconds of a call, after a warm-up call; infinite if one fails. */
static double try_algorithm(const cublaslt_product *x, const cublasLtMatmulAlgo_t *algo,
                            const operands *o, tgl_timer *timer)
{
    double seconds;
    for (int i = 0; i <= TRIALS; i++) {
        if (i == 1 && tgl_timer_start(timer, NULL) != TGL_OK) return HUGE_VAL;
        if (run_with(x, algo, operands_for(o, i)) != 0) return HUGE_VAL;
    }
    return tgl_timer_stop(timer, NULL, &seconds) == TGL_OK ? seconds / TRIALS : HUGE_VAL;
}

/* Times the algorithms and keeps the fastest. false: none works. */
static bool try_all(cublaslt_product *x, const operands *o,
                    const cublasLtMatmulHeuristicResult_t *results, int count)
{
    tgl_timer *timer;
    if (tgl_timer_create(o->dev, &timer) != TGL_OK) return false;
    double best = HUGE_VAL;
    for (int i = 0; i < count; i++) {
        if (results[i].state != 0) continue;
        const double seconds = try_algorithm(x, &results[i].algo, o, timer);
        if (seconds < best) {
            best = seconds;
            x->algo = results[i].algo;
        }
    }
    tgl_timer_destroy(timer);
    return best < HUGE_VAL;
}

static cublasStatus_t ask_heuristic(const cublaslt_product *x,
                                    cublasLtMatmulHeuristicResult_t *results, int *count)
{
    const cublas_functions *call = &x->lib->call;
    cublasLtMatmulPreference_t preference;
    cublasStatus_t status = call->cublasLtMatmulPreferenceCreate(&preference);
    if (status != 0) return status;
    status = call->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &x->workspace_size,
        sizeof x->workspace_size);
    if (status == 0)
        status = call->cublasLtMatmulAlgoGetHeuristic(x->lib->light, x->desc, x->A, x->B, x->C,
                                                      x->C, preference, CANDIDATES, results, count);
    call->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

bool cublaslt_choose(cublaslt_product *x, const cublas *lib, const operands *o, char *message,
                     size_t message_size)
{
    cublasLtMatmulHeuristicResult_t results[CANDIDATES];
    int count = 0;
    *x = (cublaslt_product){.lib = lib, .problem = o->problem};
    x->workspace_size = workspace_wanted;
    if (tgl_alloc(o->dev, x->workspace_size, &x->workspace) != TGL_OK) x->workspace_size = 0;
    cublasStatus_t status = describe_matrices(x);
    if (status == 0) status = ask_heuristic(x, results, &count);
    if (status != 0)
        snprintf(message, message_size, "cuBLASLt does not take it: cublasStatus_t %d", status);
    else if (try_all(x, o, results, count))
        return true;
    else
        snprintf(message, message_size, "none of cuBLASLt's %d algorithms works", count);
    return false;
}

void cublaslt_release(cublaslt_product *x)
{
    const cublas_functions *call = &x->lib->call;
    if (x->C != NULL) call->cublasLtMatrixLayoutDestroy(x->C);
    if (x->B != NULL) call->cublasLtMatrixLayoutDestroy(x->B);
    if (x->A != NULL) call->cublasLtMatrixLayoutDestroy(x->A);
    if (x->desc != NULL) call->cublasLtMatmulDescDestroy(x->desc);
    tgl_free(x->lib->dev, x->workspace);
}

bool cublaslt_run(const cublaslt_product *x, operand_set s)
{
    return run_with(x, &x->algo, s) == 0;
}
