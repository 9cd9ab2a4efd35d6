/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions of arrays between f32 and the types shorter than f32, and operations on sums of
 * int32. The short types: f16 (IEEE half: 5 exponent bits, 10 fraction bits), bf16 (the upper half
 * of an f32), e4m3 (4 exponent bits, 3 fraction bits, no Inf), e5m2 (the upper half of an f16),
 * int8. A tier's file includes this header once, so that the compiler vectorises the loops for the
 * tier. Conversions have no branches and do not depend on the processor's modes for denormal
 * numbers. Macros, which are undefined at the end:
 *
 *   CONVERT_NAME(x)         x with the tier's suffix
 *   F16_LANES, WIDEN_F16(to, from), NARROW_F16(to, from)
 *                           optional: convert F16_LANES elements from f16 to f32, and from f32 to
 *                           f16, rounded to nearest
 */

static inline float CONVERT_NAME(f16_to_f32)(uint16_t half)
{
    enum { BIAS = 127 - 15 };
    const uint32_t magnitude = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
    /* The exponent 31 of Inf and NaN becomes 255; all others are raised by 112, the difference of
     * the biases. */
    const uint32_t exponent = magnitude >= 0x7c00u ? 255u - 31u : BIAS;
    const cpu_f32_bits normal = {.bits = (magnitude << 13) + (exponent << 23)};
    /* A denormal f16 is magnitude * 2^-24. The f32 with the bits 0x4b000000 + magnitude is 2^23 +
     * magnitude. */
    const cpu_f32_bits shifted = {.bits = 0x4b000000u + magnitude};
    const cpu_f32_bits denormal = {(shifted.value - 0x1p23F) * 0x1p-24F};
    const cpu_f32_bits result = {.bits = (magnitude < 0x400u ? denormal.bits : normal.bits) | sign};
    return result.value;
}

/* Rounds to nearest, ties to even. */
static inline uint16_t CONVERT_NAME(f32_to_f16)(float value)
{
    const cpu_f32_bits x = {value};
    const uint32_t magnitude = x.bits & 0x7fffffffu, sign = x.bits >> 16 & 0x8000u;
    /* Drops 13 bits, rounding to nearest, ties to even: adds 0xfff, and 1 more if the last bit that
     * remains is 1. A carry out of the largest f16 gives Inf. */
    const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    /* Below 2^-14 the f16 is denormal: the sum value + 0.5 is rounded to a multiple of 2^-24, the
     * last place of a denormal f16. */
    const cpu_f32_bits positive = {.bits = magnitude}, shifted = {positive.value + 0.5F};
    const uint32_t small = shifted.bits - 0x3f000000u;
    const uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u; /* NaN, Inf */
    const uint32_t finite = magnitude < 0x38800000u ? small : normal;
    return (uint16_t)((magnitude >= 0x47800000u ? large : finite) | sign);
}

static inline float CONVERT_NAME(bf16_to_f32)(uint16_t half)
{
    const cpu_f32_bits result = {.bits = (uint32_t)half << 16};
    return result.value;
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint16_t CONVERT_NAME(f32_to_bf16)(float value)
{
    const cpu_f32_bits x = {value};
    const uint32_t rounded = (x.bits + 0x7fffu + (x.bits >> 16 & 1)) >> 16;
    const uint32_t quiet = x.bits >> 16 | 0x40u;
    return (uint16_t)((x.bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static void CONVERT_NAME(widen_f16)(float *restrict to, const void *restrict memory, int64_t n)
{
    const uint16_t *restrict from = memory;
    int64_t i = 0;
#ifdef F16_LANES
    for (; i + F16_LANES <= n; i += F16_LANES)
        WIDEN_F16(to + i, from + i);
#endif
    for (; i < n; i++)
        to[i] = CONVERT_NAME(f16_to_f32)(from[i]);
}

static void CONVERT_NAME(narrow_f16)(void *restrict memory, const float *restrict from, int64_t n)
{
    uint16_t *restrict to = memory;
    int64_t i = 0;
#ifdef F16_LANES
    for (; i + F16_LANES <= n; i += F16_LANES)
        NARROW_F16(to + i, from + i);
#endif
    for (; i < n; i++)
        to[i] = CONVERT_NAME(f32_to_f16)(from[i]);
}

static void CONVERT_NAME(widen_bf16)(float *restrict to, const void *restrict memory, int64_t n)
{
    const uint16_t *restrict from = memory;
    for (int64_t i = 0; i < n; i++)
        to[i] = CONVERT_NAME(bf16_to_f32)(from[i]);
}

static void CONVERT_NAME(narrow_bf16)(void *restrict memory, const float *restrict from, int64_t n)
{
    uint16_t *restrict to = memory;
    for (int64_t i = 0; i < n; i++)
        to[i] = CONVERT_NAME(f32_to_bf16)(from[i]);
}

static void CONVERT_NAME(widen_i8)(float *restrict to, const void *restrict memory, int64_t n)
{
    const int8_t *restrict from = memory;
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* The largest magnitude, 0x7f, is NaN; e4m3 has no Inf. */
static inline float CONVERT_NAME(e4m3_to_f32)(uint8_t byte)
{
    const uint32_t magnitude = byte & 0x7fu, sign = (uint32_t)(byte & 0x80u) << 24;
    /* A denormal e4m3 is magnitude * 2^-9. See f16_to_f32(). */
    const cpu_f32_bits shifted = {.bits = 0x4b000000u + magnitude};
    const cpu_f32_bits denormal = {(shifted.value - 0x1p23F) * 0x1p-9F};
    const cpu_f32_bits normal = {.bits = (magnitude << 20) + (120u << 23)};
    const uint32_t finite = magnitude < 8 ? denormal.bits : normal.bits;
    const cpu_f32_bits result = {.bits = (magnitude == 0x7fu ? 0x7fc00000u : finite) | sign};
    return result.value;
}

/* Rounds to nearest, ties to even, and saturates; NaN stays NaN.
 *    max       the bits of the largest f8 value as f32
 *    dropped   the fraction bits that are dropped
 *    bias      the difference of the exponent biases of f32 and f8
 *    smallest  2^23 times the smallest denormal f8: value + smallest is rounded to a multiple of
 *              that denormal */
static inline uint8_t CONVERT_NAME(f32_to_f8)(float value, uint32_t max, int dropped, uint32_t bias,
                                              float smallest)
{
    const cpu_f32_bits x = {value};
    const uint32_t all = x.bits & 0x7fffffffu, sign = x.bits >> 24 & 0x80u;
    const uint32_t magnitude = all < max ? all : max;
    const uint32_t half = (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
    const uint32_t normal = (magnitude + half - (bias << 23)) >> dropped;
    const cpu_f32_bits positive = {.bits = magnitude}, unit = {smallest};
    const cpu_f32_bits shifted = {positive.value + smallest};
    const uint32_t finite = magnitude < (bias + 1) << 23 ? shifted.bits - unit.bits : normal;
    return (uint8_t)((all > 0x7f800000u ? 0x7fu : finite) | sign);
}

static void CONVERT_NAME(widen_e4m3)(float *restrict to, const void *restrict memory, int64_t n)
{
    const uint8_t *restrict from = memory;
    for (int64_t i = 0; i < n; i++)
        to[i] = CONVERT_NAME(e4m3_to_f32)(from[i]);
}

static void CONVERT_NAME(narrow_e4m3)(void *restrict memory, const float *restrict from, int64_t n)
{
    uint8_t *restrict to = memory;
    for (int64_t i = 0; i < n; i++)
        to[i] = CONVERT_NAME(f32_to_f8)(from[i], 0x43e00000u /* 448 */, 20, 120, 0x1p14F);
}

static void CONVERT_NAME(widen_e5m2)(float *restrict to, const void *restrict memory, int64_t n)
{
    const uint8_t *restrict from = memory;
    for (int64_t i = 0; i < n; i++)
        to[i] = CONVERT_NAME(f16_to_f32)((uint16_t)(from[i] << 8));
}

static void CONVERT_NAME(narrow_e5m2)(void *restrict memory, const float *restrict from, int64_t n)
{
    uint8_t *restrict to = memory;
    for (int64_t i = 0; i < n; i++)
        to[i] = CONVERT_NAME(f32_to_f8)(from[i], 0x47600000u /* 57344 */, 21, 112, 0x1p7F);
}

/* from[i] + 1.5 * 2^23 is rounded to an integer, which is in the low bits of the sum. */
static void CONVERT_NAME(narrow_i8)(void *restrict memory, const float *restrict from, int64_t n)
{
    int8_t *restrict to = memory;
    for (int64_t i = 0; i < n; i++) {
        const float x = from[i] == from[i] ? from[i] : 0;
        const float low = x > -128 ? x : -128, limited = low < 127 ? low : 127;
        const cpu_f32_bits shifted = {limited + 0x1.8p23F};
        to[i] = (int8_t)(uint8_t)shifted.bits;
    }
}

/* Adds as uint32_t, which wraps around, because an overflow of int32_t is undefined in C. */
static void CONVERT_NAME(add_integers)(int32_t *restrict to, const float *restrict from, int64_t n,
                                       bool add)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (int32_t)((add ? (uint32_t)to[i] : 0) + (uint32_t)(int32_t)from[i]);
}

static void CONVERT_NAME(combine_i32)(int32_t *restrict to, int64_t n, int32_t alpha, int32_t beta,
                                      const int32_t *restrict x, int64_t step)
{
    const uint32_t a = (uint32_t)alpha, b = (uint32_t)beta;
    if (step == 0)
        for (int64_t i = 0; i < n; i++)
            to[i] = (int32_t)(a * (uint32_t)to[i] + b * (uint32_t)x[0]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (int32_t)(a * (uint32_t)to[i] + b * (uint32_t)x[i]);
}

static void CONVERT_NAME(relu_i32)(int32_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = to[i] > 0 ? to[i] : 0;
}

const cpu_conversions CONVERT_NAME(tgl_cpu_conversions) = {
    .widen = {CONVERT_NAME(widen_f16), CONVERT_NAME(widen_bf16), CONVERT_NAME(widen_i8),
              CONVERT_NAME(widen_e4m3), CONVERT_NAME(widen_e5m2)},
    .narrow = {CONVERT_NAME(narrow_f16), CONVERT_NAME(narrow_bf16), CONVERT_NAME(narrow_i8),
               CONVERT_NAME(narrow_e4m3), CONVERT_NAME(narrow_e5m2)},
    .add_integers = CONVERT_NAME(add_integers),
    .combine_i32 = CONVERT_NAME(combine_i32),
    .relu_i32 = CONVERT_NAME(relu_i32),
};

#undef CONVERT_NAME
#undef F16_LANES
#undef WIDEN_F16
#undef NARROW_F16
