/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs operands of int8 by AVX-512, in the tiles that AMX and AVX512-VNNI multiply (words.h): row
 * i of a tile of A is 64 steps of row i of op(A); row q of a tile of B has steps 4q to 4q + 3 of 16
 * columns of op(B), side by side for each column. Compiled with -mavx512f and -mavx512bw; called
 * only where detect.c found them.
 */
#include "cpu/word_tiles.h"

enum { STEPS = CPU_WORDS_STEPS_I8 };

/* Each row of a tile is STEPS steps of a line. All steps of a panel, line after line, as bf16 is
 * packed (gather_whole_lines() of pack_words.c). flip: is added to each element without carry. */
static inline void gather_lines(char *to, const char *from, int64_t ld, int64_t lines, int64_t k,
                                __m512i flip)
{
    enum { AHEAD = 8 };
    for (int i = 0; i < LINES; i++, from += ld) {
        char *row = to;
        for (int64_t p = 0; p < k; p += STEPS, row += CPU_WORDS_BYTES) {
            __m512i x = _mm512_setzero_si512();
            if (i < lines) x = _mm512_maskz_loadu_epi8(first_of_64(k - p), from + p);
            __builtin_prefetch(from + AHEAD * ld + p);
            store_row(row, 0, i / TILE_ROWS, i % TILE_ROWS, _mm512_xor_si512(x, flip));
        }
    }
}

/* 16 bytes, each in the lowest of 4 bytes. */
static inline __m512i spread(__m128i x)
{
    return _mm512_cvtepu8_epi32(x);
}

/* Row q of a tile has steps 4q to 4q + 3 of 16 lines, side by side for each line. */
static inline void gather_steps(char *to, const char *from, int64_t ld, int64_t lines, int64_t k,
                                __m512i flip)
{
    const __mmask64 mask = first_of_64(lines < LINES ? lines : LINES);
    for (int q = 0; q < STEPS / 4; q++) {
        __m512i step[4];
        UNROLL
        for (int i = 0; i < 4; i++, from += ld) {
            step[i] = _mm512_setzero_si512();
            if (4 * q + i < k) step[i] = _mm512_maskz_loadu_epi8(mask, from);
            __builtin_prefetch(from + LINES);
        }
        UNROLL
        for (int tile = 0; tile < 2; tile++) {
            __m512i x = flip;
            UNROLL
            for (int i = 0; i < 4; i++) {
                const __m128i part = tile == 0 ? _mm512_castsi512_si128(step[i])
                                               : _mm512_extracti32x4_epi32(step[i], 1);
                x = _mm512_xor_si512(x, _mm512_slli_epi32(spread(part), (unsigned)(8 * i)));
            }
            store_row(to, 0, tile, q, x);
        }
    }
}

/* Packs one panel, as lines or as steps. */
static inline __attribute__((always_inline)) void
pack_panel(char *to, const cpu_words_source *s, int64_t line, const bool by_lines, __m512i flip)
{
    const int64_t tiles = 2 * ((s->k + STEPS - 1) / STEPS), lines = s->lines - line;
    const char *from = (const char *)s->from + (s->k_contiguous ? line * s->ld : line);
    if (s->k_contiguous)
        gather_lines(to, from, s->ld, lines, s->k, flip);
    else
        for (int64_t p = 0; p < s->k; p += STEPS)
            gather_steps(to + p / STEPS * CPU_WORDS_BYTES, from + p * s->ld, s->ld, lines, s->k - p,
                         flip);
    if (s->k_contiguous != by_lines) transpose_tiles(to, tiles);
}

static int64_t panel_bytes(const cpu_words_source *s)
{
    return (s->k + STEPS - 1) / STEPS * CPU_WORDS_BYTES;
}

static const cpu_exponents none = {0, 0};

cpu_exponents tgl_pack_a_i8(void *to, const cpu_words_source *s)
{
    char *panel = to;
    for (int64_t i = 0; i < s->lines; i += LINES, panel += panel_bytes(s))
        pack_panel(panel, s, i, true, _mm512_setzero_si512());
    return none;
}

cpu_exponents tgl_pack_b_i8(void *to, const cpu_words_source *s)
{
    char *panel = to;
    for (int64_t i = 0; i < s->lines; i += LINES, panel += panel_bytes(s))
        pack_panel(panel, s, i, false, _mm512_setzero_si512());
    return none;
}

cpu_exponents tgl_pack_a_u8(void *to, const cpu_words_source *s)
{
    char *panel = to;
    for (int64_t i = 0; i < s->lines; i += LINES, panel += panel_bytes(s))
        pack_panel(panel, s, i, true, _mm512_set1_epi8(-128));
    return none;
}

/* -128 times the sums of the columns of a panel. */
static inline void store_offsets(char *to, const char *panel, int64_t bytes)
{
    const __m512i ones = _mm512_set1_epi8(1), pairs = _mm512_set1_epi16(-128);
    __m512i sums[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (const char *tile = panel; tile < panel + bytes; tile += TILE)
        for (int q = 0; q < TILE_ROWS; q++) {
            const __m512i row = _mm512_load_si512(tile + q * ROW);
            const __m512i sum = _mm512_madd_epi16(_mm512_maddubs_epi16(ones, row), pairs);
            const int64_t side = (tile - panel) / TILE % 2;
            sums[side] = _mm512_add_epi32(sums[side], sum);
        }
    _mm512_store_si512(to, sums[0]);
    _mm512_store_si512(to + ROW, sums[1]);
}

cpu_exponents tgl_pack_b_i8_with_offsets(void *to, const cpu_words_source *s)
{
    char *panel = to;
    for (int64_t i = 0; i < s->lines; i += LINES, panel += panel_bytes(s) + CPU_WORDS_OFFSETS) {
        pack_panel(panel, s, i, false, _mm512_setzero_si512());
        store_offsets(panel + panel_bytes(s), panel, panel_bytes(s));
    }
    return none;
}
