/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans that are kept by the caller (src/api.c) and by the library (src/plan_cache.c).
 */
#include "support.h"

#include "device.h"
#include "plan_cache.h"

#include <stdio.h>

/* ---- Kept by the caller ---------------------------------------------------------------------- */

static void a_plan_runs_many_times(void **state)
{
    tgl_device *dev = *state;
    const tgl_problem problem = tgl_problem_make(TGL_F32, 1, 1, 2);
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    for (int i = 0; i < 10; i++) {
        const float A[] = {(float)i, 1}, B[] = {2, 3};
        float C = 100;
        assert_status(tgl_plan_run(plan, 1, A, B, 1, &C, NULL), TGL_OK);
        assert_true(C == (float)(2 * i + 103));
    }
    assert_true(strlen(tgl_plan_kernel(plan)) > 0);
    tgl_plan_destroy(plan);
    tgl_plan_destroy(NULL);
}

static void bad_arguments_are_refused(void **state)
{
    tgl_device *dev = *state;
    const tgl_problem problem = tgl_problem_make(TGL_F32, 1, 1, 1);
    tgl_plan *plan = (tgl_plan *)1;
    assert_status(tgl_plan_create(NULL, &problem, NULL, &plan), TGL_BAD_ARGUMENT);
    assert_null(plan);
    assert_status(tgl_plan_create(dev, &problem, NULL, NULL), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_create(dev, NULL, NULL, &plan), TGL_BAD_ARGUMENT);
    const tgl_plan_options options = {.size = 3};
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_BAD_ARGUMENT);
    char text[100], expected[100];
    tgl_last_error(dev, text, sizeof text);
    snprintf(expected, sizeof expected, "options.size is 3; this version knows %zu",
             sizeof options);
    assert_string_equal(text, expected);
    assert_status(tgl_plan_run(NULL, 1, NULL, NULL, 0, NULL, NULL), TGL_BAD_ARGUMENT);
    assert_string_equal(tgl_plan_kernel(NULL), "");
    assert_int_equal(tgl_plan_explain(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
}

static void negative_options_are_refused(void **state)
{
    const struct {
        tgl_plan_options options;
        const char *message;
    } cases[] = {
        {{.size = sizeof(tgl_plan_options), .splits = -1},
         "options.splits is -1; it must not be negative"},
        {{.size = sizeof(tgl_plan_options), .whole_tiles = -2},
         "options.whole_tiles is -2; it must not be negative"},
        {{.size = sizeof(tgl_plan_options), .split_depth = -3},
         "options.split_depth is -3; it must not be negative"},
    };
    const tgl_problem problem = tgl_problem_make(TGL_F32, 1, 1, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tgl_plan *plan = (tgl_plan *)1;
        char text[100];
        assert_status(tgl_plan_create(*state, &problem, &cases[i].options, &plan),
                      TGL_BAD_ARGUMENT);
        assert_null(plan);
        tgl_last_error(*state, text, sizeof text);
        assert_string_equal(text, cases[i].message);
    }
}

static void unknown_strips_are_refused(void **state)
{
    const tgl_problem problem = tgl_problem_make(TGL_F32, 1, 1, 1);
    for (int i = -1; i <= TGL_STRIPS_ALWAYS + 1; i++) {
        const tgl_plan_options options = {.size = sizeof options, .strips = (tgl_strips)i};
        const bool is_known = i >= 0 && i <= TGL_STRIPS_ALWAYS;
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &problem, &options, &plan),
                      is_known ? TGL_OK : TGL_BAD_ARGUMENT);
        tgl_plan_destroy(plan);
        char text[256];
        assert_status(tgl_chip_explain("h200", &problem, &options, text, sizeof text, NULL),
                      !is_known                ? TGL_BAD_ARGUMENT
                      : i == TGL_STRIPS_ALWAYS ? TGL_UNSUPPORTED
                                               : TGL_OK);
    }
}

static void unknown_kernels_are_refused(void **state)
{
    tgl_device *dev = *state;
    for (int m = 0; m <= 1; m++) {
        const tgl_problem problem = tgl_problem_make(TGL_F32, m, 1, 1);
        const tgl_plan_options options = {.size = sizeof options, .kernel = "quickest"};
        tgl_plan *plan = (tgl_plan *)1;
        assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_UNKNOWN_KERNEL);
        assert_null(plan);
        char text[100];
        tgl_last_error(dev, text, sizeof text);
        assert_string_equal(text, "the device cpu has no kernel \"quickest\"");
    }
}

static void a_kernel_that_is_named_is_used(void **state)
{
    tgl_device *dev = *state;
    const char *kernel;
    for (int i = 1; kernel_choice(dev, i, &kernel); i++) {
        const tgl_problem problem = tgl_problem_make(i % 2 ? TGL_F32 : TGL_F64, 30, 30, 30);
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
        tgl_plan *plan;
        tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
        assert_status(status, TGL_OK);
        assert_string_equal(tgl_plan_kernel(plan), kernel);
        tgl_plan_destroy(plan);
    }
}

static void types_without_kernels_are_refused(void **state)
{
    tgl_device *dev = *state;
    static const tgl_type types[][3] = {
        {TGL_F16, TGL_F16, TGL_F16},        {TGL_BF16, TGL_BF16, TGL_F32},
        {TGL_I8, TGL_I8, TGL_I32},          {TGL_F32, TGL_F32, TGL_F64},
        {TGL_F64, TGL_F32, TGL_F32},        {TGL_F32, TGL_F64, TGL_F32},
        {TGL_F8_E4M3, TGL_F8_E5M2, TGL_F32}};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        tgl_problem problem = tgl_problem_make(TGL_F32, 2, 2, 2);
        problem.type_a = types[i][0];
        problem.type_b = types[i][1];
        problem.type_c = types[i][2];
        tgl_plan *plan;
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_UNSUPPORTED);
        double x[4] = {0};
        assert_status(tgl_gemm(dev, &problem, 1, x, x, 0, x, NULL), TGL_UNSUPPORTED);
        char text[200];
        assert_true(tgl_last_error(dev, text, sizeof text) > 0);
    }
}

static void a_plan_explains_itself(void **state)
{
    tgl_device *dev = *state;
    for (int m = 0; m <= 64; m += 64) {
        const tgl_problem problem = tgl_problem_make(TGL_F32, m, 64, 64);
        tgl_plan *plan;
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
        char text[4096], cut[6];
        const size_t length = tgl_plan_explain(plan, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_true(length > 5 && text[length - 1] == '\n');
        assert_int_equal(tgl_plan_explain(plan, cut, sizeof cut), length);
        assert_memory_equal(cut, text, 5);
        assert_int_equal(cut[5], '\0');
        assert_int_equal(tgl_plan_explain(plan, NULL, 9), length);
        tgl_plan_destroy(plan);
    }
}

/* ---- Kept by the library --------------------------------------------------------------------- */

static tgl_gemm_shape shape_of(int64_t m)
{
    const tgl_problem problem = tgl_problem_make(TGL_F32, m, 1, 1);
    tgl_gemm_shape shape;
    assert_status(tgl_shape_make(&problem, true, &shape, NULL, 0), TGL_OK);
    return shape;
}

/* A plan that does nothing and has one user, the caller. */
static tgl_plan *plan_of(tgl_device *dev, int64_t m)
{
    const tgl_problem problem = tgl_problem_make(TGL_F32, m, 1, 1);
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    return plan;
}

static int users(tgl_plan *plan)
{
    return atomic_load(&plan->users);
}

static void the_cache_finds_what_it_keeps(void **state)
{
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    tgl_plan *plan = plan_of(*state, 5);
    tgl_gemm_shape shape = shape_of(5);
    assert_null(tgl_plan_cache_find(cache, &shape));
    tgl_plan_cache_keep(cache, plan);
    assert_int_equal(users(plan), 2);
    assert_ptr_equal(tgl_plan_cache_find(cache, &shape), plan);
    assert_int_equal(users(plan), 3);
    tgl_plan_release(plan);

    /* A difference in any one member is another shape. */
    for (int member = 0; member < 14; member++) {
        tgl_gemm_shape other = shape;
        int64_t *const counts[] = {&other.m,        &other.n,       &other.k,     &other.lda,
                                   &other.ldb,      &other.ldc,     &other.batch, &other.stride_a,
                                   &other.stride_b, &other.stride_c};
        bool *const flags[] = {&other.swapped, &other.trans_a, &other.trans_b};
        if (member < 10)
            ++*counts[member];
        else if (member < 13)
            *flags[member - 10] ^= true;
        else
            other.compute = TGL_COMPUTE_TF32;
        assert_null(tgl_plan_cache_find(cache, &other));
    }

    tgl_plan_cache_destroy(cache);
    assert_int_equal(users(plan), 1);
    tgl_plan_destroy(plan);
    tgl_plan_cache_destroy(NULL);
}

static void a_shape_kept_twice_is_there_once(void **state)
{
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    tgl_plan *first = plan_of(*state, 5), *second = plan_of(*state, 5);
    tgl_plan_cache_keep(cache, first);
    tgl_plan_cache_keep(cache, second);
    assert_int_equal(users(first), 1);
    assert_int_equal(users(second), 2);
    tgl_plan_cache_destroy(cache);
    tgl_plan_destroy(first);
    tgl_plan_destroy(second);
}

/* A working set such as that of a neural network must not be planned anew over and over. */
static void a_hundred_shapes_stay(void **state)
{
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    for (int64_t m = 1; m <= 100; m++) {
        tgl_plan *plan = plan_of(*state, m * 64);
        tgl_plan_cache_keep(cache, plan);
        tgl_plan_destroy(plan);
    }
    for (int64_t m = 1; m <= 100; m++) {
        const tgl_gemm_shape shape = shape_of(m * 64);
        tgl_plan *plan = tgl_plan_cache_find(cache, &shape);
        assert_non_null(plan);
        assert_int_equal(plan->shape.m, m * 64);
        tgl_plan_release(plan);
    }
    tgl_plan_cache_destroy(cache);
}

/* More shapes than there is room for: old ones go, the one in constant use stays. */
static void shapes_unused_for_long_give_way(void **state)
{
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    tgl_plan *favourite = plan_of(*state, 1);
    tgl_plan_cache_keep(cache, favourite);
    const tgl_gemm_shape shape = shape_of(1);
    for (int64_t m = 2; m <= 5000; m++) {
        tgl_plan *plan = plan_of(*state, m);
        tgl_plan_cache_keep(cache, plan);
        tgl_plan_destroy(plan);
        assert_ptr_equal(tgl_plan_cache_find(cache, &shape), favourite);
        tgl_plan_release(favourite);
    }
    int found = 0;
    for (int64_t m = 2; m <= 5000; m++) {
        const tgl_gemm_shape other = shape_of(m);
        tgl_plan *plan = tgl_plan_cache_find(cache, &other);
        found += plan != NULL;
        tgl_plan_release(plan);
    }
    assert_in_range(found, 400, 1000);
    tgl_plan_cache_destroy(cache);
    tgl_plan_destroy(favourite);
}

/* Keeps a plan that has so much memory, and forgets it. */
static void keep(tgl_plan_cache *cache, tgl_device *dev, int64_t m, size_t memory)
{
    tgl_plan *plan = plan_of(dev, m);
    plan->memory = memory;
    tgl_plan_cache_keep(cache, plan);
    tgl_plan_destroy(plan);
}

static bool is_kept(tgl_plan_cache *cache, int64_t m)
{
    const tgl_gemm_shape shape = shape_of(m);
    tgl_plan *plan = tgl_plan_cache_find(cache, &shape);
    tgl_plan_release(plan);
    return plan != NULL;
}

/* Plans together keep up to 256 MiB of a device; those that keep none do not give way. */
static void plans_with_memory_give_way(void **state)
{
    const size_t most = (size_t)256 << 20;
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    keep(cache, *state, 1, 0);
    keep(cache, *state, 2, most / 2);
    keep(cache, *state, 3, most / 2);
    assert_true(is_kept(cache, 3) && is_kept(cache, 2)); /* used last */
    keep(cache, *state, 4, 1);
    assert_true(is_kept(cache, 1) && is_kept(cache, 2) && !is_kept(cache, 3) && is_kept(cache, 4));
    keep(cache, *state, 5, most + 1); /* more than all may: it is not worth the others */
    assert_true(is_kept(cache, 2) && is_kept(cache, 4) && !is_kept(cache, 5));
    keep(cache, *state, 6, most);
    assert_true(is_kept(cache, 1) && !is_kept(cache, 2) && !is_kept(cache, 4) && is_kept(cache, 6));
    keep(cache, *state, 6, 1); /* in its own place */
    keep(cache, *state, 7, most - 1);
    assert_true(is_kept(cache, 6) && is_kept(cache, 7));

    tgl_plan_cache_clear(cache);
    for (int64_t m = 1; m <= 7; m++)
        assert_false(is_kept(cache, m));
    keep(cache, *state, 8, most);
    assert_true(is_kept(cache, 8));
    tgl_plan_cache_destroy(cache);
}

/* An evicted plan lives on while somebody runs it. */
static void an_evicted_plan_lives_while_it_is_used(void **state)
{
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    const tgl_gemm_shape shape = shape_of(1);
    tgl_plan *plan = plan_of(*state, 1);
    tgl_plan_cache_keep(cache, plan);
    for (int64_t m = 2; users(plan) > 1 && m <= 100000; m++) {
        tgl_plan *other = plan_of(*state, m);
        tgl_plan_cache_keep(cache, other);
        tgl_plan_destroy(other);
    }
    assert_int_equal(users(plan), 1);
    assert_null(tgl_plan_cache_find(cache, &shape));
    const float one = 1;
    float C = 0;
    assert_status(tgl_plan_run(plan, 1, &one, &one, 0, &C, NULL), TGL_OK);
    assert_true(C == 1);
    tgl_plan_destroy(plan);
    tgl_plan_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_runs_many_times),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(negative_options_are_refused),
        cmocka_unit_test(unknown_strips_are_refused),
        cmocka_unit_test(unknown_kernels_are_refused),
        cmocka_unit_test(a_kernel_that_is_named_is_used),
        cmocka_unit_test(types_without_kernels_are_refused),
        cmocka_unit_test(a_plan_explains_itself),
        cmocka_unit_test(the_cache_finds_what_it_keeps),
        cmocka_unit_test(a_shape_kept_twice_is_there_once),
        cmocka_unit_test(a_hundred_shapes_stay),
        cmocka_unit_test(shapes_unused_for_long_give_way),
        cmocka_unit_test(plans_with_memory_give_way),
        cmocka_unit_test(an_evicted_plan_lives_while_it_is_used),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
