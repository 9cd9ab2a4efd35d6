/* SPDX-License-Identifier: Apache-2.0
 *
 * GELU and SiLU of one element. Those of f32 have no branches, so that the compiler vectorises
 * loops over them for the tier that includes this file. NaN gives NaN.
 *
 * For f32 the exponential and the error function are written out, because those of the mathematics
 * library are not vectorised:
 *
 *   - e^x is computed as 2^n * e^r with |r| <= ln(2)/2 and a polynomial for e^r. The error is at
 *     most 2 units of the last place. Beyond the range of f32 the result is 0 or Inf.
 *   - erfc(z) is computed as e^(-z*Q(z)) with a polynomial Q for 0 <= z <= 4.25. The absolute error
 *     is below 2^-24. For greater z the result is 0, because 1 - erfc(z) is 1 in f32.
 *
 * Both polynomials are least-squares fits. The weights of the fits were adjusted until the error
 * had the same size over the whole range.
 */
#ifndef TGL_CPU_ACTIVATE_H
#define TGL_CPU_ACTIVATE_H

#include <math.h>
#include <stdint.h>

typedef union cpu_f32_bits {
    float value;
    uint32_t bits;
} cpu_f32_bits;

/* 2^n for -126 <= n <= 127. */
static inline float cpu_power_of_2(uint32_t n)
{
    const cpu_f32_bits x = {.bits = (n + 127) << 23};
    return x.value;
}

static inline float cpu_exp_f32(float x)
{
    x = x > 89.0F ? 89.0F : x;
    x = x < -105.0F ? -105.0F : x;
    /* shift = 1.5 * 2^23: x*log2(e) + shift is rounded to an integer, which is in the low bits of
     * the sum. */
    const cpu_f32_bits shift = {.value = 12582912.0F}, shifted = {x * 1.44269504F + shift.value};
    const float n = shifted.value - shift.value;
    const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F; /* ln(2) in two parts */
    float p = 1.39465614e-3F;
    p = p * r + 8.36922321e-3F;
    p = p * r + 4.16662619e-2F;
    p = p * r + 0.166665152F;
    p = p * r + 0.5F;
    p = p * r * r + r + 1.0F;
    /* 2^i as a product of two powers, because 2^i alone may overflow or underflow where the result
     * does not. */
    const uint32_t i = shifted.bits - shift.bits, half = (uint32_t)((int32_t)i >> 1);
    return p * cpu_power_of_2(half) * cpu_power_of_2(i - half);
}

static inline float cpu_erfc_f32(float z)
{
    float q = -8.04399224e-6F;
    q = q * z + 1.06028179e-4F;
    q = q * z - 5.87956223e-4F;
    q = q * z + 1.57677068e-3F;
    q = q * z - 5.87926697e-5F;
    q = q * z - 1.92171372e-2F;
    q = q * z + 0.102799207F;
    q = q * z + 0.636616111F;
    q = q * z + 1.12837934F;
    const float e = cpu_exp_f32(-z * q);
    return z > 4.25F ? 0.0F : e;
}

/* gelu(x) = x/2 * (1 + erf(x/sqrt(2))). With e = erfc(|x|/sqrt(2))/2 it is x*(1 - e), or x*e for
 * negative x: this form has no cancellation. */
static inline float cpu_gelu_f32(float x)
{
    const float e = 0.5F * cpu_erfc_f32(fabsf(x) * 0.70710678F);
    return x * (x < 0.0F ? e : 1.0F - e);
}

static inline double cpu_gelu_f64(double x)
{
    return 0.5 * x * (1 + erf(x * 0.70710678118654752));
}

static inline float cpu_silu_f32(float x)
{
    return x / (1.0F + cpu_exp_f32(-x));
}

static inline double cpu_silu_f64(double x)
{
    return x / (1 + exp(-x));
}

#endif
