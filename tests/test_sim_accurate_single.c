/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines with few elements in the family accurate. A line is a row of op(A) or a column of op(B).
 * The sums of lines with a single element that is not 0 are those of FFMA, in every tile of
 * every configuration, and such lines leave the tensor cores to the other lines.
 */
#include "accurate_case.h"

/* Single elements of all magnitudes and signs. */
static const float values[] = {1, -0x1.8p126f, 0x1.234566p-20f, -0x1p-149f, 0x1p-126f, -3};

enum {
    WIDTH = 32, /* each group of so many lines has a single line and two with two elements */
    BOTH_SIDES = 3
};

/* Element k of a line, if the line has few elements, else x. */
static float sparse(int line, int k, int length, float x)
{
    const int group = line / WIDTH, first = (group * 37 + 5) % length;
    switch (line % WIDTH) {
    case 5: /* single; the rows and columns of the same group meet */
        return k == first ? values[group % (int)COUNT_OF(values)] : 0;
    case 6: /* two elements that f16 words represent */
        return k == first || k == length - 1 - group ? x : 0;
    case 31: /* two elements of which one is listed */
        return k == first ? 0x1p-40f : k == 100 + group ? x : 0;
    default:
        return x;
    }
}

static bool is_single(int line)
{
    return line % WIDTH == 5;
}

/* The elements of D in single lines are FFMA's, the others the error of the tensor cores. Not
 * all of these are FFMA's: the tensor cores computed them. */
static void check(tgl_device *dev, const product *p, const data *d, int sides)
{
    float *result = compute(dev, p, d);
    int64_t rounded = 0;
    for (int i = 0; i < p->m * p->n; i++) {
        const int row = i / p->n, col = i % p->n;
        const truth t = truth_of(p, d, 0, row, col);
        enum { LISTED = 2 };
        const int roundings = 2 * (p->k / 64 + 1) + 52 + LISTED;
        const double bound = roundings * 0x1p-24 * t.absolute;
        const bool is_one = (sides & 1 && is_single(row)) || (sides & 2 && is_single(col));
        const bool is_right =
            is_one ? result[i] == t.ffma : fabs(result[i] - t.sum) <= bound + 0x1p-149;
        if (!is_right)
            fail_msg("%s, %s, %c%c, sides %d: D[%d][%d] is %a, FFMA's %a", p->name, p->kernel,
                     p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', sides, row, col, result[i],
                     t.ffma);
        rounded += !is_one && result[i] != t.ffma;
    }
    if (rounded == 0) fail_msg("%s, %s: FFMA computed all tiles", p->name, p->kernel);
    free(result);
}

/* Single lines, and lines with one element more, in every tile, of A, of B, and of both. */
static void single_lines_in_every_tile(void **state)
{
    for (int way = 0; way < 2 * (int)ACCURATE_KERNELS; way++) {
        const int second = way / (int)ACCURATE_KERNELS; /* the kernel's second product */
        product p = square("single lines in every tile", 264 + way % 3);
        p.kernel = accurate_kernels[way % (int)ACCURATE_KERNELS];
        p.m = 200, p.n = 230;
        p.trans_a = way % 2 != second;
        p.trans_b = way / 2 % 2 != second;
        data d = make_data(&p);
        const int sides = second ? way % 2 + 1 : BOTH_SIDES;
        fill_both(&p, &d, symmetric);
        for (int k = 0; k < p.k; k++) {
            for (int row = 0; row < p.m && sides & 1; row++)
                *a_at(&p, &d, row, k) = sparse(row, k, p.k, *a_at(&p, &d, row, k));
            for (int col = 0; col < p.n && sides & 2; col++)
                *b_at(&p, &d, k, col) = sparse(col, k, p.k, *b_at(&p, &d, k, col));
        }
        check(*state, &p, &d, sides);
        free_data(&d);
    }
}

/* Permutations: each line is single, and where both operands are, each sum is one product or 0. */
static void every_line_is_single(void **state)
{
    for (int sides = 1; sides <= BOTH_SIDES; sides++) {
        product p = square("every line is single", 256);
        p.kernel = "accurate_128x64";
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        for (int line = 0; line < p.m; line++)
            for (int k = 0; k < p.k; k++) {
                if (sides & 1 && k != line * 37 % p.k) *a_at(&p, &d, line, k) = 0;
                if (sides & 2 && k != line * 91 % p.k) *b_at(&p, &d, k, line) = 0;
            }
        float *result = compute(*state, &p, &d);
        for (int i = 0; i < p.m * p.n; i++) {
            const truth t = truth_of(&p, &d, 0, i / p.n, i % p.n);
            if (result[i] != t.ffma)
                fail_msg("sides %d: D[%d][%d] is %a, not %a", sides, i / p.n, i % p.n, result[i],
                         t.ffma);
        }
        free(result);
        free_data(&d);
    }
}

/* Of 64 lines, 60 are single and 4 have 25 listed elements each: the list does not overflow, which
 * would make FFMA compute the tile. */
static void single_lines_are_not_listed(void **state)
{
    enum { SINGLES = 60, LISTED = 25, LINES = 64 };
    for (int is_b = 0; is_b < 2; is_b++) {
        product p = square("single lines are not listed", 256);
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        for (int line = 0; line < LINES; line++)
            for (int k = 0; k < p.k; k++) {
                float *x = is_b ? b_at(&p, &d, k, line) : a_at(&p, &d, line, k);
                if (line < SINGLES) *x = k == 2 * line ? 7 : 0;
                if (line >= SINGLES && k < LISTED) *x = 0x1.5p-60f;
            }
        float *result = compute(*state, &p, &d);
        int rounded = 0;
        for (int i = 0; i < p.m * p.n; i++)
            rounded += result[i] != truth_of(&p, &d, 0, i / p.n, i % p.n).ffma;
        if (rounded == 0) fail_msg("%s: FFMA computed the tile", is_b ? "B" : "A");
        free(result);
        free_data(&d);
    }
}

/* A single element that is Inf or NaN, and an Inf or NaN that a single element meets: FFMA's. */
static void single_lines_with_inf_and_nan(void **state)
{
    static const float not_finite[] = {INFINITY, -INFINITY, NAN};
    for (int way = 0; way < 6; way++) {
        product p = square("single lines with Inf and NaN", 256);
        data d = make_data(&p);
        fill_both(&p, &d, symmetric);
        const float x = not_finite[way / 2];
        for (int k = 0; k < p.k; k++) {
            *a_at(&p, &d, 70, k) = k == 9 ? (way % 2 == 0 ? x : 2) : 0;
            *b_at(&p, &d, k, 40) = k == 9 ? (way % 2 == 0 ? -1 : x) : 0;
        }
        float *result = compute(*state, &p, &d);
        for (int i = 0; i < p.m * p.n; i++) {
            const truth t = truth_of(&p, &d, 0, i / p.n, i % p.n);
            const bool is_right = isnan(t.ffma) ? isnan(result[i]) : result[i] == t.ffma;
            if (!is_right)
                fail_msg("way %d: D[%d][%d] is %g, not %g", way, i / p.n, i % p.n, result[i],
                         t.ffma);
        }
        free(result);
        free_data(&d);
    }
}

/* The simulator runs blocks in a random order. */
static int open_device(void **state)
{
    setenv("TEGULA_SIM_SEED", "3", 1);
    return setup_test_device(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_lines_in_every_tile),
        cmocka_unit_test(every_line_is_single),
        cmocka_unit_test(single_lines_are_not_listed),
        cmocka_unit_test(single_lines_with_inf_and_nan),
    };
    return cmocka_run_group_tests(tests, open_device, teardown_device);
}
