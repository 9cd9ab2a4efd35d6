/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs operands of int8 by AVX-512, in the tiles that AMX and AVX512-VNNI multiply (cpu_words.h).
 * A line is a row of op(A) or a column of op(B). Row i of a tile of A is 64 steps of row i of
 * op(A). Row q of a tile of B has steps 4q to 4q + 3 of 16 columns of op(B), side by side for each
 * column. Compiled with -mavx512f, -mavx512bw and -mavx512vl; called only where detect.c found
 * them.
 */
#include "cpu/kernels/word_tiles.h"

enum { STEPS = CPU_WORDS_STEPS_I8 };

/* Panels of 32 lines are packed in pairs: if the elements of a step of k are contiguous, one step
 * of 64 lines fills a cache line of 64 bytes. */
enum { LINES_OF_TWO = 2 * LINES };

/* Packs a panel that is contiguous along k, one line after the other: row i of each tile is STEPS
 * steps of line i. flip: bits of each element to invert (0x80 adds 128); 0 for none. */
static inline void gather_lines_i8(char *to, const char *from, int64_t ld, int64_t lines, int64_t k,
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

/* Transposes a 4 x 4 matrix of 16-byte parts: part j of vector i becomes part i of vector j. */
static inline void transpose_parts(__m512i x[4])
{
    const __m512i a = _mm512_shuffle_i32x4(x[0], x[1], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(x[0], x[1], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(x[2], x[3], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(x[2], x[3], 0xdd);
    x[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    x[1] = _mm512_shuffle_i32x4(b, d, 0x88);
    x[2] = _mm512_shuffle_i32x4(a, c, 0xdd);
    x[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

/* Packs STEPS steps of two panels of a block in which the elements of each step of k are
 * contiguous. to[1]: NULL if there is no second panel. Row q of a tile gets 16 groups of 4 bytes:
 * group i is steps 4q to 4q + 3 of line i. */
static inline void gather_steps_i8(char *to[2], const char *from, int64_t ld, int64_t lines,
                                   int64_t k, __m512i flip)
{
    const __mmask64 mask = first_of_64(lines);
    for (int q = 0; q < STEPS / 4; q++) {
        __m512i step[4];
        UNROLL
        for (int i = 0; i < 4; i++, from += ld) {
            step[i] = _mm512_setzero_si512();
            if (4 * q + i < k) step[i] = _mm512_maskz_loadu_epi8(mask, from);
            __builtin_prefetch(from + LINES_OF_TWO);
        }
        const __m512i low01 = _mm512_unpacklo_epi8(step[0], step[1]);
        const __m512i high01 = _mm512_unpackhi_epi8(step[0], step[1]);
        const __m512i low23 = _mm512_unpacklo_epi8(step[2], step[3]);
        const __m512i high23 = _mm512_unpackhi_epi8(step[2], step[3]);
        __m512i groups[4] = {
            _mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
            _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
        transpose_parts(groups);
        UNROLL
        for (int tile = 0; tile < 4; tile++)
            if (to[tile / 2] != NULL)
                store_row(to[tile / 2], 0, tile % 2, q, _mm512_xor_si512(groups[tile], flip));
    }
}

static int64_t panel_bytes(const cpu_words_source *s)
{
    return (s->k + STEPS - 1) / STEPS * CPU_WORDS_BYTES;
}

/* Packs two panels, from line `line` on, or one if to[1] is NULL. by_lines: true if each row of a
 * tile gets one line (op(A)), false if it gets a few steps of k of 16 lines (op(B)). */
static void pack_panels(char *const to[2], const cpu_words_source *s, int64_t line, bool by_lines,
                        __m512i flip)
{
    const char *from = s->from;
    for (int64_t p = 0; p < s->k && !s->k_contiguous; p += STEPS) {
        const int64_t at = p / STEPS * CPU_WORDS_BYTES;
        gather_steps_i8((char *[]){to[0] + at, to[1] != NULL ? to[1] + at : NULL},
                        from + line + p * s->ld, s->ld, s->lines - line, s->k - p, flip);
    }
    for (int i = 0; i < 2 && to[i] != NULL; i++) {
        const int64_t first = line + i * LINES;
        if (s->k_contiguous)
            gather_lines_i8(to[i], from + first * s->ld, s->ld, s->lines - first, s->k, flip);
        if (s->k_contiguous != by_lines) transpose_tiles(to[i], panel_bytes(s) / TILE);
    }
}

/* Stores -128 * (sum of column j) as int32 for each column j of a packed panel of B, directly
 * behind the panel: `to` is the panel's end. */
static inline void store_offsets(char *to, const char *panel)
{
    const __m512i ones = _mm512_set1_epi8(1), factor = _mm512_set1_epi16(-128);
    __m512i sums[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (; panel < to; panel += CPU_WORDS_BYTES)
        for (int q = 0; q < TILE_ROWS; q++)
            for (int tile = 0; tile < 2; tile++) {
                const __m512i row = _mm512_load_si512(panel + tile * TILE + q * ROW);
                const __m512i pairs = _mm512_maddubs_epi16(ones, row);
                sums[tile] = _mm512_add_epi32(sums[tile], _mm512_madd_epi16(pairs, factor));
            }
    _mm512_store_si512(to, sums[0]);
    _mm512_store_si512(to + ROW, sums[1]);
}

static cpu_exponents pack_i8(char *to, const cpu_words_source *s, bool by_lines, bool offsets,
                             __m512i flip)
{
    const int64_t bytes = panel_bytes(s), panel = bytes + (offsets ? CPU_WORDS_OFFSETS : 0);
    for (int64_t i = 0; i < s->lines; i += LINES_OF_TWO, to += 2 * panel) {
        char *const panels[2] = {to, i + LINES < s->lines ? to + panel : NULL};
        pack_panels(panels, s, i, by_lines, flip);
        for (int p = 0; p < 2 && offsets && panels[p] != NULL; p++)
            store_offsets(panels[p] + bytes, panels[p]);
    }
    return (cpu_exponents){0};
}

cpu_exponents tgl_pack_a_i8(void *to, const cpu_words_source *s)
{
    return pack_i8(to, s, true, false, _mm512_setzero_si512());
}

cpu_exponents tgl_pack_b_i8(void *to, const cpu_words_source *s)
{
    return pack_i8(to, s, false, false, _mm512_setzero_si512());
}

cpu_exponents tgl_pack_a_u8(void *to, const cpu_words_source *s)
{
    return pack_i8(to, s, true, false, _mm512_set1_epi8(-128));
}

cpu_exponents tgl_pack_b_i8_with_offsets(void *to, const cpu_words_source *s)
{
    return pack_i8(to, s, false, true, _mm512_setzero_si512());
}
