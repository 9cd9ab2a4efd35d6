/* SPDX-License-Identifier: Apache-2.0
 *
 * The family accurate with elements that two f16 words do not hold, numbers near the ends of the
 * range, scales, alpha and beta, and Inf and NaN.
 */
#include "accurate_case.h"

static double denormal(void)
{
    return symmetric() * 0x1p-130;
}

/* ---- Elements that two words do not hold ----------------------------------------------------- */

static bool is_ffma(const product *p, const data *d, const float *result)
{
    for (int64_t i = 0; i < (int64_t)p->m * p->n; i++)
        if (result[i] != truth_of(p, d, 0, (int)(i / p->n), (int)(i % p->n)).ffma) return false;
    return true;
}

static void small_elements_alone(void **state)
{
    static const int counts[] = {1, 2, 16, LISTED_MAX, LISTED_MAX + 1};
    static const int exponents[] = {-20, -26, BELOW, -30, -40, -100, -140};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        for (size_t j = 0; j < COUNT_OF(exponents); j++) {
            if (!is_mine()) continue;
            char name[60];
            snprintf(name, sizeof name, "%d of 2^%d", counts[i], exponents[j]);
            product p = square(name, 256);
            data d = make_data(&p);
            fill_both(&p, &d, symmetric);
            hide(&p, &d, 70, 5, counts[i], exponents[j]);
            check_errors(*state, &p, &d, false);
            float *result = compute(*state, &p, &d);
            /* With one element more than a list takes, FFMA computes the tile. */
            if (exponents[j] <= BELOW && is_ffma(&p, &d, result) != (counts[i] > LISTED_MAX))
                fail_msg("%s: the tile is %s", name,
                         counts[i] > LISTED_MAX ? "not exact" : "exact");
            free(result);
            free_data(&d);
        }
}

/* Tests products of two elements that are both below the range of the f16 words. They occur at
 * several k, in all panels (64 lines) of B, because tiles of 160 and 96 columns begin inside
 * panels, and in most panels of A. */
static void small_elements_that_meet(void **state)
{
    for (int way = 0; way < 2 * (int)ACCURATE_KERNELS; way++) {
        if (!is_mine()) continue;
        product p = square("small ones meet", 256);
        p.trans_a = way % 2 != 0;
        p.trans_b = way / 2 % 2 != 0;
        p.kernel = accurate_kernels[way / 2];
        p.m = 200, p.n = 260;
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        for (int row = 3; row < p.m; row += 50)
            for (int col = 7; col < p.n; col += 60)
                for (int i = 0; i < p.k; i++) {
                    /* At k = 10, 20 and 30 both elements are small. At k = 40 only the element of
                     * the row is, and that of the column is 1; at k = 50 only that of the column
                     * is, and that of the row is 1. In every other column the element of the column
                     * is 0 at k = 40 and 50. At any other k one of the two is 0. */
                    const bool is_small = i % 10 == 0 && i > 0 && i <= 50;
                    const float one = col / 60 % 2 == 0 ? 1 : 0;
                    float a = i % 2 == 0 ? 0x1.234p0f : 0, b = i % 2 == 1 ? 0x1.777p0f : 0;
                    if (is_small) a = 0x1.8p-33f + (float)i * 0x1p-45f, b = -0x1.5p-35f;
                    if (i == 40) b = one;
                    if (i == 50) a = 1, b *= one;
                    *a_at(&p, &d, row, i) = a;
                    *b_at(&p, &d, i, col) = b;
                }
        check_errors(*state, &p, &d, false);
        free_data(&d);
    }
}

/* ---- Extremes -------------------------------------------------------------------------------- */

/* Fills one row and column so that their sum is 2^128 - 2^118, but 2^128 + 2^118 without the
 * product of the listed element. */
static void overflow_without_listed(const product *p, data *d)
{
    static const float row[] = {0x1p99f /* listed */, 0x1p127f, 0x1p100f, 0x1p100f, 0x1p100f};
    static const float col[] = {-0x1p20f, 0, 0x1p27f, 0x1p27f, 0x1p18f};
    enum { COUNT = sizeof row / sizeof row[0] };
    for (int i = 0; i < p->k; i++) {
        *a_at(p, d, 70, i) = i < COUNT ? row[i] : 0;
        *b_at(p, d, i, 5) = i < COUNT ? col[i] : 0;
    }
}

static void extremes(void **state)
{
    for (int way = 0; way < 9; way++) {
        static const char *const names[] = {
            "denormal inputs",   "denormal results", "a huge element",
            "zero rows",         "near FLT_MAX",     "overflow midway",
            "denormals and one", "all zero",         "overflow without what is listed"};
        if (!is_mine()) continue;
        product p = square(names[way], 256);
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        for (int i = 0; i < p.k; i++) {
            for (int row = 0; row < p.m; row++) {
                float *x = a_at(&p, &d, row, i);
                if (way == 0) *x = (float)denormal();
                if (way == 1) *x *= 0x1p-70f;
                if (way == 2 && i == 17 && row % 5 == 0) *x = 0x1p100f;
                if (way == 3 && row % 7 == 0) *x = row % 2 == 0 ? 0.0f : -0.0f;
                if (way == 4) *x *= 0x1.fffffep127f;
                if (way == 5) *x = i < 128 ? 0x1.8p127f : -0x1.8p127f;
                if (way == 6) *x = i == 9 ? 1 : (float)denormal();
                if (way == 7) *x = 0;
            }
            for (int col = 0; col < p.n; col++) {
                float *x = b_at(&p, &d, i, col);
                if (way == 0) *x *= 0x1p100f;
                if (way == 1) *x *= 0x1p-68f;
                if (way == 3 && col % 3 == 0) *x = 0;
                if (way == 4) *x *= 0x1p-8f;
                if (way == 5) *x = 1;
                if (way == 7) *x = 0;
            }
        }
        if (way == 8) overflow_without_listed(&p, &d);
        check_errors(*state, &p, &d, false);
        free_data(&d);
    }
}

/* Sums of equal products whose scales exceed the range of FP32 together: far above, far below, and
 * with factors that cancel. At 2^-190 the second factor of unscaled() would be 2^-151, of which a
 * shift by -2 would make 2^-119. */
static void scales_beyond_the_range(void **state)
{
    static const struct {
        int a, b; /* exponents of the elements of A and of B */
        float expected;
    } cases[] = {{126, 120, INFINITY}, {126, 126, INFINITY},  {-95, -95, 0},
                 {-126, -126, 0},      {-149, -149, 0},       {-149, 120, 0x1p-20f},
                 {127, -140, 0x1p-4f}, {-100, -49, 0x1p-140f}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!is_mine()) continue;
        product p = square("scales beyond the range", 512);
        p.n = 64;
        data d = make_data(&p);
        for (int64_t j = 0; j < (int64_t)p.m * p.k; j++)
            d.a[j] = ldexpf(j % 1024 < p.k ? 1 : -1, cases[i].a);
        for (int64_t j = 0; j < (int64_t)p.k * p.n; j++)
            d.b[j] = ldexpf(1, cases[i].b);
        float *result = compute(*state, &p, &d);
        for (int64_t j = 0; j < (int64_t)p.m * p.n; j++) {
            const float expected = j / p.n % 2 == 0 ? cases[i].expected : -cases[i].expected;
            if (result[j] != expected)
                fail_msg("2^%d times 2^%d: D[%d][%d] is %g, not %g", cases[i].a, cases[i].b,
                         (int)(j / p.n), (int)(j % p.n), result[j], expected);
        }
        free(result);
        free_data(&d);
    }
}

static void scalars(void **state)
{
    static const struct {
        float alpha, beta, of_a, of_c;
    } ways[] = {{0x1p126f, 0, 0x1p-100f, 1},
                {0x1p-126f, 0, 0x1p100f, 1},
                {1e38f, 0, 1e-37f, 1},
                {1e-38f, 0, 1e36f, 1},
                {1, 1, 1, 1e30f},
                {-2, 0.5f, 1, 1},
                {1, 1e20f, 1, 1},
                {0, 3, 1, 1}};
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        if (!is_mine()) continue;
        product p = square("scalars", 256);
        data d = make_data(&p);
        p.alpha = ways[way].alpha;
        p.beta = ways[way].beta;
        p.device_scalars = way % 2 != 0;
        fill_both(&p, &d, symmetric);
        for (int64_t i = 0; i < (int64_t)p.m * p.k; i++)
            d.a[i] *= ways[way].of_a;
        for (int64_t i = 0; i < (int64_t)p.m * p.n; i++)
            d.c[i] = (float)symmetric() * ways[way].of_c;
        check_errors(*state, &p, &d, false);
        free_data(&d);
    }
}

/* Inf and NaN in each operand, in different places, for every configuration: the pattern is FFMA's,
 * and the rest exact enough. */
static void inf_and_nan(void **state)
{
    enum { WAYS = 26 };
    static const float values[] = {INFINITY, -INFINITY, NAN};
    for (int way = 0; way < WAYS; way++) {
        if (!is_mine()) continue;
        product p = square("Inf and NaN", 300);
        p.kernel = accurate_kernels[way / 2 % ACCURATE_KERNELS];
        p.m = 260, p.n = 200;
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        const float value = values[way % 3];
        const int which = way / 3 % 6, places[] = {0, 63, 64, 127, 130, 199};
        if (way % 4 < 3) *a_at(&p, &d, places[which], which * 59) = value;
        if (way % 4 > 1) *b_at(&p, &d, which * 40 + 3, places[5 - which]) = -value;
        if (way % 5 == 0) *b_at(&p, &d, which * 59, 11) = 0;
        float *result = compute(*state, &p, &d);
        for (int i = 0; i < p.m * p.n; i++) {
            const truth t = truth_of(&p, &d, 0, i / p.n, i % p.n);
            const bool is_same = isnan(t.ffma) ? isnan(result[i])
                                 : isinf(t.ffma)
                                     ? result[i] == t.ffma
                                     : fabs(result[i] - t.sum) <= 10 * 0x1p-24 * t.absolute;
            if (!is_same)
                fail_msg("Inf and NaN %d, %s: D[%d][%d] is %g, FFMA's is %g", way, p.kernel,
                         i / p.n, i % p.n, result[i], t.ffma);
        }
        free(result);
        free_data(&d);
    }
}

int main(int argc, char **argv)
{
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_elements_alone),
        cmocka_unit_test(small_elements_that_meet),
        cmocka_unit_test(extremes),
        cmocka_unit_test(scales_beyond_the_range),
        cmocka_unit_test(scalars),
        cmocka_unit_test(inf_and_nan),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
