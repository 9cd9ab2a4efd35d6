/* SPDX-License-Identifier: Apache-2.0
 *
 * Blockings that are asked for by a kernel string (src/cpu/plan/blocking_options.c).
 */
#include "cpu_plan_case.h"

static void blockings_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cpu_blocking expected; /* kc -1: refused */
    } table[] = {{"", {0, 0, 0}},
                 {":kc=256", {256, 0, 0}},
                 {":mc=96", {0, 96, 0}},
                 {":kc=1,mc=65536", {1, 65536, 0}},
                 {":mc=7,kc=8", {8, 7, 0}},
                 {":", {-1, 0, 0}},
                 {":kc", {-1, 0, 0}},
                 {":kc=", {-1, 0, 0}},
                 {":kc=0", {-1, 0, 0}},
                 {":kc=-1", {-1, 0, 0}},
                 {":kc= 1", {-1, 0, 0}},
                 {":kc=1x", {-1, 0, 0}},
                 {":kc=65537", {-1, 0, 0}},
                 {":kc=99999999999999999999", {-1, 0, 0}},
                 {":kc=1,", {-1, 0, 0}},
                 {":kc=1,kc=2", {-1, 0, 0}},
                 {":nc=1", {-1, 0, 0}},
                 {":row=2", {0, 0, 2}},
                 {":row=1,kc=8", {8, 0, 1}},
                 {":row=0", {-1, 0, 0}},
                 {":row=99", {-1, 0, 0}},
                 {":row=", {-1, 0, 0}},
                 {":row=1,row=1", {-1, 0, 0}}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        cpu_blocking found;
        const bool refused = table[i].expected.kc < 0;
        forget_error();
        assert_status(tgl_cpu_blocking_read(table[i].text, &found),
                      refused ? TGL_BAD_ARGUMENT : TGL_OK);
        if (refused)
            assert_new_sentence();
        else
            assert_memory_equal(&found, &table[i].expected, sizeof found);
    }
}

static void a_blocking_is_obeyed(void **state)
{
    (void)state;
    const tgl_shape shape = shape_of(1000, 1000, 1000, false, false);
    const cpu_machine device = server_of("", 1);
    cpu_plan own, plan;
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){0}, &device, &own);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.kc = 104}, &device, &plan);
    assert_int_equal(plan.kc, 104);
    assert_true(plan.mc > own.mc);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.mc = 40}, &device, &plan);
    assert_true(plan.kc == own.kc && plan.mc == 40);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.mc = 43}, &device, &plan);
    assert_int_equal(plan.mc, 40);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.mc = 1003}, &device, &plan);
    assert_int_equal(plan.mc, 1000);
    assert_false(plan.keep_b);
    tgl_cpu_plan(&shape, &tgl_cpu_kernels_portable_f32, (cpu_blocking){.mc = 1}, &device, &plan);
    assert_int_equal(plan.mc, plan.kernels->mr);
}

/* Checks the product in the blocks that these options of a kernel string request. */
static void check_in_blocks(tgl_device *dev, tgl_problem problem, const char *options)
{
    char kernel[64];
    gemm_outcome outcome;
    snprintf(kernel, sizeof kernel, "%s:%s", tgl_kernel_name(dev, 0), options);
    const gemm_case c = {.problem = problem,
                         .alpha = 1.5,
                         .beta = 0.5,
                         .fill = UNIFORM_11,
                         .kernel = kernel,
                         .seed = 1};
    gemm_case_run(dev, &c, false, &outcome);
    assert_string_equal(outcome.fault, "");
    assert_status(outcome.status, TGL_OK);
}

static void products_in_small_blocks_are_right(void **state)
{
    static const char *const options[] = {"kc=1", "kc=9,mc=5", "mc=1", "kc=65536,mc=65536"};
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        tgl_problem problem = problem_of(TGL_F32, 150, 130, 170);
        if (i % 2) problem.trans_a = TGL_TRANS;
        check_in_blocks(*state, problem, options[i]);
    }
}

/* Products that are large enough for A to be packed, in one or several blocks of A. */
static void packed_blocks_are_right(void **state)
{
    static const char *const options[] = {"mc=20", "mc=150,kc=100", "mc=301", "kc=64,mc=296"};
    for (size_t i = 0; i < 4 * COUNT_OF(options); i++) {
        tgl_problem problem = problem_of(i % 2 ? TGL_F64 : TGL_F32, 301, 310, 320);
        problem.trans_a = TGL_TRANS;
        problem.trans_b = i / 2 % 2 ? TGL_TRANS : TGL_NO_TRANS;
        check_in_blocks(*state, problem, options[i / 4]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blockings_are_read),
        cmocka_unit_test(a_blocking_is_obeyed),
        cmocka_unit_test_setup_teardown(products_in_small_blocks_are_right, setup_cpu,
                                        teardown_device),
        cmocka_unit_test_setup_teardown(packed_blocks_are_right, setup_cpu, teardown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
