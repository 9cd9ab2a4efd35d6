/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of plans: a product in f32, not transposed, rows next to each other, and its plan.
 */
#ifndef PLAN_SHAPE_H
#define PLAN_SHAPE_H

#include "plan/planner.h"
#include "support.h"

static inline tgl_gemm_shape shape_of(int64_t m, int64_t n, int64_t k)
{
    return (tgl_gemm_shape){.m = m,
                            .n = n,
                            .k = k,
                            .type_a = TGL_F32,
                            .type_b = TGL_F32,
                            .type_c = TGL_F32,
                            .lda = k,
                            .ldb = n,
                            .ldc = n,
                            .batch = 1};
}

/* What the planner chooses by itself. */
static inline tgl_candidate choose(const char *chip, const tgl_gemm_shape *shape)
{
    tgl_candidate choice;
    const tgl_chip_facts *facts = tgl_chip_facts_find(chip);
    assert_non_null(facts);
    const tgl_plan_options any = {.size = sizeof any};
    tgl_planner_choose(facts, shape, &any, &choice);
    assert_null(choice.rejected);
    assert_true(choice.seconds > 0);
    return choice;
}

static inline tgl_candidate choose_size(const char *chip, int64_t m, int64_t n, int64_t k)
{
    const tgl_gemm_shape shape = shape_of(m, n, k);
    return choose(chip, &shape);
}

#endif
