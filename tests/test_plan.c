/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of the caller (src/api/plan_handle.c) and cached plans of the library
 * (src/api/plan_cache.c).
 */
#include "support.h"

#include "api/handles.h"
#include "api/plan_cache.h"

#include <stdio.h>

/* ---- Kept by the caller ---------------------------------------------------------------------- */

static void a_plan_runs_many_times(void **state)
{
    tgl_device *dev = *state;
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 2);
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
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    tgl_plan *plan = (tgl_plan *)1;
    assert_status(tgl_plan_create(NULL, &problem, NULL, &plan), TGL_BAD_ARGUMENT);
    assert_null(plan);
    assert_status(tgl_plan_create(dev, &problem, NULL, NULL), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_create(dev, NULL, NULL, &plan), TGL_BAD_ARGUMENT);
    const tgl_plan_options options = {.size = 3};
    forget_error();
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_BAD_ARGUMENT);
    assert_new_sentence();
    char text[100];
    tgl_last_error(text, sizeof text);
    assert_non_null(strstr(text, "options.size is 3"));
    assert_status(tgl_plan_run(NULL, 1, NULL, NULL, 0, NULL, NULL), TGL_BAD_ARGUMENT);
    assert_string_equal(tgl_plan_kernel(NULL), "");
    assert_int_equal(tgl_plan_explain(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
}

/* A limit of -1 means no workspace. Smaller values are errors. */
static void bad_workspace_limits_are_refused(void **state)
{
    static const int64_t limits[] = {-2, INT64_MIN, -1, 0, 1, INT64_MAX};
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        const tgl_plan_options options = {.size = sizeof options, .workspace_limit = limits[i]};
        tgl_plan *plan = (tgl_plan *)1;
        forget_error();
        const tgl_status status = tgl_plan_create(*state, &problem, &options, &plan);
        assert_status(status, i < 2 ? TGL_BAD_ARGUMENT : TGL_OK);
        if (i < 2) {
            assert_null(plan);
            assert_new_sentence();
        }
        tgl_plan_destroy(plan);
    }
}

/* Options of a kernel string; test_request.c has more tests of them. */
static void unknown_options_are_refused(void **state)
{
    static const char *const options_of_none[] = {"splits=2", "strips=0", "", "nonsense"};
    const tgl_problem problem = problem_of(TGL_F32, 5, 5, 5);
    for (size_t i = 0; i < COUNT_OF(options_of_none); i++) {
        char kernel[100];
        snprintf(kernel, sizeof kernel, "%s:%s", tgl_kernel_name(*state, 0), options_of_none[i]);
        const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
        tgl_plan *plan = (tgl_plan *)1;
        forget_error();
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_BAD_ARGUMENT);
        assert_null(plan);
        assert_new_sentence();
    }
}

/* Strips where they are not supported, and wrong values of "strips". */
static void unknown_strips_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        tgl_status status;
    } asked[] = {
        {"simt_32x32x16:strips=0", TGL_OK},
        {"simt_32x32x16:strips=1", TGL_UNSUPPORTED},
        {"simt_32x32x16:strips=2", TGL_BAD_ARGUMENT},
        {"simt_32x32x16:strips=-1", TGL_BAD_ARGUMENT},
    };
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        const tgl_plan_options options = {.size = sizeof options, .kernel = asked[i].kernel};
        char text[256];
        assert_status(tgl_chip_explain("h200", &problem, &options, text, sizeof text, NULL),
                      asked[i].status);
    }
}

static void unknown_kernels_are_refused(void **state)
{
    tgl_device *dev = *state;
    for (int m = 0; m <= 1; m++) {
        const tgl_problem problem = problem_of(TGL_F32, m, 1, 1);
        const tgl_plan_options options = {.size = sizeof options, .kernel = "quickest"};
        tgl_plan *plan = (tgl_plan *)1;
        assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_UNKNOWN_KERNEL);
        assert_null(plan);
        assert_sentence("the device cpu has no kernel \"quickest\"");
    }
}

static void a_kernel_that_is_named_is_used(void **state)
{
    tgl_device *dev = *state;
    const char *kernel;
    for (int i = 1; kernel_choice(dev, i, &kernel); i++) {
        const tgl_problem problem = problem_of(i % 2 ? TGL_F32 : TGL_F64, 30, 30, 30);
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
    static const struct {
        tgl_type a, b, c, d;
        tgl_status status;
    } types[] = {
        {TGL_F8_E4M3, TGL_I8, TGL_F32, (tgl_type)0, TGL_BAD_TYPE},
        {TGL_F8_E5M2, TGL_F8_E5M2, TGL_F8_E5M2, (tgl_type)0, TGL_BAD_TYPE},
        {TGL_F32, TGL_F32, TGL_F64, (tgl_type)0, TGL_BAD_TYPE},
        {TGL_F64, TGL_F32, TGL_F32, (tgl_type)0, TGL_BAD_TYPE},
        {TGL_F32, TGL_F64, TGL_F32, (tgl_type)0, TGL_BAD_TYPE},
        {TGL_F32, TGL_F32, TGL_F32, TGL_F64, TGL_BAD_TYPE},
        {TGL_F64, TGL_F64, TGL_F64, TGL_F32, TGL_BAD_TYPE},
        {TGL_F16, TGL_BF16, TGL_F32, (tgl_type)0, TGL_BAD_TYPE},
        {TGL_F16, TGL_F16, TGL_BF16, (tgl_type)0, TGL_BAD_TYPE},
        {TGL_I8, TGL_I8, TGL_F64, (tgl_type)0, TGL_BAD_TYPE},
        {TGL_I32, TGL_I32, TGL_I32, (tgl_type)0, TGL_BAD_TYPE},
    };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        tgl_problem problem = problem_of(TGL_F32, 2, 2, 2);
        problem.type_a = types[i].a;
        problem.type_b = types[i].b;
        problem.type_c = types[i].c;
        problem.type_d = types[i].d;
        tgl_plan *plan;
        forget_error();
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), types[i].status);
        assert_new_sentence();
        double x[4] = {0};
        forget_error();
        assert_status(tgl_gemm(dev, &problem, 1, x, x, 0, x, NULL), types[i].status);
        assert_new_sentence();
    }
}

/* ACCURATE, TF32 and FAST are permissions. A device may compute in IEEE arithmetic for each. */
static void every_compute_mode_is_served(void **state)
{
    static const tgl_type types[] = {TGL_F32, TGL_F64};
    for (int i = 0; i < 2 * (TGL_COMPUTE_FAST + 1); i++) {
        tgl_problem problem = problem_of(types[i % 2], 1, 1, 1);
        problem.compute = (tgl_compute)(i / 2);
        const double two = 2;
        const float two_f32 = 2;
        double c = 0;
        const void *x = i % 2 == 0 ? (const void *)&two_f32 : (const void *)&two;
        assert_status(tgl_gemm(*state, &problem, 1, x, x, 0, &c, NULL), TGL_OK);
        float narrow;
        memcpy(&narrow, &c, sizeof narrow);
        assert_true(i % 2 == 0 ? narrow == 4 : c == 4);
    }
}

/* Device scalars and a separate D need a plan of the caller. */
static void one_shot_calls_say_what_needs_a_plan(void **state)
{
    for (int i = 0; i < 2; i++) {
        tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
        if (i == 0)
            problem.scalars = TGL_SCALARS_DEVICE;
        else
            problem.type_d = TGL_F32;
        float x = 1;
        forget_error();
        assert_status(tgl_gemm(*state, &problem, 1, &x, &x, 0, &x, NULL), TGL_UNSUPPORTED);
        assert_new_sentence();
        tgl_plan *plan;
        assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
        forget_error();
        assert_status(tgl_plan_run(plan, 1, &x, &x, 0, &x, NULL),
                      i == 0 ? TGL_BAD_SCALAR : TGL_BAD_D);
        assert_new_sentence();
        tgl_plan_destroy(plan);
    }
}

static void a_plan_explains_itself(void **state)
{
    tgl_device *dev = *state;
    for (int m = 0; m <= 64; m += 64) {
        const tgl_problem problem = problem_of(TGL_F32, m, 64, 64);
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

static tgl_shape shape_of(int64_t m)
{
    const tgl_problem problem = problem_of(TGL_F32, m, 1, 1);
    tgl_shape shape;
    assert_status(tgl_shape_make(&problem, true, &shape), TGL_OK);
    return shape;
}

/* A plan for m x 1 x 1, with one user, the caller. */
static tgl_plan *plan_of(tgl_device *dev, int64_t m)
{
    const tgl_problem problem = problem_of(TGL_F32, m, 1, 1);
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
    tgl_shape shape = shape_of(5);
    assert_null(tgl_plan_cache_find(cache, &shape));
    tgl_plan_cache_keep(cache, plan);
    assert_int_equal(users(plan), 2);
    assert_ptr_equal(tgl_plan_cache_find(cache, &shape), plan);
    assert_int_equal(users(plan), 3);
    tgl_plan_release(plan);

    /* Shapes that differ in one of these members are different. */
    tgl_shape other = shape;
    int64_t *const counts[] = {&other.m,
                               &other.n,
                               &other.k,
                               &other.lda,
                               &other.ldb,
                               &other.ldc,
                               &other.ldd,
                               &other.batch,
                               &other.stride_a,
                               &other.stride_b,
                               &other.stride_c,
                               &other.stride_d,
                               &other.alignment,
                               &other.ld_scale_a,
                               &other.ld_scale_b,
                               &other.weights.group,
                               &other.weights.ld,
                               &other.weights.line_step,
                               &other.weights.stride};
    bool *const flags[] = {
        &other.swapped,          &other.trans_a,        &other.trans_b,
        &other.in_place,         &other.device_scalars, &other.pointers,
        &other.unaligned,        &other.weights.is_a,   &other.weights.has_factors,
        &other.weights.has_zeros};
    tgl_type *const types[] = {&other.type_a,      &other.type_b,          &other.type_c,
                               &other.type_d,      &other.type_accumulate, &other.type_scale,
                               &other.weights.type};
    tgl_scaling *const scalings[] = {&other.scaling_a, &other.scaling_b, &other.scaling_d};
    for (size_t i = 0; i < COUNT_OF(counts); i++, other = shape) {
        ++*counts[i];
        assert_null(tgl_plan_cache_find(cache, &other));
    }
    for (size_t i = 0; i < COUNT_OF(flags); i++, other = shape) {
        *flags[i] = !*flags[i];
        assert_null(tgl_plan_cache_find(cache, &other));
    }
    for (size_t i = 0; i < COUNT_OF(types); i++, other = shape) {
        *types[i] = TGL_F64;
        assert_null(tgl_plan_cache_find(cache, &other));
    }
    for (size_t i = 0; i < COUNT_OF(scalings); i++, other = shape) {
        *scalings[i] = TGL_SCALING_BLOCK;
        assert_null(tgl_plan_cache_find(cache, &other));
    }
    other.compute = TGL_COMPUTE_TF32;
    assert_null(tgl_plan_cache_find(cache, &other));

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

/* A working set of the size of a neural network must stay cached. */
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
        const tgl_shape shape = shape_of(m * 64);
        tgl_plan *plan = tgl_plan_cache_find(cache, &shape);
        assert_non_null(plan);
        assert_int_equal(plan->shape.m, m * 64);
        tgl_plan_release(plan);
    }
    tgl_plan_cache_destroy(cache);
}

/* With more shapes than the cache holds, old ones are evicted, and one in constant use stays. */
static void shapes_unused_for_long_give_way(void **state)
{
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    tgl_plan *favourite = plan_of(*state, 1);
    tgl_plan_cache_keep(cache, favourite);
    const tgl_shape shape = shape_of(1);
    for (int64_t m = 2; m <= 5000; m++) {
        tgl_plan *plan = plan_of(*state, m);
        tgl_plan_cache_keep(cache, plan);
        tgl_plan_destroy(plan);
        assert_ptr_equal(tgl_plan_cache_find(cache, &shape), favourite);
        tgl_plan_release(favourite);
    }
    int found = 0;
    for (int64_t m = 2; m <= 5000; m++) {
        const tgl_shape other = shape_of(m);
        tgl_plan *plan = tgl_plan_cache_find(cache, &other);
        found += plan != NULL;
        tgl_plan_release(plan);
    }
    assert_in_range(found, 400, 1000);
    tgl_plan_cache_destroy(cache);
    tgl_plan_destroy(favourite);
}

/* The workspace does not belong to the plan, so a plan with a large one is cached, too. */
static void plans_with_much_workspace_are_kept(void **state)
{
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    for (int64_t m = 1; m <= 5; m++) {
        tgl_plan *plan = plan_of(*state, m);
        plan->workspace = (size_t)m << 30;
        tgl_plan_cache_keep(cache, plan);
        tgl_plan_destroy(plan);
    }
    for (int64_t m = 1; m <= 5; m++) {
        const tgl_shape shape = shape_of(m);
        tgl_plan *plan = tgl_plan_cache_find(cache, &shape);
        assert_non_null(plan);
        tgl_plan_release(plan);
    }
    tgl_plan_cache_destroy(cache);
}

/* An evicted plan exists until its last user releases it. */
static void an_evicted_plan_lives_while_it_is_used(void **state)
{
    tgl_plan_cache *cache;
    assert_status(tgl_plan_cache_create(&cache), TGL_OK);
    const tgl_shape shape = shape_of(1);
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
        cmocka_unit_test(bad_workspace_limits_are_refused),
        cmocka_unit_test(unknown_options_are_refused),
        cmocka_unit_test(unknown_strips_are_refused),
        cmocka_unit_test(unknown_kernels_are_refused),
        cmocka_unit_test(a_kernel_that_is_named_is_used),
        cmocka_unit_test(types_without_kernels_are_refused),
        cmocka_unit_test(every_compute_mode_is_served),
        cmocka_unit_test(one_shot_calls_say_what_needs_a_plan),
        cmocka_unit_test(a_plan_explains_itself),
        cmocka_unit_test(the_cache_finds_what_it_keeps),
        cmocka_unit_test(a_shape_kept_twice_is_there_once),
        cmocka_unit_test(a_hundred_shapes_stay),
        cmocka_unit_test(shapes_unused_for_long_give_way),
        cmocka_unit_test(plans_with_much_workspace_are_kept),
        cmocka_unit_test(an_evicted_plan_lives_while_it_is_used),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
