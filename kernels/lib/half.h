/* SPDX-License-Identifier: Apache-2.0
 *
 * The 16-bit floating-point types as storage: f16 is IEEE binary16, bf16 the upper half of an FP32.
 * Arithmetic happens in FP32, except for that of lib/dequant_convert.h. Conversions to 16 bits
 * round to nearest even; a NaN stays a NaN. NVRTC has no such types without NVIDIA's headers, so
 * these are structs of bits.
 */
#ifndef TGL_HALF_H
#define TGL_HALF_H

struct f16 {
    unsigned short bits;
};

struct bf16 {
    unsigned short bits;
};

#ifdef TGL_SIM

unsigned short tgl_sim_float_to_f16(float x);
float tgl_sim_f16_to_float(unsigned short bits);
unsigned short tgl_sim_float_to_bf16(float x);

#define f16_to_float(x)  tgl_sim_f16_to_float((x).bits)
#define float_to_f16(x)  ((struct f16){tgl_sim_float_to_f16(x)})
#define float_to_bf16(x) ((struct bf16){tgl_sim_float_to_bf16(x)})

#else

static __device__ __forceinline__ float f16_to_float(struct f16 x)
{
    float to;
    asm("cvt.f32.f16 %0, %1;" : "=f"(to) : "h"(x.bits));
    return to;
}

static __device__ __forceinline__ struct f16 float_to_f16(float x)
{
    struct f16 to;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
    return to;
}

static __device__ __forceinline__ struct bf16 float_to_bf16(float x)
{
    struct bf16 to;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
#else
    /* Rounding to nearest even: adds 0x7fff, or 0x8000 if the last bit that stays is 1, and then
     * drops the lower 16 bits. */
    const unsigned bits = __float_as_uint(x);
    to.bits = x != x ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
    return to;
}

#endif

static __device__ __forceinline__ float bf16_to_float(struct bf16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}

/* Two floats as a 32-bit word: `first` in the lower half. From sm_80 on one instruction converts
 * both. */
static __device__ __forceinline__ unsigned floats_to_f16(float first, float second)
{
#if !defined(TGL_SIM) && __CUDA_ARCH__ >= 800
    unsigned to;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(second), "f"(first));
    return to;
#else
    return float_to_f16(first).bits | (unsigned)float_to_f16(second).bits << 16;
#endif
}

static __device__ __forceinline__ unsigned floats_to_bf16(float first, float second)
{
#if !defined(TGL_SIM) && __CUDA_ARCH__ >= 800
    unsigned to;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(second), "f"(first));
    return to;
#else
    return float_to_bf16(first).bits | (unsigned)float_to_bf16(second).bits << 16;
#endif
}

#endif
