/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of i8 on the cpu device: exact modulo 2^32, whatever the order of summation.
 */
#include "support.h"

#include "elements.h"

/* ---- Random products ------------------------------------------------------------------------- */

static double draw_scalar(uint64_t *seed)
{
    static const double usual[] = {0, 1, 1, -1, 3, 65536, INT32_MAX, INT32_MIN};
    if (random_int(seed, 0, 3) == 0) return (double)random_int(seed, INT32_MIN, INT32_MAX);
    return usual[random_int(seed, 0, COUNT_OF(usual) - 1)];
}

static gemm_case case_of(uint64_t *seed, const tgl_problem *problem)
{
    return (gemm_case){
        .problem = *problem,
        .alpha = draw_scalar(seed),
        .beta = draw_scalar(seed),
        .fill = random_kind(seed, TGL_I8),
        .at_end = random_int(seed, 0, 1) == 1,
        .seed = random_bits(seed),
    };
}

/* Adds a random kind of bias and of residual, with or without RELU. */
static void add_epilogue(uint64_t *seed, gemm_case *c)
{
    const int64_t row = c->problem.order == TGL_COL_MAJOR ? c->problem.m : c->problem.n;
    c->epilogue = (tgl_epilogue){
        .size = sizeof c->epilogue,
        .bias = (tgl_bias)random_int(seed, TGL_BIAS_NONE, TGL_BIAS_COLUMN),
        .activation = (tgl_activation)random_int(seed, TGL_ACTIVATION_NONE, TGL_ACTIVATION_RELU),
        .residual = (int)random_int(seed, 0, 1),
    };
    const int64_t ld = (row > 0 ? row : 1) + random_int(seed, 0, 3);
    if (c->epilogue.residual) c->epilogue.ld_residual = ld;
    if (random_int(seed, 0, 1) == 0) return; /* all products of the batch share them */
    const int64_t m = c->problem.m, n = c->problem.n;
    c->epilogue.stride_bias = (m > n ? m : n) + random_int(seed, 0, 3);
    c->epilogue.stride_residual = (row == m ? n : m) * ld + random_int(seed, 0, 3);
}

static void random_problems_are_right(void **state)
{
    uint64_t seed = 8;
    for (int i = 0; i < 800; i++) {
        const tgl_problem problem = random_problem(&seed, TGL_I8, i % 40 == 0 ? 150 : 40);
        gemm_case c = case_of(&seed, &problem);
        c.pointers = random_int(&seed, 0, 3) == 0;
        vary_case(&seed, &c);
        if (random_int(&seed, 0, 1) == 1) add_epilogue(&seed, &c);
        assert_true(check_case(*state, &c));
    }
}

/* Tests products of several blocks along m, n and k, products with one row or column, and, without
 * scale factors, sums that wrap around. */
static void large_problems_are_right(void **state)
{
    static const int64_t sizes[][3] = {{300, 270, 600}, {1, 700, 1100}, {530, 1, 90},
                                       {257, 3, 1025},  {2, 2, 140000}, {64, 512, 40},
                                       {5, 70, 4099},   {129, 65, 2049}};
    uint64_t seed = 9;
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (int i = 0; i < 8; i++) {
            tgl_problem problem = problem_of(TGL_I8, sizes[s][0], sizes[s][1], sizes[s][2]);
            problem.trans_a = i % 2 ? TGL_TRANS : TGL_NO_TRANS;
            problem.trans_b = i / 2 % 2 ? TGL_TRANS : TGL_NO_TRANS;
            gemm_case c = case_of(&seed, &problem);
            if (i < 4) c.alpha = 1, c.beta = 0, c.fill = i % 3 == 0 ? LEAST : EXTREMES;
            assert_true(check_case(*state, &c));
        }
}

/* A matrix times a vector: contiguous and strided vectors, results with and without padding, more
 * lines and steps than one block has. */
static void vectors_are_right(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 70},  {1, 300, 1030}, {1, 4200, 17}, {1, 7, 4100},
                                       {17, 1, 33}, {300, 1, 4100}, {4200, 1, 18}, {2, 1, 1}};
    uint64_t seed = 17;
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (int i = 0; i < 16; i++) {
            const tgl_problem problem = padded_problem(TGL_I8, sizes[s], (unsigned)i);
            gemm_case c = case_of(&seed, &problem);
            if (i < 8) c.alpha = 1, c.beta = 0, c.fill = i % 3 == 0 ? LEAST : EXTREMES;
            assert_true(check_case(*state, &c));
        }
}

/* If there are more threads than blocks of D, each sums a part of k, and the sums are added. */
static void parts_of_k_are_added(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{16, 24, 40001}, {33, 40, 9000}, {20, 61, 9001}};
    tgl_device *dev = open_cpu(5);
    uint64_t seed = 22;
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (int i = 0; i < 8; i++) {
            const tgl_problem problem = padded_problem(TGL_I8, sizes[s], (unsigned)i);
            gemm_case c = case_of(&seed, &problem);
            if (i < 2) c.alpha = 1, c.beta = 0;
            if (i >= 4) add_epilogue(&seed, &c);
            assert_true(plan_explains(dev, &problem, "parts of k"));
            assert_true(check_case(dev, &c));
        }
    tgl_device_close(dev);
}

/* ---- Results that are known ------------------------------------------------------------------ */

/* 140000 * 2^14 = 2293760000, which is 2293760000 - 2^32 as a 32-bit integer. */
static void sums_wrap(void **state)
{
    enum { K = 140000, SUM = (int32_t)(2293760000 - (INT64_C(1) << 32)) };
    static int8_t X[2 * K];
    int32_t C[4] = {1, -1, 5, INT32_MAX};
    const int32_t before[4] = {1, -1, 5, INT32_MAX};
    memset(X, -128, sizeof X);
    const tgl_problem problem = problem_of(TGL_I8, 2, 2, K);
    assert_status(tgl_gemm(*state, &problem, 1, X, X, 1, C, NULL), TGL_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(C[i], (int32_t)((uint32_t)SUM + (uint32_t)before[i]));
    assert_status(tgl_gemm(*state, &problem, 2, X, X, 0, C, NULL), TGL_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(C[i], (int32_t)(2 * (uint32_t)SUM));
}

static void scalars_wrap(void **state)
{
    const tgl_problem problem = problem_of(TGL_I8, 1, 1, 1);
    const int8_t A = 127, B = -1;
    int32_t C = 12;
    assert_status(tgl_gemm(*state, &problem, INT32_MIN, &A, &B, 0, &C, NULL), TGL_OK);
    assert_int_equal(C, INT32_MIN); /* an odd number times 2^31 */
    C = INT32_MAX;
    assert_status(tgl_gemm(*state, &problem, 0, NULL, NULL, INT32_MAX, &C, NULL), TGL_OK);
    assert_int_equal(C, 1); /* (2^31 - 1)^2 */
    C = INT32_MIN;
    assert_status(tgl_gemm(*state, &problem, 1, &A, &B, -1, &C, NULL), TGL_OK);
    assert_int_equal(C, INT32_MAX - 126); /* -127 + 2^31 modulo 2^32 */
}

static void what_is_not_needed_is_not_read(void **state)
{
    enum { M = 3, N = 5, K = 4 };
    int8_t A[M * K], B[K * N];
    int32_t C[M * N];
    memset(A, 1, sizeof A);
    memset(B, 2, sizeof B);
    memset(C, 0x55, sizeof C);
    tgl_problem problem = problem_of(TGL_I8, M, N, K);
    assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, C, NULL), TGL_OK);
    for (int i = 0; i < M * N; i++)
        assert_int_equal(C[i], 2 * K);
    assert_status(tgl_gemm(*state, &problem, 0, NULL, NULL, -3, C, NULL), TGL_OK);
    for (int i = 0; i < M * N; i++)
        assert_int_equal(C[i], -6 * K);
    problem.k = 0;
    assert_status(tgl_gemm(*state, &problem, 7, NULL, NULL, 2, C, NULL), TGL_OK);
    for (int i = 0; i < M * N; i++)
        assert_int_equal(C[i], -12 * K);
    assert_status(tgl_gemm(*state, &problem, 7, NULL, NULL, 0, C, NULL), TGL_OK);
    for (int i = 0; i < M * N; i++)
        assert_int_equal(C[i], 0);
}

/* tgl_gemm_host() and prepared operands compute products of i8, too. */
static void host_products_and_prepared_operands(void **state)
{
    enum { M = 9, N = 35, K = 70 };
    int8_t A[M * K], B[K * N];
    int32_t first[M * N], C[M * N];
    uint64_t seed = 5;
    random_fill(&seed, TGL_I8, A, M * K);
    random_fill(&seed, TGL_I8, B, K * N);
    const tgl_problem problem = problem_of(TGL_I8, M, N, K);
    assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, first, NULL), TGL_OK);
    tgl_operands operands = {.size = sizeof operands, .alpha = 1, .A = A, .B = B, .C = C};
    memset(C, 0x55, sizeof C);
    assert_status(tgl_gemm_host(*state, &problem, &operands), TGL_OK);
    assert_memory_equal(C, first, sizeof C);
    tgl_plan *plan;
    tgl_prepared *prepared;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_operand_prepare(plan, TGL_SIDE_B, B, NULL, &prepared), TGL_OK);
    operands.prepared_b = prepared;
    memset(C, 0x55, sizeof C);
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
    assert_memory_equal(C, first, sizeof C);
    tgl_prepared_destroy(prepared);
    tgl_plan_destroy(plan);
}

/* ---- Requests that are refused --------------------------------------------------------------- */

static void scalars_are_integers(void **state)
{
    static const double bad[] = {0.5,           -1.25,       0x1p40,   2147483648.0,
                                 -2147483649.0, (double)NAN, INFINITY, -INFINITY};
    const tgl_problem problem = problem_of(TGL_I8, 1, 1, 1);
    const int8_t A = 1, B = 1;
    int32_t C = 42;
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    for (size_t i = 0; i < 2 * COUNT_OF(bad); i++) {
        const double alpha = i % 2 ? 1 : bad[i / 2], beta = i % 2 ? bad[i / 2] : 1;
        forget_error();
        assert_status(tgl_gemm(*state, &problem, alpha, &A, &B, beta, &C, NULL), TGL_BAD_SCALAR);
        assert_new_sentence();
        assert_status(tgl_plan_run(plan, alpha, &A, &B, beta, &C, NULL), TGL_BAD_SCALAR);
        assert_int_equal(C, 42);
    }
    tgl_plan_destroy(plan);
}

static void epilogues_of_floating_point_are_unsupported(void **state)
{
    const tgl_problem problem = problem_of(TGL_I8, 4, 4, 4);
    const tgl_epilogue epilogues[] = {
        {.size = sizeof(tgl_epilogue), .activation = TGL_ACTIVATION_GELU},
        {.size = sizeof(tgl_epilogue), .activation = TGL_ACTIVATION_SILU},
        {.size = sizeof(tgl_epilogue), .expression = "acc + c"},
    };
    for (size_t i = 0; i < COUNT_OF(epilogues); i++) {
        const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogues[i]};
        tgl_plan *plan;
        forget_error();
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
        assert_new_sentence();
        assert_null(plan);
    }
}

static void results_are_i32(void **state)
{
    tgl_plan *plan;
    tgl_problem problem = problem_of(TGL_I8, 4, 4, 4);
    assert_int_equal(problem.type_c, TGL_I32);
    problem.type_c = TGL_I8;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_BAD_TYPE);
    problem.type_c = TGL_I32;
    problem.type_d = TGL_F32;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_BAD_TYPE);
    problem.scaling_a = TGL_SCALING_TENSOR;
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_are_right),
        cmocka_unit_test(large_problems_are_right),
        cmocka_unit_test(vectors_are_right),
        cmocka_unit_test(parts_of_k_are_added),
        cmocka_unit_test(sums_wrap),
        cmocka_unit_test(scalars_wrap),
        cmocka_unit_test(what_is_not_needed_is_not_read),
        cmocka_unit_test(host_products_and_prepared_operands),
        cmocka_unit_test(scalars_are_integers),
        cmocka_unit_test(epilogues_of_floating_point_are_unsupported),
        cmocka_unit_test(results_are_i32),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
