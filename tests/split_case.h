/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with split-K, which add their partial sums in the workspace, for tests of the workspace
 * with the fake CUDA libraries (fake_cuda.h).
 */
#ifndef SPLIT_CASE_H
#define SPLIT_CASE_H

#include "fake_cuda/setup.h"

enum { M = 64, N = 64, K = 1024 };

static float A[M * K], B[K * N], C[M * N]; /* A, B: ones. The fake accepts host memory */

/* A plan of C := A*B, where A and B are ones, with 11 splits. All products of a batch use the same
 * A and B (stride 0). */
static inline tgl_plan *split_plan(tgl_device *dev, int k, int64_t batch)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = "simt_32x32x32:splits=11,strips=0"};
    tgl_problem problem = problem_of(TGL_F32, M, N, k);
    problem.batch = batch;
    problem.stride_c = (int64_t)M * N;
    tgl_plan *plan;
    for (int i = 0; i < M * K; i++)
        A[i] = B[i] = 1;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_true(tgl_plan_workspace_size(plan) > 0);
    return plan;
}

/* Whether C is the result of a plan with k = K. */
static inline bool is_product(void)
{
    return C[0] == K && C[M * N - 1] == K;
}

/* Runs a plan with alpha = 0. Even without a product, the run gets workspace. */
static inline tgl_status run_empty(const tgl_plan *plan, void *stream)
{
    static float room[4096 * M * N];
    return tgl_plan_run(plan, 0, NULL, NULL, 0, room, stream);
}

#endif
