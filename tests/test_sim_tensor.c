/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of tensor cores, bit for bit: cases worked out by hand from the model, and random
 * ones against a second implementation of it in integers.
 */
#include "sim/tensor_cores.h"
#include "support.h"

#include <math.h>

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

/* ---- By hand --------------------------------------------------------------------------------- */

enum { K_MAX = 16 };

/* One sum: pairs of factors, and the accumulator. */
typedef struct sum {
    tgl_tensor_type type;
    const tgl_tensor_model *model;
    uint32_t a[K_MAX], b[K_MAX];
    uint32_t accumulator, result; /* bits of floats */
} sum;

#define F16_ONE   0x3c00
#define F16_2_12  0x6c00 /* 2^12 */
#define F16_2_M13 0x0800 /* 2^-13 */
#define F16_2_M12 0x0c00
#define F16_INF   0x7c00
#define F16_NAN   0x7e00
#define F16_LEAST 0x0001 /* 2^-24 */
#define BF16_MAX  0x7f7f
#define BF16_ONE  0x3f80
#define ONE       0x3f800000
#define CHIP      &tgl_tensor_hopper
#define OLDER     &tgl_tensor_ampere

static const sum sums[] = {
    {TGL_TENSOR_F16, CHIP, {F16_ONE}, {F16_ONE}, ONE, 0x40000000},
    /* 1 and 2^-25, the last fraction bit that is kept beside 1. The float cuts it, but if the
     * accumulator is -1, the sum is 2^-25. */
    {TGL_TENSOR_F16, CHIP, {F16_ONE, F16_2_M12}, {F16_ONE, F16_2_M13}, 0, ONE},
    {TGL_TENSOR_F16, CHIP, {F16_ONE, F16_2_M12}, {F16_ONE, F16_2_M13}, 0xbf800000, 0x33000000},
    /* 2^-26 beside 1 is cut before the sum: four of them add nothing. */
    {TGL_TENSOR_F16,
     CHIP,
     {F16_ONE, F16_2_M13, F16_2_M13, F16_2_M13, F16_2_M13},
     {F16_ONE, F16_2_M13, F16_2_M13, F16_2_M13, F16_2_M13},
     0xbf800000,
     0},
    /* Four times 2^-25 are 2^-23, which is kept. */
    {TGL_TENSOR_F16,
     CHIP,
     {F16_ONE, F16_2_M12, F16_2_M12, F16_2_M12, F16_2_M12},
     {F16_ONE, F16_2_M13, F16_2_M13, F16_2_M13, F16_2_M13},
     0,
     ONE + 1},
    /* Ampere keeps 24 bits, so 2^-25 is lost; and sums its halves one after the other: 2^-24 in the
     * second half, behind a first half of 1, is cut with the result. */
    {TGL_TENSOR_F16,
     OLDER,
     {F16_ONE, F16_2_M12, F16_2_M12, F16_2_M12, F16_2_M12},
     {F16_ONE, F16_2_M13, F16_2_M13, F16_2_M13, F16_2_M13},
     0,
     ONE},
    {TGL_TENSOR_F16,
     OLDER,
     {F16_ONE, F16_2_M12, [8] = F16_2_M12},
     {F16_ONE, F16_2_M12, [8] = F16_2_M12},
     0,
     ONE},
    {TGL_TENSOR_F16, /* in the same half they are kept */
     OLDER,
     {F16_ONE, F16_2_M12, F16_2_M12},
     {F16_ONE, F16_2_M12, F16_2_M12},
     0,
     ONE + 1},
    /* The exponent of a product is that of its factors: 1.5 * 1.5 = 2.25 has exponent 0, so 2^-25
     * stays. Sums are cut towards zero, of either sign. */
    {TGL_TENSOR_F16, CHIP, {0x3e00, 0xbe00, F16_2_M12}, {0x3e00, 0x3e00, F16_2_M13}, 0, 0x33000000},
    {TGL_TENSOR_F16, CHIP, {F16_ONE, F16_2_M12}, {0xbc00, 0x8800}, 0, 0xbf800000},
    /* A large accumulator swallows products. */
    {TGL_TENSOR_F16, CHIP, {F16_ONE}, {F16_ONE}, 0x4c800000 /* 2^26 */, 0x4c800000},
    {TGL_TENSOR_F16, CHIP, {F16_LEAST}, {F16_LEAST}, 0, 0x27800000 /* 2^-48 */},
    {TGL_TENSOR_BF16, CHIP, {BF16_MAX, BF16_MAX}, {BF16_ONE, BF16_ONE}, 0, 0x7f800000},
    {TGL_TENSOR_BF16, CHIP, {0x0001}, {BF16_ONE}, 0, 0x00010000}, /* 2^-133, denormal */
    {TGL_TENSOR_BF16, CHIP, {0x0001}, {0x3f00}, 0, 0x00008000},
    {TGL_TENSOR_F16, CHIP, {0x8000}, {F16_ONE}, 0x80000000, 0}, /* -0 - 0 is 0 */
    {TGL_TENSOR_F16, CHIP, {F16_INF}, {F16_ONE}, ONE, 0x7f800000},
    {TGL_TENSOR_F16, CHIP, {F16_INF}, {0xbc00}, ONE, 0xff800000},
    {TGL_TENSOR_F16, CHIP, {F16_INF}, {0}, ONE, 0x7fffffff},
    {TGL_TENSOR_F16, CHIP, {F16_INF, F16_INF}, {F16_ONE, 0xbc00}, ONE, 0x7fffffff},
    {TGL_TENSOR_F16, CHIP, {F16_NAN}, {0}, 0xff800000, 0x7fffffff},
    {TGL_TENSOR_F16, CHIP, {F16_ONE}, {F16_ONE}, 0x7f800000, 0x7f800000},
    {TGL_TENSOR_F16, CHIP, {F16_ONE}, {F16_ONE}, 0xffc00001, 0x7fffffff},
    /* TF32: the last 13 bits do not count, not even in a NaN. */
    {TGL_TENSOR_TF32, CHIP, {ONE + 0x1fff}, {ONE + 0x1fff}, 0, ONE},
    {TGL_TENSOR_TF32, CHIP, {ONE + 0x2000}, {ONE}, 0, ONE + 0x2000},
    {TGL_TENSOR_TF32, CHIP, {0x7f800001}, {ONE}, 0, 0x7f800000},
    {TGL_TENSOR_TF32, CHIP, {0x7f802000}, {ONE}, 0, 0x7fffffff},
};

static void test_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sums); i++) {
        const sum *x = &sums[i];
        const int k = x->type == TGL_TENSOR_TF32 ? 8 : 16;
        float result = float_of(x->accumulator);
        tgl_tensor_multiply(x->model, x->type, 1, 1, k, x->a, x->b, &result);
        if (bits_of(result) != x->result)
            fail_msg("sum %zu: %08x, not %08x", i, bits_of(result), x->result);
    }
}

/* ---- In integers ----------------------------------------------------------------------------- */

/* A finite number: significand * 2^(exponent - fraction bits). */
typedef struct number {
    int64_t significand;
    int exponent, fraction_bits;
} number;

static number number_of(int fraction_bits, int exponent_bits, uint32_t bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int field = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    number x = {(int64_t)(bits & ((1u << fraction_bits) - 1)), 1 - bias, fraction_bits};
    if (field > 0) {
        x.significand |= (int64_t)1 << fraction_bits;
        x.exponent = field - bias;
    }
    if (x.significand == 0) x.exponent = -126;
    if ((bits >> (fraction_bits + exponent_bits) & 1) != 0) x.significand = -x.significand;
    return x;
}

static number element_of(tgl_tensor_type type, uint32_t bits)
{
    if (type == TGL_TENSOR_F16) return number_of(10, 5, bits);
    if (type == TGL_TENSOR_BF16) return number_of(7, 8, bits);
    return number_of(10, 8, bits >> 13);
}

/* x * 2^by, cut towards zero. */
static int64_t shift(int64_t x, int by)
{
    if (by >= 0) return x * ((int64_t)1 << by);
    if (by < -62) return 0;
    return x / ((int64_t)1 << -by);
}

static float fused(tgl_tensor_type type, int fraction_bits, int k, const uint32_t *a,
                   const uint32_t *b, float accumulator)
{
    number terms[K_MAX + 1];
    int top;
    terms[k] = number_of(23, 8, bits_of(accumulator));
    top = terms[k].exponent;
    for (int p = 0; p < k; p++) {
        const number x = element_of(type, a[p]), y = element_of(type, b[p]);
        terms[p] = (number){x.significand * y.significand, x.exponent + y.exponent,
                            x.fraction_bits + y.fraction_bits};
        if (terms[p].exponent > top) top = terms[p].exponent;
    }
    int64_t total = 0;
    for (int p = 0; p <= k; p++)
        total += shift(terms[p].significand,
                       fraction_bits - terms[p].fraction_bits + terms[p].exponent - top);
    /* To a float by hand: the leading 24 bits. */
    int64_t magnitude = total < 0 ? -total : total;
    int exponent = top - fraction_bits;
    while (magnitude >= 1 << 24) {
        magnitude >>= 1;
        exponent++;
    }
    while (exponent < -149) {
        magnitude >>= 1;
        exponent++;
    }
    const float result = ldexpf((float)magnitude, exponent);
    return total < 0 && result != 0 ? -result : result;
}

static uint32_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 32);
}

/* A random finite element. The exponents of all elements are close together, so that the terms of a
 * sum affect each other's rounding. */
static uint32_t random_element(tgl_tensor_type type, uint64_t *random)
{
    const uint32_t bits = next(random), spread = next(random) % 16;
    if (bits % 16 == 0) return 0;
    if (type == TGL_TENSOR_F16) return (bits & 0x83ff) | (8 + spread) << 10;
    if (type == TGL_TENSOR_BF16) return (bits & 0x807f) | (120 + spread) << 7;
    return (bits & 0x807fffff) | (120 + spread) << 23;
}

static void test_random(void **state)
{
    (void)state;
    enum { M = 5, N = 70 };
    static const tgl_tensor_type types[] = {TGL_TENSOR_F16, TGL_TENSOR_BF16, TGL_TENSOR_TF32};
    static const tgl_tensor_model *const models[] = {&tgl_tensor_hopper, &tgl_tensor_ampere};
    uint64_t random = 1;
    for (int round = 0; round < 300; round++) {
        const tgl_tensor_type type = types[round % 3];
        const tgl_tensor_model *model = models[round / 3 % 2];
        const int k = type == TGL_TENSOR_TF32 ? 8 : 16, step = k / model->steps;
        uint32_t a[M * K_MAX], b[K_MAX * N];
        float c[M * N], expected[M * N];
        for (int i = 0; i < M * k; i++)
            a[i] = random_element(type, &random);
        for (int i = 0; i < k * N; i++)
            b[i] = random_element(type, &random);
        for (int i = 0; i < M * N; i++)
            c[i] = float_of(random_element(TGL_TENSOR_TF32, &random));
        for (int i = 0; i < M * N; i++) {
            expected[i] = c[i];
            for (int p = 0; p < k; p += step) {
                uint32_t column[K_MAX];
                for (int q = 0; q < step; q++)
                    column[q] = b[(p + q) * N + i % N];
                expected[i] =
                    fused(type, model->fraction_bits, step, &a[i / N * k + p], column, expected[i]);
            }
        }
        tgl_tensor_multiply(model, type, M, N, k, a, b, c);
        assert_memory_equal(c, expected, sizeof c);
    }
}

static void test_f64(void **state)
{
    (void)state;
    const double tiny = 0x1p-60, a[4] = {1, 1, 1, tiny}, b[4] = {tiny, 1, -1, 1};
    double total = 0;
    tgl_tensor_multiply_f64(1, 1, 4, a, b, &total); /* the first 2^-60 is rounded away beside 1 */
    assert_true(total == tiny);
    const double x = 1 + 0x1p-30, square[1] = {x};
    total = -(1 + 0x1p-29);
    tgl_tensor_multiply_f64(1, 1, 1, square, square, &total); /* one rounding */
    assert_true(total == tiny);
}

static void test_round_tf32(void **state)
{
    (void)state;
    assert_int_equal(tgl_tensor_round_tf32(ONE + 0xfff), ONE);
    assert_int_equal(tgl_tensor_round_tf32(ONE + 0x1000), ONE + 0x2000); /* a tie: away from zero */
    assert_int_equal(tgl_tensor_round_tf32(0x80000000 | (ONE + 0x3000)),
                     0x80000000 | (ONE + 0x4000));
    assert_int_equal(tgl_tensor_round_tf32(0x7f7fffff), 0x7f800000);
    assert_int_equal(tgl_tensor_round_tf32(0x7f800001), 0x7f800001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_round_tf32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
