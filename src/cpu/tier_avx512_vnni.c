/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of int8 by AVX512-VNNI. VPDPBUSD adds to each of 16 sums in int32, modulo 2^32, the
 * products of four unsigned bytes and four signed ones. Elements of op(A) are unsigned with 128
 * added; the first sums make up for it (pack_i8.c). Compiled with -mavx512f and -mavx512vnni;
 * called only where detect.c found them.
 */
#include "cpu/tiers.h"

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
#include "cpu/template_word_tile.h"

void tgl_cpu_multiply_vnni(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c,
                           int64_t ldc, bool add, const cpu_words_next next[2])
{
    multiply_vnni(m, n, k, a, b, c, ldc, add, next);
}

const cpu_words tgl_cpu_words_avx512_vnni = {
    .name = "AVX512-VNNI",
    .steps = {[CPU_WORDS_I8] = CPU_STEPS_VNNI},
    .cycles = {[CPU_WORDS_I8] = CPU_CYCLES_VNNI},
    .fma_cycles = 1 / 14.0,
    .pack_a = {[CPU_WORDS_I8] = tgl_pack_a_u8},
    .pack_b = {[CPU_WORDS_I8] = tgl_pack_b_i8_with_offsets},
    .multiply = {[CPU_WORDS_I8] = tgl_cpu_multiply_vnni},
};
