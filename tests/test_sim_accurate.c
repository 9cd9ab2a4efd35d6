/* SPDX-License-Identifier: Apache-2.0
 *
 * The family accurate: errors of products of all kinds of numbers beside those of FFMA, and which
 * problems the planner may choose it for.
 */
#include "accurate_case.h"

/* ---- Kinds of numbers ------------------------------------------------------------------------ */

static double wide_1(void)
{
    return (uniform() - 0.5) * exp(normal());
}

static double wide_2(void)
{
    return (uniform() - 0.5) * exp(2 * normal());
}

static double wide_4(void)
{
    return (uniform() - 0.5) * exp(4 * normal());
}

static double near_one(void)
{
    return 1 + 0x1p-10 * normal();
}

static const struct {
    const char *name;
    draw_fn *draw;
} kinds[] = {{"U(0,1)", uniform}, {"U(-1,1)", symmetric}, {"N(0,1)", normal},  {"phi 1", wide_1},
             {"phi 2", wide_2},   {"phi 4", wide_4},      {"near 1", near_one}};

static void kinds_of_numbers(void **state)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (int k = 256; k <= 1024; k *= 4) {
            if (!is_mine()) continue;
            product p = square(kinds[i].name, k);
            data d = make_data(&p);
            fill_both(&p, &d, kinds[i].draw);
            /* With phi = 4 FFMA computes all tiles: more elements are below the range than a list
             * takes. */
            check_errors(*state, &p, &d, k >= 1024 && kinds[i].draw != wide_4);
            free_data(&d);
        }
}

/* Rows of op(A), and in half of the cases columns of op(B), of very different magnitudes. */
static void scaled_lines(void **state)
{
    static const int exponents[] = {60, 62, 120, -60, -64, -120};
    for (size_t i = 0; i < COUNT_OF(exponents); i++)
        for (int both = 0; both < 2; both++) {
            if (!is_mine()) continue;
            char name[40];
            snprintf(name, sizeof name, "scaled by 2^%d %d", exponents[i], both);
            product p = square(name, 256);
            data d = make_data(&p);
            fill_both(&p, &d, symmetric);
            for (int row = 0; row < p.m; row++)
                for (int j = 0; j < p.k && row % 3 > 0; j++)
                    *a_at(&p, &d, row, j) *=
                        (float)ldexp(1, row % 3 == 1 ? exponents[i] : -exponents[i]);
            for (int col = 0; col < p.n && both; col++)
                for (int j = 0; j < p.k && col % 3 > 0; j++)
                    *b_at(&p, &d, j, col) *=
                        (float)ldexp(1, col % 3 == 1 ? -exponents[i] : exponents[i]);
            check_errors(*state, &p, &d, false);
            free_data(&d);
        }
}

/* ---- Who may choose it ----------------------------------------------------------------------- */

static void only_where_it_may_be_chosen(void **state)
{
    static const struct {
        tgl_compute compute;
        int k;
        bool may;
    } ways[] = {{TGL_COMPUTE_ACCURATE, 4096, true}, {TGL_COMPUTE_IEEE, 4096, false},
                {TGL_COMPUTE_DEFAULT, 4096, true},  {TGL_COMPUTE_TF32, 4096, false},
                {TGL_COMPUTE_ACCURATE, 255, false}, {TGL_COMPUTE_ACCURATE, 256, true}};
    if (!is_mine()) return;
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        tgl_problem problem;
        tgl_plan *plan;
        const tgl_plan_options options = {.size = sizeof options, .kernel = "accurate_128x128"};
        tgl_problem_init(&problem, sizeof problem, TGL_F32, 4096, 4096, ways[i].k);
        problem.compute = ways[i].compute;
        const tgl_status status = tgl_plan_create(*state, &problem, &options, &plan);
        assert_status(status, ways[i].may ? TGL_OK : TGL_UNSUPPORTED);
        if (status == TGL_OK) tgl_plan_destroy(plan);
        assert_status(tgl_plan_create(*state, &problem, NULL, &plan), TGL_OK);
        if (!ways[i].may && strncmp(tgl_plan_kernel(plan), "accurate", 8) == 0)
            fail_msg("chosen with compute %d, k = %d", (int)ways[i].compute, ways[i].k);
        tgl_plan_destroy(plan);
    }
}

int main(int argc, char **argv)
{
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_numbers),
        cmocka_unit_test(scaled_lines),
        cmocka_unit_test(only_where_it_may_be_chosen),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
