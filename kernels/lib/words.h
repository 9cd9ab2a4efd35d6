/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales FP32 elements by powers of two, 2^s, before each becomes two f16 values, its words
 * (lib/decompose_args.h), and divides sums by these scales.
 */
#ifndef TGL_WORDS_H
#define TGL_WORDS_H

#include "lib/decompose_args.h"

/* 2^e, -126 <= e <= 127. */
static __device__ __forceinline__ float power_of_two(int e)
{
    return __int_as_float((e + 127) << 23);
}

/* 2^e, -149 <= e <= 127: also denormal numbers. */
static __device__ __forceinline__ float any_power_of_two(int e)
{
    return e >= -126 ? power_of_two(e) : __int_as_float(1 << (e + 149));
}

/* Whether a line is single, and the exponent s by which its sums are divided. exponent: its entry
 * in tgl_decompose_job.exponents. The sums of a single line's words are 0, so that any s will do.
 */
static __device__ __forceinline__ bool is_single_line(int exponent)
{
    return exponent >= TGL_SINGLE_LINE;
}

static __device__ __forceinline__ int scale_exponent(int exponent)
{
    return is_single_line(exponent) ? 0 : exponent;
}

/* 2^s as a product of two floats that are powers of two. s is in [-141, 163], so 2^s itself may be
 * outside of the range of a float. */
struct scale {
    float first, second;
};

static __device__ __forceinline__ struct scale scale_of(int s)
{
    const int half = s / 2;
    struct scale scale;
    scale.first = power_of_two(half);
    scale.second = power_of_two(s - half);
    return scale;
}

/* x * 2^s. The first product lies between x and x * 2^s. The result is therefore exact unless it is
 * below the range of two words of f16. */
static __device__ __forceinline__ float scaled(float x, struct scale scale)
{
    return x * scale.first * scale.second;
}

/* sum * 2^-s, rounded once, for any s.
 *
 * A sum is 0, or between 2^-59 (2^-24 squared, times 2^-11) and 2^61 (2^15 squared, times a k below
 * 2^31). The scale is applied as two factors. The first factor is in [2^-67, 2^113], so that the
 * first product is a normal number, or overflows as the result does, and only the second product is
 * rounded. A second factor below 2^-145 is replaced by 2^-145: the result is then less than half of
 * the least denormal number anyway (docs/accuracy.md). */
static __device__ __forceinline__ float unscaled(float sum, int s)
{
    const int e = -s, first = e < -67 ? -67 : e < 113 ? e : 113;
    const int second = e - first < -145 ? -145 : e - first;
    return sum * power_of_two(first) * any_power_of_two(second);
}

/* Whether two words of f16 cannot represent x. scaled_x: x * 2^s. The operator & avoids the branch
 * that && would cause. */
static __device__ __forceinline__ bool is_below_words(float x, float scaled_x)
{
    return (x != 0.0f) & (fabsf(scaled_x) < 1.0f / (1 << -TGL_LOW_EXPONENT));
}

#endif
