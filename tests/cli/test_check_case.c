/* SPDX-License-Identifier: Apache-2.0
 *
 * The random cases of `tegula check`: they see what is wrong with a result, and are the same every
 * time.
 */
#include "check_case.h"
#include "check_epilogue.h"
#include "check_groups.h"
#include "check_subjects.h"
#include "elements.h"
#include "problem_options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A case with k = 3 and denormal inputs of F16. Its error on an H200 and on the simulator was 29.8
 * units, and its bound is 7. With cuts_sums, for devices with tensor cores, the bound stays 7, but
 * the magnitudes by which errors are divided become larger. */
static void cases_with_denormals(void **state)
{
    (void)state;
    enum { NUMBER = 3089 };
    check_drawing from = {.seed = 2411, .type = TGL_F16, .scale = SCALE_LARGE};
    check_case cpu, gpu;
    assert_true(check_case_make(&cpu, &from, NUMBER));
    from.cuts_sums = true;
    assert_true(check_case_make(&gpu, &from, NUMBER));
    assert_true(cpu.inputs == DENORMAL && cpu.bound == 7 && gpu.bound == cpu.bound);
    const int64_t count = cpu.problem.batch * cpu.problem.m * cpu.problem.n;
    int64_t larger = 0;
    for (int64_t i = 0; i < count; i++) {
        assert_true(gpu.reference[i].value == cpu.reference[i].value);
        larger += gpu.reference[i].magnitude > cpu.reference[i].magnitude;
    }
    assert_true(larger > count / 2);
    check_case_free(&cpu);
    check_case_free(&gpu);
}

static void *copy_of_result(const check_case *c)
{
    const check_buffer *result = check_case_result(c);
    const size_t size = check_buffer_bytes(result);
    void *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, result->image, size);
    return copy;
}

/* Finds the first case with elements to compare, finite inputs, and alpha = 1. is_separate: whether
 * D is another matrix than C. */
static void find_case(check_case *c, bool is_separate)
{
    const check_drawing from = {.seed = 1, .type = TGL_F64, .scale = SCALE_MEDIUM};
    for (int64_t number = 0;; number++) {
        assert_true(check_case_make(c, &from, number));
        const tgl_problem *p = &c->problem;
        if (p->m * p->n * p->k * p->batch > 0 && c->inputs == UNIFORM_11 && c->alpha == 1 &&
            isfinite(c->beta) && (c->d.size > 0) == is_separate)
            return;
        check_case_free(c);
    }
}

static void see_what_is_wrong(bool is_separate)
{
    check_case c = {0};
    find_case(&c, is_separate);
    double *after = copy_of_result(&c);
    const tgl_problem *p = &c.problem;
    const check_view *v = &check_case_result(&c)->view;
    const reference_element *r = c.reference;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                after[v->offset + b * v->batch + i * v->row + j * v->column] = (double)r++->value;

    error_summary errors = {0};
    check_verdict verdict;
    check_case_compare(&c, (unsigned char *)after, &errors, &verdict);
    assert_string_equal(verdict.text, "");
    assert_true(errors.max <= 1);

    after[v->offset] = NAN;
    check_case_compare(&c, (unsigned char *)after, &errors, &verdict);
    assert_non_null(strstr(verdict.text, is_separate ? "D[0](0, 0) is nan" : "C[0](0, 0) is nan"));
    after[v->offset] = (double)c.reference->value;

    uint64_t *bits = (uint64_t *)after;
    bits[v->offset - 1] ^= 1;
    check_case_compare(&c, (unsigned char *)after, &errors, &verdict);
    assert_non_null(strstr(verdict.text, "was written, -1 elements"));
    free(after);
    check_case_free(&c);
}

static void a_case_sees_what_is_wrong(void **state)
{
    (void)state;
    see_what_is_wrong(false);
    see_what_is_wrong(true);
}

/* Each kind occurs in some of the cases, and all cases are valid problems. */
static void cases_have_all_kinds_of_results_and_scalars(void **state)
{
    (void)state;
    const check_drawing from = {.seed = 1, .scale = SCALE_SMALL};
    int separate = 0, shared = 0, scalars = 0, no_beta = 0, workspace = 0, prepared = 0;
    for (int64_t number = 0; number < 1000; number++) {
        check_case c = {0};
        assert_true(check_case_make(&c, &from, number));
        assert_int_equal(tgl_problem_check(&c.problem), TGL_OK);
        separate += c.d.size > 0;
        shared += c.d.size > 0 && c.problem.batch > 1 && c.problem.stride_c == 0;
        scalars += c.problem.scalars == TGL_SCALARS_DEVICE;
        no_beta += c.no_beta;
        workspace += c.own_workspace;
        prepared += c.prepared_a && c.prepared_b;
        assert_true(c.problem.batching == TGL_STRIDED || !(c.prepared_a || c.prepared_b));
        check_case_free(&c);
    }
    assert_true(separate > 0 && shared > 0 && scalars > 0 && no_beta > 0 && workspace > 0);
    assert_true(prepared > 0);
}

/* The contents of the result's buffer after a right product. */
static double *right_result(const check_case *c)
{
    const tgl_problem *p = &c->problem;
    const check_view *v = &check_case_result(c)->view;
    double *after = copy_of_result(c);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n && check_groups_has_row(c, b, i); j++)
                after[check_view_index(v, b, i, j)] =
                    (double)c->reference[(check_groups_result(c, b) * p->m + i) * p->n + j].value;
    return after;
}

/* Makes an element of a row wrong, and expects `words`. */
static void change_row(const check_case *c, double *after, int64_t b, int64_t i, const char *words)
{
    error_summary errors = {0};
    check_verdict verdict;
    double *at = &after[check_view_index(&check_case_result(c)->view, b, i, 0)];
    const double right = *at;
    *at = 12345;
    check_case_compare(c, (unsigned char *)after, &errors, &verdict);
    assert_non_null(strstr(verdict.text, words));
    *at = right;
}

/* Changes a row that the groups have, and one that no group has. Adds 1 to seen[0] and seen[1]. */
static void see_wrong_rows(const check_case *c, int seen[2])
{
    const tgl_problem *p = &c->problem;
    double *after = right_result(c);
    error_summary errors = {0};
    check_verdict verdict;
    check_case_compare(c, (unsigned char *)after, &errors, &verdict);
    assert_string_equal(verdict.text, "");
    for (int64_t i = 0; i < p->m; i++) {
        bool has = false, is_masked = p->grouping == TGL_GROUPED_MASKED;
        for (int64_t b = 0; b < (is_masked ? 1 : p->batch); b++)
            has |= check_groups_has_row(c, b, i);
        change_row(c, after, 0, i, has ? "is 12345" : "was written");
        seen[has ? 0 : 1]++;
    }
    free(after);
}

/* All groupings and forms occur, with groups of size 0 and groups that have all. Wrong rows are
 * seen, and rows that no group has must not be written. */
static void groups_have_all_sizes(void **state)
{
    (void)state;
    const check_drawing from = {.seed = 1, .type = TGL_F64, .scale = SCALE_SMALL, .grouped = true};
    int kinds[4][2] = {{0}}, empty = 0, whole = 0, seen[2] = {0}, tighter = 0;
    for (int64_t number = 0; number < 400; number++) {
        check_case c = {0};
        assert_true(check_case_make(&c, &from, number));
        const tgl_problem *p = &c.problem;
        assert_int_equal(tgl_problem_check(p), TGL_OK);
        const bool depth = p->grouping == TGL_GROUPED_DEPTH;
        kinds[p->grouping][p->group_form]++;
        for (int64_t g = 0; g < p->batch && p->m * p->n * p->k > 0; g++) {
            empty += c.groups[g].size == 0;
            whole += p->batch > 1 && c.groups[g].size == (depth ? p->k : p->m);
            tighter += c.groups[g].bound < c.bound;
            assert_true(c.groups[g].bound == error_bound(depth ? c.groups[g].size : p->k));
        }
        const bool is_finite = c.inputs == UNIFORM_11 && isfinite(c.alpha) && isfinite(c.beta);
        if (is_finite && p->n > 0 && p->k > 0 && p->batch > 0) see_wrong_rows(&c, seen);
        check_case_free(&c);
    }
    for (int i = TGL_GROUPED_ROWS; i <= TGL_GROUPED_MASKED; i++)
        assert_true(kinds[i][TGL_GROUP_SIZES] > 0 &&
                    (kinds[i][TGL_GROUP_ENDS] > 0) == (i != TGL_GROUPED_MASKED));
    assert_true(empty > 0 && whole > 0 && tighter > 0 && seen[0] > 0 && seen[1] > 0);
}

/* Cases of complex types have every pair of transposes and conjugates, and complex alpha and beta.
 */
static void complex_cases_have_all_transposes_and_scalars(void **state)
{
    (void)state;
    const check_drawing from = {.seed = 1, .type = TGL_C64, .scale = SCALE_SMALL};
    int transposes[4][4] = {{0}}, alpha = 0, beta = 0, pointers = 0, non_finite = 0;
    for (int64_t number = 0; number < 1000; number++) {
        check_case c = {0};
        assert_true(check_case_make(&c, &from, number));
        assert_int_equal(tgl_problem_check(&c.problem), TGL_OK);
        transposes[c.problem.trans_a - TGL_NO_TRANS][c.problem.trans_b - TGL_NO_TRANS]++;
        alpha += c.alpha != 0 && c.alpha_imag != 0;
        beta += c.beta != 0 && c.beta_imag != 0;
        pointers += c.problem.batching == TGL_POINTERS && c.problem.batch > 1;
        non_finite += c.inputs == NON_FINITE;
        check_case_free(&c);
    }
    for (int i = 0; i < 16; i++)
        assert_true(transposes[i / 4][i % 4] > 0);
    assert_true(alpha > 0 && beta > 0 && pointers > 0 && non_finite > 0);
}

/* A conjugate that is not transposed counts as the layout of its matrix. An alpha that is imaginary
 * is not 0. */
static void complex_products_are_counted_by_their_layouts(void **state)
{
    (void)state;
    const check_subject subject = {.name = "auto"};
    check_case c = {.problem = cli_problem(TGL_C64, 8, 8, 8), .alpha_imag = 1, .prepared_a = true};
    check_tally tally = {0};
    check_tally_case(&tally, &subject, &c, false, false, true);
    c.problem.trans_a = c.problem.trans_b = TGL_CONJ_NO_TRANS;
    check_tally_case(&tally, &subject, &c, false, false, false);
    assert_int_equal(check_cells_seen(&tally), 1);
    assert_int_equal(tally.counts[COUNT_PREPARED], 1); /* the second plan had no use for it */
    c.problem.trans_b = TGL_CONJ_TRANS;
    check_tally_case(&tally, &subject, &c, false, false, false);
    assert_int_equal(check_cells_seen(&tally), 2);
}

static void a_case_is_the_same_every_time(void **state)
{
    (void)state;
    for (int64_t number = 0; number < 90; number++) {
        const check_drawing from = {.seed = 9, .scale = (check_scale)(number % 3)};
        check_case a = {0}, b = {0};
        assert_true(check_case_make(&a, &from, number) && check_case_make(&b, &from, number));
        char text_a[512], text_b[512];
        check_case_describe(&a, text_a, sizeof text_a);
        check_case_describe(&b, text_b, sizeof text_b);
        assert_string_equal(text_a, text_b);
        assert_memory_equal(a.c.image, b.c.image, check_buffer_bytes(&a.c));
        assert_int_equal(tgl_problem_check(&a.problem), TGL_OK);
        check_case_free(&a);
        check_case_free(&b);
    }
}

/* Cases of F32, F64, F16 and BF16 have matrices of the types that were asked for, and a bound that
 * allows for rounded inputs. */
static void cases_of_all_types(void **state)
{
    (void)state;
    for (tgl_type type = TGL_F32; type <= TGL_BF16; type++)
        for (int64_t number = 0; number < 60; number++) {
            const bool is_wide = number % 2 == 1 && type >= TGL_F16;
            const check_drawing from = {.seed = 4,
                                        .type = type,
                                        .type_d = is_wide ? TGL_F32 : (tgl_type)0,
                                        .compute = number % 3 == 0 ? TGL_COMPUTE_TF32
                                                                   : TGL_COMPUTE_DEFAULT,
                                        .scale = SCALE_SMALL};
            check_case c = {0};
            assert_true(check_case_make(&c, &from, number));
            assert_int_equal(tgl_problem_check(&c.problem), TGL_OK);
            assert_int_equal(c.a.type, type);
            assert_int_equal(check_case_result(&c)->type, is_wide ? TGL_F32 : type);
            const double least =
                error_bound(c.problem.k) + error_of_rounded_inputs(type, from.compute);
            assert_true(c.bound >= least);
            check_case_free(&c);
        }
}

/* x rounded to TF32, with 10 bits of fraction. */
static double to_tf32(double x)
{
    if (!isfinite(x) || x == 0) return x;
    const int exponent = ilogb(x);
    return ldexp(nearbyint(ldexp(x, 10 - exponent)), exponent - 10);
}

static double multiply_add(bool is_f64, double x, double y, double sum)
{
    return is_f64 ? fma(x, y, sum) : (double)fmaf((float)x, (float)y, (float)sum);
}

static double element_of(const check_buffer *x, int64_t b, int64_t i, int64_t j)
{
    const check_view *v = &x->view;
    return element_get(x->type, x->image, v->offset + b * v->batch + i * v->row + j * v->column);
}

/* Element (i, j) of problem b as a simple kernel computes it: a loop of fused multiply-adds in the
 * accumulation type, and one rounding at the end. */
static double simple_kernel(const check_case *c, int64_t b, int64_t i, int64_t j)
{
    const tgl_problem *p = &c->problem;
    const bool is_f64 = p->type_a == TGL_F64, is_tf32 = p->compute == TGL_COMPUTE_TF32 && !is_f64;
    double sum = 0;
    for (int64_t q = 0; q < p->k && c->alpha != 0; q++) {
        const double x = element_of(&c->a, b, i, q), y = element_of(&c->b, b, q, j);
        const bool rounds = is_tf32 && p->type_a == TGL_F32;
        sum = multiply_add(is_f64, rounds ? to_tf32(x) : x, rounds ? to_tf32(y) : y, sum);
    }
    double result = c->beta != 0 ? c->beta * element_of(&c->c, b, i, j) : 0;
    if (!is_f64) result = (double)(float)result;
    return c->alpha != 0 && p->k > 0 ? multiply_add(is_f64, c->alpha, sum, result) : result;
}

/* Whether the results of the simple kernel pass. wrong: the first element is multiplied by this. */
static bool simple_kernel_passes(const check_case *c, double wrong)
{
    const tgl_problem *p = &c->problem;
    const check_buffer *result = check_case_result(c);
    const check_view *v = &result->view;
    unsigned char *after = copy_of_result(c);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                element_set(result->type, after,
                            v->offset + b * v->batch + i * v->row + j * v->column,
                            simple_kernel(c, b, i, j) * (b + i + j == 0 ? wrong : 1));
    error_summary errors = {0};
    check_verdict verdict;
    check_case_compare(c, after, &errors, &verdict);
    free(after);
    return verdict.text[0] == '\0';
}

/* A right kernel passes, for F32, F64, F16 and BF16. One with an error of 2 % does not. */
static void a_simple_kernel_passes(void **state)
{
    (void)state;
    for (tgl_type type = TGL_F32; type <= TGL_BF16; type++)
        for (int64_t number = 0; number < 150; number++) {
            const bool is_16 = type >= TGL_F16;
            const check_drawing from = {.seed = 6,
                                        .type = type,
                                        .type_c = is_16 && number % 3 == 1 ? TGL_F32 : (tgl_type)0,
                                        .type_d = is_16 && number % 3 == 2 ? TGL_F32 : (tgl_type)0,
                                        .compute = number % 2 == 1 ? TGL_COMPUTE_TF32
                                                                   : TGL_COMPUTE_DEFAULT,
                                        .scale = SCALE_SMALL};
            check_case c = {0};
            assert_true(check_case_make(&c, &from, number));
            if (!simple_kernel_passes(&c, 1)) {
                char text[512];
                check_case_describe(&c, text, sizeof text);
                fail_msg("%s", text);
            }
            const tgl_problem *p = &c.problem;
            if (c.inputs == UNIFORM_01 && c.alpha == 1 && c.beta == 0 &&
                p->m * p->n * p->k * p->batch > 0)
                assert_false(simple_kernel_passes(&c, 1.02)); /* 2 % is beyond every bound */
            check_case_free(&c);
        }
}

static bool passes(double c, const reference_element *expected)
{
    error_summary s = {0};
    double error;
    return error_add(&s, TGL_F32, c, expected, 4, &error);
}

/* If an epilogue turns an infinite sum into a number, not every number is right. */
static void epilogues_of_infinite_sums(void **state)
{
    (void)state;
    const long double sums[] = {-INFINITY, -1e39L}; /* the second is more than f32 holds */
    const tgl_epilogue epilogues[] = {{.activation = TGL_ACTIVATION_RELU}, {.expression = "..."}};
    for (int i = 0; i < 4; i++) {
        check_case c = {.problem = cli_problem(TGL_F32, 1, 1, 1), .epilogue = epilogues[i / 2]};
        reference_element r = {sums[i % 2], -sums[i % 2]};
        check_epilogue_finish(&c, 0, 0, &r);
        assert_true(r.value == 0);
        assert_true(passes(0, &r));
        assert_false(passes(1, &r));
        r = (reference_element){-sums[i % 2], -sums[i % 2]};
        check_epilogue_finish(&c, 0, 0, &r);
        assert_true(passes(INFINITY, &r));
        assert_false(passes(1, &r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_with_denormals),
        cmocka_unit_test(a_case_sees_what_is_wrong),
        cmocka_unit_test(a_case_is_the_same_every_time),
        cmocka_unit_test(cases_have_all_kinds_of_results_and_scalars),
        cmocka_unit_test(groups_have_all_sizes),
        cmocka_unit_test(complex_cases_have_all_transposes_and_scalars),
        cmocka_unit_test(complex_products_are_counted_by_their_layouts),
        cmocka_unit_test(cases_of_all_types),
        cmocka_unit_test(a_simple_kernel_passes),
        cmocka_unit_test(epilogues_of_infinite_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
