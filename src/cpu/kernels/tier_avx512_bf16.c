/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16 words (cpu_words.h) by AVX512-BF16. VDPBF16PS adds two products of bf16 to each
 * of 16 sums in f32: steps 2q and 2q + 1 of a row of op(A), copied to all lanes, times the same
 * steps of 16 columns of op(B). Like AMX, the instruction treats denormal numbers as zero (Intel
 * SDM vol. 2, AMD APM vol. 4). Products of int8 are those of AVX512-VNNI, which all processors with
 * AVX512-BF16 have.
 *
 * Compiled with -mavx512f and -mavx512bf16; called only where detect.c found them.
 */
#include "cpu/kernels/tier_tables.h"

#define WORDS_NAME(x)          x##_bf16
#define STEPS                  CPU_WORDS_STEPS
#define GROUP                  2
#define ELEMENT                float
#define SUM                    __m512
#define FIRST_SUMS(offsets, j) _mm512_setzero_ps()
#define OFFSETS                0
#define DOT(sum, row, columns) _mm512_dpbf16_ps(sum, (__m512bh)(row), (__m512bh)(columns))
#define ADD(x, y)              _mm512_add_ps(x, y)
#define LOAD_C(mask, c)        _mm512_maskz_loadu_ps(mask, c)
#define STORE_C(c, mask, x)    _mm512_mask_storeu_ps(c, mask, x)
#include "cpu/kernels/template_word_tile.h"

/* Zen 4 executes 32 multiply-adds a cycle by VDPBF16PS and 16 by f32 FMAs; including loads and
 * packing, 28 and 14. Products of f32 and f16 are not computed by words: with six and four products
 * of words each, they would take 3 and 2 times as long as f32 FMAs. */
const cpu_words tgl_cpu_words_avx512_bf16 = {
    .name = "AVX512-BF16",
    .steps = {[CPU_WORDS_BF16] = 512, /* with 256 steps products with m = n = k >= 512 are up to 4 %
                                         slower */
              [CPU_WORDS_I8] = CPU_STEPS_VNNI},
    .cycles = {[CPU_WORDS_BF16] = 1 / 28.0, [CPU_WORDS_I8] = CPU_CYCLES_VNNI},
    .fma_cycles = 1 / 14.0,
    .pack_a = {[CPU_WORDS_BF16] = tgl_pack_a_bf16_by_line, [CPU_WORDS_I8] = tgl_pack_a_u8},
    .pack_b =
        {[CPU_WORDS_BF16] = tgl_pack_b_bf16_by_line, [CPU_WORDS_I8] = tgl_pack_b_i8_with_offsets},
    .multiply = {[CPU_WORDS_BF16] = multiply_bf16, [CPU_WORDS_I8] = tgl_cpu_multiply_vnni},
    .short_dot = {[CPU_SHORT_I8] = tgl_cpu_dot_vnni},
};
