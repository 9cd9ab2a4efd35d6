/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of complex types: their checks, and which devices have no kernels for them.
 */
#include "support.h"

static const tgl_type types[] = {TGL_C64, TGL_C128};

/* ---- Wrong arguments ------------------------------------------------------------------------- */

static void epilogues_are_linear(void **state)
{
    static const struct {
        tgl_type type;
        tgl_epilogue epilogue;
        const char *sentence;
    } cases[] = {
        {TGL_C64,
         {.activation = TGL_ACTIVATION_RELU},
         "epilogue has an activation; products of c64 take none"},
        {TGL_C128, {.expression = "acc"}, "epilogue has an expression; products of c128 take none"},
        {TGL_C64,
         {.bias = TGL_BIAS_ROW, .type_bias = TGL_F32},
         "epilogue.type_bias is f32, and D is c64"},
        {TGL_C128,
         {.residual = 1, .type_residual = TGL_F64},
         "epilogue.type_residual is f64, and D is c128"},
        {TGL_F32,
         {.bias = TGL_BIAS_ROW, .type_bias = TGL_C64},
         "epilogue.type_bias is c64, and D is f32"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tgl_epilogue epilogue = cases[i].epilogue;
        epilogue.size = sizeof epilogue;
        const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
        const tgl_problem problem = problem_of(cases[i].type, 1, 1, 1);
        tgl_plan *plan;
        forget_error();
        assert_status(tgl_plan_create(*state, &problem, &options, &plan), TGL_BAD_EPILOGUE);
        assert_sentence(cases[i].sentence);
    }
}

/* ---- Devices --------------------------------------------------------------------------------- */

static void chips_have_no_kernels(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        for (int chip = 0; tgl_chip_name(chip) != NULL; chip++) {
            const tgl_problem problem = problem_of(types[i], 100, 100, 100);
            char text[1000];
            forget_error();
            assert_status(
                tgl_chip_explain(tgl_chip_name(chip), &problem, NULL, text, sizeof text, NULL),
                TGL_UNSUPPORTED);
            tgl_last_error(text, sizeof text);
            assert_non_null(strstr(text, tgl_type_size(types[i]) == 8 ? "c64" : "c128"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(epilogues_are_linear, setup_cpu, teardown_device),
        cmocka_unit_test(chips_have_no_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
