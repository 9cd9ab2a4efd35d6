/* SPDX-License-Identifier: Apache-2.0
 *
 * What MEASURE compiles, and when: waves of candidates, with the fake libraries.
 */
#include "measured_case.h"

#include "base/processors.h"
#include "compile_ahead.h"

#include <time.h>
#include <unistd.h>

/* Each compilation takes a second, and new waves begin only in the first 2.5 * 1.8 s. A wave has
 * one candidate for each processor, and a candidate has at most two kernels. */
static void compiling_is_bounded_as_well(void **state)
{
    (void)state;
    char kernel[200];
    compilation_seconds = 1;
    const int before = compilations();
    choice_of(TGL_EFFORT_MEASURE, 1.8, kernel);
    assert_in_range(compilations() - before, 5, 4 + 2 * tgl_processors());
}

/* With a budget of at least 2 s, new waves begin within 10 budgets, which suffices to compile all
 * candidates. */
static void a_patient_caller_waits_for_all_candidates(void **state)
{
    (void)state;
    char kernel[200];
    compilation_seconds = 0.5;
    const int before = compilations();
    choice_of(TGL_EFFORT_MEASURE, 2, kernel);
    assert_in_range(compilations() - before, 25, 100); /* 2.5 budgets would end after 10 */
}

/* A wave contains only candidates for which GPU time is left: with this budget only the planner's
 * choice. */
static void what_there_is_no_time_for_is_not_compiled(void **state)
{
    (void)state;
    char kernel[200];
    const int before = compilations();
    choice_of(TGL_EFFORT_MEASURE, 0.005, kernel); /* five runs */
    assert_int_equal(compilations() - before, 1);
    assert_int_equal(count_lines(), 1);
}

/* Candidates are measured even if the time was up when their compilation ended: a second call
 * without a compiler finds no compiled candidate that has no line in the wisdom. */
static void what_was_compiled_is_measured(void **state)
{
    (void)state;
    char kernel[200];
    compilation_seconds = 1;
    choice_of(TGL_EFFORT_MEASURE, 1.8, kernel);
    const int measured = count_lines();
    unlink(wisdom_path());
    setenv("FAKE_NVRTC_ERROR", "no compiler", 1);
    choice_of(TGL_EFFORT_MEASURE, 1.8, kernel);
    assert_in_range(measured, 2, 100);
    assert_int_equal(measured, count_lines());
}

/* The planner's choice is compiled at the same time as other candidates. */
static void the_choice_is_not_compiled_alone(void **state)
{
    (void)state;
    char text[20], kernel[200];
    if (tgl_processors() < 2) skip();
    snprintf(text, sizeof text, "%d", compilations() + 2);
    setenv("FAKE_NVRTC_JOINT", text, 1);
    const time_t begin = time(NULL);
    choice_of(TGL_EFFORT_MEASURE, 0.01, kernel);
    assert_true(time(NULL) - begin < 20); /* what is compiled alone waits for 20 s */
    const double used = device_seconds();
    choice_of(TGL_EFFORT_MEASURE, 0.01, kernel); /* the choice was measured, so it was compiled */
    assert_true(device_seconds() == used);
}

/* Candidates whose times are in the wisdom are not compiled again, except for the finalists, which
 * are measured again. */
static void what_is_known_is_not_compiled(void **state)
{
    (void)state;
    char kernel[200];
    setenv("TEGULA_WISDOM", wisdom_path(), 1);
    choice_of(TGL_EFFORT_MEASURE, 1.9, kernel);
    assert_in_range(count_lines(), 20, 200);
    setenv("TEGULA_CACHE", "off", 1);
    const int before = compilations();
    choice_of(TGL_EFFORT_MEASURE, 2, kernel);
    assert_in_range(compilations() - before, 1, 10);
}

/* A kernel that cannot be compiled is tried once, and the others are measured. */
static void candidates_that_do_not_compile_are_left_out(void **state)
{
    (void)state;
    char kernel[200];
    choice_of(TGL_EFFORT_ESTIMATE, 0, kernel);
    const int before = compilations();
    setenv("FAKE_NVRTC_ERROR", "no compiler", 1);
    choice_of(TGL_EFFORT_MEASURE, 0.5, kernel);
    const int tried = compilations() - before;
    assert_in_range(tried, 10, 40); /* each candidate once; twice would be more than 50 */
    assert_int_equal(count_lines(), 1);
    choice_of(TGL_EFFORT_MEASURE, 0.5, kernel); /* it knows the choice */
    assert_int_equal(compilations() - before, tried);
}

/* Candidates that are compiled are measured before any other is compiled. */
static void what_is_compiled_comes_first(void **state)
{
    (void)state;
    char kernel[200];
    tgl_device *dev = open_device("cuda");
    assert_product(dev, NULL, SIZE, SIZE, SIZE);
    assert_product(dev, "simt_32x64x16", SIZE, SIZE, SIZE);
    tgl_device_close(dev);
    const int before = compilations();
    /* Two candidates leave 0.05 ms, less than a run. */
    choice_of(TGL_EFFORT_MEASURE, 0.01005, kernel);
    assert_int_equal(compilations(), before);
    int lines;
    char *text = read_wisdom(&lines);
    assert_int_equal(lines, 2);
    assert_non_null(strstr(text, "simt_32x64x16"));
    free(text);
}

/* Threads measure one after another, so a benchmark's threads would wait for each other. */
static void compiling_ahead_measures_nothing(void **state)
{
    (void)state;
    setenv("TEGULA_EFFORT", "measure:0.1", 1);
    tgl_problem problems[2] = {problem_of_size(), problem_of_size()};
    problems[1].m = problems[1].lda = 2 * SIZE;
    const suite s = {.problems = problems, .count = 2};
    tgl_device *dev = open_device("cuda");
    const contest_settings settings = {.dev = dev, .plan = {.size = sizeof settings.plan}};
    const int before = compilations();
    compile_ahead(&settings, &s);
    assert_in_range(compilations() - before, 1, 8);
    assert_int_equal(count_lines(), 0);
    tgl_device_close(dev);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_measured, teardown_measured)
    const struct CMUnitTest tests[] = {
        TEST(compiling_is_bounded_as_well),
        TEST(a_patient_caller_waits_for_all_candidates),
        TEST(what_there_is_no_time_for_is_not_compiled),
        TEST(what_was_compiled_is_measured),
        TEST(the_choice_is_not_compiled_alone),
        TEST(what_is_known_is_not_compiled),
        TEST(candidates_that_do_not_compile_are_left_out),
        TEST(what_is_compiled_comes_first),
        TEST(compiling_ahead_measures_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
