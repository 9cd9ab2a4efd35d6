/* SPDX-License-Identifier: Apache-2.0
 *
 * Complex products with few rows or columns on the simulator: the families skinny and gemv read
 * complex operands as they are stored (kernels/lib/thin_lines.h).
 */
#include "support.h"

#include <string.h>

/* Runs the case unless the kernel does not support it. Returns whether it has run. */
static bool runs(tgl_device *dev, const gemm_case *c)
{
    gemm_outcome outcome;
    gemm_case_run(dev, c, false, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s: %s", c->kernel, outcome.fault);
    if (outcome.status != TGL_UNSUPPORTED) assert_status(outcome.status, TGL_OK);
    return outcome.status == TGL_OK;
}

/* Sets leading dimensions. padding: 0: rows without padding; 1: leading dimensions are odd; 2: they
 * are even. */
static void pad(tgl_problem *p, int padding)
{
    const bool is_a = p->trans_a == TGL_NO_TRANS || p->trans_a == TGL_CONJ_NO_TRANS;
    const bool is_b = p->trans_b == TGL_NO_TRANS || p->trans_b == TGL_CONJ_NO_TRANS;
    const int64_t odd = padding == 1 ? 1 : 0;
    if (padding == 0) return;
    p->lda = ((is_a ? p->k : p->m) | 1) + 1 + odd;
    p->ldb = ((is_b ? p->n : p->k) | 1) + 1 + odd;
    p->ldc = (p->n | 1) + 1 + odd;
}

/* Columns: kernel; sizes; the least number of the 16 pairs of transposes that it supports: gemv
 * needs contiguous vectors for a K-major matrix, whose vectors count twice. */
static const struct {
    const char *kernel;
    int64_t m, n, k;
    int layouts;
} thin[] = {
    {"gemv", 1, 150, 67, 8},
    {"gemv", 70, 1, 40, 8},
    {"gemv_2", 1, 45, 71, 8},
    {"gemv_2", 45, 1, 300, 8},
    {"gemv_2", 2, 70, 36, 8},
    {"gemv_4", 2, 33, 150, 12},
    {"gemv_4", 34, 2, 29, 12},
    {"gemv_4", 4, 131, 3, 8}, /* k less than the lanes along K */
    {"gemv_4", 131, 3, 1, 8},
    {"skinny_1", 1, 140, 90, 8},
    {"skinny_2:splits=2", 1, 70, 300, 16},
    {"skinny_2:splits=3,blocks=4", 150, 1, 431, 16},
    {"skinny_4:splits=3", 2, 75, 260, 16},
    {"skinny_4_r8:splits=2", 75, 2, 333, 16},
    {"skinny_4", 3, 37, 1100, 8}, /* more k than shared memory holds */
    {"skinny_8", 37, 4, 45, 16},
    {"skinny_16:splits=2", 8, 40, 200, 16},
    {"skinny_16", 70, 11, 35, 8},
};

/* Each kernel, with all pairs of transposes and conjugates, of which either type has half. */
static void transposes_and_conjugates(void **state)
{
    uint64_t seed = 61;
    for (size_t i = 0; i < COUNT_OF(thin); i++) {
        int count = 0;
        for (int layout = 0; layout < 16; layout++) {
            const int number = layout + (int)i;
            const tgl_type type = number % 2 == 0 ? TGL_C64 : TGL_C128;
            gemm_case c = {.problem = problem_of(type, thin[i].m, thin[i].n, thin[i].k),
                           .alpha = layout % 3 == 0 ? 1 : -1.5,
                           .alpha_imag = layout % 5 == 4 ? 0.5 : 0,
                           .beta = layout % 4 == 1 ? 0.75 : 0,
                           .kernel = thin[i].kernel,
                           .at_end = number % 4 < 2,
                           .fill = layout % 8 == 3 ? NON_FINITE : UNIFORM_11,
                           .seed = random_bits(&seed)};
            c.problem.compute = TGL_COMPUTE_IEEE;
            c.problem.trans_a = (tgl_transpose)(TGL_NO_TRANS + layout % 4);
            c.problem.trans_b = (tgl_transpose)(TGL_NO_TRANS + layout / 4);
            pad(&c.problem, thin[i].m == 1 || thin[i].n == 1 ? 0 : number % 3);
            count += runs(*state, &c);
        }
        if (count < thin[i].layouts)
            fail_msg("%s supports %d of %d layouts", thin[i].kernel, count, thin[i].layouts);
    }
}

/* Batches: strided, with a shared operand, and of pointers whose matrices have any alignment. */
static void batches(void **state)
{
    static const char *const kernels[] = {"gemv_4", "skinny_4:splits=2", "skinny_8"};
    uint64_t seed = 62;
    int count = 0;
    for (int i = 0; i < 24; i++) {
        gemm_case c = {.problem = problem_of(i % 2 ? TGL_C128 : TGL_C64, 2, 21, 70),
                       .alpha = 1,
                       .beta = i % 3,
                       .pointers = i % 4 >= 2,
                       .kernel = kernels[i % 3],
                       .fill = UNIFORM_11,
                       .at_end = true,
                       .seed = random_bits(&seed)};
        tgl_problem *p = &c.problem;
        p->compute = TGL_COMPUTE_IEEE;
        p->trans_b = i % 8 < 4 ? TGL_CONJ_TRANS : TGL_NO_TRANS;
        if (i % 5 == 0) p->order = TGL_COL_MAJOR;
        p->batch = 3;
        p->stride_a = i % 6 == 5 && !c.pointers ? 0 : 141;
        p->stride_b = 1501;
        p->stride_c = 50;
        count += runs(*state, &c);
    }
    assert_true(count >= 20);
}

/* The workspace has a copy of C, and no expanded A or B. */
static void operands_are_not_expanded(void **state)
{
    enum { LONG = 256, SHORT = 1, DEPTH = 128 };
    static const char *const kernels[] = {"gemv_2", "skinny_2:splits=1"};
    for (int i = 0; i < 32; i++) {
        const bool is_wide = i & 1;
        const tgl_type type = i & 2 ? TGL_C128 : TGL_C64;
        const size_t size = type == TGL_C128 ? 16 : 8;
        tgl_problem p = problem_of(type, is_wide ? SHORT : LONG, is_wide ? LONG : SHORT, DEPTH);
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernels[i / 4 % 2]};
        tgl_plan *plan;
        p.compute = TGL_COMPUTE_IEEE;
        p.trans_a = i & 8 ? TGL_TRANS : TGL_NO_TRANS;
        p.trans_b = i & 16 ? TGL_CONJ_TRANS : TGL_NO_TRANS;
        p.lda = i & 8 ? p.m : p.k;
        p.ldb = i & 16 ? p.k : p.n;
        assert_status(tgl_plan_create(*state, &p, &options, &plan), TGL_OK);
        assert_true(tgl_plan_workspace_size(plan) == LONG * size);
        tgl_plan_destroy(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(transposes_and_conjugates, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(batches, setup_sim, teardown_device),
        cmocka_unit_test_setup_teardown(operands_are_not_expanded, setup_sim, teardown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
