/* SPDX-License-Identifier: Apache-2.0
 *
 * Epilogues and batches of pointers in kernels of simt, skinny, small_batch and gemv, on the
 * simulator: bias, activation, residual and expressions, with and without split-K, row- and
 * column-major; and the messages for expressions that do not compile.
 */
#include "support.h"

static void run(tgl_device *dev, const gemm_case *c)
{
    gemm_outcome outcome;
    gemm_case_run(dev, c, false, &outcome);
    if (outcome.fault[0] != '\0') fail_msg("%s", outcome.fault);
    assert_status(outcome.status, TGL_OK);
}

/* Each row is a configuration without and (if supported) with split-K. */
static const char *const kernels[][2] = {
    {"simt_32x32x16:splits=1", "simt_32x32x16:splits=2"},
    {"simt_64x64x16_8x4:splits=1", "simt_64x64x16_8x4:splits=2"},
    {"skinny_2:splits=1", "skinny_2:splits=2"},
    {"skinny_8:splits=1", "skinny_8:splits=2"},
    {"small_batch_32x32", "small_batch_32x32"},
    {"gemv", "gemv"},
    {"gemv_2", "gemv_2"},
    {"gemv_4", "gemv_4"},
};

/* A problem with partial tiles that the kernel supports: a batch with a gap between the matrices
 * of C. */
static tgl_problem ragged_problem(size_t kernel, bool col_major, int64_t k)
{
    static const int64_t sizes[][2] = {{37, 45}, {67, 70}, {2, 133}, {140, 7},
                                       {29, 31}, {1, 75},  {77, 2},  {3, 75}};
    tgl_problem p = problem_of(TGL_F32, sizes[kernel][0], sizes[kernel][1], k);
    /* gemm/gemv.cu supports several MN-major vectors only if the matrix is MN-major, too. */
    p.trans_a = strcmp(kernels[kernel][0], "gemv_4") == 0 ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = strcmp(kernels[kernel][0], "gemv_2") == 0 ? TGL_TRANS : TGL_NO_TRANS;
    p.order = col_major ? TGL_COL_MAJOR : TGL_ROW_MAJOR;
    p.batch = 2;
    p.stride_a = p.m * p.k;
    p.stride_b = p.k * p.n;
    p.stride_c = p.m * p.n + 1;
    return p;
}

static void every_part_in_every_kernel(void **state)
{
    for (size_t kernel = 0; kernel < COUNT_OF(kernels); kernel++)
        for (int i = 0; i < 4; i++) {
            const bool col_major = (i + (int)kernel) % 2 == 1;
            gemm_case c = {.problem = ragged_problem(kernel, col_major, i % 2 == 0 ? 40 : 300),
                           .alpha = i == 3 ? 0 : 1,
                           .beta = i % 2 == 0 ? 0 : -0.5,
                           .pointers = i >= 2,
                           .epilogue = {.size = sizeof c.epilogue,
                                        .bias = i % 2 == 0 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN,
                                        .activation = (tgl_activation)((i + (int)kernel) % 4),
                                        .residual = i != 1,
                                        .stride_bias = i == 0 ? 0 : 150},
                           .kernel = kernels[kernel][i % 2],
                           .fill = i == 2 ? NON_FINITE : UNIFORM_11,
                           .at_end = true,
                           .seed = kernel * 4 + (size_t)i};
            if (i % 2 == 1) {
                c.epilogue.ld_residual = (col_major ? c.problem.m : c.problem.n) + 3;
                c.epilogue.stride_residual = c.epilogue.ld_residual * 150;
            }
            run(*state, &c);
        }
}

/* ---- Pointers -------------------------------------------------------------------------------- */

/* The guaranteed alignment of pointers determines the width of copies: four floats, two, or one. */
static void promises_make_wide_copies(void **state)
{
    enum { SIDE = 32, BATCH = 3, ROOM = SIDE * SIDE * BATCH };
    static const int64_t promises[] = {16, 8, 0};
    static const char *const macros[] = {"VEC_B=4", "VEC_B=2", "VEC_B=1"};
    float *memory = aligned_alloc(16, 3 * ROOM * sizeof *memory);
    assert_non_null(memory);
    for (int i = 0; i < 3 * ROOM; i++)
        memory[i] = (float)(i % 7 - 3);
    const void *A[BATCH], *B[BATCH];
    void *C[BATCH];
    for (int i = 0; i < BATCH; i++) {
        A[i] = memory; /* the same memory for all products */
        B[i] = memory + ROOM + SIDE * SIDE * (BATCH - 1 - i);
        C[i] = memory + 2 * (ptrdiff_t)ROOM + SIDE * SIDE * i;
    }
    for (size_t p = 0; p < COUNT_OF(promises); p++) {
        tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, SIDE);
        problem.batch = BATCH;
        problem.batching = TGL_POINTERS;
        problem.alignment = promises[p];
        const tgl_plan_options options = {.size = sizeof options, .kernel = "simt_32x32x16"};
        const tgl_operands operands = {
            .size = sizeof operands, .alpha = 1, .A_array = A, .B_array = B, .C_array = C};
        char text[16384];
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        tgl_plan_explain(plan, text, sizeof text);
        assert_non_null(strstr(text, macros[p]));
        assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
        for (int i = 0; i < BATCH; i++)
            for (int e = 0; e < SIDE * SIDE; e++) {
                float sum = 0;
                for (int q = 0; q < SIDE; q++)
                    sum += ((const float *)A[i])[e / SIDE * SIDE + q] *
                           ((const float *)B[i])[q * SIDE + e % SIDE];
                assert_true(((const float *)C[i])[e] == sum);
            }
        tgl_plan_destroy(plan);
    }
    free(memory);
}

static void bad_pointers_are_told(void **state)
{
    float x = 1;
    const void *const A[] = {&x, NULL}, *const B[] = {&x, &x};
    void *const C[] = {&x, &x};
    tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    problem.batch = 2;
    problem.batching = TGL_POINTERS;
    assert_status(tgl_gemm_batched(*state, &problem, 1, A, B, 0, C, NULL), TGL_BAD_A);
    char text[200];
    tgl_last_error(text, sizeof text);
    assert_string_equal(text, "A[1] is NULL");
}

static void the_ladder_has_neither(void **state)
{
    const tgl_epilogue e = {.size = sizeof e, .bias = TGL_BIAS_ROW};
    tgl_plan_options options = {.size = sizeof options, .kernel = "ladder/naive", .epilogue = &e};
    tgl_problem problem = problem_of(TGL_F32, 4, 4, 4);
    char text[200];
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    tgl_last_error(text, sizeof text);
    assert_non_null(strstr(text, "the ladder's kernels have no epilogue"));
    options.epilogue = NULL;
    problem.batching = TGL_POINTERS;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    tgl_last_error(text, sizeof text);
    assert_non_null(strstr(text, "the ladder's kernels take no arrays of pointers"));
}

/* The simulator counts bias and residual as needed bytes. */
static void an_epilogue_is_counted(void **state)
{
    enum { M = 5, N = 7, K = 3 };
    const tgl_problem problem = problem_of(TGL_F32, M, N, K);
    const tgl_epilogue e = {.size = sizeof e, .bias = TGL_BIAS_ROW, .residual = 1};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = "simt_32x32x16", .epilogue = &e};
    float x[M * N] = {0}, C[M * N];
    const tgl_operands operands = {
        .size = sizeof operands, .alpha = 1, .A = x, .B = x, .C = C, .bias = x, .residual = x};
    tgl_counters counters = {.size = sizeof counters};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
    assert_status(tgl_plan_counters(plan, &counters), TGL_OK);
    assert_int_equal(counters.needed_bytes, 4 * (M * K + K * N + M * N + M + M * N));
    tgl_plan_destroy(plan);
}

/* ---- Expressions ----------------------------------------------------------------------------- */

static long double leaky(long double acc, long double c, long double bias, int64_t row, int64_t col)
{
    const long double x = acc + c + bias;
    return (x < 0 ? 0.125L * x : x) + row * 2 - col;
}

static long double gated(long double acc, long double c, long double bias, int64_t row, int64_t col)
{
    (void)row;
    return (acc < 0 ? 0 : acc) + (col < 3 ? c : tanhl(bias));
}

/* An expression with functions of the C library that no kernel calls. */
static long double mathematical(long double acc, long double c, long double bias, int64_t row,
                                int64_t col)
{
    (void)bias;
    return log1pl(fabsl(acc)) + hypotl(c, (long double)row) + fmodl((long double)col, 3);
}

static void expressions(void **state)
{
    static const struct {
        const char *text;
        gemm_expression *reference;
    } all[] = {{"(acc + c + bias < 0 ? 0.125f : 1.0f) * (acc + c + bias) + row * 2 - col", leaky},
               {"relu(acc) + (col < 3 ? c : tanhf(bias)) // with a comment", gated},
               {"log1pf(fabsf(acc)) + hypotf(c, row) + (float)fmod(col, 3)", mathematical}};
    for (size_t kernel = 0; kernel < COUNT_OF(kernels); kernel += 2)
        for (int i = 0; i < 2 * (int)COUNT_OF(all); i++) {
            gemm_case c = {.problem = ragged_problem(kernel, i % 2 == 1, 30),
                           .alpha = 2,
                           .beta = i == 0 ? 0 : 0.5,
                           .pointers = i == 3,
                           .epilogue = {.size = sizeof c.epilogue,
                                        .bias = i < 2 ? TGL_BIAS_COLUMN : TGL_BIAS_ROW,
                                        .residual = i % 2,
                                        .expression = all[i / 2].text},
                           .expression = all[i / 2].reference,
                           .kernel = kernels[kernel][0],
                           .fill = UNIFORM_11,
                           .seed = (uint64_t)i};
            run(*state, &c);
        }
}

static void assert_does_not_compile(tgl_device *dev, const char *expression, const char *words)
{
    const tgl_epilogue e = {.size = sizeof e, .expression = expression};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = "simt_32x32x16", .epilogue = &e};
    const tgl_problem problem = problem_of(TGL_F32, 4, 4, 4);
    char text[4096];
    tgl_plan *plan;
    const tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    tgl_last_error(text, sizeof text);
    assert_status(status, TGL_COMPILE);
    assert_null(plan);
    if (strstr(text, words) == NULL || strstr(text, "expression") == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, text);
}

static void bad_expressions_are_told(void **state)
{
    assert_does_not_compile(*state, "acc +", "expected expression");
    assert_does_not_compile(*state, "acc * scale", "scale");
    assert_does_not_compile(*state, "unheard_of(acc)", "unheard_of");
    assert_does_not_compile(*state, "acc; ", "expected");
    assert_does_not_compile(*state, "\"text\"", "");
}

/* Two expressions in one process, then the first one again. */
static void expressions_are_told_apart(void **state)
{
    static const char *const texts[] = {"acc + 1.0f", "acc + 2.0f", "acc + 1.0f"};
    static const float expected[] = {7, 8, 7};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const tgl_epilogue e = {.size = sizeof e, .expression = texts[i]};
        const tgl_plan_options options = {
            .size = sizeof options, .kernel = "simt_32x32x16", .epilogue = &e};
        const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
        const float a = 2, b = 3;
        float c = 0;
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        assert_status(tgl_plan_run(plan, 1, &a, &b, 0, &c, NULL), TGL_OK);
        assert_true(c == expected[i]);
        tgl_plan_destroy(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_in_every_kernel), cmocka_unit_test(promises_make_wide_copies),
        cmocka_unit_test(bad_pointers_are_told),      cmocka_unit_test(the_ladder_has_neither),
        cmocka_unit_test(an_epilogue_is_counted),     cmocka_unit_test(expressions),
        cmocka_unit_test(bad_expressions_are_told),   cmocka_unit_test(expressions_are_told_apart),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
