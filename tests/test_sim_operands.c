/* SPDX-License-Identifier: Apache-2.0
 *
 * The production families on the simulator with a separate D, scalars in device memory and a
 * workspace of the caller. An argument "i/n" selects part i of n of the cases.
 */
#include "operand_cases.h"
#include "support.h"

static int part = 0, parts = 1;

static void operands_of_every_family(void **state)
{
    gemm_case c;
    int count = 0;
    for (int i = part; operand_case(i, &c); i += parts) {
        assert_true(check_case(*state, &c));
        count++;
    }
    assert_true(count > 0);
}

/* One plan for all values of the scalars. */
static void scalars_are_looked_at_by_the_run(void **state)
{
    static const char *const kernels[] = {NULL, "simt_32x32x16:splits=3,strips=0",
                                          "skinny_4:splits=3", "gemv", "small_batch_16x16"};
    static const float alphas[] = {0, 2, 0, -0.0f, 1}, betas[] = {1, 0, 0, -3, 2};
    enum { K = 100 };
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        if ((int)i % parts != part) continue;
        tgl_problem problem = problem_of(TGL_F32, 1, 1, K);
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernels[i]};
        float alpha, beta, A[K], B[K], C;
        tgl_plan *plan;
        problem.scalars = TGL_SCALARS_DEVICE;
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        const tgl_operands operands = {
            .size = sizeof operands, .alpha_at = &alpha, .beta_at = &beta, .A = A, .B = B, .C = &C};
        for (size_t j = 0; j < COUNT_OF(alphas); j++) {
            alpha = alphas[j];
            beta = betas[j];
            for (int k = 0; k < K; k++)
                A[k] = B[k] = alpha != 0 ? 1 : NAN;
            C = beta != 0 ? 10 : NAN;
            assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
            assert_true(C == (alpha != 0 ? alpha * K : 0) + (beta != 0 ? beta * 10 : 0));
        }
        tgl_plan_destroy(plan);
    }
}

/* The caller's workspace may contain anything, and must be at least as large as the plan requires.
 */
static void workspace_is_checked(void **state)
{
    if (part != 0) return;
    enum { SIDE = 32, K = 700 };
    static float A[SIDE * K], B[K * SIDE], C[SIDE * SIDE];
    const tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, K);
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = "simt_32x32x16:splits=11,strips=0"};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    const size_t size = tgl_plan_workspace_size(plan);
    assert_true(size > 0 && size % 256 == 0);
    char *memory = aligned_alloc(256, size + 256);
    assert_non_null(memory);
    memset(memory, 0xa5, size + 256);
    for (int i = 0; i < SIDE * K; i++)
        A[i] = B[i] = 1;
    const struct {
        char *at;
        size_t bytes;
        tgl_status status;
    } cases[] = {{memory, size, TGL_OK},
                 {memory, size + 256, TGL_OK},
                 {memory, size - 1, TGL_BAD_WORKSPACE},
                 {memory, 0, TGL_BAD_WORKSPACE},
                 {memory + 128, size, TGL_BAD_WORKSPACE},
                 {NULL, 0, TGL_OK}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const tgl_operands operands = {.size = sizeof operands,
                                       .alpha = 1,
                                       .A = A,
                                       .B = B,
                                       .C = C,
                                       .workspace = cases[i].at,
                                       .workspace_bytes = cases[i].bytes};
        memset(C, 0, sizeof C);
        forget_error();
        assert_status(tgl_plan_run_operands(plan, &operands, NULL), cases[i].status);
        if (cases[i].status != TGL_OK) assert_new_sentence();
        for (int j = 0; j < SIDE * SIDE; j++)
            assert_true(C[j] == (cases[i].status == TGL_OK ? K : 0));
    }
    for (int i = 0; i < 256; i++)
        assert_int_equal((unsigned char)memory[size + (size_t)i], 0xa5);
    tgl_plan_destroy(plan);
    free(memory);
}

/* A product with alpha 0 is planned with k = 0, although kernels use int for k. */
static void alpha_0_takes_any_k(void **state)
{
    static const int64_t huge[] = {(int64_t)1 << 31, (int64_t)1 << 40, INT64_MAX / 8};
    if (part != 0) return;
    for (size_t i = 0; i < COUNT_OF(huge); i++) {
        const tgl_problem problem = problem_of(TGL_F32, 1, 1, huge[i]);
        float c = 3;
        assert_status(tgl_gemm(*state, &problem, 0, NULL, NULL, -2, &c, NULL), TGL_OK);
        assert_true(c == -6);
        assert_status(tgl_gemm(*state, &problem, 1e-60, NULL, NULL, 0, &c, NULL), TGL_OK);
        assert_true(c == 0);
        assert_status(tgl_gemm(*state, &problem, 1, &c, &c, 0, &c, NULL), TGL_UNSUPPORTED);
    }
}

/* The string of tgl_plan_kernel() gives the same plan again. */
static void a_plan_s_kernel_makes_it_again(void **state)
{
    static const int64_t sizes[][3] = {{17, 33, 700}, {1, 300, 20}, {100, 100, 40}, {3, 3, 3}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        if ((int)i % parts != part) continue;
        const tgl_problem problem = problem_of(TGL_F32, sizes[i][0], sizes[i][1], sizes[i][2]);
        tgl_plan *plan, *again;
        assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
        const tgl_plan_options options = {.size = sizeof options, .kernel = tgl_plan_kernel(plan)};
        assert_status(tgl_plan_create(*state, &problem, &options, &again), TGL_OK);
        assert_string_equal(tgl_plan_kernel(again), tgl_plan_kernel(plan));
        assert_int_equal(tgl_plan_workspace_size(again), tgl_plan_workspace_size(plan));
        tgl_plan_destroy(plan);
        tgl_plan_destroy(again);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_of_every_family),
        cmocka_unit_test(scalars_are_looked_at_by_the_run),
        cmocka_unit_test(workspace_is_checked),
        cmocka_unit_test(alpha_0_takes_any_k),
        cmocka_unit_test(a_plan_s_kernel_makes_it_again),
    };
    if (argc > 1 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || parts < 1)) return 2;
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
