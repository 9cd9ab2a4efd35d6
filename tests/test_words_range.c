/* SPDX-License-Identifier: Apache-2.0
 *
 * When blocks may be multiplied by words or digits (src/cpu/run/multiply_words.c). The decision is
 * plain C, so that it is tested on processors without such instructions, too.
 */
#include "support.h"

#include "cpu/run/multiply_words.h"
#include "random.h"

/* ---- Words of floating-point numbers --------------------------------------------------------- */

enum { BIAS = 127, FINITE = 254 };

/* The kinds of words, and the fraction bits of their types. */
static const struct {
    cpu_word_kind kind;
    int fraction;
} kinds[] = {{CPU_WORDS_BF16, 7}, {CPU_WORDS_F16, 10}, {CPU_WORDS_F32, 23}};

static cpu_exponents exponents(int smallest, int largest)
{
    return (cpu_exponents){.least = smallest, .most = largest};
}

/* Whether all words, products and sums are 0 or normal, and finite. */
static bool are_normal(int fraction, int64_t k, cpu_exponents a, cpu_exponents b)
{
    const double least_a = ldexp(1, a.least - BIAS - fraction);
    const double least_b = ldexp(1, b.least - BIAS - fraction);
    const double below_a = ldexp(1, a.most - BIAS + 1), below_b = ldexp(1, b.most - BIAS + 1);
    if (a.most >= FINITE || b.most >= FINITE) return false; /* may be rounded to Inf */
    if (below_a * below_b * (double)k * 2 > 0x1p127) return false;
    return fmin(fmin(least_a, least_b), least_a * least_b) >= 0x1p-126;
}

/* All exponents of A with some of B, which reach each limit. */
static void words_and_sums_are_normal_numbers(void **state)
{
    (void)state;
    static const int of_b[] = {0, 1, 8, 11, 23, 24, 25, 60, 126, 127, 128, 200, 252, 253, 254, 255};
    static const int64_t steps[] = {1, 2, 3, 4, 5, 255, 256, 257, 1 << 20, (1 << 20) + 1};
    int permitted = 0;
    for (size_t q = 0; q < COUNT_OF(kinds); q++)
        for (size_t i = 0; i < COUNT_OF(of_b); i++)
            for (size_t t = 0; t < COUNT_OF(steps); t++)
                for (int e = 0; e <= 255; e++) {
                    const cpu_exponents a = exponents(e, e), b = exponents(of_b[i], of_b[i]);
                    const bool expected = are_normal(kinds[q].fraction, steps[t], a, b);
                    const bool ab = tgl_cpu_words_in_range(kinds[q].kind, steps[t], a, b);
                    const bool ba = tgl_cpu_words_in_range(kinds[q].kind, steps[t], b, a);
                    if (ab != expected || ba != expected)
                        fail_msg("kind %d, exponents %d and %d, %d steps", kinds[q].kind, e,
                                 of_b[i], (int)steps[t]);
                    permitted += expected;
                }
    assert_true(permitted > 1000);
}

/* Both the least and the greatest element can exclude words, each by a condition of its own. */
static void a_wide_range_counts_at_both_ends(void **state)
{
    (void)state;
    const cpu_exponents one = exponents(BIAS, BIAS);
    for (int smallest = 0; smallest <= BIAS; smallest++)
        for (int largest = BIAS; largest <= 255; largest++)
            for (size_t q = 0; q < COUNT_OF(kinds); q++) {
                const cpu_exponents wide = exponents(smallest, largest);
                assert_int_equal(tgl_cpu_words_in_range(kinds[q].kind, 64, wide, one),
                                 are_normal(kinds[q].fraction, 64, wide, one));
                assert_int_equal(tgl_cpu_words_in_range(kinds[q].kind, 64, one, wide),
                                 are_normal(kinds[q].fraction, 64, one, wide));
            }
}

/* Blocks of zeros have no least element. */
static void zeros_are_permitted(void **state)
{
    (void)state;
    const cpu_exponents zeros = exponents(255, 0), tiny = exponents(0, 1), inf = exponents(1, 255);
    for (size_t q = 0; q < COUNT_OF(kinds); q++) {
        assert_true(tgl_cpu_words_in_range(kinds[q].kind, 64, zeros, tiny));
        assert_true(tgl_cpu_words_in_range(kinds[q].kind, 64, tiny, zeros));
        assert_false(tgl_cpu_words_in_range(kinds[q].kind, 64, zeros, inf));
        assert_false(tgl_cpu_words_in_range(kinds[q].kind, 64, inf, zeros));
    }
}

/* ---- Digits ---------------------------------------------------------------------------------- */

/* The expected values were computed by hand from the formula in multiply_words.c. */
static void the_error_of_digits_is_bounded_by_the_formula(void **state)
{
    (void)state;
    static const struct {
        int64_t k;
        cpu_exponents a, b;
        bool fewer;
        double error; /* in u S */
    } table[] = {
        /* (2^15 (1.02) + 2^14 + 1/4) / (2^8 1.49^2) */
        {1, {.large = {1}}, {.large = {1}}, false, 49807.61 / (256 * 2.2201)},
        /* without the product of middle digit and low digit, the error grows by 2^22 */
        {1, {.large = {1}}, {.large = {1}}, true, (49807.61 + 4194304) / (256 * 2.2201)},
        /* with two steps, the error doubles, and so does S if both lines have large elements
         * there */
        {2, {.large = {2}}, {.large = {2}}, false, 2 * 49807.61 / (256 * 2 * 2.2201)},
        /* the sums of the highest digits add 2^15 for each unit */
        {1,
         {.sum = 100, .large = {1}},
         {.sum = 27, .large = {1}},
         false,
         (49807.61 + 32768 * 127) / (256 * 2.2201)},
        /* elements of A and of B on all five levels, whose widths are 1.49, 2, 4, 8 and 16 */
        {1,
         {.large = {1, 1, 1, 1, 1}},
         {.large = {1, 1, 1, 1, 1}},
         false,
         49807.61 / (256 * 31.49 * 31.49)},
        {1, {.large = {1, 1}}, {.large = {1, 1, 1}}, false, 49807.61 / (256 * 3.49 * 7.49)},
        /* at least 3 + 2 - 4 = 1 of the 4 steps has large elements in both lines */
        {4, {.large = {3}}, {.large = {2}}, false, 4 * 49807.61 / (256 * 2.2201)},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const double error =
            tgl_cpu_digit_error(table[i].k, &table[i].a, &table[i].b, table[i].fewer);
        if (fabs(error / table[i].error - 1) > 1e-9)
            fail_msg("row %d: %.9g instead of %.9g", (int)i, error, table[i].error);
    }
    const cpu_exponents half = {.large = {2}};
    assert_true(isinf(tgl_cpu_digit_error(4, &half, &half, false))); /* they may miss each other */
}

enum { STEPS = 64 };

/* A line as digits, and what packing finds out about it. */
typedef struct digit_line {
    double exact[STEPS]; /* in units of the integers */
    int digits[CPU_DIGITS][STEPS];
    cpu_exponents found;
} digit_line;

/* Random elements, each divided by a power of two of up to 2^octaves; the first and greatest one is
 * CPU_DIGITS_MAX. */
static digit_line make_line(uint64_t seed, int octaves)
{
    digit_line line = {.found = {.sum = 0}};
    random_state random;
    random_seed(&random, seed, 0);
    for (int p = 0; p < STEPS; p++) {
        const double scale = ldexp(1, -(int)random_int(&random, 0, octaves));
        const double x = 2 * random_unit(&random) - 1;
        line.exact[p] = p == 0 ? CPU_DIGITS_MAX : x * scale * CPU_DIGITS_MAX;
        int rest = (int)nearbyint(line.exact[p]);
        for (int digit = 0; digit < CPU_DIGITS; digit++) {
            const int low = ((rest + 128) & 255) - 128;
            line.digits[digit][p] = low;
            rest = (rest - low) / 256;
        }
        const int highest = abs(line.digits[CPU_DIGITS - 1][p]);
        line.found.sum += highest;
        for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
            line.found.large[t] += highest >= 2 << t;
    }
    return line;
}

/* No product of two lines has a larger error than the bound says. */
static void the_error_of_digits_is_below_its_bound(void **state)
{
    (void)state;
    double closest = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        const digit_line a = make_line(2 * seed, (int)(seed % 7)),
                         b = make_line(2 * seed + 1, (int)(seed % 5));
        for (int fewer = 0; fewer < 2; fewer++) {
            const double bound = tgl_cpu_digit_error(STEPS, &a.found, &b.found, fewer);
            double error = 0, magnitude = 0;
            for (int p = 0; p < STEPS; p++) {
                double product = 0;
                for (int i = 0; i < CPU_DIGITS; i++)
                    for (int j = 0; j < CPU_DIGITS; j++) {
                        const bool left_out = i + j == 0 || (fewer && i == 1 && j == 0);
                        if (!left_out)
                            product += ldexp(a.digits[i][p] * b.digits[j][p], 8 * (i + j));
                    }
                error += product - a.exact[p] * b.exact[p];
                magnitude += fabs(a.exact[p] * b.exact[p]);
            }
            const double ratio = fabs(error) / (bound * 0x1p-24 * magnitude);
            assert_true(ratio <= 1);
            closest = fmax(closest, ratio);
        }
    }
    assert_true(closest > 1e-3); /* the bound is not far too large */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_sums_are_normal_numbers),
        cmocka_unit_test(a_wide_range_counts_at_both_ends),
        cmocka_unit_test(zeros_are_permitted),
        cmocka_unit_test(the_error_of_digits_is_bounded_by_the_formula),
        cmocka_unit_test(the_error_of_digits_is_below_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
