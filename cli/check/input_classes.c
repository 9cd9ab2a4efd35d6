/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of classes of inputs. input_classes.h explains lines (rows of A and columns of B), the
 * kernel family accurate, and its words.
 */
#include "input_classes.h"

#include <float.h>
#include <math.h>

/* ---- Elements -------------------------------------------------------------------------------- */

static double unit(random_state *r, double scale)
{
    return scale * random_unit(r);
}

static double symmetric(random_state *r, double scale)
{
    return scale * (2 * random_unit(r) - 1);
}

static double normal(random_state *r, double scale)
{
    return scale * random_normal(r);
}

static double wide(random_state *r, double phi)
{
    return (random_unit(r) - 0.5) * exp(phi * random_normal(r));
}

static double one(random_state *r, double value)
{
    (void)r;
    return value;
}

static float *a_at(const class_inputs *x, int64_t row, int64_t p)
{
    return &x->A[row * x->k + p];
}

static float *b_at(const class_inputs *x, int64_t p, int64_t col)
{
    return &x->B[p * x->n + col];
}

/* ---- Scales ---------------------------------------------------------------------------------- */

/* The factor for a line: successive lines are scaled by 2^-exponent, 1 and 2^exponent in turn. */
static float scale_of_line(int64_t line, int exponent)
{
    return ldexpf(1, (int)(line % 3 - 1) * exponent);
}

static void scale_rows(class_inputs *x, int exponent)
{
    for (int64_t i = 0; i < x->m * x->k; i++)
        x->A[i] *= scale_of_line(i / x->k, exponent);
}

static void scale_columns(class_inputs *x, int exponent)
{
    for (int64_t i = 0; i < x->k * x->n; i++)
        x->B[i] *= scale_of_line(i % x->n, exponent);
}

static void scale_both(class_inputs *x, int exponent)
{
    scale_rows(x, exponent);
    scale_columns(x, -exponent);
}

/* A := A*S and B := S^-1*B, where S is a diagonal matrix of powers of two from 2^-exponent to
 * 2^exponent. The products are as large as without S. But the elements of a row of A, or of a
 * column of B, have very different magnitudes, so a fixed-point scheme with one scale per line
 * loses the small ones. */
static void scale_depth(class_inputs *x, int exponent)
{
    for (int64_t p = 0; p < x->k; p++) {
        const int e = (int)(p * 37 % (2 * exponent + 1)) - exponent;
        for (int64_t row = 0; row < x->m; row++)
            *a_at(x, row, p) *= ldexpf(1, e);
        for (int64_t col = 0; col < x->n; col++)
            *b_at(x, p, col) *= ldexpf(1, -e);
    }
}

static void scale(float *X, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++)
        X[i] *= factor;
}

static void scale_a(class_inputs *x, int exponent)
{
    scale(x->A, x->m * x->k, ldexpf(1, exponent));
}

/* Scales A by 2^exponent and B by 2^-(exponent + 30). A may become denormal; the products do
 * not. */
static void scale_a_and_back(class_inputs *x, int exponent)
{
    scale_a(x, exponent);
    scale(x->B, x->k * x->n, ldexpf(1, -exponent - 30));
}

/* ---- Cancellation ---------------------------------------------------------------------------- */

static void hilbert(class_inputs *x, int unused)
{
    (void)unused;
    for (int64_t p = 0; p < x->k; p++) {
        for (int64_t row = 0; row < x->m; row++)
            *a_at(x, row, p) = (float)(1.0 / (double)(row + p + 1));
        for (int64_t col = 0; col < x->n; col++)
            *b_at(x, p, col) = (float)((p % 2 == 0 ? 1.0 : -1.0) / (double)(p + col + 1));
    }
}

/* diagonal(): d[i] = 2^(exponent*i/k). reflected(): element (i, j) of H(v)*D*H(w) or, if v_first is
 * false, of H(w)*D*H(v). D is the diagonal matrix of d. H(v) = I - 2*v*v^T is the reflection along
 * the unit vector v = (1, -1, 1, ...)/sqrt(k); w = (1, 1, ...)/sqrt(k). sum: the sum of
 * v[i]*d[i]*w[i], see alternating_sum(). */
static double diagonal(int64_t i, int64_t k, int exponent)
{
    return exp2((double)exponent * (double)i / (double)k);
}

static double reflected(int64_t i, int64_t j, int64_t k, int exponent, bool v_first, double sum)
{
    const double length = 1 / sqrt((double)k);
    const double sign_i = i % 2 == 0 ? 1 : -1, sign_j = j % 2 == 0 ? 1 : -1;
    const double left = length * (v_first ? sign_i : 1), right = length * (v_first ? 1 : sign_j);
    const double left_j = length * (v_first ? sign_j : 1),
                 right_i = length * (v_first ? 1 : sign_i);
    const double di = diagonal(i, k, exponent), dj = diagonal(j, k, exponent);
    return (i == j ? di : 0) - 2 * left * left_j * dj - 2 * di * right_i * right +
           4 * left * sum * right;
}

static double alternating_sum(int64_t k, int exponent)
{
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += (i % 2 == 0 ? 1 : -1) * diagonal(i, k, exponent) / (double)k;
    return sum;
}

/* A gets rows of a matrix with condition number 2^exponent, and B columns of its inverse. */
static void inverse(class_inputs *x, int exponent)
{
    const double sum = alternating_sum(x->k, exponent);
    const double sum_of_inverse = alternating_sum(x->k, -exponent);
    for (int64_t p = 0; p < x->k; p++) {
        for (int64_t row = 0; row < x->m; row++)
            *a_at(x, row, p) = (float)reflected(row, p, x->k, exponent, true, sum);
        for (int64_t col = 0; col < x->n; col++)
            *b_at(x, p, col) = (float)reflected(p, col, x->k, -exponent, false, sum_of_inverse);
    }
}

/* ---- Extremes -------------------------------------------------------------------------------- */

static void huge_elements(class_inputs *x, int exponent)
{
    for (int64_t row = 0; row < x->m; row += 5)
        *a_at(x, row, (row + 17) % x->k) = ldexpf(1, exponent);
}

static void zero_lines(class_inputs *x, int unused)
{
    (void)unused;
    for (int64_t i = 0; i < x->m * x->k; i++)
        if (i / x->k % 7 == 0) x->A[i] = i % 2 == 0 ? 0.0f : -0.0f;
    for (int64_t i = 0; i < x->k * x->n; i++)
        if (i % x->n % 3 == 0) x->B[i] = 0;
}

static void identity(class_inputs *x, int unused)
{
    (void)unused;
    for (int64_t i = 0; i < x->k * x->n; i++)
        x->B[i] = i / x->n == i % x->n ? 1 : 0;
}

/* A[i][7*i mod k] = 1, and all other elements of A are 0: row i of the product equals row 7*i mod k
 * of B. */
static void one_hot(class_inputs *x, int unused)
{
    (void)unused;
    for (int64_t i = 0; i < x->m * x->k; i++)
        x->A[i] = i / x->k * 7 % x->k == i % x->k ? 1 : 0;
}

/* Scales A by the greatest number of F32, and B by 2^exponent. Elements are drawn from (-1, 1), so
 * none overflows. */
static void near_top(class_inputs *x, int exponent)
{
    scale(x->A, x->m * x->k, FLT_MAX);
    scale(x->B, x->k * x->n, ldexpf(1, exponent));
}

/* Partial sums exceed the greatest number of F32, but the complete sums do not. */
static void overflow_midway(class_inputs *x, int exponent)
{
    for (int64_t i = 0; i < x->m * x->k; i++)
        x->A[i] = ldexpf(i % x->k < x->k / 2 ? 1.5f : -1.5f, exponent);
}

static void inf_or_nan_in(float *line, int64_t step, int64_t count, int which)
{
    static const float values[] = {INFINITY, -INFINITY, NAN};
    line[0] = line[(count - 1) * step] = line[count / 2 * step] = values[which];
}

/* Puts Inf, -Inf or NaN at the beginning, the middle and the end of the first row, a middle row and
 * the last row of A. */
static void not_finite_in_a(class_inputs *x, int which)
{
    const int64_t rows[] = {0, x->m / 2 + 3, x->m - 1};
    for (int i = 0; i < 3; i++)
        inf_or_nan_in(a_at(x, rows[i], 0), 1, x->k, which);
    for (int64_t p = 0; p < x->k; p += 2) /* so that some products are Inf * 0 */
        *b_at(x, p, 1) = 0;
}

static void not_finite_in_b(class_inputs *x, int which)
{
    const int64_t columns[] = {0, x->n / 2 + 3, x->n - 1};
    for (int i = 0; i < 3; i++)
        inf_or_nan_in(b_at(x, 0, columns[i]), x->n, x->k, which);
    for (int64_t p = 0; p < x->k; p += 2)
        *a_at(x, 1, p) = 0;
}

static void not_finite_in_both(class_inputs *x, int which)
{
    not_finite_in_a(x, which);
    not_finite_in_b(x, (which + 1) % 3);
}

static void panel_of_nan(class_inputs *x, int rows)
{
    for (int64_t i = 0; i < (rows < x->m / 2 ? rows : x->m / 2) * x->k; i++)
        x->A[i] = NAN;
}

/* ---- Integers -------------------------------------------------------------------------------- */

/* A gets integers below 2^11 and B integers up to 7, of which at most 1024 in a column are not 0:
 * the sums of magnitudes stay below 2^11 * 7 * 1024 < 2^24. */
static void integers_of_11_bits(class_inputs *x, int unused)
{
    (void)unused;
    const int64_t step = x->k / 1024 + 1;
    for (int64_t i = 0; i < x->m * x->k; i++)
        x->A[i] = truncf(x->A[i] * 2048);
    for (int64_t i = 0; i < x->k * x->n; i++)
        x->B[i] = i / x->n % step == 0 ? truncf(x->B[i] * 8) : 0;
}

/* Each row of A has three elements that are 1 or -1, and zeros; B has integers below 2^22. */
static void integers_of_22_bits(class_inputs *x, int unused)
{
    (void)unused;
    for (int64_t i = 0; i < x->m * x->k; i++) {
        const int64_t step = x->k / 3, p = i % x->k;
        x->A[i] = p % step == i / x->k % step && p / step < 3 ? copysignf(1, x->A[i]) : 0;
    }
    for (int64_t i = 0; i < x->k * x->n; i++)
        x->B[i] = truncf(x->B[i] * 0x1p22f);
}

/* ---- Inputs that are hard to split into words ------------------------------------------------ */

enum {
    PANEL = 64,    /* kernels of the family accurate list the elements of PANEL lines that are too
                      small for words */
    FULL = 127,    /* maximum length of such a list */
    SMALL = -40,   /* exponent of elements that are too small for words if their line also has a
                      1 */
    SMALLER = -35, /* exponent of elements whose products with elements of 2^SMALL are not
                      denormal */
    ROW = 7,
    COL = 5, /* the row and the column of a panel that are changed */
};

/* A panel is PANEL successive rows of A or columns of B. In each panel, row ROW of A becomes 1
 * except for `count` small elements. Column COL of B becomes 0 wherever that row is 1. The element
 * of the product in row ROW and column COL is therefore the sum of the products of the small
 * elements. */
static void meet_small_ones(class_inputs *x, int count)
{
    const int64_t step = x->k / count > 1 ? x->k / count : 1;
    for (int64_t p = 0; p < x->k; p++) {
        const bool is_small = p % step == step - 1 && p / step < count;
        for (int64_t row = ROW; row < x->m; row += PANEL)
            *a_at(x, row, p) = is_small ? ldexpf(*a_at(x, row, p), SMALL) : 1;
        for (int64_t col = COL; col < x->n; col += PANEL)
            if (!is_small) *b_at(x, p, col) = 0;
    }
}

/* Like meet_small_ones(), but the columns COL of B are scaled by 2^SMALLER, so that small elements
 * of A meet small elements of B. At index 0 along k these columns have a 1, which meets a 0 of A
 * and adds nothing. */
static void both_are_small(class_inputs *x, int count)
{
    meet_small_ones(x, count);
    for (int64_t p = 0; p < x->k; p++)
        for (int64_t col = COL; col < x->n; col += PANEL)
            *b_at(x, p, col) = p == 0 ? 1 : ldexpf(*b_at(x, p, col), SMALLER);
    for (int64_t row = ROW; row < x->m; row += PANEL)
        *a_at(x, row, 0) = 0;
}

/* Along k, the first of each 16 elements of A is 1 and the second is 0. Of each 16 elements of B,
 * the first is 0 and the second is 1. All other elements are scaled by 2^exponent, and two words
 * can still represent them. Tensor cores align the products of an instruction to the largest
 * exponent among these products. If the products of 1 and 0 counted with the exponent of the 1, the
 * other products would be truncated to few bits or to 0. */
static void zeros_beside_small(class_inputs *x, int exponent)
{
    enum { STEP = 16 }; /* K of a wgmma instruction */
    for (int64_t i = 0; i < x->m * x->k; i++) {
        const int64_t at = i % x->k % STEP;
        x->A[i] = at == 0 ? 1 : at == 1 ? 0 : ldexpf(0.5f + x->A[i] / 2, exponent);
    }
    for (int64_t i = 0; i < x->k * x->n; i++) {
        const int64_t at = i / x->n % STEP;
        x->B[i] = at == 1 ? 1 : at == 0 ? 0 : ldexpf(0.5f + x->B[i] / 2, exponent);
    }
}

/* ---- The table ------------------------------------------------------------------------------- */

enum { MEAN = CLASS_IN_MEAN, DEPTHS = CLASS_DEPTHS, EXACT = CLASS_EXACT };

/* Columns: name; flags; draw() and its parameter; change() and its argument; alpha; beta. */
// clang-format off
static const input_class classes[] = {
    {"U(0,1)",                    MEAN | DEPTHS, unit,      1, NULL, 0, 1, 0},
    {"U(-1,1)",                   MEAN | DEPTHS, symmetric, 1, NULL, 0, 1, 0},
    {"N(0,1)",                    MEAN | DEPTHS, normal,    1, NULL, 0, 1, 0},
    {"wide exponents, phi 1",     MEAN,  wide,      1, NULL, 0, 1, 0},
    {"wide exponents, phi 2",     MEAN,  wide,      2, NULL, 0, 1, 0},
    {"wide exponents, phi 4",     MEAN,  wide,      4, NULL, 0, 1, 0},
    {"rows by 2^+-60",            MEAN,  symmetric, 1, scale_rows, 60, 1, 0},
    {"columns by 2^+-60",         MEAN,  symmetric, 1, scale_columns, 60, 1, 0},
    {"both by 2^+-60",            MEAN,  symmetric, 1, scale_both, 60, 1, 0},
    {"both by 2^+-120",           MEAN,  symmetric, 1, scale_both, 120, 1, 0},
    {"Hilbert, alternating",      MEAN,  one,       1, hilbert, 0, 1, 0},
    {"A*inv(A), condition 2^20",  MEAN,  one,       1, inverse, 20, 1, 0},
    {"denormal inputs",           MEAN,  symmetric, 1, scale_a_and_back, -130, 1, 0},
    {"denormal results",          0,     symmetric, 0x1p-69, NULL, 0, 1, 0},
    {"a huge element in a row",   MEAN,  symmetric, 1, huge_elements, 100, 1, 0},
    {"rows and columns of zeros", MEAN,  symmetric, 1, zero_lines, 0, 1, 0},
    {"A*I",                       EXACT, symmetric, 1, identity, 0, 1, 0},
    {"one-hot rows",              EXACT, symmetric, 1, one_hot, 0, 1, 0},
    {"near FLT_MAX",              MEAN,  symmetric, 1, near_top, -8, 1, 0},
    {"overflow of results",       0,     symmetric, 1, scale_a, 126, 1, 0},
    {"overflow midway",           0,     unit,      1, overflow_midway, 126, 1, 0},
    {"integers of 11 bits",       EXACT, symmetric, 1, integers_of_11_bits, 0, 1, 0},
    {"integers of 22 bits",       EXACT, symmetric, 1, integers_of_22_bits, 0, 1, 0},
    {"depth by 2^+-10",           MEAN,  symmetric, 1, scale_depth, 10, 1, 0},
    {"depth by 2^+-40",           0,     symmetric, 1, scale_depth, 40, 1, 0},
    {"1 small element to meet",   0,     symmetric, 1, meet_small_ones, 1, 1, 0},
    {"a full list of them",       0,     symmetric, 1, meet_small_ones, FULL, 1, 0},
    {"one more than a list has",  0,     symmetric, 1, meet_small_ones, FULL + 1, 1, 0},
    {"small elements that meet",  0,     symmetric, 1, both_are_small, FULL, 1, 0},
    {"zeros beside small elements", 0,   unit,      1, zeros_beside_small, -26, 1, 0},
    {"alpha of 1e38",             0,     symmetric, 1e-18, NULL, 0, 1e38, 0},
    {"alpha of 1e-38",            0,     symmetric, 1e18, NULL, 0, 1e-38, 0},
    {"beta*C far larger",         0,     symmetric, 1, NULL, 0, 1, 1e30},
    {"Inf in A",                  0,     symmetric, 1, not_finite_in_a, 0, 1, 0},
    {"Inf in B",                  0,     symmetric, 1, not_finite_in_b, 0, 1, 0},
    {"NaN in A",                  0,     symmetric, 1, not_finite_in_a, 2, 1, 0},
    {"NaN in B",                  0,     symmetric, 1, not_finite_in_b, 2, 1, 0},
    {"Inf and -Inf in A and B",   0,     symmetric, 1, not_finite_in_both, 0, 1, 0},
    {"-Inf and NaN in A and B",   0,     symmetric, 1, not_finite_in_both, 1, 1, 0},
    {"a panel of NaN",            0,     symmetric, 1, panel_of_nan, PANEL, 1, 0},
};
// clang-format on
enum { CLASSES = sizeof classes / sizeof classes[0] };

const input_class *input_class_at(int index)
{
    return index >= 0 && index < CLASSES ? &classes[index] : NULL;
}

static float fit_to_f32(double x)
{
    return fabs(x) > FLT_MAX ? (float)copysign(FLT_MAX, x) : (float)x;
}

void input_class_fill(const input_class *c, random_state *r, class_inputs *x)
{
    x->alpha = c->alpha;
    x->beta = c->beta;
    for (int64_t i = 0; i < x->m * x->k; i++)
        x->A[i] = fit_to_f32(c->draw(r, c->parameter));
    for (int64_t i = 0; i < x->k * x->n; i++)
        x->B[i] = fit_to_f32(c->draw(r, c->parameter));
    for (int64_t i = 0; i < x->m * x->n; i++)
        x->C[i] = (float)(2 * random_unit(r) - 1);
    if (c->change != NULL) c->change(x, c->argument);
}
