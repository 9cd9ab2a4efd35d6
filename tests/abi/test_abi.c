/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that was compiled against an early header of version 0.2, which is kept here as it was,
 * and runs with today's shared library; and one that was compiled against a later header, whose
 * structs have members that the library does not know. The structs of the early header are the
 * smallest that the library accepts.
 */
#include "tegula_0_2.h"

#include "pinned_abi.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define assert_status(actual, expected)                                                            \
    assert_string_equal(tgl_status_name(actual), tgl_status_name(expected))

static int open_cpu(void **state)
{
    const tgl_device_options options = {.size = sizeof options, .threads = 1};
    tgl_device *dev;
    if (tgl_device_open("cpu", &options, &dev) != TGL_OK) return -1;
    *state = dev;
    return 0;
}

static int close_cpu(void **state)
{
    tgl_device_close(*state);
    return 0;
}

/* ---- A program of version 0.2 ---------------------------------------------------------------- */

static void problems_are_multiplied(void **state)
{
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 0, 1, 3}; /* 2 x 3, 3 x 2 */
    const float expected[] = {8, 9, 20, 18};
    float c[] = {1, 1, 1, 1};
    tgl_problem problem;
    assert_status(tgl_problem_init(&problem, sizeof problem, TGL_F32, 2, 2, 3), TGL_OK);
    assert_int_equal(problem.size, sizeof problem);
    assert_int_equal(problem.order, TGL_ROW_MAJOR);
    assert_int_equal(problem.type_d, 0);
    assert_int_equal(problem.batch, 1);
    assert_status(tgl_problem_check(&problem), TGL_OK);
    assert_status(tgl_gemm(*state, &problem, 1, a, b, 0, c, NULL), TGL_OK);
    assert_memory_equal(c, expected, sizeof c);
    assert_status(tgl_sgemm(*state, TGL_ROW_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, 2, 2, 3, 2, a, 3, b,
                            2, -1, c, 2, NULL),
                  TGL_OK);
    assert_memory_equal(c, expected, sizeof c);
    problem.lda = 1;
    assert_status(tgl_gemm(*state, &problem, 1, a, b, 0, c, NULL), TGL_BAD_LDA);
    char text[100];
    assert_true(tgl_last_error(text, sizeof text) > 0);
    assert_non_null(strstr(text, "lda"));
}

/* A plan with an epilogue, a separate D, and scalars in device memory, and without workspace. */
static void plans_run_with_operands(void **state)
{
    const tgl_epilogue epilogue = {.size = sizeof epilogue,
                                   .bias = TGL_BIAS_COLUMN,
                                   .activation = TGL_ACTIVATION_RELU,
                                   .residual = 1};
    const tgl_plan_options options = {
        .size = sizeof options, .epilogue = &epilogue, .workspace_limit = -1};
    const double a = 2, b = 3, bias[] = {1, -100}, residual[] = {7, 8}, alpha = 10, beta = -1;
    const double row[] = {3, 4};
    double c[] = {5, 6}, d[] = {0, 0};
    tgl_problem problem;
    tgl_plan *plan;
    assert_status(tgl_problem_init(&problem, sizeof problem, TGL_F64, 1, 2, 1), TGL_OK);
    problem.type_d = TGL_F64;
    problem.scalars = TGL_SCALARS_DEVICE;
    problem.compute = TGL_COMPUTE_ACCURATE;
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_OK);
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha_at = &alpha,
                                   .beta_at = &beta,
                                   .A = &a,
                                   .B = row,
                                   .C = c,
                                   .D = d,
                                   .bias = bias,
                                   .residual = residual};
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_OK);
    assert_true(d[0] == 10 * 2 * b - 5 + 1 + 7 && d[1] == 8);
    assert_true(c[0] == 5 && c[1] == 6);
    assert_int_equal(tgl_plan_workspace_size(plan), 0);
    assert_true(strlen(tgl_plan_kernel(plan)) > 0);
    assert_true(tgl_plan_explain(plan, NULL, 0) > 0);
    tgl_plan_destroy(plan);
}

static void batches_are_multiplied(void **state)
{
    const float a[] = {1, 2}, b[] = {3, 4};
    float c[] = {10, 20};
    const void *const A[] = {&a[0], &a[1]}, *const B[] = {&b[1], &b[1]};
    void *const C[] = {&c[1], &c[0]};
    tgl_problem problem;
    assert_status(tgl_problem_init(&problem, sizeof problem, TGL_F32, 1, 1, 1), TGL_OK);
    problem.batch = 2;
    problem.batching = TGL_POINTERS;
    problem.alignment = 4;
    assert_status(tgl_gemm_batched(*state, &problem, 1, A, B, 1, C, NULL), TGL_OK);
    assert_true(c[0] == 18 && c[1] == 24);
}

static void devices_are_asked(void **state)
{
    const char *key, *value;
    double number, seconds;
    tgl_timer *timer;
    void *memory;
    float x = 5, y = 0;
    assert_string_equal(tgl_device_name(*state), "cpu");
    assert_status(tgl_device_property(*state, 0, &key, &value), TGL_OK);
    assert_status(tgl_device_number(*state, TGL_NUMBER_THREADS, &number), TGL_OK);
    assert_true(number == 1);
    assert_status(tgl_alloc(*state, 4, &memory), TGL_OK);
    assert_status(tgl_upload(*state, memory, &x, 4, NULL), TGL_OK);
    assert_status(tgl_download(*state, &y, memory, 4, NULL), TGL_OK);
    assert_true(x == y);
    tgl_free(*state, memory);
    assert_status(tgl_timer_create(*state, &timer), TGL_OK);
    assert_status(tgl_timer_start(timer, NULL), TGL_OK);
    assert_status(tgl_timer_stop(timer, NULL, &seconds), TGL_OK);
    tgl_timer_destroy(timer);
    assert_status(tgl_device_sync(*state), TGL_OK);
    assert_non_null(tgl_kernel_name(*state, 0));
    assert_non_null(tgl_chip_name(0));
    assert_int_equal(tgl_type_size(TGL_F64), 8);
}

static void chips_are_explained(void **state)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = "simt_128x128x8:splits=2,strips=0"};
    tgl_problem problem;
    size_t length = 0;
    (void)state;
    assert_status(tgl_problem_init(&problem, sizeof problem, TGL_F32, 500, 500, 5000), TGL_OK);
    assert_status(tgl_chip_explain("h200", &problem, &options, NULL, 0, &length), TGL_OK);
    assert_true(length > 100);
}

/* Structs that are smaller than those of version 0.2 belong to no version, and are refused. */
static void smaller_structs_are_refused(void **state)
{
    tgl_problem problem;
    const float x = 1;
    float c = 0;
    tgl_plan *plan;
    tgl_device *dev;
    assert_status(tgl_problem_init(&problem, sizeof problem, TGL_F32, 1, 1, 1), TGL_OK);
    const tgl_plan_options options = {.size = sizeof options - 8};
    assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_BAD_ARGUMENT);
    const tgl_epilogue epilogue = {.size = sizeof epilogue - 8};
    const tgl_plan_options with_epilogue = {.size = sizeof options, .epilogue = &epilogue};
    assert_status(tgl_plan_create(*state, &problem, &with_epilogue, &plan), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    const tgl_operands operands = {.size = sizeof operands - 8, .A = &x, .B = &x, .C = &c};
    assert_status(tgl_plan_run_operands(plan, &operands, NULL), TGL_BAD_ARGUMENT);
    tgl_plan_destroy(plan);
    const tgl_device_options device_options = {.size = sizeof device_options - 8};
    assert_status(tgl_device_open("cpu", &device_options, &dev), TGL_BAD_ARGUMENT);
    const tgl_warm_options warm_options = {.size = sizeof warm_options - 8};
    assert_status(tgl_warm(&warm_options), TGL_BAD_ARGUMENT);
    problem.size -= 8;
    assert_status(tgl_problem_check(&problem), TGL_BAD_ARGUMENT);
    assert_status(tgl_problem_init(&problem, sizeof problem - 8, TGL_F32, 1, 1, 1),
                  TGL_BAD_ARGUMENT);
    problem.size = 0;
    assert_status(tgl_problem_check(&problem), TGL_BAD_ARGUMENT);
}

/* ---- A program of a later version ------------------------------------------------------------ */

/* A struct of version 0.2 with later members behind it. There is room for all that versions add. */
enum { LATER = 264 };
#define LATER_STRUCT(type)                                                                         \
    struct later_##type {                                                                          \
        type known;                                                                                \
        unsigned char unknown[LATER];                                                              \
    }
LATER_STRUCT(tgl_problem);
LATER_STRUCT(tgl_device_options);
LATER_STRUCT(tgl_plan_options);
LATER_STRUCT(tgl_epilogue);
LATER_STRUCT(tgl_operands);
LATER_STRUCT(tgl_warm_options);

/* Later members that are 0 are accepted. One that is not 0 asks for a feature that the library
 * lacks. It is set in the last byte, so that the test holds for later libraries, too. */
static void later_problems(void **state)
{
    struct later_tgl_problem later;
    const float a = 2, b = 3;
    float c = 0;
    memset(&later, 0xff, sizeof later);
    assert_status(tgl_problem_init(&later.known, sizeof later, TGL_F32, 1, 1, 1), TGL_OK);
    assert_int_equal(later.known.size, sizeof later);
    for (int i = 0; i < LATER; i++)
        assert_int_equal(later.unknown[i], 0); /* tgl_problem_init() has set all of it */
    assert_status(tgl_problem_check(&later.known), TGL_OK);
    assert_status(tgl_gemm(*state, &later.known, 1, &a, &b, 0, &c, NULL), TGL_OK);
    assert_true(c == 6);
    later.unknown[LATER - 1] = 1;
    assert_status(tgl_problem_check(&later.known), TGL_BAD_ARGUMENT);
    assert_status(tgl_gemm(*state, &later.known, 1, &a, &b, 0, &c, NULL), TGL_BAD_ARGUMENT);
    /* The memory behind `size` is not read. */
    later.known.size = sizeof later - 8;
    assert_status(tgl_problem_check(&later.known), TGL_OK);
}

static void later_device_options(void **state)
{
    struct later_tgl_device_options later = {.known = {.size = sizeof later, .threads = 1}};
    tgl_device *dev;
    (void)state;
    assert_status(tgl_device_open("cpu", &later.known, &dev), TGL_OK);
    tgl_device_close(dev);
    later.unknown[LATER - 1] = 1;
    assert_status(tgl_device_open("cpu", &later.known, &dev), TGL_BAD_ARGUMENT);
    assert_null(dev);
}

static void later_plan_options(void **state)
{
    struct later_tgl_epilogue epilogue = {.known = {.size = sizeof epilogue}};
    struct later_tgl_plan_options later = {
        .known = {.size = sizeof later, .epilogue = &epilogue.known}};
    tgl_problem problem;
    tgl_plan *plan;
    assert_status(tgl_problem_init(&problem, sizeof problem, TGL_F32, 1, 1, 1), TGL_OK);
    for (int i = 0; i < 3; i++) {
        epilogue.unknown[LATER - 1] = i == 1;
        later.unknown[LATER - 1] = i == 2;
        const tgl_status expected = i == 0 ? TGL_OK : TGL_BAD_ARGUMENT;
        size_t length;
        assert_status(tgl_plan_create(*state, &problem, &later.known, &plan), expected);
        tgl_plan_destroy(plan);
        assert_status(tgl_chip_explain("h200", &problem, &later.known, NULL, 0, &length), expected);
    }
}

static void later_operands(void **state)
{
    const float a = 2, b = 3;
    float c = 0;
    struct later_tgl_operands later = {
        .known = {.size = sizeof later, .alpha = 1, .A = &a, .B = &b, .C = &c}};
    tgl_problem problem;
    tgl_plan *plan;
    assert_status(tgl_problem_init(&problem, sizeof problem, TGL_F32, 1, 1, 1), TGL_OK);
    assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_run_operands(plan, &later.known, NULL), TGL_OK);
    assert_true(c == 6);
    later.unknown[LATER - 1] = 1;
    c = 0;
    assert_status(tgl_plan_run_operands(plan, &later.known, NULL), TGL_BAD_ARGUMENT);
    assert_true(c == 0);
    tgl_plan_destroy(plan);
}

static void later_warm_options(void **state)
{
    struct later_tgl_warm_options later = {.known = {.size = sizeof later}};
    (void)state;
    later.unknown[LATER - 1] = 1;
    assert_status(tgl_warm(&later.known), TGL_BAD_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(problems_are_multiplied), cmocka_unit_test(plans_run_with_operands),
        cmocka_unit_test(batches_are_multiplied),  cmocka_unit_test(devices_are_asked),
        cmocka_unit_test(chips_are_explained),     cmocka_unit_test(smaller_structs_are_refused),
        cmocka_unit_test(later_problems),          cmocka_unit_test(later_device_options),
        cmocka_unit_test(later_plan_options),      cmocka_unit_test(later_operands),
        cmocka_unit_test(later_warm_options),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
