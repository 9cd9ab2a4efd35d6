/* SPDX-License-Identifier: Apache-2.0
 *
 * Integers in what judges results: elements, random inputs, the reference and the comparison.
 */
#include "check_case.h"
#include "elements.h"
#include "random.h"
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void elements_are_rounded_and_saturated(void **state)
{
    (void)state;
    static const double cases[][2] = {{0.5, 0},       {1.5, 2},        {-2.5, -2},   {126.6, 127},
                                      {127.5, 127},   {1e9, 127},      {-128, -128}, {-128.6, -128},
                                      {-1e300, -128}, {INFINITY, 127}, {NAN, -128}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int8_t stored[2] = {42, 42};
        element_set(TGL_I8, stored, 0, cases[i][0]);
        assert_int_equal(stored[0], (int)cases[i][1]);
        assert_int_equal(stored[1], 42);
        assert_true(element_get(TGL_I8, stored, 0) == cases[i][1]);
        assert_true(element_round(TGL_I8, cases[i][0]) == cases[i][1]);
    }
    assert_true(element_round(TGL_I32, 1e10) == INT32_MAX);
    assert_true(element_round(TGL_I32, -1e10) == INT32_MIN);
    assert_true(element_round(TGL_I32, 2147483646.5) == 2147483646);
    assert_true(element_greatest(TGL_I8) == 127 && element_greatest(TGL_I32) == INT32_MAX);
    assert_int_equal(element_accumulator(TGL_I8), TGL_I32);
}

/* The number of elements that are equal to `value`. */
static int count(int64_t n, const double *X, double value)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++)
        found += X[i] == value;
    return found;
}

static void inputs_reach_the_extremes(void **state)
{
    (void)state;
    enum { N = 64, ALL = N * N };
    static double A[ALL], B[ALL];
    random_state r;
    random_seed(&r, 4, 0);
    for (int kind = 0; kind <= LEAST; kind++) {
        if (kind == DENORMAL || kind == NON_FINITE) continue;
        random_inputs(&r, (inputs)kind, TGL_I8, N, N, N, A, B);
        for (int i = 0; i < ALL; i++)
            assert_true(A[i] == element_round(TGL_I8, A[i]) && B[i] == element_round(TGL_I8, B[i]));
    }
    random_inputs(&r, UNIFORM_11, TGL_I8, N, N, N, A, B);
    assert_true(count(ALL, A, -128) > 0 && count(ALL, A, 127) > 0 && count(ALL, B, 0) > 0);
    random_inputs(&r, EXTREMES, TGL_I8, N, N, N, A, B);
    assert_true(count(ALL, A, -128) > ALL / 3 && count(ALL, A, 127) > ALL / 3);
    assert_int_equal(count(ALL, A, -128) + count(ALL, A, 127), ALL);
    random_inputs(&r, LEAST, TGL_I8, N, N, N, A, B);
    assert_true(count(ALL, A, -128) == ALL && count(ALL, B, -128) == ALL);
}

static long double row_of_one(int64_t k, double alpha, const double *a, const double *B,
                              double beta, double c)
{
    reference_element out;
    reference_row(TGL_I8, 1, k, alpha, a, B, beta, &c, &out);
    return out.value;
}

/* Expected values are computed by hand: modulo 2^32 in the range of int32. */
static void sums_wrap(void **state)
{
    (void)state;
    enum { K = 140000 };
    int8_t *least = malloc(K);
    double *a = malloc(K * sizeof *a);
    assert_true(least != NULL && a != NULL);
    for (int i = 0; i < K; i++) {
        least[i] = -128;
        a[i] = -128;
    }
    assert_true(row_of_one(K, 1, a, a, 0, 0) == 2293760000.0L - 4294967296.0L);
    assert_true(row_of_one(131071, 1, a, a, 0, 0) == 2147467264.0L);
    assert_true(row_of_one(131072, 1, a, a, 0, 0) == INT32_MIN);
    assert_true(reference_dot(K, TGL_I8, least, 0, 1, TGL_I8, least, 0, 1).value ==
                2293760000.0L - 4294967296.0L);
    const double one = 1, odd = 127;
    assert_true(row_of_one(1, INT32_MIN, &one, &odd, 0, 0) == INT32_MIN); /* -127 * 2^31 */
    assert_true(row_of_one(1, INT32_MAX, &one, &one, 1, 1) == INT32_MIN);
    assert_true(row_of_one(1, 0, &one, &one, INT32_MAX, INT32_MAX) == 1);
    assert_true(row_of_one(0, 7, &one, &one, -1, INT32_MIN) == INT32_MIN);
    assert_true(row_of_one(1, -1, &one, &odd, 2, 3) == 6 - 127);
    free(least);
    free(a);
}

static void epilogues_wrap(void **state)
{
    (void)state;
    tgl_epilogue relu = {.activation = TGL_ACTIVATION_RELU}, none = {.size = 0};
    reference_element x = {INT32_MIN, 0};
    reference_saturate(TGL_I32, &x);
    assert_true(x.value == INT32_MIN);
    x.value = INT32_MAX;
    reference_epilogue(TGL_I32, &none, 1, 0, &x);
    assert_true(x.value == INT32_MIN);
    x.value = INT32_MAX;
    reference_epilogue(TGL_I32, &relu, 1, -5, &x); /* relu(-2^31) - 5 */
    assert_true(x.value == -5);
    x.value = 3;
    reference_epilogue(TGL_I32, &relu, 4, INT32_MAX, &x);
    assert_true(x.value == 7.0L + INT32_MAX - 4294967296.0L);
}

/* A wrong integer fails, whatever the bound and the magnitude are. */
static void differences_fail(void **state)
{
    (void)state;
    const reference_element r = {INT32_MAX, 1e30L};
    error_summary summary = {0};
    double error;
    assert_true(error_add(&summary, TGL_I32, INT32_MAX, &r, 0, &error));
    assert_true(summary.wrong == 0 && summary.finite == 1 && error == 0 &&
                summary.max_over_bound == 0);
    assert_false(error_add(&summary, TGL_I32, INT32_MAX - 1, &r, 1e9, &error));
    assert_false(error_add(&summary, TGL_I32, INT32_MIN, &r, 1e9, &error));
    assert_true(summary.wrong == 2 && isinf(error));
}

static void cases_of_check(void **state)
{
    (void)state;
    const check_drawing from = {.seed = 1, .type = TGL_I8, .epilogues = true, .scale = SCALE_SMALL};
    bool has_least = false, has_extremes = false, has_large_alpha = false, has_no_alpha = false;
    for (int number = 0; number < 200; number++) {
        check_case c;
        assert_true(check_case_make(&c, &from, number));
        assert_true(c.alpha == element_round(TGL_I32, c.alpha));
        assert_true(c.beta == element_round(TGL_I32, c.beta));
        assert_true(c.bound == 0 && c.problem.type_c == TGL_I32 && c.epilogue.expression == NULL);
        assert_true(c.epilogue.activation <= TGL_ACTIVATION_RELU);
        has_least = has_least || c.inputs == LEAST;
        has_extremes = has_extremes || c.inputs == EXTREMES;
        has_large_alpha = has_large_alpha || fabs(c.alpha) >= 65536;
        has_no_alpha = has_no_alpha || c.alpha == 0;
        check_case_free(&c);
    }
    assert_true(has_least && has_extremes && has_large_alpha && has_no_alpha);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_rounded_and_saturated),
        cmocka_unit_test(inputs_reach_the_extremes),
        cmocka_unit_test(sums_wrap),
        cmocka_unit_test(epilogues_wrap),
        cmocka_unit_test(differences_fail),
        cmocka_unit_test(cases_of_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
