/* SPDX-License-Identifier: Apache-2.0
 *
 * The NEON tier of aarch64: vectors of 16 bytes, 32 registers, fused multiply-adds. There are no
 * masks: partial vectors are loaded and stored by elements.
 */
#include "cpu/kernels/activate.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/pairs.h"
#include "cpu/kernels/tier_tables.h"
#include "cpu/kernels/transpose.h"
#include "cpu/kernels/unroll.h"

#include <arm_neon.h>
#include <string.h>

#define CONVERT_NAME(x)      x##_neon
#define F16_LANES            4
#define WIDEN_F16(to, from)  vst1q_f32(to, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))))
#define NARROW_F16(to, from) vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from))))
#include "cpu/kernels/template_convert.h"

/* Registers: 18 sums, 3 vectors of b and 6 elements of a. With 8 rows, gcc 12 spills registers. */
#define MR                    6
#define NV                    3
#define FOR_TILES             CPU_TILES_6x3
#define FOR_TALLEST_TILES     CPU_TALLEST_6x3
#define FOR_ROWS              CPU_ROWS_6
#define COMPLEX_MR            3
#define COMPLEX_TILES         CPU_TILES_3x3
#define COMPLEX_TALLEST_TILES CPU_TALLEST_3x3
#define COMPLEX_ROWS          CPU_ROWS_3
#define FOR_VECTORS           CPU_VECTORS_3

static inline float32x4_t load_some_f32(const float *from, int lanes)
{
    if (lanes == 4) return vld1q_f32(from);
    float32x4_t x = vdupq_n_f32(0);
    x = vld1q_lane_f32(from, x, 0);
    if (lanes > 1) x = vld1q_lane_f32(from + 1, x, 1);
    if (lanes > 2) x = vld1q_lane_f32(from + 2, x, 2);
    return x;
}

static inline void store_some_f32(float *to, int lanes, float32x4_t x)
{
    if (lanes == 4) {
        vst1q_f32(to, x);
        return;
    }
    vst1q_lane_f32(to, x, 0);
    if (lanes > 1) vst1q_lane_f32(to + 1, x, 1);
    if (lanes > 2) vst1q_lane_f32(to + 2, x, 2);
}

static inline float64x2_t load_some_f64(const double *from, int lanes)
{
    return lanes == 2 ? vld1q_f64(from) : vld1q_lane_f64(from, vdupq_n_f64(0), 0);
}

static inline void store_some_f64(double *to, int lanes, float64x2_t x)
{
    if (lanes == 2)
        vst1q_f64(to, x);
    else
        vst1q_lane_f64(to, x, 0);
}

static inline void transpose_f64(float64x2_t *x)
{
    const float64x2_t low = vzip1q_f64(x[0], x[1]), high = vzip2q_f64(x[0], x[1]);
    x[0] = low;
    x[1] = high;
}

static inline float32x4_t load_bf16(const uint16_t *from)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(from)), 16));
}

static inline float32x4_t load_i8(const int8_t *from)
{
    int8_t bytes[8] = {0};
    memcpy(bytes, from, 4);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(bytes)))));
}

#define T                        float
#define LOAD_F16(p)              vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))
#define LOAD_BF16(p)             load_bf16(p)
#define LOAD_I8(p)               load_i8(p)
#define V                        float32x4_t
#define VLEN                     4
#define NAME(x)                  x##_neon_f32
#define COMPLEX_NAME(x)          x##_neon_c64
#define PACK_PAIRS(x)            x##_neon_f64
#define KC                       512
#define MASK                     int
#define MASK_OF(lanes)           (lanes)
#define LOAD(p)                  vld1q_f32(p)
#define LOAD_MASKED(p, mask)     load_some_f32(p, mask)
#define STORE(p, v)              vst1q_f32(p, v)
#define STORE_MASKED(p, mask, v) store_some_f32(p, mask, v)
#define BROADCAST(x)             vdupq_n_f32(x)
#define FMA(a, b, c)             vfmaq_f32(c, a, b)
#define TRANSPOSE(x)             CPU_TRANSPOSE_4(x)
#include "cpu/kernels/template.h"

#define T                        double
#define V                        float64x2_t
#define VLEN                     2
#define NAME(x)                  x##_neon_f64
#define COMPLEX_NAME(x)          x##_neon_c128
#define KC                       384
#define MASK                     int
#define MASK_OF(lanes)           (lanes)
#define LOAD(p)                  vld1q_f64(p)
#define LOAD_MASKED(p, mask)     load_some_f64(p, mask)
#define STORE(p, v)              vst1q_f64(p, v)
#define STORE_MASKED(p, mask, v) store_some_f64(p, mask, v)
#define BROADCAST(x)             vdupq_n_f64(x)
#define FMA(a, b, c)             vfmaq_f64(c, a, b)
#define TRANSPOSE(x)             transpose_f64(x)
#include "cpu/kernels/template.h"
