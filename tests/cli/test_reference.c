/* SPDX-License-Identifier: Apache-2.0
 *
 * What judges results: element types, random inputs, the reference and its error metric. A judge
 * that lets everything pass would not be noticed otherwise.
 */
#include "elements.h"
#include "random.h"
#include "reference.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Element types --------------------------------------------------------------------------- */

static void assert_rounds(tgl_type type, double x, double expected)
{
    const double got = element_round(type, x);
    if (!(got == expected || (isnan(got) && isnan(expected))))
        fail_msg("%s(%a) is %a, not %a", element_type_name(type), x, got, expected);
}

static void elements_are_rounded_to_nearest_even(void **state)
{
    (void)state;
    assert_rounds(TGL_F16, 1 + 0x1p-11, 1);                     /* a tie, to even */
    assert_rounds(TGL_F16, 1 + 3 * 0x1p-11, 1 + 2 * 0x1p-10);   /* a tie, to even */
    assert_rounds(TGL_F16, 1 + 0x1p-11 + 0x1p-50, 1 + 0x1p-10); /* beyond a tie */
    assert_rounds(TGL_F16, 65519.99, 65504);
    assert_rounds(TGL_F16, 65520, INFINITY);
    assert_rounds(TGL_F16, -1e300, -INFINITY);
    assert_rounds(TGL_F16, 0x1p-24, 0x1p-24);
    assert_rounds(TGL_F16, 0x1p-25, 0);
    assert_rounds(TGL_F16, 1.5 * 0x1p-25, 0x1p-24);
    assert_rounds(TGL_F16, 0x1p-14 - 0x1p-26, 0x1p-14); /* a denormal that becomes normal */
    assert_rounds(TGL_BF16, 1 + 0x1p-8, 1);
    assert_rounds(TGL_BF16, 1 + 3 * 0x1p-8, 1 + 2 * 0x1p-7);
    assert_rounds(TGL_BF16, 0x1p-133, 0x1p-133);
    assert_rounds(TGL_BF16, 3.4e38, INFINITY);
    assert_rounds(TGL_F32, 1 + 0x1p-24, 1);
    for (tgl_type type = TGL_F32; type <= TGL_BF16; type++) {
        assert_rounds(type, NAN, NAN);
        assert_rounds(type, -INFINITY, -INFINITY);
        assert_rounds(type, element_greatest(type), element_greatest(type));
        assert_rounds(type, element_smallest(type), element_smallest(type));
        assert_rounds(type, element_smallest(type) / 2, 0);
        assert_true(signbit(element_round(type, -0.0)));
        assert_true(element_round(type, 1 + 1.5 * element_unit(type)) > 1);
        assert_true(element_round(type, 1 + element_unit(type)) == 1);
    }
}

/* Every code of the 16-bit types that is a number is read and stored without a change. */
static void codes_of_16_bits_come_back(void **state)
{
    (void)state;
    for (tgl_type type = TGL_F16; type <= TGL_BF16; type++)
        for (int i = 0; i < 65536; i++) {
            const uint16_t code = (uint16_t)i;
            uint16_t again;
            const double x = element_get(type, &code, 0);
            element_set(type, &again, 0, x);
            if (isnan(x))
                assert_true(isnan(element_get(type, &again, 0)));
            else
                assert_int_equal(again, code);
        }
}

/* ---- Random numbers -------------------------------------------------------------------------- */

static void seeds_and_streams(void **state)
{
    (void)state;
    random_state a, b, c, d;
    random_seed(&a, 1, 0);
    random_seed(&b, 1, 0);
    random_seed(&c, 1, 1);
    random_seed(&d, 2, 0);
    const uint64_t first = random_bits(&a);
    assert_true(first == random_bits(&b));
    assert_true(first != random_bits(&c) && first != random_bits(&d));
}

static void inputs_are_what_they_are_called(void **state)
{
    (void)state;
    enum { N = 32 };
    double A[N * N], B[N * N];
    random_state r;
    random_seed(&r, 3, 0);
    for (int kind = 0; kind < INPUTS_END; kind++) {
        random_inputs(&r, (inputs)kind, TGL_F32, N, N, N, A, B);
        for (int i = 0; i < N * N; i++) {
            assert_true(isnan(A[i]) || A[i] == (double)(float)A[i]);
            if (kind == UNIFORM_01) assert_true(A[i] >= 0 && A[i] <= 1);
            if (kind == UNIFORM_11) assert_true(fabs(A[i]) <= 1);
            if (kind != NON_FINITE) assert_true(isfinite(A[i]) && isfinite(B[i]));
            if (kind == DENORMAL) assert_true(fabs(A[i] * B[i]) < 0x1p-80);
        }
    }
    random_inputs(&r, CANCELLATION, TGL_F64, 1, 1, N, A, B);
    double sum = 0, magnitude = 0;
    for (int p = 0; p < N; p++) {
        sum += A[p] * B[p];
        magnitude += fabs(A[p] * B[p]);
    }
    assert_true(fabs(sum) < 1e-3 * magnitude);
}

/* ---- The reference --------------------------------------------------------------------------- */

static void reference_rows(void **state)
{
    (void)state;
    const double a[] = {1, 2}, B[] = {3, 4, 5, 6}, c[] = {10, 20};
    reference_element out[2];
    for (tgl_type type = TGL_F32; type <= TGL_F64; type++) {
        reference_row(type, 2, 2, 2, a, B, -1, c, out);
        assert_true(out[0].value == 2 * 13 - 10 && out[1].value == 2 * 16 - 20);
        assert_true(out[0].magnitude == 2 * 13 + 10 && out[1].magnitude == 2 * 16 + 20);
    }
}

static void what_is_not_read_does_not_count(void **state)
{
    (void)state;
    const double nan2[] = {NAN, NAN}, one[] = {1, 1};
    reference_element out[2];
    reference_row(TGL_F32, 2, 1, 0, nan2, nan2, 1, one, out);
    assert_true(out[0].value == 1);
    reference_row(TGL_F32, 2, 1, 1, one, one, 0, nan2, out);
    assert_true(out[0].value == 1);
    reference_row(TGL_F64, 2, 0, 1, nan2, nan2, 3, one, out);
    assert_true(out[0].value == 3);
    reference_row(TGL_F64, 2, 1, 1, one, one, NAN, one, out);
    assert_true(isnan(out[0].value));
}

static void rows_longer_than_a_strip(void **state)
{
    (void)state;
    enum { N = 300 };
    double a[2] = {1, -1}, B[2 * N], c[N] = {0};
    for (int j = 0; j < N; j++) {
        B[j] = j;
        B[N + j] = 1;
    }
    reference_element out[N];
    for (tgl_type type = TGL_F32; type <= TGL_F64; type++) {
        reference_row(type, N, 2, 1, a, B, 0, c, out);
        for (int j = 0; j < N; j++)
            assert_true(out[j].value == j - 1);
    }
}

/* ---- The metric ------------------------------------------------------------------------------ */

static bool passes(tgl_type type, double c, long double value, long double magnitude)
{
    error_summary s = {0};
    double error;
    const reference_element r = {value, magnitude};
    const bool ok = error_add(&s, type, c, &r, 4, &error);
    assert_int_equal(s.wrong, ok ? 0 : 1);
    return ok;
}

static void units(void **state)
{
    (void)state;
    error_summary s = {0};
    double error;
    const reference_element r = {1, 2};
    assert_true(error_add(&s, TGL_F32, 1 + 0x1p-22, &r, 4, &error));
    assert_true(fabs(error - 2) < 1e-6); /* 2^-22 in units of 2^-24 * 2 */
    assert_true(fabs(error_rms(&s) - 2) < 1e-6);
    assert_true(fabs(error_frobenius(&s) - 0x1p-22) < 1e-9);
    assert_false(error_add(&s, TGL_F64, 1 + 0x1p-22, &r, 4, &error));
    assert_true(error_bound(0) == 4 && error_bound(10) == 14 && error_bound(10000) == 804);
}

static void not_finite(void **state)
{
    (void)state;
    assert_true(passes(TGL_F32, NAN, NAN, NAN));
    assert_false(passes(TGL_F32, NAN, 1, 1));
    assert_false(passes(TGL_F32, 1, NAN, NAN));
    assert_false(passes(TGL_F32, INFINITY, NAN, NAN));
    assert_true(passes(TGL_F64, INFINITY, INFINITY, INFINITY));
    assert_false(passes(TGL_F64, -INFINITY, INFINITY, INFINITY));
    assert_false(passes(TGL_F64, INFINITY, 1, 1));
    assert_false(passes(TGL_F64, DBL_MAX, INFINITY, INFINITY));
    assert_false(passes(TGL_F32, NAN, INFINITY, INFINITY));
    assert_true(passes(TGL_F32, INFINITY, 1e39L, 1e39L)); /* more than f32 holds */
}

static void denormals(void **state)
{
    (void)state;
    assert_true(passes(TGL_F32, 0x1p-149, 1.5L * 0x1p-149L, 1.5L * 0x1p-149L));
    assert_false(passes(TGL_F32, 0, 0x1p-130L, 0x1p-130L)); /* flushed to zero */
    assert_true(passes(TGL_F64, 0, 0, 0));
}

/* A 16-bit result may err by its rounding and by the errors of the sum before it. */
static void results_of_16_bits(void **state)
{
    (void)state;
    const double above = 1 + 0x1p-10; /* the neighbour of 1 */
    assert_true(passes(TGL_F16, 1, 1 + 0x1p-11L, 1));
    assert_true(passes(TGL_F16, above, 1 + 0x1p-11L, 1));
    assert_true(passes(TGL_F16, above, 1 + 0x1p-11L - 4 * 0x1p-24L, 1)); /* 4 units pass */
    assert_false(passes(TGL_F16, above, 1 + 0x1p-11L - 5 * 0x1p-24L, 1));
    assert_false(passes(TGL_F16, above, 1, 1));
    assert_true(passes(TGL_BF16, 1, 1 + 0x1p-8L, 1));
    assert_false(passes(TGL_BF16, 1, 1 + 0x1p-7L, 1));
    assert_true(passes(TGL_F16, INFINITY, 65520, 65520)); /* half a unit above the greatest */
    assert_true(passes(TGL_F16, 65504, 65519, 65519));
    assert_false(passes(TGL_F16, INFINITY, 65504, 65504));
    assert_false(passes(TGL_F16, 65504, 65600, 65600));
    assert_false(passes(TGL_F16, -INFINITY, 1e6L, 1e6L));
    assert_false(passes(TGL_BF16, NAN, 1, 1));
    assert_true(passes(TGL_F16, 0x1p-24, 1.4L * 0x1p-24L, 1e-9L)); /* a denormal of f16 */
    assert_false(passes(TGL_F16, 0, 0x1p-20L, 0x1p-20L));
}

/* x without the bits below 2^exponent. */
static double cut(double x, int exponent)
{
    return ldexp(trunc(ldexp(x, -exponent)), exponent);
}

/* Positive products in groups of 16, added as by wgmma: each product and the sum so far are cut 25
 * bits below the largest exponent, and their sum is cut to f32. */
static void sums_that_tensor_cores_cut(void **state)
{
    (void)state;
    enum { K = 1 << 16, GROUP = 16, BITS = 25, BITS_OF_F32 = 23 };
    reference_element exact = {0};
    error_summary summary = {0};
    double sum = 0, error;
    random_state r;
    random_seed(&r, 1, 1);
    for (int i = 0; i < K; i += GROUP) {
        double products[GROUP], largest = sum, added;
        int exponent;
        for (int p = 0; p < GROUP; p++) {
            products[p] = random_unit(&r) * random_unit(&r);
            exact.value += products[p];
            largest = fmax(largest, products[p]);
        }
        frexp(largest, &exponent);
        added = cut(sum, exponent - 1 - BITS);
        for (int p = 0; p < GROUP; p++)
            added += cut(products[p], exponent - 1 - BITS);
        frexp(added, &exponent);
        sum = cut(added, exponent - 1 - BITS_OF_F32);
    }
    exact.magnitude = exact.value;
    const double bound = error_bound(K), more = error_of_cut_sums(TGL_F16, K);
    assert_true(bound + more == K / 8.0 + 4 && more == error_of_cut_sums(TGL_BF16, K));
    assert_false(error_add(&summary, TGL_F32, sum, &exact, bound, &error));
    assert_true(error_add(&summary, TGL_F32, sum, &exact, bound + more, &error));
    assert_true(error_of_cut_sums(TGL_F16, 4096) == 0 && error_of_cut_sums(TGL_F32, K) == 0);
}

/* The sum of two products of denormals of f16 as wgmma computes it: it cuts the smaller product 25
 * bits below the exponent of the larger one, which is -14 + 10. */
static void products_of_denormals_that_tensor_cores_align(void **state)
{
    (void)state;
    const double a[2] = {0x1p-24, 0x3p-24}, B[2] = {0x1p10, 1 + 0x1p-10}, zero[2] = {0};
    const double sum = a[0] * B[0] + cut(a[1] * B[1], -4 - 25);
    double error;
    error_summary summary = {0};
    reference_element exact, aligned;
    reference_row(TGL_F16, 1, 2, -2, a, B, 0, zero, &exact);
    aligned = exact;
    reference_align_denormals(TGL_F16, 1, 2, -2, a, B, &aligned);
    assert_true(aligned.value == exact.value);
    assert_true(aligned.magnitude == 2 * (0x1p-4 + 0x1p-14 * (1 + 0x1p-10)));
    assert_false(error_add(&summary, TGL_F32, -2 * sum, &exact, error_bound(2), &error));
    assert_true(error_add(&summary, TGL_F32, -2 * sum, &aligned, error_bound(2), &error));

    aligned = exact;
    reference_align_denormals(TGL_F16, 1, 2, 0, a, B, &aligned);
    reference_align_denormals(TGL_F16, 1, 2, 1, zero, B, &aligned);
    reference_align_denormals(TGL_BF16, 1, 2, 1, a, B, &aligned);
    assert_true(aligned.magnitude == exact.magnitude);
}

/* The bound allows for rounding to TF32 only if the inputs are F32 or C64 and the mode is TF32. */
static void inputs_that_may_be_rounded_to_tf32(void **state)
{
    (void)state;
    assert_true(error_of_rounded_inputs(TGL_F32, TGL_COMPUTE_DEFAULT) == 0);
    assert_true(error_of_rounded_inputs(TGL_F64, TGL_COMPUTE_TF32) == 0);
    /* Both factors are half a unit of TF32 off. */
    const double x = 1 + 0x1p-11, e = (x * x - 1) / (0x1p-24 * x * x);
    const double allowed = error_of_rounded_inputs(TGL_F32, TGL_COMPUTE_TF32);
    assert_true(e <= allowed && e > 0.99 * allowed);
}

/* A sum of 4096 products in four splits, whose partial sums are rounded to bf16. */
static void partial_sums_that_may_be_rounded(void **state)
{
    (void)state;
    enum { K = 4096, SPLITS = 4, SUMS = 200 };
    const double bound = error_bound(K), more = error_of_rounded_sums(TGL_BF16, K);
    int exceed = 0;
    random_state r;
    random_seed(&r, 1, 1);
    for (int i = 0; i < SUMS; i++) {
        double error, sum = 0, partial[SPLITS] = {0};
        reference_element exact = {0};
        error_summary summary = {0};
        for (int p = 0; p < K; p++) {
            const double x = (2 * random_unit(&r) - 1) * (2 * random_unit(&r) - 1);
            exact.value += x;
            exact.magnitude += fabs(x);
            partial[p * SPLITS / K] += x;
        }
        for (int p = 0; p < SPLITS; p++)
            sum = element_round(TGL_BF16, sum + element_round(TGL_BF16, partial[p]));
        assert_true(error_add(&summary, TGL_BF16, sum, &exact, bound + more, &error));
        exceed += !error_add(&summary, TGL_BF16, sum, &exact, bound, &error);
        const double lost = (double)exact.value - partial[0];
        if (fabs(partial[0]) > 1.5)
            assert_false(error_add(&summary, TGL_BF16, lost, &exact, bound + more, &error));
    }
    assert_true(exceed > 0);
    assert_true(error_of_rounded_sums(TGL_F32, K) == 0 && error_of_rounded_sums(TGL_F64, K) == 0);
    assert_true(error_of_rounded_sums(TGL_F16, K) < more && error_of_rounded_sums(TGL_F16, 0) == 0);
}

/* The bound of a product has all parts. */
static void bounds_of_products(void **state)
{
    enum { K = 65536 };
    (void)state;
    tgl_problem p;
    tgl_problem_init(&p, sizeof p, TGL_F16, 4, 4, K);
    assert_true(error_bound_of(&p, true) == K / 8.0 + 4);
    assert_true(error_bound_of(&p, false) == error_bound(K));
    p.type_a = p.type_b = TGL_F8_E4M3;
    assert_true(error_bound_of(&p, true) == error_bound(K) + 4 * 34 * 0x1p11);
    p.compute = TGL_COMPUTE_FAST;
    assert_true(error_bound_of(&p, true) == error_bound(K) + K / 32.0 * 34 * 0x1p11);
    p.type_a = p.type_b = TGL_F32;
    p.compute = TGL_COMPUTE_TF32;
    assert_true(error_bound_of(&p, true) == error_bound(K) + 0x1p14 + 4);
    p.type_a = p.type_b = TGL_C64;
    p.compute = TGL_COMPUTE_IEEE;
    assert_true(error_bound_of(&p, true) == error_bound(2 * K) + 2);
}

static void elements_that_are_not_finite(void **state)
{
    (void)state;
    enum { COUNT = 5000 }; /* the search goes in blocks; this is several */
    const double planted[] = {INFINITY, -INFINITY, NAN};
    static const int places[] = {0, 1, 2, 3, 511, 512, 1023, 1024, 2047, 2048, 4095, 4096, 4998};
    double *storage = malloc(COUNT * sizeof *storage);
    assert_non_null(storage);
    for (int type = 0; type < 16; type++) {
        if (!element_is_known((tgl_type)type) || element_is_integer((tgl_type)type)) continue;
        const double greatest = element_greatest((tgl_type)type);
        const double numbers[] = {greatest, -greatest, 0, -element_smallest((tgl_type)type)};
        for (int i = 0; i < COUNT; i++)
            element_set((tgl_type)type, storage, i, numbers[i % 4]);
        assert_int_equal(element_find_non_finite((tgl_type)type, storage, COUNT), COUNT);
        element_set((tgl_type)type, storage, COUNT - 1, NAN);
        for (size_t i = 0; i < 3 * sizeof places / sizeof places[0]; i++) {
            const int at = places[i / 3];
            if (isfinite(element_round((tgl_type)type, planted[i % 3]))) continue; /* no infinity */
            element_set((tgl_type)type, storage, at, planted[i % 3]);
            assert_int_equal(element_find_non_finite((tgl_type)type, storage, COUNT), at);
            element_set((tgl_type)type, storage, at, numbers[at % 4]);
        }
        assert_int_equal(element_find_non_finite((tgl_type)type, storage, COUNT), COUNT - 1);
    }
    free(storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_rounded_to_nearest_even),
        cmocka_unit_test(codes_of_16_bits_come_back),
        cmocka_unit_test(seeds_and_streams),
        cmocka_unit_test(inputs_are_what_they_are_called),
        cmocka_unit_test(reference_rows),
        cmocka_unit_test(what_is_not_read_does_not_count),
        cmocka_unit_test(rows_longer_than_a_strip),
        cmocka_unit_test(units),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(denormals),
        cmocka_unit_test(results_of_16_bits),
        cmocka_unit_test(sums_that_tensor_cores_cut),
        cmocka_unit_test(products_of_denormals_that_tensor_cores_align),
        cmocka_unit_test(inputs_that_may_be_rounded_to_tf32),
        cmocka_unit_test(partial_sums_that_may_be_rounded),
        cmocka_unit_test(bounds_of_products),
        cmocka_unit_test(elements_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
