/* SPDX-License-Identifier: Apache-2.0
 *
 * The family accurate, mostly with integers, whose results are exact: all configurations, layouts
 * and alignments, batches, epilogues, many tiles, sums of one product, and repeated runs.
 */
#include "accurate_case.h"

/* ---- Exact products -------------------------------------------------------------------------- */

/* The right value of element i of D. Its sum is exact in FP32, and so is D. */
static double rounded_sum(const product *p, const data *d, int64_t i)
{
    const int z = (int)(i / ((int64_t)p->m * p->n));
    const int row = (int)(i / p->n % p->m), col = (int)(i % p->n);
    const truth t = truth_of(p, d, z, row, col);
    double x = (p->alpha != 0 ? p->alpha * t.sum : 0) + (p->beta != 0 ? p->beta * d->c[i] : 0);
    if (p->bias != TGL_BIAS_NONE) x += d->bias[p->bias == TGL_BIAS_ROW ? row : col];
    if (p->activation == TGL_ACTIVATION_RELU && x < 0) x = 0;
    return p->residual ? x + d->residual[i] : x;
}

static void check_exact(tgl_device *dev, const product *p, const data *d)
{
    float *result = compute(dev, p, d);
    for (int64_t i = 0; i < (int64_t)batch_of(p) * p->m * p->n; i++)
        if (result[i] != rounded_sum(p, d, i))
            fail_msg("%s %s %dx%dx%d %c%c: element %lld is %.9g, not %.9g", p->name, p->kernel,
                     p->m, p->n, p->k, p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', (long long)i,
                     result[i], rounded_sum(p, d, i));
    free(result);
}

static double of_22_bits(void)
{
    return floor(uniform() * 0x1p23) - 0x1p22;
}

/* Fills A and B so that sums of magnitudes are 2^24 - 2^13 - 1, the limit (docs/accuracy.md), and
 * those of the words hi*hi 2^24 - 2^10, because hi of 2^21 + 2^10 + 1 is 2^21 + 2^11. */
static void fill_to_the_limit(const product *p, data *d, bool a_is_short)
{
    static const float limit[2][2] = {{0x1p21f + 0x1p10f + 1, 7}, {2081784, 1}};
    for (int line = 0; line < p->m; line++)
        for (int i = 0; i < 2; i++) {
            *a_at(p, d, line, i) = limit[i][a_is_short];
            *b_at(p, d, i, line) = limit[i][!a_is_short];
        }
}

/* Three elements of 1 or -1 in each line of one operand, and all of 22 bits in the other. */
static void fill_with_22_bits(const product *p, data *d, bool a_is_short)
{
    fill(a_is_short ? d->b : d->a, (int64_t)p->m * p->k, of_22_bits);
    for (int line = 0; line < p->m; line++)
        for (int i = 0; i < 3; i++) {
            const int k = (7 * line + 85 * i) % p->k;
            *(a_is_short ? a_at(p, d, line, k) : b_at(p, d, k, line)) = (line + i) % 2 * 2 - 1;
        }
}

static void fill_with_11_bits(const product *p, data *d, bool a_is_short)
{
    for (int64_t i = 0; i < (int64_t)p->m * p->k; i++) {
        d->a[i] = (float)(a_is_short ? i % 2048 : i % 9);
        d->b[i] = (float)(a_is_short ? i % 9 : i % 2048);
    }
}

/* One operand has up to 11 bits, the other up to 22, and sums of magnitudes stay below 2^24 - 2^13.
 */
static void integers(void **state)
{
    for (int way = 0; way < 6; way++) {
        if (!is_mine()) continue;
        product p = square("integers", 256);
        data d = make_data(&p);
        const bool a_is_short = way % 2 == 0;
        if (way / 2 == 0) fill_with_22_bits(&p, &d, a_is_short);
        if (way / 2 == 1) fill_with_11_bits(&p, &d, a_is_short);
        if (way / 2 == 2) fill_to_the_limit(&p, &d, a_is_short);
        check_exact(*state, &p, &d);
        free_data(&d);
    }
}

/* ---- Lines with one element ------------------------------------------------------------------ */

/* The only element of a line that may differ from 0: 1 if `is_unit`, else of an exponent from -140
 * (denormal) to 126. In some lines it is 0, too. */
static float only_element(int line, bool is_unit, int shift)
{
    static const int exponents[] = {0, 1, -13, 27, -60, 61, 126, -126, -140, 90};
    if (line % 11 == 10) return 0;
    if (is_unit) return 1;
    return ldexpf(1 + (float)uniform(), exponents[(line + shift) % 10]);
}

/* Makes op(A), or op(B), a selection (a matrix with at most one element in each line). way 0: a
 * diagonal; 1: a permutation of ones; 2: all elements lie at three values of k. */
static void select_lines(const product *p, data *d, bool is_b, int way, int shift)
{
    const int lines = is_b ? p->n : p->m;
    memset(is_b ? d->b : d->a, 0, (size_t)lines * (size_t)p->k * sizeof(float));
    for (int i = 0; i < lines; i++) {
        const int k = way == 0 ? i : way == 1 ? (i * 37 + 5) % p->k : i % 3 * 100;
        *(is_b ? b_at(p, d, k, i) : a_at(p, d, i, k)) = only_element(i, way == 1, shift);
    }
}

/* Diagonals, permutations, and selections at three values of k on either side, or on both: each sum
 * is at most one product, and D is that product rounded once, or Inf. */
static void selections(void **state)
{
    for (int way = 0; way < 18; way++) {
        if (!is_mine()) continue;
        product p = square("selections", 264);
        p.m = 130, p.n = 140;
        p.kernel = accurate_kernels[way % ACCURATE_KERNELS];
        p.trans_a = way % 2 != 0;
        p.trans_b = way / 2 % 2 != 0;
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        if (way / 3 % 3 != 1) select_lines(&p, &d, false, way % 3, 0);
        if (way / 3 % 3 != 0) select_lines(&p, &d, true, way / 9, 3);
        float *result = compute(*state, &p, &d);
        for (int i = 0; i < p.m * p.n; i++) {
            const truth t = truth_of(&p, &d, 0, i / p.n, i % p.n);
            if (result[i] != t.ffma)
                fail_msg("selections %d: D[%d][%d] is %.9g, not %.9g", way, i / p.n, i % p.n,
                         result[i], t.ffma);
        }
        free(result);
        free_data(&d);
    }
}

/* ---- All kinds of products ------------------------------------------------------------------- */

static double of_small_integers(void)
{
    return floor(uniform() * 9) - 4;
}

/* Products by every configuration in every layout, with partial tiles. */
static void configurations(void **state)
{
    for (size_t i = 0; i < ACCURATE_KERNELS; i++)
        for (int layout = 0; layout < 4; layout++) {
            if (!is_mine()) continue;
            product p = {.name = "configurations",
                         .kernel = accurate_kernels[i],
                         .m = 390,
                         .n = 204,
                         .k = 64 * 5 + (layout == 2 ? 8 : 0),
                         .trans_a = layout % 2 != 0,
                         .trans_b = layout / 2 != 0,
                         .alpha = 1,
                         .beta = layout % 2 != 0 ? -1 : 0};
            data d = make_data(&p);
            fill_both(&p, &d, of_small_integers);
            fill(d.c, (int64_t)p.m * p.n, of_small_integers);
            check_exact(*state, &p, &d);
            free_data(&d);
        }
}

static void alignments(void **state)
{
    for (int way = 0; way < 16; way++) {
        if (!is_mine()) continue;
        product p = square("alignments", 257 + way * 13);
        p.m = 70 + way, p.n = 131 - way;
        p.kernel = "accurate_128x64";
        p.trans_a = way % 2 != 0;
        p.trans_b = way / 2 % 2 != 0;
        p.pad = way / 4 % 4;
        p.skip = way % 5;
        data d = make_data(&p);
        fill_both(&p, &d, of_small_integers);
        check_exact(*state, &p, &d);
        free_data(&d);
    }
}

enum { FIRST = 0, NOT_FINITE, LISTED, PROBLEMS };

/* Problem number z of a batch alone. */
static data problem_of_batch(const product *p, const data *d, int z)
{
    data one = *d;
    if (!p->shares_a) one.a += (int64_t)z * p->m * p->k;
    one.b += (int64_t)z * p->k * p->n;
    return one;
}

/* Problems differ in scales unless they share A. One has a NaN. In another, a row of A and a column
 * of B each have a listed element, and meet a column and a row that are zero elsewhere, so that the
 * result is the product of the listed element alone. */
static void make_problems_differ(const product *p, data *d)
{
    data not_finite = problem_of_batch(p, d, NOT_FINITE), listed = problem_of_batch(p, d, LISTED);
    const data first = problem_of_batch(p, d, FIRST);
    for (int i = 0; i < p->m * p->k && !p->shares_a; i++)
        not_finite.a[i] *= 0x1p-90f, listed.a[i] *= 0x1p10f;
    for (int i = 0; i < p->k * p->n && !p->shares_a; i++)
        not_finite.b[i] *= 0x1p90f;
    for (int i = 0; i < p->k; i++) {
        *a_at(p, &listed, 5, i) = i == 7 ? 0x1p-40f : 1;
        *b_at(p, &listed, i, 3) = i == 7 ? 3 : 0;
        *b_at(p, &listed, i, 9) = i == 11 ? 0x1p-40f : 1;
        *a_at(p, &listed, 13, i) = i == 11 ? 3 : 0;
    }
    *b_at(p, &first, 7, 3) = -1;
    if (!p->shares_a) *a_at(p, &first, 13, 11) = -1;
    *(p->shares_a ? b_at(p, &not_finite, 9, 70) : a_at(p, &not_finite, 70, 9)) = NAN;
}

static void batches(void **state)
{
    for (int way = 0; way < 8; way++) {
        if (!is_mine()) continue;
        product p = square("batches", 264);
        p.m = 100, p.n = 72, p.batch = PROBLEMS;
        p.kernel = way % 2 != 0 ? "accurate_128x128" : "accurate_128x64";
        p.shares_a = way / 2 % 2 != 0;
        p.trans_a = way / 4 != 0;
        p.trans_b = way % 3 == 0;
        data d = make_data(&p);
        fill_both(&p, &d, of_small_integers);
        make_problems_differ(&p, &d);
        float *result = compute(*state, &p, &d);
        for (int i = 0; i < PROBLEMS * p.m * p.n; i++) {
            const int z = i / (p.m * p.n), row = i / p.n % p.m, col = i % p.n;
            const truth t = truth_of(&p, &d, z, row, col);
            const bool is_right = isnan(t.sum)
                                      ? isnan(result[i])
                                      : fabs(result[i] - t.sum) <= 2 * 0x1p-24 * t.absolute;
            if (!is_right)
                fail_msg("batches %d: D[%d][%d][%d] is %g, not %g", way, z, row, col, result[i],
                         t.sum);
        }
        free(result);
        free_data(&d);
    }
}

static void epilogues(void **state)
{
    for (int way = 0; way < 24; way++) {
        if (!is_mine()) continue;
        product p = square("epilogues", 264);
        p.m = 72, p.n = 104 + way % 2;
        p.kernel = way % 3 == 0 ? "accurate_128x128" : "accurate_128x96";
        p.bias = way % 3;
        p.activation = way / 3 % 2 != 0 ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE;
        p.residual = way / 5 % 2 != 0;
        p.device_scalars = way / 8 % 2 != 0;
        p.separate_d = way / 4 % 2 != 0;
        p.alpha = way % 7 == 6 ? 0 : 2;
        p.beta = way % 5 == 4 ? 0 : -1;
        data d = make_data(&p);
        fill_both(&p, &d, of_small_integers);
        fill(d.c, (int64_t)p.m * p.n, of_small_integers);
        fill(d.bias, p.m > p.n ? p.m : p.n, of_small_integers);
        fill(d.residual, (int64_t)p.m * p.n, of_small_integers);
        check_exact(*state, &p, &d);
        free_data(&d);
    }
}

/* Tests more tiles than resident blocks. Inf in A makes FFMA compute the tiles of two rows of
 * tiles: in row 2, before other tiles of the same block, and in row 10, after them. */
static void many_tiles(void **state)
{
    if (!is_mine()) return;
    product p = square("many tiles", 256);
    p.m = 128 * 12, p.n = 64 * 13;
    p.kernel = "accurate_128x64";
    data d = make_data(&p);
    fill_both(&p, &d, of_small_integers);
    *a_at(&p, &d, 300, 9) = *a_at(&p, &d, 1400, 9) = INFINITY;
    for (int col = 0; col < p.n; col++)
        *b_at(&p, &d, 9, col) = 1;
    float *result = compute(*state, &p, &d);
    for (int64_t i = 0; i < (int64_t)p.m * p.n; i += i % 7 + 1)
        if (result[i] != rounded_sum(&p, &d, i))
            fail_msg("many tiles: element %lld is %.9g", (long long)i, result[i]);
    free(result);
    free_data(&d);
}

/* The same bits, whatever the order in which blocks add to a list: one element of D is the sum of
 * listed elements alone, from several blocks of the pre-pass. */
static void repeats(void **state)
{
    if (!is_mine()) return;
    product p = square("repeats", 2048);
    p.m = p.n = 64;
    p.trans_a = true; /* blocks of few elements along k */
    data d = make_data(&p);
    fill_both(&p, &d, symmetric);
    hide(&p, &d, 9, 12, 100, -40);
    float *first = compute(*state, &p, &d), *second = compute(*state, &p, &d);
    assert_memory_equal(first, second, (size_t)p.m * (size_t)p.n * sizeof(float));
    free(second);
    for (int seed = 0; seed < 4; seed++) {
        char text[8];
        tgl_device *shuffled;
        snprintf(text, sizeof text, "%d", seed);
        setenv("TEGULA_SIM_SEED", text, 1);
        assert_int_equal(setup_test_device((void **)&shuffled), 0);
        unsetenv("TEGULA_SIM_SEED");
        second = compute(shuffled, &p, &d);
        assert_memory_equal(first, second, (size_t)p.m * (size_t)p.n * sizeof(float));
        free(second);
        tgl_device_close(shuffled);
    }
    free(first);
    free_data(&d);
}

int main(int argc, char **argv)
{
    sweep_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations), cmocka_unit_test(integers),
        cmocka_unit_test(alignments),     cmocka_unit_test(batches),
        cmocka_unit_test(epilogues),      cmocka_unit_test(many_tiles),
        cmocka_unit_test(repeats),        cmocka_unit_test(selections),
    };
    return cmocka_run_group_tests(tests, setup_test_device, teardown_device);
}
