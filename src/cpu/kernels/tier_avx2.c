/* SPDX-License-Identifier: Apache-2.0
 *
 * The AVX2 tier: vectors of 32 bytes, 16 registers, fused multiply-adds; VMASKMOV for the edges,
 * but not to store f64. Compiled with -mavx2, -mfma and -mf16c; called only where detect.c found
 * them.
 */
#include "cpu/kernels/activate.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/pairs.h"
#include "cpu/kernels/tier_tables.h"
#include "cpu/kernels/transpose.h"
#include "cpu/kernels/unroll.h"

#include <immintrin.h>
#include <string.h>

#define CONVERT_NAME(x) x##_avx2
#define F16_LANES       8
#define WIDEN_F16(to, from)                                                                        \
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from))))
#define NARROW_F16(to, from)                                                                       \
    _mm_storeu_si128((void *)(to),                                                                 \
                     _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT))
#include "cpu/kernels/template_convert.h"

#define MR                    6
#define NV                    2
#define FOR_TILES             CPU_TILES_6x2
#define FOR_TALLEST_TILES     CPU_TALLEST_6x2
#define FOR_ROWS              CPU_ROWS_6
#define COMPLEX_MR            3
#define COMPLEX_TILES         CPU_TILES_3x2
#define COMPLEX_TALLEST_TILES CPU_TALLEST_3x2
#define COMPLEX_ROWS          CPU_ROWS_3
#define FOR_VECTORS           CPU_VECTORS_2

/* Steps of k in one iteration of a tile's loop. For m = n = k from 64 to 1024, four steps instead
 * of one are 5 to 10 % faster on Zen 3 if the core's other hardware thread is busy. If that thread
 * is idle, the gain is 1 % (docs/notes/2026-11-26-cpu-kernels.md). */
#define STEPS 4
/* Inline assembly, because with intrinsics gcc 12 moves the sums of an unrolled loop between
 * registers and spills some. */
#define ADD_PRODUCT_ASM(instruction, sum, a, b)                                                    \
    __asm__(instruction " %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b))

/* first_lanes(lane_masks + 8 - n) is the mask of the first n lanes of 4 bytes: n lanes of ones,
 * then zeros. */
static const int32_t lane_masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

static inline __m256i first_lanes(const int32_t *window)
{
    return _mm256_loadu_si256((const __m256i *)window);
}

/* Stores one or two doubles. lanes: a bit mask; 1: only the first, else both. The branch is well
 * predicted, because `lanes` is equal for all rows of a tile. VMASKMOV to memory would take 6 to 12
 * cycles on Zen 3 (Fog's instruction tables). */
static inline void store_half(double *to, int lanes, __m128d v)
{
    if (lanes == 1)
        _mm_store_sd(to, v);
    else
        _mm_storeu_pd(to, v);
}

static inline void store_lanes(double *to, __m256i mask, __m256d v)
{
    const int bits = _mm256_movemask_pd(_mm256_castsi256_pd(mask));
    store_half(to, bits, _mm256_castpd256_pd128(v));
    if (bits > 3) store_half(to + 2, bits >> 2, _mm256_extractf128_pd(v, 1));
}

static inline __m256 load_bf16(const uint16_t *from)
{
    const __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}

#define T                        float
#define V                        __m256
#define VLEN                     8
#define NAME(x)                  x##_avx2_f32
#define COMPLEX_NAME(x)          x##_avx2_c64
#define PACK_PAIRS(x)            x##_avx2_f64
#define KC                       512
#define MASK                     __m256i
#define MASK_OF(lanes)           first_lanes(lane_masks + 8 - (lanes))
#define LOAD(p)                  _mm256_loadu_ps(p)
#define LOAD_MASKED(p, mask)     _mm256_maskload_ps(p, mask)
#define STORE(p, v)              _mm256_storeu_ps(p, v)
#define STORE_MASKED(p, mask, v) _mm256_maskstore_ps(p, mask, v)
#define BROADCAST(x)             _mm256_set1_ps(x)
#define FMA(a, b, c)             _mm256_fmadd_ps(a, b, c)
#define ADD_PRODUCT(sum, a, b)   ADD_PRODUCT_ASM("vfmadd231ps", sum, a, b)
#define TRANSPOSE(x)             CPU_TRANSPOSE_8(x)
#define LOAD_F16(p)              _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p)))
#define LOAD_BF16(p)             load_bf16(p)
#define LOAD_I8(p)               _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(p))))
#include "cpu/kernels/template.h"

#define T                        double
#define V                        __m256d
#define VLEN                     4
#define NAME(x)                  x##_avx2_f64
#define COMPLEX_NAME(x)          x##_avx2_c128
#define KC                       384
#define MASK                     __m256i
#define MASK_OF(lanes)           first_lanes(lane_masks + 8 - 2 * (lanes))
#define LOAD(p)                  _mm256_loadu_pd(p)
#define LOAD_MASKED(p, mask)     _mm256_maskload_pd(p, mask)
#define STORE(p, v)              _mm256_storeu_pd(p, v)
#define STORE_MASKED(p, mask, v) store_lanes(p, mask, v)
#define BROADCAST(x)             _mm256_set1_pd(x)
#define FMA(a, b, c)             _mm256_fmadd_pd(a, b, c)
#define ADD_PRODUCT(sum, a, b)   ADD_PRODUCT_ASM("vfmadd231pd", sum, a, b)
#define TRANSPOSE(x)             CPU_TRANSPOSE_4(x)
#define HALF_V                   __m128d
#define HALF_LOAD(p, mask)       _mm_maskload_pd(p, _mm256_castsi256_si128(mask))
#define HALF_STORE(p, mask, v)   store_half(p, _mm256_movemask_pd(_mm256_castsi256_pd(mask)), v)
#define HALF_BROADCAST(x)        _mm_set1_pd(x)
#define HALF_FMA(a, b, c)        _mm_fmadd_pd(a, b, c)
#define HALF_OF(v)               _mm256_castpd256_pd128(v)
#include "cpu/kernels/template.h"
