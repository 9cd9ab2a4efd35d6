/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of int8 by AVX512-VNNI. VPDPBUSD adds the products of four unsigned and four signed
 * bytes to each of 16 sums in int32, modulo 2^32. pack_i8.c makes the elements of op(A) unsigned by
 * adding 128. To compensate, each sum begins with -128 times the sum of its column of op(B), which
 * pack_i8.c has stored.
 *
 * Compiled with -mavx512f and -mavx512vnni; called only where detect.c found them.
 */
#include "cpu/kernels/tier_tables.h"

#include <string.h>

#define WORDS_NAME(x)          x##_vnni
#define STEPS                  CPU_WORDS_STEPS_I8
#define GROUP                  4
#define ELEMENT                int32_t
#define SUM                    __m512i
#define FIRST_SUMS(offsets, j) _mm512_load_si512((offsets) + (j)*ROW)
#define OFFSETS                CPU_WORDS_OFFSETS
#define DOT(sum, row, columns) _mm512_dpbusd_epi32(sum, row, columns)
#define ADD(x, y)              _mm512_add_epi32(x, y)
#define LOAD_C(mask, c)        _mm512_maskz_loadu_epi32(mask, c)
#define STORE_C(c, mask, x)    _mm512_mask_storeu_epi32(c, mask, x)
#include "cpu/kernels/template_word_tile.h"

void tgl_cpu_multiply_vnni(const cpu_words_product *x)
{
    multiply_vnni(x);
}

/* y[i] := dot product of row i of M and x, for i < rows, a compile-time constant. x is padded with
 * zeros to whole vectors. offset: -128 * sum(x), which corrects for the 128 added to each element
 * of M. */
static inline __attribute__((always_inline)) void dot_rows(const int rows, int32_t *y,
                                                           const int8_t *M, int64_t ld, int64_t k,
                                                           const int8_t *x, int32_t offset)
{
    const __m512i sign = _mm512_set1_epi8(-128);
    __m512i sums[4];
    UNROLL
    for (int i = 0; i < rows; i++)
        sums[i] = _mm512_setzero_si512();
    for (int64_t p = 0; p < k; p += ROW) {
        const __m512i steps = _mm512_load_si512(x + p);
        const __mmask64 mask = first_of_64(k - p);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512i elements = _mm512_maskz_loadu_epi8(mask, M + i * ld + p);
            __builtin_prefetch(M + (i + rows) * ld + p);
            sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_xor_si512(elements, sign), steps);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++)
        y[i] = (int32_t)((uint32_t)_mm512_reduce_add_epi32(sums[i]) + (uint32_t)offset);
}

void tgl_cpu_dot_vnni(void *to, const void *from, int64_t ld, int64_t rows, int64_t k,
                      const void *by)
{
    _Alignas(64) int8_t x[CPU_VECTOR_STEPS];
    const int8_t *M = from;
    int32_t *y = to, offset = 0;
    memset(x, 0, sizeof x);
    for (int64_t p = 0; p < k; p++) {
        x[p] = (int8_t)((const float *)by)[p];
        offset -= 128 * x[p];
    }
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4)
        dot_rows(4, y + i, M + i * ld, ld, k, x, offset);
    for (; i < rows; i++)
        dot_rows(1, y + i, M + i * ld, ld, k, x, offset);
}

const cpu_words tgl_cpu_words_avx512_vnni = {
    .name = "AVX512-VNNI",
    .steps = {[CPU_WORDS_I8] = CPU_STEPS_VNNI},
    .cycles = {[CPU_WORDS_I8] = CPU_CYCLES_VNNI},
    .fma_cycles = 1 / 14.0,
    .pack_a = {[CPU_WORDS_I8] = tgl_pack_a_u8},
    .pack_b = {[CPU_WORDS_I8] = tgl_pack_b_i8_with_offsets},
    .multiply = {[CPU_WORDS_I8] = tgl_cpu_multiply_vnni},
    .short_dot = {[CPU_SHORT_I8] = tgl_cpu_dot_vnni},
};
