/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of int8 by SDOT (FEAT_DotProd). SDOT by element adds the products of 4 steps of a row of
 * op(A) and of 4 columns of op(B) to 4 sums, one for each column. Compiled with
 * -march=armv8.2-a+dotprod; called only where detect.c found it.
 */
#include "cpu/kernels/tier_tables.h"
#include "cpu/kernels/unroll.h"

#include <arm_neon.h>
#include <string.h>

/* Adds the products of row i and 8 columns to the 8 sums of the row, which are two vectors. rows: a
 * vector of 4 steps of k of each of 4 rows. lane: the lane of row i in `rows`. `columns` is a
 * variable of the caller. */
#define ROW_TIMES_COLUMNS(sums, i, rows, lane)                                                     \
    do {                                                                                           \
        (sums)[2 * (i)] = vdotq_laneq_s32((sums)[2 * (i)], columns[0], rows, lane);                \
        (sums)[2 * (i) + 1] = vdotq_laneq_s32((sums)[2 * (i) + 1], columns[1], rows, lane);        \
    } while (0)

static inline void multiply_group(int32x4_t sums[16], const int8_t *a, const int8_t *b)
{
    const int8x16_t columns[2] = {vld1q_s8(b), vld1q_s8(b + 16)};
    const int8x16_t upper = vld1q_s8(a), lower = vld1q_s8(a + 16);
    ROW_TIMES_COLUMNS(sums, 0, upper, 0);
    ROW_TIMES_COLUMNS(sums, 1, upper, 1);
    ROW_TIMES_COLUMNS(sums, 2, upper, 2);
    ROW_TIMES_COLUMNS(sums, 3, upper, 3);
    ROW_TIMES_COLUMNS(sums, 4, lower, 0);
    ROW_TIMES_COLUMNS(sums, 5, lower, 1);
    ROW_TIMES_COLUMNS(sums, 6, lower, 2);
    ROW_TIMES_COLUMNS(sums, 7, lower, 3);
}

#define NAME(x)              x##_dot_i8
#define T                    int32_t
#define V                    int32x4_t
#define ELEMENT              1
#define GROUP                4
#define LOAD(p)              vld1q_s32(p)
#define STORE(p, v)          vst1q_s32(p, v)
#define ADD(x, y)            vaddq_s32(x, y)
#define ZERO                 vdupq_n_s32(0)
#define MULTIPLY(sums, a, b) multiply_group(sums, a, b)
#define ROW(sums, i, half)   (sums)[2 * (i) + (half)]
#include "cpu/kernels/template_neon_words.h"

/* The cycles are estimates, not measured. Neoverse N2 executes 2 SDOT (32 multiply-adds) or 2 FMLA
 * (8) a cycle, V1 twice as many (LLVM's scheduling models, after Arm's software optimization
 * guides). The table assumes half of N2's SDOT rate. */
const cpu_words tgl_cpu_words_neon_dot = {
    .name = "NEON SDOT",
    .steps = {[CPU_WORDS_I8] = 1024}, /* 32 rows of A take 32 KB, half of the L1 cache of Neoverse
                                         N2 and V1 */
    .cycles = {[CPU_WORDS_I8] = 1 / 16.0},
    .fma_cycles = 1 / 7.0,
    .pack_a = {[CPU_WORDS_I8] = tgl_pack_i8_by_4},
    .pack_b = {[CPU_WORDS_I8] = tgl_pack_i8_by_4},
    .multiply = {[CPU_WORDS_I8] = multiply_dot_i8},
};
