/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes sums as tensor cores do. An element is decoded into its value, exact as a double, and
 * the exponent by which the hardware aligns it. A row of sums is computed COLUMNS at a time, so
 * that the compiler vectorises the loops.
 */
#include "sim/tensor_cores.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const tgl_tensor_model tgl_tensor_hopper = {25, 23, 1};
const tgl_tensor_model tgl_tensor_hopper_f8 = {13, 13, 1};
const tgl_tensor_model tgl_tensor_ampere = {24, 23, 2};

enum {
    COLUMNS = 64,
    VECTOR = 8,           /* the number of computed columns is a multiple of this */
    ZERO_EXPONENT = -126, /* exponent that the hardware assigns to a zero of any type (MMA-Sim) */
    DOUBLE_BIAS = 1023,
    DOUBLE_FRACTION = 52,
};

/* ---- Elements -------------------------------------------------------------------------------- */

/* The bit fields of an element type. */
typedef struct layout {
    int fraction, exponent_bits; /* number of bits */
    int dropped;                 /* number of low bits that the hardware ignores (TF32: 13) */
    int sign;                    /* bit number of the sign */
    bool has_no_inf;             /* only the largest magnitude is not finite; it is NaN (e4m3) */
} layout;

static const layout layouts[] = {
    [TGL_TENSOR_F16] = {10, 5, 0, 15, false},   [TGL_TENSOR_BF16] = {7, 8, 0, 15, false},
    [TGL_TENSOR_TF32] = {10, 8, 13, 31, false}, [TGL_TENSOR_E4M3] = {3, 4, 0, 7, true},
    [TGL_TENSOR_E5M2] = {2, 5, 0, 7, false},
};
static const layout f32 = {23, 8, 0, 31, false};

typedef struct element {
    double value; /* the value; 0 if it is not finite */
    int exponent;
    bool is_finite;
} element;

/* 2^exponent. The result must be a normal double. */
static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(DOUBLE_BIAS + exponent) << DOUBLE_FRACTION;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static element take_apart(const layout *l, uint32_t bits)
{
    const int exponent_max = (1 << l->exponent_bits) - 1, bias = exponent_max / 2;
    const uint32_t kept = bits >> l->dropped;
    const int field = (int)(kept >> l->fraction) & exponent_max;
    const uint32_t fraction = kept & ((1u << l->fraction) - 1);
    const uint32_t significand = field > 0 ? fraction | 1u << l->fraction : fraction;
    const bool is_special =
        field == exponent_max && (!l->has_no_inf || fraction == (1u << l->fraction) - 1);
    element e = {.exponent = (field > 0 ? field : 1) - bias, .is_finite = !is_special};
    if (!e.is_finite) return e;
    e.value = (double)significand * power_of_two(e.exponent - l->fraction);
    if ((bits >> l->sign & 1) != 0) e.value = -e.value;
    if (significand == 0) e.exponent = ZERO_EXPONENT;
    return e;
}

/* The value of an element with these bits. The value may be Inf or NaN. */
static double value_of(const layout *l, uint32_t bits)
{
    const element e = take_apart(l, bits);
    const bool has_fraction = (bits >> l->dropped & ((1u << l->fraction) - 1)) != 0;
    if (e.is_finite) return e.value;
    if (has_fraction) return (double)NAN;
    return (bits >> l->sign & 1) != 0 ? -(double)INFINITY : (double)INFINITY;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t tgl_tensor_round_tf32(uint32_t bits)
{
    const layout *l = &layouts[TGL_TENSOR_TF32];
    if (!take_apart(l, bits).is_finite) return bits;
    return (bits + (1u << (l->dropped - 1))) & ~((1u << l->dropped) - 1);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Decoded elements of some columns of b, for one step of K. */
typedef struct columns {
    double value[TGL_TENSOR_K_MAX][COLUMNS];
    int16_t exponent[TGL_TENSOR_K_MAX][COLUMNS];
    bool is_finite[COLUMNS];
    int count; /* number of columns, a multiple of VECTOR */
} columns;

typedef struct row {
    double value[TGL_TENSOR_K_MAX];
    int16_t exponent[TGL_TENSOR_K_MAX];
    bool is_finite;
} row;

/* Rounds towards zero to `bits` fraction bits; beyond the range of F32: Inf. The result is never
 * -0. */
static float cut_to_float(double x, int bits)
{
    enum { FRACTION = 23 };
    if (fabs(x) >= 0x1p128) return x > 0 ? INFINITY : -INFINITY;
    float nearest = (float)x;
    if (fabs((double)nearest) > fabs(x)) nearest = float_of(bits_of(nearest) - 1);
    return nearest == 0 ? 0 : float_of(bits_of(nearest) & ~0u << (FRACTION - bits));
}

/* A sum with terms that are not finite. Whatever the order of additions, the result is NaN or
 * Inf. */
static float sum_of_specials(const layout *of_a, const layout *of_b, const uint32_t *a,
                             const uint32_t *b, int n, int k, float sum)
{
    double total = (double)sum;
    for (int p = 0; p < k; p++)
        total += value_of(of_a, a[p]) * value_of(of_b, b[p * n]);
    if (isnan(total)) return float_of(0x7fffffff);
    return total > 0 ? INFINITY : -INFINITY;
}

/* Fused sums of one row; all terms are finite. A term is scaled to an integer of at most
 * fraction_bits + 2 bits, which fits an int. */
static void sum_columns(const tgl_tensor_model *model, int k, const row *a, const columns *b,
                        float *sums)
{
    const int fraction_bits = model->fraction_bits;
    const int count = b->count;
    int16_t top[COLUMNS];
    double scale[COLUMNS], total[COLUMNS];
    for (int j = 0; j < count; j++)
        top[j] = (int16_t)take_apart(&f32, bits_of(sums[j])).exponent;
    for (int p = 0; p < k; p++)
        for (int j = 0; j < count; j++) {
            const int16_t exponent = (int16_t)(a->exponent[p] + b->exponent[p][j]);
            top[j] = exponent > top[j] ? exponent : top[j];
        }
    for (int j = 0; j < count; j++)
        scale[j] = power_of_two(fraction_bits - top[j]);
    for (int j = 0; j < count; j++)
        total[j] = (double)(int)((double)sums[j] * scale[j]);
    for (int p = 0; p < k; p++)
        for (int j = 0; j < count; j++)
            total[j] += (double)(int)(a->value[p] * b->value[p][j] * scale[j]);
    for (int j = 0; j < count; j++)
        sums[j] = cut_to_float(total[j] * power_of_two(top[j] - fraction_bits), model->sum_bits);
}

static void take_row(const layout *l, const uint32_t *a, int k, row *to)
{
    to->is_finite = true;
    for (int p = 0; p < k; p++) {
        const element e = take_apart(l, a[p]);
        to->value[p] = e.value;
        to->exponent[p] = (int16_t)e.exponent;
        to->is_finite = to->is_finite && e.is_finite;
    }
}

/* Decodes `count` columns of b, padded with zero columns to a multiple of VECTOR. */
static void take_columns(const layout *l, const uint32_t *b, int n, int count, int k, columns *to)
{
    to->count = (count + VECTOR - 1) / VECTOR * VECTOR;
    memset(to->is_finite, true, sizeof to->is_finite);
    for (int p = 0; p < k; p++)
        for (int j = 0; j < to->count; j++) {
            const element e = take_apart(l, j < count ? b[p * n + j] : 0);
            to->value[p][j] = e.value;
            to->exponent[p][j] = (int16_t)e.exponent;
            to->is_finite[j] = to->is_finite[j] && e.is_finite;
        }
}

/* Adds the products of one step of K to `count` sums of one row. */
static void multiply_row(const tgl_tensor_model *model, const layout *of_a, const layout *of_b,
                         int n, int count, int k, const uint32_t *a, const uint32_t *b,
                         const columns *taken, float *sums)
{
    row own;
    float fused[COLUMNS] = {0};
    take_row(of_a, a, k, &own);
    for (int j = 0; j < count; j++)
        fused[j] = isfinite(sums[j]) ? sums[j] : 0;
    sum_columns(model, k, &own, taken, fused);
    for (int j = 0; j < count; j++)
        sums[j] = own.is_finite && taken->is_finite[j] && isfinite(sums[j])
                      ? fused[j]
                      : sum_of_specials(of_a, of_b, a, b + j, n, k, sums[j]);
}

void tgl_tensor_multiply(const tgl_tensor_model *model, tgl_tensor_type type, int m, int n, int k,
                         const uint32_t *a, const uint32_t *b, float *sums)
{
    tgl_tensor_multiply_mixed(model, type, type, m, n, k, a, b, sums);
}

void tgl_tensor_multiply_mixed(const tgl_tensor_model *model, tgl_tensor_type type_a,
                               tgl_tensor_type type_b, int m, int n, int k, const uint32_t *a,
                               const uint32_t *b, float *sums)
{
    const layout *of_a = &layouts[type_a], *of_b = &layouts[type_b];
    const int step = k / model->steps;
    columns taken;
    for (int first = 0; first < n; first += COLUMNS) {
        const int count = n - first < COLUMNS ? n - first : COLUMNS;
        for (int p = 0; p < k; p += step) {
            const uint32_t *own = b + p * n + first;
            take_columns(of_b, own, n, count, step, &taken);
            for (int i = 0; i < m; i++)
                multiply_row(model, of_a, of_b, n, count, step, a + i * k + p, own, &taken,
                             sums + i * n + first);
        }
    }
}

void tgl_tensor_multiply_f64(int m, int n, int k, const double *a, const double *b, double *sums)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                sums[i * n + j] = fma(a[i * k + p], b[p * n + j], sums[i * n + j]);
}

/* The lowest byte as a signed number (two's complement). */
static int signed_byte(uint32_t bits)
{
    return (int)((bits & 0xff) ^ 0x80) - 0x80;
}

void tgl_tensor_multiply_s8(int m, int n, int k, const uint32_t *a, const uint32_t *b,
                            uint32_t *sums)
{
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++) {
            const int own = signed_byte(a[i * k + p]);
            for (int j = 0; j < n; j++)
                sums[i * n + j] += (uint32_t)(own * signed_byte(b[p * n + j]));
        }
}
