/* SPDX-License-Identifier: Apache-2.0
 *
 * The host side of epilogues and batches of pointers on the cuda device, with the fake libraries:
 * the operands of a batch that takes several launches, and which kernels are compiled.
 */
#include "fake_cuda/setup.h"

/* More problems than a grid has in z, each 1 x 1 x 1 and with operands of its own. */
enum { MANY = 70000 };

static float *numbers(int step)
{
    float *x = malloc((size_t)MANY * sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < MANY; i++)
        x[i] = (float)(i % 100 * step);
    return x;
}

static void a_batch_of_several_launches(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    problem.batch = MANY;
    problem.batching = TGL_POINTERS;
    const tgl_epilogue e = {.size = sizeof e,
                            .bias = TGL_BIAS_COLUMN,
                            .residual = 1,
                            .stride_bias = 1,
                            .stride_residual = 1};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &e};
    /* The fake device's memory is the host's. */
    float *a = numbers(1), *b = numbers(2), *c = numbers(0), *bias = numbers(3),
          *residual = numbers(5);
    const void **A = calloc(MANY, sizeof *A), **B = calloc(MANY, sizeof *B);
    void **C = calloc(MANY, sizeof *C);
    if (A == NULL || B == NULL || C == NULL) abort();
    for (int i = 0; i < MANY; i++) {
        A[i] = &a[i];
        B[i] = &b[MANY - 1 - i];
        C[i] = &c[i];
    }
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = 1,
                                   .A_array = A,
                                   .B_array = B,
                                   .C_array = C,
                                   .bias = bias,
                                   .residual = residual};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
    for (int i = 0; i < MANY; i++)
        if (c[i] != a[i] * b[MANY - 1 - i] + bias[i] + residual[i])
            fail_msg("C[%d] is %g", i, (double)c[i]);
    assert_status(tgl_gemm_batched(dev, &problem, 0, NULL, NULL, 0.5, C, NULL), TGL_OK);
    assert_true(c[MANY - 1] == 0.5f * (a[MANY - 1] * b[0] + bias[MANY - 1] + residual[MANY - 1]));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    free(a), free(b), free(c), free(bias), free(residual);
    free(A), free(B), free(C);
}

/* The number of compilations for a plan with this epilogue. */
static int compilations_for(tgl_device *dev, const tgl_epilogue *e)
{
    const tgl_problem problem = problem_of(TGL_F32, 129, 129, 129); /* the kernel has one variant */
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = "simt_32x32x16:strips=0", .epilogue = e};
    const int before = compilations();
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    tgl_plan_destroy(plan);
    return compilations() - before;
}

/* Tested with a device that has loaded the kernels, and with a device that finds them in the cache.
 */
static void kernels_are_known_by_their_epilogue(void **state)
{
    (void)state;
    static const tgl_epilogue all[] = {
        {.size = sizeof(tgl_epilogue)},
        {.size = sizeof(tgl_epilogue), .bias = TGL_BIAS_ROW},
        {.size = sizeof(tgl_epilogue), .bias = TGL_BIAS_COLUMN},
        {.size = sizeof(tgl_epilogue), .activation = TGL_ACTIVATION_GELU},
        {.size = sizeof(tgl_epilogue), .residual = 1},
        {.size = sizeof(tgl_epilogue), .expression = "acc + 1.0f"},
        {.size = sizeof(tgl_epilogue), .expression = "acc + 2.0f"},
    };
    for (int again = 0; again < 2; again++) {
        tgl_device *dev = open_device("cuda");
        for (size_t i = 0; i < COUNT_OF(all); i++) {
            assert_int_equal(compilations_for(dev, &all[i]), !again);
            assert_int_equal(compilations_for(dev, &all[i]), 0);
        }
        assert_int_equal(compilations_for(dev, NULL),
                         0); /* the same as an epilogue with nothing in it */
        tgl_device_close(dev);
    }
}

/* Each run clears amax_d, which kernels then raise. The kernels of the fake device do not. */
static void amax_is_cleared(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_problem problem = problem_of(TGL_F8_E4M3, 64, 64, 128);
    problem.type_c = TGL_F32;
    const tgl_epilogue e = {.size = sizeof e, .amax = 1};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = "mma_64x64x128", .epilogue = &e};
    float C[64 * 64] = {0}, amax[3] = {5, 6, 7};
    const tgl_operands operands = {.size = sizeof operands, .C = C, .amax_d = &amax[1]};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
    assert_status(tgl_device_sync(dev), TGL_OK);
    assert_true(amax[0] == 5 && amax[1] == 0 && amax[2] == 7);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void an_expression_that_does_not_compile(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    const tgl_problem problem = problem_of(TGL_F32, 4, 4, 4);
    const tgl_epilogue e = {.size = sizeof e, .expression = "acc + scale"};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &e};
    tgl_plan *plan;
    setenv("FAKE_NVRTC_ERROR", "expression(1): error: identifier \"scale\" is undefined", 1);
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_COMPILE);
    unsetenv("FAKE_NVRTC_ERROR");
    assert_null(plan);
    assert_last_error("expression(1): error: identifier \"scale\" is undefined");
    tgl_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_batch_of_several_launches, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(kernels_are_known_by_their_epilogue, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(amax_is_cleared, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(an_expression_that_does_not_compile, fake_setup,
                                        fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
