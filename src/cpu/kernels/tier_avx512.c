/* SPDX-License-Identifier: Apache-2.0
 *
 * The AVX-512 tier: vectors of 64 bytes, 32 registers, masked loads and stores. Compiled with
 * -mavx512f, -mavx512bw, -mavx512dq, -mavx512vl and -mfma; called only where detect.c found them.
 * (Without AVX512BW gcc 12 loads the mask from memory in each step of a loop.)
 */
#include "cpu/kernels/activate.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/pairs.h"
#include "cpu/kernels/tier_tables.h"
#include "cpu/kernels/transpose.h"
#include "cpu/kernels/unroll.h"

#include <immintrin.h>
#include <string.h>

#define CONVERT_NAME(x) x##_avx512
#define F16_LANES       16
#define WIDEN_F16(to, from)                                                                        \
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from))))
#define NARROW_F16(to, from)                                                                       \
    _mm256_storeu_si256((void *)(to),                                                              \
                        _mm512_cvtps_ph(_mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#include "cpu/kernels/template_convert.h"

#define MR                    8
#define NV                    3
#define FOR_TILES             CPU_TILES_8x3
#define FOR_TALLEST_TILES     CPU_TALLEST_8x3
#define FOR_ROWS              CPU_ROWS_8
#define COMPLEX_MR            4
#define COMPLEX_TILES         CPU_TILES_4x3
#define COMPLEX_TALLEST_TILES CPU_TALLEST_4x3
#define COMPLEX_ROWS          CPU_ROWS_4
#define COMPLEX_WIDE_MR       3
/* Steps of k in one iteration of a tile's loop. Two steps instead of one are 3 % faster on Emerald
 * Rapids if the core's other hardware thread is busy, and 0.5 to 1 % if it is idle. Four steps
 * would gain another 0 to 1 % (docs/notes/2026-11-26-cpu-kernels.md). */
#define STEPS       2
#define FOR_VECTORS CPU_VECTORS_4
#define SMALL_NV    4
#define WIDE_MR     6 /* 24 sums, 4 vectors of b and one of a in 32 registers */

/* Inline assembly, because with intrinsics gcc 12 moves some sums of an unrolled loop between
 * registers. b is declared as an output although it does not change: otherwise gcc could reuse b's
 * register for the last sum. */
#define ADD_PRODUCT_ASM(instruction, sum, a, b)                                                    \
    __asm__(instruction " %1, %2, %0" : "+v"(sum), "+v"(b) : "v"(a))

static inline __m512 load_bf16(const uint16_t *from)
{
    const __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}

#define T                        float
#define LOAD_F16(p)              _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))
#define LOAD_BF16(p)             load_bf16(p)
#define LOAD_I8(p)               _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)(p))))
#define V                        __m512
#define VLEN                     16
#define NAME(x)                  x##_avx512_f32
#define COMPLEX_NAME(x)          x##_avx512_c64
#define PACK_PAIRS(x)            x##_avx512_f64
#define KC                       512
#define MASK                     __mmask16
#define MASK_OF(lanes)           ((__mmask16)((1u << (lanes)) - 1))
#define LOAD(p)                  _mm512_loadu_ps(p)
#define LOAD_MASKED(p, mask)     _mm512_maskz_loadu_ps(mask, p)
#define STORE(p, v)              _mm512_storeu_ps(p, v)
#define STORE_MASKED(p, mask, v) _mm512_mask_storeu_ps(p, mask, v)
#define BROADCAST(x)             _mm512_set1_ps(x)
#define FMA(a, b, c)             _mm512_fmadd_ps(a, b, c)
#define ADD_PRODUCT(sum, a, b)   ADD_PRODUCT_ASM("vfmadd231ps", sum, a, b)
#define TRANSPOSE(x)             CPU_TRANSPOSE_16(x)
#define HALF_V                   __m256
#define HALF_LOAD(p, mask)       _mm256_maskz_loadu_ps((__mmask8)(mask), p)
#define HALF_STORE(p, mask, v)   _mm256_mask_storeu_ps(p, (__mmask8)(mask), v)
#define HALF_BROADCAST(x)        _mm256_set1_ps(x)
#define HALF_FMA(a, b, c)        _mm256_fmadd_ps(a, b, c)
#define HALF_OF(v)               _mm512_castps512_ps256(v)
#include "cpu/kernels/template.h"

#define T                        double
#define V                        __m512d
#define VLEN                     8
#define NAME(x)                  x##_avx512_f64
#define COMPLEX_NAME(x)          x##_avx512_c128
#define KC                       384
#define MASK                     __mmask8
#define MASK_OF(lanes)           ((__mmask8)((1u << (lanes)) - 1))
#define LOAD(p)                  _mm512_loadu_pd(p)
#define LOAD_MASKED(p, mask)     _mm512_maskz_loadu_pd(mask, p)
#define STORE(p, v)              _mm512_storeu_pd(p, v)
#define STORE_MASKED(p, mask, v) _mm512_mask_storeu_pd(p, mask, v)
#define BROADCAST(x)             _mm512_set1_pd(x)
#define FMA(a, b, c)             _mm512_fmadd_pd(a, b, c)
#define ADD_PRODUCT(sum, a, b)   ADD_PRODUCT_ASM("vfmadd231pd", sum, a, b)
#define TRANSPOSE(x)             CPU_TRANSPOSE_8(x)
#define HALF_V                   __m256d
#define HALF_LOAD(p, mask)       _mm256_maskz_loadu_pd((__mmask8)(mask), p)
#define HALF_STORE(p, mask, v)   _mm256_mask_storeu_pd(p, (__mmask8)(mask), v)
#define HALF_BROADCAST(x)        _mm256_set1_pd(x)
#define HALF_FMA(a, b, c)        _mm256_fmadd_pd(a, b, c)
#define HALF_OF(v)               _mm512_castpd512_pd256(v)
#include "cpu/kernels/template.h"
