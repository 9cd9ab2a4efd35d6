/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of i8 by mma.sync and wgmma on the simulator: exact modulo 2^32, in all layouts and
 * alignments. With the argument "i/n" it takes the i-th of n parts of all layouts, otherwise a
 * quarter: most of the time is that of compiling a kernel for each.
 */
#include "support.h"

#include "elements.h"

static const char *const kernels[] = {
    "mma_128x64x64",           "mma_64x64x128_s2:splits=2",
    "mma_16x64x256_s2",        "wgmma_64x64",
    "wgmma_64x32:exchanged=1", "wgmma_128x128_alt",
    "wgmma_64x64:splits=2",    "wgmma_64x64_s12:splits=2,in_cluster=1",
    "wgmma_64x128:cluster=2",
};

static gemm_case case_of(const tgl_problem *problem, const char *kernel, unsigned seed)
{
    return (gemm_case){.problem = *problem,
                       .kernel = kernel,
                       .alpha = 1,
                       .fill = seed % 3 == 0 ? EXTREMES : UNIFORM_11,
                       .at_end = true,
                       .seed = seed};
}

static bool takes_all;

/* Sizes a little above those of a tile and of a step of K. In half of the ways rows in memory are
 * padded and begin at any byte. The simulator checks races and bounds. */
static void every_layout(void **state)
{
    static const int64_t size[] = {70, 67, 150};
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        for (unsigned way = 0; way < 8; way++) {
            const bool is_chosen = (way + i) % 8 == 0 || (way + 3 * i) % 8 == 5;
            if (takes_all ? !sweep_has((int)(8 * i + way)) : !is_chosen) continue;
            tgl_problem problem =
                way < 4 ? problem_of(TGL_I8, 70, 68, 144) : padded_problem(TGL_I8, size, way);
            problem.trans_a = way % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
            problem.trans_b = way / 2 % 2 != 0 ? TGL_TRANS : TGL_NO_TRANS;
            problem.lda = problem.ldb = way < 4 ? 0 : 163;
            gemm_case c = case_of(&problem, kernels[i], 10 * (unsigned)i + way);
            if (way % 2 != 0) c.alpha = -3, c.beta = 65537; /* beta * C wraps */
            assert_true(check_case(*state, &c));
        }
}

/* 140,000 products of (-128)^2 exceed 2^31, and the largest factor wraps again. */
static void sums_wrap(void **state)
{
    enum { K = 140000 };
    static const char *const few[] = {"mma_16x64x256_s2", "wgmma_64x16"};
    for (size_t i = 0; i < COUNT_OF(few); i++) {
        tgl_problem problem = problem_of(TGL_I8, 2, 3, K);
        problem.trans_b = TGL_TRANS;
        gemm_case c = case_of(&problem, few[i], 1);
        c.fill = LEAST;
        c.alpha = INT32_MIN + 1;
        assert_true(check_case(*state, &c));
    }
}

static void epilogues_and_batches(void **state)
{
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        tgl_problem problem = problem_of(TGL_I8, 40, 72, 48);
        problem.batch = 3;
        problem.stride_a = (int64_t)40 * 48 + 5;
        problem.stride_b = (int64_t)72 * 48 + 16;
        problem.stride_c = (int64_t)40 * 72;
        gemm_case c = case_of(&problem, kernels[i], (unsigned)i);
        c.alpha = 7;
        c.beta = -1;
        c.epilogue = (tgl_epilogue){.size = sizeof c.epilogue,
                                    .bias = i % 2 ? TGL_BIAS_ROW : TGL_BIAS_COLUMN,
                                    .activation = TGL_ACTIVATION_RELU};
        assert_true(check_case(*state, &c));
    }
}

/* alpha in device memory: INT32_MIN has the bits of the float -0, and is not 0. */
static void device_scalars(void **state)
{
    enum { N = 40 };
    static int8_t A[N * N], B[N * N];
    static int32_t C[N * N];
    static const char *const few[] = {"mma_64x64x128", "wgmma_64x64"};
    int32_t *alpha = NULL;
    void *a = NULL, *b = NULL, *c = NULL;
    memset(A, 1, sizeof A);
    memset(B, 1, sizeof B);
    B[0] = 2;
    assert_status(tgl_alloc(*state, sizeof *alpha, (void **)&alpha), TGL_OK);
    assert_status(tgl_alloc(*state, sizeof A, &a), TGL_OK);
    assert_status(tgl_alloc(*state, sizeof B, &b), TGL_OK);
    assert_status(tgl_alloc(*state, sizeof C, &c), TGL_OK);
    const int32_t least = INT32_MIN;
    assert_status(tgl_upload(*state, alpha, &least, sizeof least, NULL), TGL_OK);
    assert_status(tgl_upload(*state, a, A, sizeof A, NULL), TGL_OK);
    assert_status(tgl_upload(*state, b, B, sizeof B, NULL), TGL_OK);
    for (size_t i = 0; i < COUNT_OF(few); i++) {
        tgl_problem problem = problem_of(TGL_I8, N, N, N);
        problem.scalars = TGL_SCALARS_DEVICE;
        const tgl_plan_options options = {.size = sizeof options, .kernel = few[i]};
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
        tgl_operands o = {.size = sizeof o, .A = a, .B = b, .C = c, .alpha_at = alpha};
        assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
        assert_status(tgl_download(*state, C, c, sizeof C, NULL), TGL_OK);
        for (int e = 0; e < N * N; e++) /* an odd sum times -2^31, or an even one */
            assert_int_equal(C[e], e % N == 0 ? INT32_MIN : 0);
        tgl_plan_destroy(plan);
    }
    tgl_free(*state, alpha);
    tgl_free(*state, a);
    tgl_free(*state, b);
    tgl_free(*state, c);
}

/* A B that wgmma cannot read is transposed by a pre-pass. */
static void prepared_weights(void **state)
{
    char text[32768];
    tgl_problem problem = problem_of(TGL_I8, 64, 200, 300);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "wgmma_64x64"};
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    assert_true(tgl_plan_explain(plan, text, sizeof text) < sizeof text);
    assert_non_null(strstr(text, "repack      B"));
    assert_non_null(strstr(text, "transposed"));
    tgl_plan_destroy(plan);
}

static void what_is_refused(void **state)
{
    static const char *const few[] = {"mma_64x64x128", "wgmma_64x64"};
    for (size_t i = 0; i < COUNT_OF(few); i++) {
        const tgl_problem problem = problem_of(TGL_I8, 64, 64, 64);
        tgl_epilogue gelu = {.size = sizeof gelu, .activation = TGL_ACTIVATION_GELU};
        const tgl_plan_options options = {
            .size = sizeof options, .kernel = few[i], .epilogue = &gelu};
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_UNSUPPORTED);
    }
}

int main(int argc, char **argv)
{
    takes_all = argc > 1;
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout),          cmocka_unit_test(sums_wrap),
        cmocka_unit_test(epilogues_and_batches), cmocka_unit_test(device_scalars),
        cmocka_unit_test(prepared_weights),      cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, setup_sim, teardown_device);
}
