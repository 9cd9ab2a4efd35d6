/* SPDX-License-Identifier: Apache-2.0
 *
 * Powers of two, and the elements scaled by them of which two words are made
 * (lib/decompose_args.h).
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

/* 2^s as the product of two powers of two: s is in [-141, 163], so that 2^s may be outside of the
 * range of a float. */
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

/* x * 2^s. It is exact unless it is below the range of two words, because the first product lies
 * between x and x * 2^s. */
static __device__ __forceinline__ float scaled(float x, struct scale scale)
{
    return x * scale.first * scale.second;
}

/* Whether two words cannot represent x. scaled_x: its scaled value. (&: && would be a branch.) */
static __device__ __forceinline__ bool is_below_words(float x, float scaled_x)
{
    return (x != 0.0f) & (fabsf(scaled_x) < 1.0f / (1 << -TGL_LOW_EXPONENT));
}

#endif
