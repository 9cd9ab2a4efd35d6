/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of int8 by AVX2. VPMADDWD multiplies int16 and adds the two products of a pair in int32,
 * exactly. (VPMADDUBSW, which multiplies bytes, saturates the sum of two products.) Operands are
 * packed as int16, in panels of MR rows of op(A) or NR columns of op(B). Such a row or column is
 * called a line. For each pair of successive steps of k, a panel has the two elements of each of
 * its lines, side by side. Compiled with -mavx2; called only where detect.c found it.
 */
#include "base/integers.h"
#include "cpu/kernels/tier_tables.h"
#include "cpu/kernels/unroll.h"

#include <immintrin.h>
#include <string.h>

/* The register tile, MR x NR, in 12 of 16 registers: 8 vectors of sums, 2 of op(B), 1 pair of
 * op(A), 1 of products. 8 chains of sums suffice, because the addition (VPADDD) has a latency of 1
 * cycle. */
enum { MR = 4, NV = 2, NR = 8 * NV, STEP_PAIRS = 8 };

/* ---- Packing --------------------------------------------------------------------------------- */

/* Loads min(count, 16) bytes as int16, followed by zeros. */
static inline __m256i load_as_i16(const int8_t *from, int64_t count)
{
    int8_t bytes[16] = {0};
    if (count >= 16) return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)from));
    if (count > 0) memcpy(bytes, from, (size_t)count);
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)bytes));
}

/* Stores 4 pairs of int16 for one pair of steps: one pair for each of 4 lines. half: the half of x
 * to store. */
static inline void store_pairs(char *to, __m256i x, const int half)
{
    _mm_storeu_si128((void *)to,
                     half == 0 ? _mm256_castsi256_si128(x) : _mm256_extracti128_si256(x, 1));
}

/* Packs 16 steps of 4 lines that are contiguous along k. step: bytes of a panel for a pair of
 * steps. */
static inline void gather_line_pairs(char *to, int64_t step, const int8_t *from, int64_t ld,
                                     int64_t lines, int64_t k)
{
    __m256i x[4];
    UNROLL
    for (int i = 0; i < 4; i++)
        x[i] = load_as_i16(from + (i < lines ? i * ld : 0), i < lines ? k : 0);
    const __m256i a = _mm256_unpacklo_epi32(x[0], x[1]), b = _mm256_unpackhi_epi32(x[0], x[1]);
    const __m256i c = _mm256_unpacklo_epi32(x[2], x[3]), d = _mm256_unpackhi_epi32(x[2], x[3]);
    const __m256i pairs[4] = {_mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c),
                              _mm256_unpacklo_epi64(b, d), _mm256_unpackhi_epi64(b, d)};
    const int64_t count = (k + 1) / 2;
    UNROLL
    for (int q = 0; q < STEP_PAIRS; q++)
        if (q < count) store_pairs(to + q * step, pairs[q % 4], q / 4);
}

/* Packs 2 steps of 16 lines of a block in which the elements of each step of k are contiguous.
 * to[i]: receives the pairs of lines 4i to 4i + 3. */
static inline void gather_step_pairs(char *const to[4], const int8_t *from, int64_t ld,
                                     int64_t lines, int64_t k)
{
    const __m256i even = load_as_i16(from, lines), odd = load_as_i16(from + ld, k > 1 ? lines : 0);
    const __m256i low = _mm256_unpacklo_epi16(even, odd), high = _mm256_unpackhi_epi16(even, odd);
    store_pairs(to[0], low, 0);
    store_pairs(to[1], high, 0);
    store_pairs(to[2], low, 1);
    store_pairs(to[3], high, 1);
}

/* Packs a block in panels of `width` lines, a multiple of 4. Lines beyond the block, up to a
 * multiple of 16, are zeros. */
static inline __attribute__((always_inline)) cpu_exponents
pack_i16(char *to, const cpu_words_source *s, const int64_t width)
{
    const int64_t step = width * 4, panel = (s->k + 1) / 2 * step;
    const int8_t *from = s->from;
    for (int64_t i = 0; i < s->lines; i += 16) {
        char *groups[4];
        UNROLL
        for (int g = 0; g < 4; g++)
            groups[g] = to + (i + 4 * g) / width * panel + (i + 4 * g) % width * 4;
        for (int64_t p = 0; s->k_contiguous && p < s->k; p += 2 * STEP_PAIRS)
            for (int g = 0; g < 4; g++)
                gather_line_pairs(groups[g] + p / 2 * step, step, from + (i + 4 * g) * s->ld + p,
                                  s->ld, s->lines - i - 4 * g, s->k - p);
        for (int64_t p = 0; !s->k_contiguous && p < s->k; p += 2) {
            gather_step_pairs(groups, from + p * s->ld + i, s->ld, s->lines - i, s->k - p);
            UNROLL
            for (int g = 0; g < 4; g++)
                groups[g] += step;
        }
    }
    return (cpu_exponents){0};
}

static cpu_exponents pack_a_i16(void *to, const cpu_words_source *source)
{
    return pack_i16(to, source, MR);
}

static cpu_exponents pack_b_i16(void *to, const cpu_words_source *source)
{
    return pack_i16(to, source, NR);
}

/* ---- Multiplying ----------------------------------------------------------------------------- */

/* All ones in the first min(max(n, 0), 8) lanes. */
static inline __m256i mask_of_lanes(int64_t n)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n > 8 ? 8 : n < 0 ? 0 : n)), lanes);
}

/* Computes the register tile of C whose first element is *c. rows, columns: number of rows and
 * columns of C from *c on. The tile covers at most MR x NR of these elements and accesses nothing
 * beyond them. */
static inline void multiply_tile_i8(int64_t rows, int64_t columns, int64_t k, const char *a,
                                    const char *b, int32_t *c, int64_t ldc, bool add)
{
    const __m256i masks[NV] = {mask_of_lanes(columns), mask_of_lanes(columns - 8)};
    __m256i sums[MR][NV] = {{_mm256_setzero_si256()}};
    for (int64_t q = 0; q < (k + 1) / 2; q++, a += MR * 4, b += NR * 4) {
        __m256i column[NV];
        UNROLL
        for (int j = 0; j < NV; j++)
            column[j] = _mm256_loadu_si256((const void *)(b + j * 32));
        UNROLL
        for (int i = 0; i < MR; i++) {
            const __m256i row = _mm256_set1_epi32(*(const int32_t *)(a + i * 4));
            UNROLL
            for (int j = 0; j < NV; j++)
                sums[i][j] = _mm256_add_epi32(sums[i][j], _mm256_madd_epi16(row, column[j]));
        }
    }
    UNROLL
    for (int i = 0; i < MR; i++) {
        if (i >= rows) break;
        UNROLL
        for (int j = 0; j < NV; j++) {
            int32_t *to = c + i * ldc + j * 8;
            if (add) sums[i][j] = _mm256_add_epi32(sums[i][j], _mm256_maskload_epi32(to, masks[j]));
            _mm256_maskstore_epi32(to, masks[j], sums[i][j]);
        }
    }
}

/* Loop order: a panel of B stays in the L1 cache while all of A is read. */
static void multiply_i8_avx2(const cpu_words_product *x)
{
    const int64_t m = x->a.lines, n = x->b.lines, k = x->a.k, line = (k + 1) / 2 * 4;
    for (int64_t j = 0; j < n; j += NR)
        for (int64_t i = 0; i < m; i += MR)
            multiply_tile_i8(m - i, n - j, k, (const char *)x->packed_a + i * line,
                             (const char *)x->packed_b + j * line, (int32_t *)x->c + i * x->ldc + j,
                             x->ldc, x->add);
}

/* Zen 4 executes 21 multiply-adds a cycle by VPMADDWD and 14 by f32 FMAs: VPMADDWD runs on two of
 * the four vector pipes and shares them with VPADDD. A panel of B takes 16 KB. */
const cpu_words tgl_cpu_words_avx2 = {
    .name = "AVX2",
    .steps = {[CPU_WORDS_I8] = 512},
    .cycles = {[CPU_WORDS_I8] = 1 / 21.0},
    .fma_cycles = 1 / 14.0,
    .pack_a = {[CPU_WORDS_I8] = pack_a_i16},
    .pack_b = {[CPU_WORDS_I8] = pack_b_i16},
    .multiply = {[CPU_WORDS_I8] = multiply_i8_avx2},
};
