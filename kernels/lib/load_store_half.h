/* SPDX-License-Identifier: Apache-2.0
 *
 * f16 in global memory: loads of eight elements (16 bytes) and stores of pairs. They fall back to
 * single elements where rows are unaligned or fewer elements exist. Two neighbours in memory are
 * one 32-bit word, the first in its low half.
 */
#ifndef TGL_LOAD_STORE_HALF_H
#define TGL_LOAD_STORE_HALF_H

#include "lib/half.h"

/* Whether every row of a matrix begins at a multiple of `bytes`, 4 or 16. */
static __device__ __forceinline__ bool half_rows_are_aligned(const struct f16 *matrix, long long ld,
                                                             const int bytes)
{
    return (unsigned long long)matrix % bytes == 0 && ld % (bytes / 2) == 0;
}

/* Loads p[0..7]. Only the first `count` elements exist (count may be < 0), the others are 0.
 * aligned: the rows are aligned to 16 bytes. */
static __device__ __forceinline__ uint4 load_half8(const struct f16 *p, int count, bool aligned)
{
    if (aligned && count >= 8) return *(const uint4 *)p;
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        words[i] = (2 * i < count ? p[2 * i].bits : 0u) |
                   (2 * i + 1 < count ? (unsigned)p[2 * i + 1].bits : 0u) << 16;
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* Returns alpha*sum + beta*c in FP32. If beta is 0, *c is not read. */
static __device__ __forceinline__ float finish_half(const struct f16 *c, float sum, float alpha,
                                                    float beta)
{
    return beta == 0.0f ? alpha * sum : alpha * sum + beta * f16_to_float(*c);
}

static __device__ __forceinline__ void store_half(struct f16 *c, float sum, float alpha, float beta)
{
    *c = float_to_f16(finish_half(c, sum, alpha, beta));
}

/* Stores c[0] and c[1], of which only the first `count` exist (count may be negative). aligned: the
 * rows of C are aligned to 4 bytes. */
static __device__ __forceinline__ void store_half_pair(struct f16 *c, const float *sum, float alpha,
                                                       float beta, int count, bool aligned)
{
    if (aligned && count >= 2) {
        *(unsigned *)c = floats_to_f16(finish_half(c, sum[0], alpha, beta),
                                       finish_half(c + 1, sum[1], alpha, beta));
        return;
    }
    if (count > 0) store_half(c, sum[0], alpha, beta);
    if (count > 1) store_half(c + 1, sum[1], alpha, beta);
}

#endif
