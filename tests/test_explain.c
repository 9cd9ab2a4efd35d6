/* SPDX-License-Identifier: Apache-2.0
 *
 * What the planner says of its choices: tgl_chip_explain(), tgl_plan_explain(), and their errors.
 */
#include "plan_shape.h"

static void a_chip_that_is_not_there_is_explained(void **state)
{
    (void)state;
    static const char *const words[] = {"NVIDIA H200", "candidates", "rejected:", "choice",
                                        "occupancy",   "waves",      "ceiling",   "FLOP/byte"};
    const tgl_problem problem = problem_of(TGL_F32, 512, 512, 512);
    char text[16384], little[10];
    size_t length, again;
    assert_status(tgl_chip_explain("h200", &problem, NULL, text, sizeof text, &length), TGL_OK);
    assert_int_equal(length, strlen(text));
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strstr(text, words[i]) == NULL) fail_msg("\"%s\" is not in:\n%s", words[i], text);
    assert_status(tgl_chip_explain("h200", &problem, NULL, little, sizeof little, &again), TGL_OK);
    assert_int_equal(again, length);
    assert_int_equal(strlen(little), sizeof little - 1);
    assert_string_equal(tgl_chip_name(0), "h200");
    assert_null(tgl_chip_name(-1));
}

/* Most candidates have strips of one column, so there are more lines than configurations. */
static void every_candidate_is_listed(void **state)
{
    (void)state;
    const tgl_problem problem = problem_of(TGL_F32, 2, 1025, 4096);
    tgl_choice choice;
    char text[16384], line[64];
    size_t length;
    assert_status(tgl_chip_explain("h200", &problem, NULL, text, sizeof text, &length), TGL_OK);
    assert_true(length < sizeof text);
    for (int i = 0; tgl_configuration_at(i, &choice); i++) {
        const char *name = tgl_choice_name(&choice);
        if (choice.family->is_on_request) continue;
        snprintf(line, sizeof line, "\n  %s ", name);
        if (strstr(text, line) == NULL) fail_msg("%s is not in:\n%s", name, text);
    }
}

/* A kernel of the ladder is explained, although the planner never chooses it. */
static void a_rung_is_explained(void **state)
{
    (void)state;
    const tgl_problem problem = problem_of(TGL_F32, 512, 512, 512);
    const tgl_plan_options rung = {.size = sizeof rung, .kernel = "ladder/naive"};
    char text[16384];
    assert_status(tgl_chip_explain("a100", &problem, &rung, text, sizeof text, NULL), TGL_OK);
    assert_non_null(strstr(text, "ladder/naive"));
}

/* The sentence says what the kernel multiplies and what it was given. */
static void a_kernel_of_another_type_says_what_it_was_given(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        tgl_type type;
        tgl_compute compute;
        const char *sentence;
    } rows[] = {
        {"simt_64x64x16", TGL_F64, TGL_COMPUTE_DEFAULT,
         "simt_64x64x16 cannot serve f64, m=8 n=16 k=512: it multiplies f32 matrices only"},
        {"accurate_128x128", TGL_F16, TGL_COMPUTE_DEFAULT,
         "accurate_128x128 cannot serve f16, m=8 n=16 k=512: it multiplies f32 matrices only"},
        {"accurate_128x128", TGL_F32, TGL_COMPUTE_IEEE,
         "accurate_128x128 cannot serve f32, m=8 n=16 k=512: it multiplies FP32 in compute mode "
         "accurate only"},
        {"wgmma_128x128", TGL_F32, TGL_COMPUTE_IEEE,
         "wgmma_128x128 cannot serve f32, m=8 n=16 k=512: it multiplies FP32 in compute mode tf32 "
         "only"},
        {"wgmma_128x128", TGL_F64, TGL_COMPUTE_DEFAULT,
         "wgmma_128x128 cannot serve f64, m=8 n=16 k=512: it multiplies f16, bf16, e4m3, e5m2, "
         "tf32 and i8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tgl_problem problem = problem_of(rows[i].type, 8, 16, 512);
        problem.compute = rows[i].compute;
        const tgl_plan_options options = {.size = sizeof options, .kernel = rows[i].kernel};
        assert_status(tgl_chip_explain("h200", &problem, &options, NULL, 0, NULL), TGL_UNSUPPORTED);
        assert_sentence(rows[i].sentence);
    }
}

static void what_cannot_be_explained(void **state)
{
    (void)state;
    const tgl_epilogue strange = {.size = sizeof strange, .bias = (tgl_bias)7};
    const tgl_plan_options unknown = {.size = sizeof unknown, .kernel = "none"},
                           with_strange = {.size = sizeof with_strange, .epilogue = &strange};
    tgl_problem bad_lda = problem_of(TGL_F32, 8, 8, 8);
    bad_lda.lda = 1;
    const struct {
        const char *chip;
        tgl_problem problem;
        const tgl_plan_options *options;
        tgl_status status;
    } cases[] = {
        {"no chip", problem_of(TGL_F32, 8, 8, 8), NULL, TGL_NO_DEVICE},
        {NULL, problem_of(TGL_F32, 8, 8, 8), NULL, TGL_NO_DEVICE},
        {"a100", problem_of(TGL_F32, 8, 8, 8), &unknown, TGL_UNKNOWN_KERNEL},
        {"a100", problem_of(TGL_F32, 8, 8, 8), &with_strange, TGL_BAD_EPILOGUE},
        {"a100", bad_lda, NULL, TGL_BAD_LDA},
        {"t4", problem_of(TGL_F64, 100, 100, 8), NULL, TGL_UNSUPPORTED},
        {"a100", problem_of(TGL_F32, 1 << 30, 1 << 29, 8), NULL, TGL_GRID_TOO_LARGE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[256];
        forget_error();
        assert_status(tgl_chip_explain(cases[i].chip, &cases[i].problem, cases[i].options, text,
                                       sizeof text, NULL),
                      cases[i].status);
        assert_new_sentence();
    }
    char text[256];
    tgl_last_error(text, sizeof text);
    assert_non_null(strstr(text, "grid"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chip_that_is_not_there_is_explained),
        cmocka_unit_test(every_candidate_is_listed),
        cmocka_unit_test(a_rung_is_explained),
        cmocka_unit_test(a_kernel_of_another_type_says_what_it_was_given),
        cmocka_unit_test(what_cannot_be_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
