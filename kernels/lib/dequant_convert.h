/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts integers of 8 and 4 bits to the 16-bit type of A, in registers, minus the zero point.
 * All values on the way are integers that the types hold exactly.
 *
 * An integer replaces the low bits in the fraction of a power of two. The power is 1024 for f16 and
 * 128 for bf16, because the lowest bit of their fractions has the value 1. One LOP3 does this for
 * two integers, and one subtraction removes the power of two. Inverting the highest bit of an
 * integer in two's complement adds 8 (4 bits) or 128 (8 bits). The fraction of bf16 is too short
 * for 8 bits: see bytes_to_pair().
 *
 * A pair is two 16-bit numbers in a register. A lane converts 8 successive elements of a row of
 * weights at a time, to four pairs. With 4 bits pair i has the elements i and i + 4. With 8 bits
 * the pairs have the elements (0, 2), (1, 3), (4, 6) and (5, 7). in_pair_order() brings elements of
 * A into the same order.
 */
#ifndef TGL_DEQUANT_CONVERT_H
#define TGL_DEQUANT_CONVERT_H

#include "lib/dequant_tiles.h"
#include "lib/half.h"

#define WORDS (BITS * 8 / 32) /* 32-bit words that hold 8 elements */

/* ---- Arithmetic of pairs --------------------------------------------------------------------- */

#define NEGATIVE 0x80008000u /* the signs of a pair */

#if TYPE_A == TYPE_BF16
#define PAIR_OF_1 0x3f803f80u
#else
#define PAIR_OF_1 0x3c003c00u
#endif

#ifdef TGL_SIM
static __device__ __forceinline__ float half_of_pair(unsigned x, const int at)
{
#if TYPE_A == TYPE_BF16
    return __uint_as_float(x >> 16 * at << 16);
#else
    const struct f16 half = {(unsigned short)(x >> 16 * at)};
    return f16_to_float(half);
#endif
}
#endif

/* x * y + z of two numbers each. */
static __device__ __forceinline__ unsigned fma_pairs(unsigned x, unsigned y, unsigned z)
{
#ifdef TGL_SIM
    float sums[2];
    for (int i = 0; i < 2; i++)
        sums[i] = half_of_pair(x, i) * half_of_pair(y, i) + half_of_pair(z, i);
    return TYPE_A == TYPE_BF16 ? floats_to_bf16(sums[0], sums[1]) : floats_to_f16(sums[0], sums[1]);
#else
    unsigned sum;
#if TYPE_A == TYPE_BF16
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(y), "r"(z));
#else
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(y), "r"(z));
#endif
    return sum;
#endif
}

static __device__ __forceinline__ unsigned add_pairs(unsigned x, unsigned y)
{
    return fma_pairs(x, PAIR_OF_1, y); /* sm_80 has no addition of bf16 */
}

/* ---- Conversion ------------------------------------------------------------------------------ */

/* (word & mask) ^ bits, by one LOP3: of an expression with two constants ptxas would make two. The
 * table of LOP3 is 0x6a = (0xf0 & 0xcc) ^ 0xaa. */
static __device__ __forceinline__ unsigned and_xor(unsigned word, unsigned mask, unsigned bits)
{
#ifdef TGL_SIM
    return (word & mask) ^ bits;
#else
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(word), "r"(mask), "r"(bits));
    return result;
#endif
}

/* low: it is added to each pair of integers after the LOP3. high is used with 4 bits only. f16: it
 * is added instead of low to pairs whose integers the LOP3 leaves 4 bits higher in the fraction.
 * bf16: it is the parameter `bits` of and_xor(). */
struct offsets {
    unsigned low, high;
};

#if TYPE_A == TYPE_F16

/* Returns pairs of equal numbers. 4 bits: low is -1032 - zero, and high is -72 - zero. 8 bits: low
 * is -1152 - zero. */
static __device__ __forceinline__ struct offsets offsets_of(int zero)
{
    const unsigned biased = ((unsigned)(zero + 128) * 0x10001u) ^ 0x64006400u; /* 1152 + zero */
    struct offsets o;
    o.low = BITS == 8 ? biased ^ NEGATIVE : fma_pairs(biased, PAIR_OF_1 ^ NEGATIVE, 0x57805780u);
    o.high = fma_pairs(biased, PAIR_OF_1 ^ NEGATIVE, 0x64386438u); /* 1080 - 1152 - zero */
    return o;
}

#if BITS == 4
/* q is an integer. Both formulas give q - zero: (1024 + q + 8) - 1032 - zero and, for integers that
 * are 4 bits higher, (1024 + 16*(q + 8)) / 16 - 72 - zero. */
static __device__ __forceinline__ void
convert_integers(unsigned pairs[4], const unsigned words[WORDS], struct offsets o)
{
    const unsigned sixteenth = 0x2c002c00u;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const unsigned word = words[0] >> 8 * i;
        pairs[2 * i] = add_pairs(and_xor(word, 0x000f000fu, 0x64086408u), o.low);
        pairs[2 * i + 1] = fma_pairs(and_xor(word, 0x00f000f0u, 0x64806480u), sixteenth, o.high);
    }
}
#else
/* q is an integer: (1024 + q + 128) - 1152 - zero is q - zero. */
static __device__ __forceinline__ void
convert_integers(unsigned pairs[4], const unsigned words[WORDS], struct offsets o)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = add_pairs(and_xor(words[i / 2] >> i % 2 * 8, 0x00ff00ffu, 0x64806480u), o.low);
}
#endif

#else

#if BITS == 4

/* 136 + zero has nine bits if zero > 120, one more than bf16 holds. Therefore integers q become
 * 128 + (q + 8) if zero < 0, else -(128 + (7 - q)), and 136 + zero is subtracted, or 135 - zero
 * added: numbers from 8 to 135. high: what the four bits of q are XORed with. */
static __device__ __forceinline__ struct offsets offsets_of(int zero)
{
    const unsigned positive = 0x43084308u, negative = 0xc307c307u;
    const unsigned above_8 = (unsigned)(zero < 0 ? zero + 128 : 127 - zero);
    const unsigned biased = (above_8 * 0x10001u) | 0x43004300u;
    const unsigned distance = add_pairs(biased, 0xc2f0c2f0u); /* 128 + above_8 - 120 */
    struct offsets o = {0xc308c308u /* -136 */, positive};
    if (ZEROS) o.low = zero < 0 ? distance ^ NEGATIVE : distance;
    if (ZEROS) o.high = zero < 0 ? positive : negative;
    return o;
}

/* The integers are in the low bits of 128, which has no room for integers 4 bits higher. */
static __device__ __forceinline__ void
convert_integers(unsigned pairs[4], const unsigned words[WORDS], struct offsets o)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = add_pairs(and_xor(words[0] >> 4 * i, 0x000f000fu, o.high), o.low);
}

#else

/* The seven low bits of an integer q stand in the fraction of 128. Its sign bit stands in the
 * exponent of another 128, which becomes 256 if q < 0: q = (128 + low bits) - (128 or 256). */
static __device__ __forceinline__ unsigned bytes_to_pair(unsigned bytes)
{
    return add_pairs(and_xor(bytes, 0x007f007fu, 0x43004300u),
                     and_xor(bytes, 0x00800080u, 0xc300c300u));
}

/* The pair of -zero. */
static __device__ __forceinline__ struct offsets offsets_of(int zero)
{
    struct offsets o;
    o.low = bytes_to_pair((unsigned)(zero & 0xff) * 0x10001u) ^ NEGATIVE;
    o.high = 0;
    return o;
}

static __device__ __forceinline__ void
convert_integers(unsigned pairs[4], const unsigned words[WORDS], struct offsets o)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        pairs[i] = bytes_to_pair(words[i / 2] >> i % 2 * 8);
        if (ZEROS) pairs[i] = add_pairs(pairs[i], o.low);
    }
}

#endif
#endif

/* ---- Order of A ------------------------------------------------------------------------------ */

/* *x := the lower halves of *x and *y; *y := their upper halves. */
static __device__ __forceinline__ void exchange_halves(unsigned *x, unsigned *y)
{
#ifdef TGL_SIM
    const unsigned lower = (*x & 0xffffu) | *y << 16, upper = *x >> 16 | (*y & 0xffff0000u);
#else
    const unsigned lower = __byte_perm(*x, *y, 0x5410), upper = __byte_perm(*x, *y, 0x7632);
#endif
    *x = lower;
    *y = upper;
}

static __device__ __forceinline__ void in_pair_order(unsigned x[4])
{
#if BITS == 4
    exchange_halves(&x[0], &x[2]);
    exchange_halves(&x[1], &x[3]);
    const unsigned elements_2_6 = x[1];
    x[1] = x[2];
    x[2] = elements_2_6;
#else
    exchange_halves(&x[0], &x[1]);
    exchange_halves(&x[2], &x[3]);
#endif
}

#endif
