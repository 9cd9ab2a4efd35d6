/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel strings, "simt_128x256x8:splits=4,strips=0" (src/plan/kernel_string.c): errors, the value
 * of each option, limits on workspace, and that the string of a choice gives the same choice again.
 */
#include "plan_shape.h"

static void nothing_is_asked_for_without_a_string(void **state)
{
    (void)state;
    tgl_request request;
    assert_status(tgl_request_make(NULL, 0, &request), TGL_OK);
    assert_false(request.is_named);
    assert_int_equal(request.strips, -1);
    assert_int_equal(request.workspace_max, TGL_WORKSPACE_DEFAULT);
}

static void workspace_limits_are_bytes(void **state)
{
    (void)state;
    static const struct {
        int64_t limit, expected;
    } limits[] = {{0, TGL_WORKSPACE_DEFAULT}, {-1, 0}, {1, 1}, {INT64_MAX, INT64_MAX}};
    tgl_request request;
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        assert_status(tgl_request_make("simt_128x256x8", limits[i].limit, &request), TGL_OK);
        assert_int_equal(request.workspace_max, limits[i].expected);
    }
    static const int64_t bad[] = {-2, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        forget_error();
        assert_status(tgl_request_make(NULL, bad[i], &request), TGL_BAD_ARGUMENT);
        assert_new_sentence();
    }
}

static void bad_strings_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        tgl_status status;
        const char *words; /* in the error message */
    } bad[] = {
        {"", TGL_UNKNOWN_KERNEL, "\"\""},
        {":splits=2", TGL_UNKNOWN_KERNEL, "\"\""},
        {"quickest", TGL_UNKNOWN_KERNEL, "\"quickest\""},
        {"simt", TGL_UNKNOWN_KERNEL, "\"simt\""},
        {"simt_128x256x", TGL_UNKNOWN_KERNEL, "\"simt_128x256x\""},
        {"simt_128x256x88", TGL_UNKNOWN_KERNEL, "\"simt_128x256x88\""},
        {"SIMT_128x256x8", TGL_UNKNOWN_KERNEL, "\"SIMT_128x256x8\""},
        {" simt_128x256x8", TGL_UNKNOWN_KERNEL, "\" simt_128x256x8\""},
        {"simt_128x256x8 ", TGL_UNKNOWN_KERNEL, "\"simt_128x256x8 \""},
        {"simt_128x256x8,splits=2", TGL_UNKNOWN_KERNEL, "simt_128x256x8,splits=2"},
        {"gemm/simt_128x256x8", TGL_UNKNOWN_KERNEL, "gemm/simt_128x256x8"},
        {"measure/copy", TGL_UNKNOWN_KERNEL, "measure/copy"},
        {"simt_128x256x8:", TGL_BAD_ARGUMENT, "NAME=VALUE"},
        {"simt_128x256x8:splits", TGL_BAD_ARGUMENT, "splits"},
        {"simt_128x256x8:splits=", TGL_BAD_ARGUMENT, "splits="},
        {"simt_128x256x8:splits=x", TGL_BAD_ARGUMENT, "splits=x"},
        {"simt_128x256x8:splits=-1", TGL_BAD_ARGUMENT, "splits=-1"},
        {"simt_128x256x8:splits=+1", TGL_BAD_ARGUMENT, "splits=+1"},
        {"simt_128x256x8:splits= 1", TGL_BAD_ARGUMENT, "splits= 1"},
        {"simt_128x256x8:splits=1 ", TGL_BAD_ARGUMENT, "splits=1 "},
        {"simt_128x256x8:splits=1.5", TGL_BAD_ARGUMENT, "splits=1.5"},
        {"simt_128x256x8:splits=0x2", TGL_BAD_ARGUMENT, "splits=0x2"},
        {"simt_128x256x8:splits=99999999999999999999", TGL_BAD_ARGUMENT, "splits=9999"},
        {"simt_128x256x8:=3", TGL_BAD_ARGUMENT, "\"\""},
        {"simt_128x256x8:split=3", TGL_BAD_ARGUMENT, "\"split\""},
        {"simt_128x256x8:splitss=3", TGL_BAD_ARGUMENT, "\"splitss\""},
        {"simt_128x256x8:blocks=3", TGL_BAD_ARGUMENT, "\"blocks\""},
        {"simt_128x256x8:splits=2,", TGL_BAD_ARGUMENT, "NAME=VALUE"},
        {"simt_128x256x8:,splits=2", TGL_BAD_ARGUMENT, "NAME=VALUE"},
        {"simt_128x256x8:splits=2,,whole=1", TGL_BAD_ARGUMENT, "NAME=VALUE"},
        {"simt_128x256x8:splits=2,splits=2", TGL_BAD_ARGUMENT, "twice"},
        {"simt_128x256x8:strips=0,splits=2,strips=1", TGL_BAD_ARGUMENT, "twice"},
        {"simt_128x256x8:strips=2", TGL_BAD_ARGUMENT, "strips=2"},
        {"simt_128x256x8:strips=-1", TGL_BAD_ARGUMENT, "strips=-1"},
        {"skinny_4:whole=1", TGL_BAD_ARGUMENT, "\"whole\""},
        {"skinny_4:strips=0", TGL_BAD_ARGUMENT, "\"strips\""},
        {"small_batch_16x16:splits=1", TGL_BAD_ARGUMENT, "\"splits\""},
        {"gemv:splits=1", TGL_BAD_ARGUMENT, "\"splits\""},
        {"ladder/naive:splits=1", TGL_BAD_ARGUMENT, "\"splits\""},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        tgl_request request;
        char text[400];
        forget_error();
        const tgl_status status = tgl_request_make(bad[i].kernel, 0, &request);
        tgl_last_error(text, sizeof text);
        if (status != bad[i].status || strstr(text, bad[i].words) == NULL)
            fail_msg("\"%s\": %s: %s", bad[i].kernel, tgl_status_name(status), text);
        /* A public function returns the same errors. */
        const tgl_problem problem = problem_of(TGL_F32, 100, 100, 100);
        const tgl_plan_options options = {.size = sizeof options, .kernel = bad[i].kernel};
        assert_status(tgl_chip_explain("h200", &problem, &options, text, sizeof text, NULL),
                      bad[i].status);
    }
}

static int64_t option_of(const tgl_choice *choice, const char *name)
{
    for (int i = 0; choice->family->options[i] != NULL; i++)
        if (strcmp(choice->family->options[i], name) == 0) return choice->option[i];
    fail_msg("no option %s", name);
    return 0;
}

static void options_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {"splits",     "whole",     "depth",      "copy_from",
                                        "copy_every", "load_from", "load_every", "column_order"};
    tgl_request request =
        request_of("simt_128x256x8:strips=1,depth=64,splits=4,whole=0,copy_from=7");
    const int64_t values[] = {4, 0, 64, 7, TGL_UNSET, TGL_UNSET, TGL_UNSET, TGL_UNSET};
    assert_true(request.is_named);
    assert_int_equal(request.strips, 1);
    assert_string_equal(tgl_choice_name(&request.choice), "simt_128x256x8");
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(option_of(&request.choice, names[i]), values[i]);
    request = request_of("skinny_16:blocks=132,splits=24");
    assert_int_equal(option_of(&request.choice, "splits"), 24);
    assert_int_equal(option_of(&request.choice, "blocks"), 132);
    request = request_of("small_batch_16x16:blocks=7");
    assert_int_equal(option_of(&request.choice, "blocks"), 7);
    assert_int_equal(request.strips, -1);
}

/* Every configuration is found by its full name only. */
static void configurations_are_found_by_name(void **state)
{
    (void)state;
    tgl_choice choice, found;
    int count = 0;
    for (; tgl_configuration_at(count, &choice); count++) {
        const char *name = tgl_choice_name(&choice);
        assert_true(tgl_configuration_find(name, strlen(name), &found));
        assert_ptr_equal(found.family, choice.family);
        assert_int_equal(found.configuration, choice.configuration);
        for (int i = 0; i < TGL_OPTIONS_MAX; i++)
            assert_int_equal(found.option[i], TGL_UNSET);
        if (tgl_configuration_find(name, strlen(name) - 1, &found))
            assert_string_not_equal(tgl_choice_name(&found), name);
    }
    assert_in_range(count, 40, 200);
    assert_false(tgl_configuration_at(-1, &choice));
    assert_false(tgl_configuration_find("", 0, &choice));
    static const char *const some[] = {"simt_128x256x8", "skinny_4_r8",       "gemv",
                                       "gemv_2",         "small_batch_16x16", "ladder/naive"};
    for (size_t i = 0; i < COUNT_OF(some); i++)
        assert_true(tgl_configuration_find(some[i], strlen(some[i]), &choice));
}

static void assert_same_choice(const tgl_choice *x, const tgl_choice *y, const char *text)
{
    if (x->family != y->family || x->configuration != y->configuration ||
        memcmp(x->option, y->option, sizeof x->option) != 0)
        fail_msg("\"%s\" makes another choice", text);
}

static void assert_same_launches(const tgl_chip *chip, const tgl_shape *s, const tgl_candidate *x,
                                 const tgl_candidate *y)
{
    tgl_launch_list a = list_of(chip, s, x), b = list_of(chip, s, y);
    assert_int_equal(a.step_count, b.step_count);
    assert_int_equal(a.scratch_bytes, b.scratch_bytes);
    assert_int_equal(a.counter_bytes, b.counter_bytes);
    for (int i = 0; i < a.step_count; i++) {
        const tgl_launch *p = launch_of(&a, i), *q = launch_of(&b, i);
        assert_true(tgl_kernel_is_same(p->kernel, q->kernel));
        assert_memory_equal(p->grid, q->grid, sizeof p->grid);
        assert_int_equal(p->argument_bytes, q->argument_bytes);
        assert_memory_equal(p->arguments, q->arguments, (size_t)p->argument_bytes);
    }
    tgl_list_free(&a);
    tgl_list_free(&b);
}

static void check_round_trip(const tgl_chip *chip, const tgl_shape *s)
{
    char text[TGL_KERNEL_STRING_SIZE], again[TGL_KERNEL_STRING_SIZE];
    const tgl_candidate first = choose_on(chip, s, NULL);
    assert_string_equal(tgl_candidate_string(&first, text, sizeof text), text);
    assert_in_range(strlen(text), 4, sizeof text - 2); /* not truncated */
    const tgl_candidate second = choose_on(chip, s, text);
    assert_same_choice(&second.choice, &first.choice, text);
    assert_string_equal(tgl_candidate_string(&second, again, sizeof again), text);
    assert_int_equal(second.strip_count, first.strip_count);
    assert_int_equal(second.splits, first.splits);
    for (int i = 0; i < first.strip_count; i++) {
        assert_same_choice(&second.strips[i].choice, &first.strips[i].choice, text);
        assert_memory_equal(&second.strips[i].part, &first.strips[i].part, sizeof(tgl_rectangle));
    }
    assert_same_launches(chip, s, &first, &second);
}

static void strings_make_the_same_choice_again(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1,   2,   3,    7,    16,   17,   33,
                                    100, 257, 1000, 1025, 4096, 4100, 20000};
    const tgl_chip *chip;
    uint64_t seed = 13;
    for (int i = 0; (chip = tgl_chip_at(i)) != NULL; i++)
        for (int j = 0; j < 150; j++) {
            const int64_t m = sizes[random_int(&seed, 0, COUNT_OF(sizes) - 1)];
            const int64_t n = sizes[random_int(&seed, 0, COUNT_OF(sizes) - 1)];
            const int64_t k = sizes[random_int(&seed, 0, COUNT_OF(sizes) - 1)];
            const int64_t layout = random_int(&seed, 0, 3);
            tgl_shape s = transposed_shape_of(m, n, k, layout & 1, layout & 2);
            if (random_int(&seed, 0, 3) == 0 && m * n < 10000) make_batch(&s, 300);
            if (random_int(&seed, 0, 3) == 0) s.lda++, s.ldb++, s.ldc++, s.ldd++;
            check_round_trip(chip, &s);
        }
}

/* A kernel string with all options of the family that has the most fits in its buffer. */
static void strings_with_every_option_fit(void **state)
{
    (void)state;
    const tgl_shape s = shape_of(1000, 1000, 20000); /* 32 tiles */
    const tgl_candidate c = choose_on(
        chip_of("h200"), &s,
        "simt_128x256x8:splits=256,whole=31,depth=16,copy_from=1,copy_every=2,load_from=3,"
        "load_every=4,column_order=0,strips=0");
    char text[TGL_KERNEL_STRING_SIZE];
    tgl_candidate_string(&c, text, sizeof text);
    assert_in_range(strlen(text), 50, sizeof text - 2);
    const tgl_candidate again = choose_on(chip_of("h200"), &s, text);
    assert_same_choice(&again.choice, &c.choice, text);
}

/* Without workspace the planner chooses another kernel than the best one, which needs some. */
static void a_limit_on_workspace_is_kept(void **state)
{
    (void)state;
    const tgl_shape s = shape_of(64, 64, 65536);
    tgl_request request = request_of(NULL);
    tgl_candidate c;
    const tgl_chip chip = without_clusters("h200");
    assert_status(tgl_planner_choose(&chip, &s, &request, &c), TGL_OK);
    const int64_t usual = c.workspace_bytes;
    assert_true(usual > 0);
    for (int i = 0; i < 2; i++) {
        assert_status(tgl_request_make(NULL, i == 0 ? -1 : usual / 2, &request), TGL_OK);
        assert_status(tgl_planner_choose(&chip, &s, &request, &c), TGL_OK);
        tgl_launch_list list = list_of(&chip, &s, &c);
        if ((int64_t)tgl_list_workspace(&list) > request.workspace_max)
            fail_msg("%zu bytes of workspace; %lld are allowed", tgl_list_workspace(&list),
                     (long long)request.workspace_max);
        tgl_list_free(&list);
    }
    /* The limit also applies to a kernel that is named. A kernel that needs more is rejected. */
    assert_status(tgl_request_make("simt_64x64x16:splits=32", -1, &request), TGL_OK);
    forget_error();
    assert_status(tgl_planner_choose(&chip, &s, &request, &c), TGL_UNSUPPORTED);
    assert_new_sentence();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_asked_for_without_a_string),
        cmocka_unit_test(workspace_limits_are_bytes),
        cmocka_unit_test(bad_strings_are_refused),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(configurations_are_found_by_name),
        cmocka_unit_test(strings_make_the_same_choice_again),
        cmocka_unit_test(strings_with_every_option_fit),
        cmocka_unit_test(a_limit_on_workspace_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
