/* SPDX-License-Identifier: Apache-2.0
 *
 * The 8-bit floating-point types as storage, as OCP's "8-bit Floating Point Specification" has
 * them. e4m3: 4 bits of exponent, 3 of fraction, no Inf; NaN is 0x7f and 0xff; the largest value is
 * 448. e5m2 is the upper half of an f16; the largest finite value is 57344.
 *
 * Conversions from float round to nearest even and saturate: a larger value, Inf included, becomes
 * the largest finite one. A NaN stays a NaN. Conversions to float and to f16 are exact.
 */
#ifndef TGL_FLOAT8_H
#define TGL_FLOAT8_H

#include "lib/half.h"

/* HAS_F8_CONVERSIONS: whether instructions convert pairs of 8-bit floats: on sm_89 from PTX 8.1
 * (NVRTC 12.1) on, on sm_90 with every NVRTC that knows sm_90 (PTX ISA, "cvt"). */
#if defined(TGL_SIM)
#define HAS_F8_CONVERSIONS 0
#elif __CUDA_ARCH__ >= 900
#define HAS_F8_CONVERSIONS 1
#else
#define HAS_F8_CONVERSIONS                                                                         \
    (__CUDA_ARCH__ >= 890 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201)
#endif

struct e4m3 {
    unsigned char bits;
};

struct e5m2 {
    unsigned char bits;
};

/* ---- To float -------------------------------------------------------------------------------- */

/* The exponent and fraction bits of x, shifted to the place of a float's, are the float |x| *
 * 2^-120, because the biases of the exponents are 7 and 127. This also holds for a denormal x. */
static __device__ __forceinline__ float e4m3_to_float(struct e4m3 x)
{
    const unsigned magnitude = x.bits & 0x7fu, sign = (unsigned)(x.bits & 0x80u) << 24;
    const float value = __uint_as_float(magnitude << 20) * 0x1p120f;
    return __uint_as_float((magnitude == 0x7fu ? 0x7fc00000u : __float_as_uint(value)) | sign);
}

static __device__ __forceinline__ float e5m2_to_float(struct e5m2 x)
{
    const struct f16 wide = {(unsigned short)(x.bits << 8)};
    return f16_to_float(wide);
}

/* ---- From float ------------------------------------------------------------------------------ */

/* The bits of min(|x|, largest). largest: the largest finite value of the 8-bit type. */
static __device__ __forceinline__ unsigned limited_bits(float x, const float largest)
{
    const unsigned magnitude = __float_as_uint(x) & 0x7fffffffu;
    return magnitude < __float_as_uint(largest) ? magnitude : __float_as_uint(largest);
}

/* magnitude / 2^dropped, rounded to nearest even. magnitude: the bits of a float without its
 * sign. */
static __device__ __forceinline__ unsigned rounded_bits(unsigned magnitude, const int dropped)
{
    return (magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1)) >> dropped;
}

/* The bits of an 8-bit denormal number: its value as a multiple of the least denormal number. shift
 * is 2^23 times the least denormal: adding it rounds the value to such a multiple, whose number is
 * then in the low bits. */
static __device__ __forceinline__ unsigned denormal_bits(unsigned magnitude, const float shift)
{
    return __float_as_uint(__uint_as_float(magnitude) + shift) - __float_as_uint(shift);
}

/* Converts x to an 8-bit format. greatest, least: the format's greatest and least normal number.
 * dropped: how many bits fewer than a float its fraction has. bias: the difference of the
 * exponents' biases, shifted to the exponent's place. shift: 2^23 times the least denormal
 * number. */
static __device__ __forceinline__ unsigned narrow_bits(float x, const float greatest,
                                                       const float least, const int dropped,
                                                       const unsigned bias, const float shift)
{
    const unsigned magnitude = limited_bits(x, greatest);
    const unsigned bits = magnitude >= __float_as_uint(least)
                              ? rounded_bits(magnitude, dropped) - bias
                              : denormal_bits(magnitude, shift);
    return (x != x ? 0x7fu : bits) | (__float_as_uint(x) >> 24 & 0x80u);
}

static __device__ __forceinline__ struct e4m3 float_to_e4m3(float x)
{
    const struct e4m3 to = {(unsigned char)narrow_bits(x, 448.0f, 0x1p-6f, 20, 120u << 3, 0x1p14f)};
    return to;
}

static __device__ __forceinline__ struct e5m2 float_to_e5m2(float x)
{
    const struct e5m2 to = {
        (unsigned char)narrow_bits(x, 57344.0f, 0x1p-14f, 21, 112u << 2, 0x1p7f)};
    return to;
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

/* Two floats, converted to 8 bits each, as a 16-bit half word: `first` is the lower byte. */
static __device__ __forceinline__ unsigned floats_to_e4m3(float first, float second)
{
#if HAS_F8_CONVERSIONS
    unsigned short to;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(to) : "f"(second), "f"(first));
    return to;
#else
    return float_to_e4m3(first).bits | (unsigned)float_to_e4m3(second).bits << 8;
#endif
}

static __device__ __forceinline__ unsigned floats_to_e5m2(float first, float second)
{
#if HAS_F8_CONVERSIONS
    unsigned short to;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(to) : "f"(second), "f"(first));
    return to;
#else
    return float_to_e5m2(first).bits | (unsigned)float_to_e5m2(second).bits << 8;
#endif
}

/* The two elements in the low half of `pair` as two f16 in a word: the first one in its lower
 * half. */
static __device__ __forceinline__ unsigned e4m3_pair_to_f16(unsigned pair)
{
#if HAS_F8_CONVERSIONS
    unsigned to;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(to) : "h"((unsigned short)pair));
    return to;
#else
    const struct e4m3 first = {(unsigned char)pair}, second = {(unsigned char)(pair >> 8)};
    return floats_to_f16(e4m3_to_float(first), e4m3_to_float(second));
#endif
}

static __device__ __forceinline__ unsigned e5m2_pair_to_f16(unsigned pair)
{
    return (pair & 0xffu) << 8 | (pair & 0xff00u) << 16;
}

#endif
