/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of int8 by SMMLA (FEAT_I8MM) and of bf16 by BFMMLA (FEAT_BF16). SMMLA multiplies 2 rows
 * of 8 int8 by 2 columns of 8, BFMMLA 2 rows of 4 bf16 by 2 columns of 4; both add the products to
 * 2 x 2 sums. Compiled with -march=armv8.2-a+i8mm+bf16; called only where detect.c found them.
 *
 * BFMMLA adds the products of two steps of k to each other, and then adds the result to the sum.
 * Each addition rounds to odd: the result is truncated, and its last bit is set if anything was cut
 * off. Denormal numbers are treated as zero, and results below the normal numbers become zero (Arm
 * ARM, BFMatMulAdd() and BFDotAdd()). FPCR does not change this, unless it enables FEAT_EBF16,
 * which Linux does not.
 */
#include "cpu/kernels/tier_tables.h"
#include "cpu/kernels/unroll.h"

#include <arm_neon.h>
#include <string.h>

/* Multiplies 4 pairs of rows by 4 pairs of columns. Each of the 16 vectors of sums is a square of 2
 * x 2 sums, for one pair of rows and one pair of columns. */
#define MULTIPLY_PAIRS(sums, a, b)                                                                 \
    do {                                                                                           \
        int8x16_t pairs_a[4], pairs_b[4];                                                          \
        UNROLL                                                                                     \
        for (int i = 0; i < 4; i++) {                                                              \
            pairs_a[i] = vld1q_s8((a) + 16 * i);                                                   \
            pairs_b[i] = vld1q_s8((b) + 16 * i);                                                   \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int i = 0; i < 16; i++)                                                               \
            (sums)[i] = MMLA((sums)[i], pairs_a[i / 4], pairs_b[i % 4]);                           \
    } while (0)

/* One row of two adjacent squares of 2 x 2 sums: 4 sums. is_upper: row 0, else row 1. */
static inline int64x2_t row_of(int64x2_t left, int64x2_t right, bool is_upper)
{
    return is_upper ? vzip1q_s64(left, right) : vzip2q_s64(left, right);
}
#define ROW_OF_SQUARES(V, square, i)                                                               \
    (V) row_of((int64x2_t)(square)[0], (int64x2_t)(square)[1], (i) % 2 == 0)

#define NAME(x)              x##_mm_i8
#define T                    int32_t
#define V                    int32x4_t
#define ELEMENT              1
#define GROUP                8
#define LOAD(p)              vld1q_s32(p)
#define STORE(p, v)          vst1q_s32(p, v)
#define ADD(x, y)            vaddq_s32(x, y)
#define ZERO                 vdupq_n_s32(0)
#define MMLA(sum, a, b)      vmmlaq_s32(sum, a, b)
#define MULTIPLY(sums, a, b) MULTIPLY_PAIRS(sums, a, b)
#define ROW(sums, i, half)   ROW_OF_SQUARES(V, (sums) + (i) / 2 * 4 + 2 * (half), i)
#include "cpu/kernels/template_neon_words.h"
#undef MMLA

#define NAME(x)              x##_mm_bf16
#define T                    float
#define V                    float32x4_t
#define ELEMENT              2
#define GROUP                8
#define LOAD(p)              vld1q_f32(p)
#define STORE(p, v)          vst1q_f32(p, v)
#define ADD(x, y)            vaddq_f32(x, y)
#define ZERO                 vdupq_n_f32(0)
#define MMLA(sum, a, b)      vbfmmlaq_f32(sum, vreinterpretq_bf16_s8(a), vreinterpretq_bf16_s8(b))
#define MULTIPLY(sums, a, b) MULTIPLY_PAIRS(sums, a, b)
#define ROW(sums, i, half)   ROW_OF_SQUARES(V, (sums) + (i) / 2 * 4 + 2 * (half), i)
#include "cpu/kernels/template_neon_words.h"

/* The cycles are estimates, not measured. A cycle of Neoverse N2 executes 2 SMMLA (64
 * multiply-adds), 2 BFMMLA (32) or 2 FMLA (8); one of V1 executes twice as many (LLVM's scheduling
 * models, after Arm's software optimization guides). The table assumes half of N2's SMMLA and
 * BFMMLA rates. 32 rows of A take 32 KB, half of the L1 cache. */
const cpu_words tgl_cpu_words_neon_mm = {
    .name = "NEON MMLA",
    .steps = {[CPU_WORDS_BF16] = 512, [CPU_WORDS_I8] = 1024},
    .cycles = {[CPU_WORDS_BF16] = 1 / 16.0, [CPU_WORDS_I8] = 1 / 32.0},
    .fma_cycles = 1 / 7.0,
    .rounds_to_odd = true,
    .pack_a = {[CPU_WORDS_BF16] = tgl_pack_bf16_by_8, [CPU_WORDS_I8] = tgl_pack_i8_by_8},
    .pack_b = {[CPU_WORDS_BF16] = tgl_pack_bf16_by_8, [CPU_WORDS_I8] = tgl_pack_i8_by_8},
    .multiply = {[CPU_WORDS_BF16] = multiply_mm_bf16, [CPU_WORDS_I8] = multiply_mm_i8},
};
