/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs operands as bf16 words by AVX-512, in the tiles that AMX multiplies (cpu_words.h). A line
 * is a row of op(A) or a column of op(B). Row i of a tile of A is 32 steps of row i of op(A). Row q
 * of a tile of B has steps 2q and 2q + 1 of 16 columns of op(B), side by side for each column.
 * Compiled with -mavx512f, -mavx512bw and -mavx512vl; called only where detect.c found them.
 */
#include "cpu/kernels/word_tiles.h"

enum { STEPS = CPU_WORDS_STEPS };

/* ---- Exponents ------------------------------------------------------------------------------- */

/* The range of the magnitudes of the elements seen so far, separately for each lane. most: the
 * largest magnitude. least: the minimum of (magnitude - 1), unsigned, so that a zero wraps around
 * to the largest number and is ignored. */
typedef struct magnitudes {
    __m512i least, most;
} magnitudes;

static inline void note_bf16(magnitudes *seen, __m512i x)
{
    const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi16(0x7fff));
    seen->most = _mm512_max_epu16(seen->most, magnitude);
    seen->least = _mm512_min_epu16(seen->least, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
}

static inline void note_f32(magnitudes *seen, __m512i x)
{
    const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi32(0x7fffffff));
    seen->most = _mm512_max_epu32(seen->most, magnitude);
    seen->least = _mm512_min_epu32(seen->least, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
}

static magnitudes nothing_seen(void)
{
    return (magnitudes){_mm512_set1_epi32(-1), _mm512_setzero_si512()};
}

static cpu_exponents exponents_bf16(const magnitudes *seen)
{
    const __m512i low = _mm512_set1_epi32(0xffff);
    const __m512i least =
        _mm512_min_epu32(_mm512_and_si512(seen->least, low), _mm512_srli_epi32(seen->least, 16));
    const __m512i most =
        _mm512_max_epu32(_mm512_and_si512(seen->most, low), _mm512_srli_epi32(seen->most, 16));
    const unsigned magnitude = _mm512_reduce_min_epu32(least) + 1; /* 0x10000: all are 0 */
    const unsigned exponent = magnitude >> 7;
    return (cpu_exponents){.least = exponent < 256 ? (int)exponent : 256,
                           .most = (int)(_mm512_reduce_max_epu32(most) >> 7)};
}

static cpu_exponents exponents_f32(const magnitudes *seen)
{
    const uint64_t least = (uint64_t)_mm512_reduce_min_epu32(seen->least) + 1;
    return (cpu_exponents){.least = (int)(least >> 23),
                           .most = (int)(_mm512_reduce_max_epu32(seen->most) >> 23)};
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Rounds to bf16, ties away from zero. The result is the upper half of each 32-bit lane; the lower
 * half is 0. */
static inline __m512i upper_word(__m512 x)
{
    const __m512i up = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
    return _mm512_and_si512(up, _mm512_set1_epi32((int)0xffff0000));
}

/* Splits each of 16 f32 into `count` bf16 words (cpu_words.h), highest first. Each word is the
 * upper half of its 32-bit lane; the lower half is 0, also for the last word, because the rest that
 * it represents has at most 8 significant bits. */
static inline __attribute__((always_inline)) void split(__m512i x, const int count,
                                                        __m512i words[3])
{
    __m512 rest = _mm512_castsi512_ps(x);
    for (int w = 0; w < count - 1; w++) {
        words[w] = upper_word(rest);
        rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(words[w]));
    }
    words[count - 1] = _mm512_castps_si512(rest);
}

/* Loads 16 elements as f32. words: 3 for f32 elements, 2 for f16. VCVTPH2PS converts denormal f16
 * exactly in any mode of the processor. */
static inline __attribute__((always_inline)) __m512i load_16(const void *from, __mmask16 mask,
                                                             const int words)
{
    if (words == 3) return _mm512_maskz_loadu_epi32(mask, from);
    return _mm512_castps_si512(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from)));
}

/* ---- Packing --------------------------------------------------------------------------------- */

/* Packs STEPS steps of up to 32 lines that are contiguous along k: line i becomes row i % 16 of
 * tile i / 16. */
static inline void gather_lines_bf16(char *to, const uint16_t *from, int64_t ld, int64_t lines,
                                     int64_t k, magnitudes *seen)
{
    const __mmask32 steps = first_of_32(k);
    for (int i = 0; i < LINES; i++) {
        __m512i x = _mm512_setzero_si512();
        if (i < lines) x = _mm512_maskz_loadu_epi16(steps, from + i * ld);
        __builtin_prefetch(from + (i + LINES) * ld);
        note_bf16(seen, x);
        store_row(to, 0, i / TILE_ROWS, i % TILE_ROWS, x);
    }
}

/* Packs a whole panel as gather_lines_bf16() does, but one line after the other. It prefetches 8
 * lines ahead, not 32: lines at a distance of a multiple of 4 KB share a set of the L1 cache, which
 * holds 8 of them. */
static inline void gather_whole_lines_bf16(char *to, const uint16_t *from, int64_t ld,
                                           int64_t lines, int64_t k, magnitudes *seen)
{
    enum { AHEAD = 8 };
    for (int i = 0; i < LINES; i++, from += ld) {
        char *row = to;
        for (int64_t p = 0; p < k; p += STEPS, row += CPU_WORDS_BYTES) {
            __m512i x = _mm512_setzero_si512();
            if (i < lines) x = _mm512_maskz_loadu_epi16(first_of_32(k - p), from + p);
            __builtin_prefetch(from + AHEAD * ld + p);
            note_bf16(seen, x);
            store_row(row, 0, i / TILE_ROWS, i % TILE_ROWS, x);
        }
    }
}

/* As gather_lines_bf16(), for f32 and f16 elements, which are split into 3 or 2 words. */
static inline __attribute__((always_inline)) void gather_lines_split(char *to, const char *from,
                                                                     int64_t ld, int64_t lines,
                                                                     int64_t k, const int words,
                                                                     magnitudes *seen)
{
    const int64_t element = words == 3 ? 4 : 2;
    const __mmask16 first = first_of_16(k), second = first_of_16(k - 16);
    const __m512i odd =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                         25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    for (int i = 0; i < LINES; i++) {
        const char *line = from + i * ld * element;
        __m512i x = _mm512_setzero_si512(), y = x, words_x[3], words_y[3];
        if (i < lines) {
            x = load_16(line, first, words);
            y = load_16(line + 16 * element, second, words);
        }
        __builtin_prefetch(line + LINES * element);
        if (words == 3) __builtin_prefetch(line + (LINES + 16) * element);
        note_f32(seen, x);
        note_f32(seen, y);
        split(x, words, words_x);
        split(y, words, words_y);
        for (int w = 0; w < words; w++)
            store_row(to, w, i / TILE_ROWS, i % TILE_ROWS,
                      _mm512_permutex2var_epi16(words_x[w], odd, words_y[w]));
    }
}

/* Packs STEPS steps of up to 32 lines of a block in which the elements of each step of k are
 * contiguous. Row q of a tile gets 16 pairs: pair i is steps 2q and 2q + 1 of line i. */
static inline void gather_steps_bf16(char *to, const uint16_t *from, int64_t ld, int64_t lines,
                                     int64_t k, magnitudes *seen)
{
    const __mmask32 mask = first_of_32(lines);
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    for (int q = 0; q < STEPS / 2; q++) {
        __m512i even = _mm512_setzero_si512(), odd = even;
        if (2 * q < k) even = _mm512_maskz_loadu_epi16(mask, from + 2 * q * ld);
        if (2 * q + 1 < k) odd = _mm512_maskz_loadu_epi16(mask, from + (2 * q + 1) * ld);
        __builtin_prefetch(from + 2 * q * ld + LINES);
        __builtin_prefetch(from + (2 * q + 1) * ld + LINES);
        note_bf16(seen, even);
        note_bf16(seen, odd);
        store_row(to, 0, 0, q, _mm512_permutex2var_epi16(even, low, odd));
        store_row(to, 0, 1, q, _mm512_permutex2var_epi16(even, high, odd));
    }
}

/* As gather_steps_bf16(), for f32 and f16 elements, which are split into 3 or 2 words. */
static inline __attribute__((always_inline)) void gather_steps_split(char *to, const char *from,
                                                                     int64_t ld, int64_t lines,
                                                                     int64_t k, const int words,
                                                                     magnitudes *seen)
{
    const int64_t element = words == 3 ? 4 : 2;
    for (int tile = 0; tile < 2; tile++) {
        const __mmask16 mask = first_of_16(lines - tile * TILE_ROWS);
        const char *start = from + tile * TILE_ROWS * element;
        for (int q = 0; q < STEPS / 2; q++) {
            const char *step = start + 2 * q * ld * element, *next = step + ld * element;
            __m512i even = _mm512_setzero_si512(), odd = even, words_even[3], words_odd[3];
            if (2 * q < k) even = load_16(step, mask, words);
            if (2 * q + 1 < k) odd = load_16(next, mask, words);
            __builtin_prefetch(step + LINES * element);
            __builtin_prefetch(next + LINES * element);
            note_f32(seen, even);
            note_f32(seen, odd);
            split(even, words, words_even);
            split(odd, words, words_odd);
            for (int w = 0; w < words; w++)
                store_row(to, w, tile, q,
                          _mm512_or_si512(_mm512_srli_epi32(words_even[w], 16), words_odd[w]));
        }
    }
}

/* Packs a block, one tile after the other. words: number of words of an element. by_lines: true if
 * each row of a tile gets one line (op(A)), false if it gets a few steps of k of 16 lines
 * (op(B)). */
static inline __attribute__((always_inline)) magnitudes
pack_words(char *to, const cpu_words_source *s, const int words, bool by_lines)
{
    magnitudes seen = nothing_seen();
    const int64_t element = words == 3 ? 4 : 2;
    for (int64_t i = 0; i < s->lines; i += LINES)
        for (int64_t p = 0; p < s->k; p += STEPS) {
            const int64_t index = s->k_contiguous ? i * s->ld + p : p * s->ld + i;
            const char *from = (const char *)s->from + index * element;
            const int64_t lines = s->lines - i, k = s->k - p;
            if (words == 1 && s->k_contiguous)
                gather_lines_bf16(to, (const void *)from, s->ld, lines, k, &seen);
            else if (words == 1)
                gather_steps_bf16(to, (const void *)from, s->ld, lines, k, &seen);
            else if (s->k_contiguous)
                gather_lines_split(to, from, s->ld, lines, k, words, &seen);
            else
                gather_steps_split(to, from, s->ld, lines, k, words, &seen);
            if (s->k_contiguous != by_lines) transpose_tiles(to, 2 * words);
            to += words * CPU_WORDS_BYTES;
        }
    return seen;
}

/* As pack_words() for bf16, but one line after the other. */
static magnitudes pack_whole_lines(char *to, const cpu_words_source *s, bool by_lines)
{
    magnitudes seen = nothing_seen();
    const int64_t tiles = 2 * ((s->k + STEPS - 1) / STEPS);
    const uint16_t *from = s->from;
    for (int64_t i = 0; i < s->lines; i += LINES, from += LINES * s->ld, to += tiles * TILE) {
        gather_whole_lines_bf16(to, from, s->ld, s->lines - i, s->k, &seen);
        if (!by_lines) transpose_tiles(to, tiles);
    }
    return seen;
}

/* tgl_pack_a_bf16() and tgl_pack_b_bf16() pack a block that is contiguous along k and has fewer
 * lines than this one line after the other, any other block one tile after the other. On a Xeon
 * with AMX, packing line after line makes the product 64 x 64 x 65536 take 14 % less time. It would
 * make 128 x 128 x 128 take 2 % more. */
enum { FEW_LINES = 128 };

static cpu_exponents pack_bf16(void *to, const cpu_words_source *source, int64_t few, bool by_lines)
{
    const bool whole = source->k_contiguous && source->lines < few;
    const magnitudes seen =
        whole ? pack_whole_lines(to, source, by_lines) : pack_words(to, source, 1, by_lines);
    return exponents_bf16(&seen);
}

cpu_exponents tgl_pack_a_bf16(void *to, const cpu_words_source *source)
{
    return pack_bf16(to, source, FEW_LINES, true);
}

cpu_exponents tgl_pack_b_bf16(void *to, const cpu_words_source *source)
{
    return pack_bf16(to, source, FEW_LINES, false);
}

cpu_exponents tgl_pack_a_bf16_by_line(void *to, const cpu_words_source *source)
{
    return pack_bf16(to, source, INT64_MAX, true);
}

cpu_exponents tgl_pack_b_bf16_by_line(void *to, const cpu_words_source *source)
{
    return pack_bf16(to, source, INT64_MAX, false);
}

cpu_exponents tgl_exponents_bf16(const cpu_words_source *source)
{
    magnitudes seen = nothing_seen();
    const uint16_t *line = source->from;
    for (int64_t i = 0; i < source->lines; i++, line += source->ld)
        for (int64_t p = 0; p < source->k; p += STEPS)
            note_bf16(&seen, _mm512_loadu_si512(line + p));
    return exponents_bf16(&seen);
}

static inline __attribute__((always_inline)) cpu_exponents
pack_split(void *to, const cpu_words_source *source, const int words, bool by_lines)
{
    const magnitudes seen = pack_words(to, source, words, by_lines);
    return exponents_f32(&seen);
}

cpu_exponents tgl_pack_a_f32(void *to, const cpu_words_source *source)
{
    return pack_split(to, source, 3, true);
}

cpu_exponents tgl_pack_b_f32(void *to, const cpu_words_source *source)
{
    return pack_split(to, source, 3, false);
}

cpu_exponents tgl_pack_a_f16(void *to, const cpu_words_source *source)
{
    return pack_split(to, source, 2, true);
}

cpu_exponents tgl_pack_b_f16(void *to, const cpu_words_source *source)
{
    return pack_split(to, source, 2, false);
}
