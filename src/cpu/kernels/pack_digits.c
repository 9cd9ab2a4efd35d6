/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs operands of f32 as three int8 digits (cpu_words.h) by AVX-512, in the tiles that AMX
 * multiplies. A line is a row of op(A) or a column of op(B). Row i of a tile of A is 64 steps of
 * row i of op(A). Row q of a tile of B has four steps of each of 16 columns of op(B): 4 elements of
 * column 0, 4 of column 1, and so on. The four steps are q, q + 16, q + 32 and q + 48. Row i of a
 * tile of A has its steps in the same groups: group q is steps q, q + 16, q + 32 and q + 48. With
 * this order, byte j of each lane comes from the same lane of the j-th of four vectors of elements,
 * so that no byte moves to another lane.
 *
 * Compiled with -mavx512f, -mavx512bw and -mavx512vnni; called only where detect.c found them.
 */
#include "cpu/kernels/word_tiles.h"

/* STEPS: steps of k in a tile. ROW_OF_TILES: bytes of STEPS steps of k in a packed panel, which has
 * two tiles for each digit. */
enum { STEPS = CPU_WORDS_STEPS_I8, ROW_OF_TILES = CPU_DIGITS * CPU_WORDS_BYTES };

/* ---- Digits ---------------------------------------------------------------------------------- */

/* Added to an integer, 0x80 in each byte makes each byte a digit plus 128, from 0 to 255. Without
 * it, a negative digit would borrow from the next byte. */
enum { DIGIT_OFFSETS = 0x808080 };

/* For each of 16 lines: the biased exponent of its largest magnitude; scale = 2^s, which makes its
 * elements integers; unscale = 2^16 / scale. A line of zeros gets the values of a line whose
 * largest magnitude is 1, so that its results are 0. */
typedef struct line_scales {
    __m512i exponent;
    __m512 scale, unscale;
} line_scales;

static inline line_scales scales_of(__m512i largest)
{
    enum { BIAS = 127, FRACTION = 23 }; /* exponent bias and fraction bits of FP32 */
    /* The largest magnitude of a line becomes an integer between 2^TOP (or slightly less) and
     * CPU_DIGITS_MAX < 2^(TOP + 1). */
    enum { TOP = 22 };
    /* Adding `carry` to the bits of an f32 raises its exponent by 1 if, and only if, the f32 would
     * otherwise become an integer above CPU_DIGITS_MAX. */
    const __m512i carry = _mm512_set1_epi32(2 * ((1 << FRACTION) - CPU_DIGITS_MAX) - 1);
    const __m512i exponent =
        _mm512_mask_srli_epi32(_mm512_set1_epi32(BIAS), _mm512_test_epi32_mask(largest, largest),
                               _mm512_add_epi32(largest, carry), FRACTION);
    const __m512i scale =
        _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(2 * BIAS + TOP), exponent), FRACTION);
    const __m512i unscale =
        _mm512_slli_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(TOP - 16)), FRACTION);
    return (line_scales){exponent, _mm512_castsi512_ps(scale), _mm512_castsi512_ps(unscale)};
}

/* Byte i of y where bit i of `mask` is 1, else byte i of x. */
static inline __m512i merge_bytes(uint64_t mask, __m512i x, __m512i y)
{
    return _mm512_mask_blend_epi8(mask, x, y);
}

/* Splits 4 vectors of 16 numbers into digits. Byte 4*l + j of digits[w] is digit w of x[j][l]; w =
 * 0 is the highest digit. */
static inline __attribute__((always_inline)) void split_into_digits(const __m512 x[4], __m512 scale,
                                                                    __m512i digits[CPU_DIGITS])
{
    const uint64_t odd = UINT64_C(0xaaaaaaaaaaaaaaaa), upper = UINT64_C(0xcccccccccccccccc);
    const __m512i sign = _mm512_set1_epi8(-128);
    __m512i q[4];
    UNROLL
    for (int j = 0; j < 4; j++)
        q[j] = _mm512_add_epi32(
            _mm512_cvt_roundps_epi32(_mm512_mul_ps(x[j], scale),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
            _mm512_set1_epi32(DIGIT_OFFSETS));
    const __m512i outer01 = merge_bytes(odd, q[0], _mm512_slli_epi32(q[1], 8));
    const __m512i outer23 = merge_bytes(odd, q[2], _mm512_slli_epi32(q[3], 8));
    const __m512i inner01 = merge_bytes(odd, _mm512_srli_epi32(q[0], 8), q[1]);
    const __m512i inner23 = merge_bytes(odd, _mm512_srli_epi32(q[2], 8), q[3]);
    digits[0] = merge_bytes(upper, _mm512_srli_epi32(outer01, 16), outer23);
    digits[1] = merge_bytes(upper, inner01, _mm512_slli_epi32(inner23, 16));
    digits[2] = merge_bytes(upper, outer01, _mm512_slli_epi32(outer23, 16));
    UNROLL
    for (int w = 0; w < CPU_DIGITS; w++)
        digits[w] = _mm512_xor_si512(digits[w], sign);
}

/* ---- Statistics for tgl_cpu_digit_error() (multiply_words.c) --------------------------------- */

/* For each of 16 lanes: the sum of |highest digit|, and large[t] = number of elements with |highest
 * digit| >= 2 * 2^t. Either each lane has its own line, or all lanes have parts of one line. */
typedef struct line_statistics {
    __m512i sum, large[CPU_DIGIT_LEVELS];
} line_statistics;

static inline void clear_statistics(line_statistics *x)
{
    x->sum = _mm512_setzero_si512();
    for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
        x->large[t] = _mm512_setzero_si512();
}

/* Adds 64 highest digits to the statistics: the four bytes of lane l to lane l. */
static inline __attribute__((always_inline)) void count_digits(line_statistics *x, __m512i digits)
{
    const __m512i ones = _mm512_set1_epi8(1), magnitudes = _mm512_abs_epi8(digits);
    x->sum = _mm512_dpbusd_epi32(x->sum, magnitudes, ones);
    UNROLL
    for (int t = 0; t < CPU_DIGIT_LEVELS; t++) {
        const __mmask64 large =
            _mm512_cmpge_epu8_mask(magnitudes, _mm512_set1_epi8((char)(2 << t)));
        x->large[t] = _mm512_dpbusd_epi32(x->large[t], _mm512_maskz_mov_epi8(large, ones), ones);
    }
}

/* Updates the minima and maxima of a block with the statistics of 16 lines, one in each lane.
 * largest: the bits of each line's largest magnitude; lines of zeros are skipped. */
static void merge_statistics(cpu_exponents *to, const line_statistics *x, __m512i largest,
                             const line_scales *scales)
{
    const __mmask16 used = _mm512_test_epi32_mask(largest, largest);
    const int smallest_exponent = (int)_mm512_mask_reduce_min_epu32(used, scales->exponent);
    const int largest_exponent = (int)_mm512_mask_reduce_max_epu32(used, scales->exponent);
    const int sum = (int)_mm512_mask_reduce_max_epu32(used, x->sum);
    if (used == 0) return;
    if (smallest_exponent < to->least) to->least = smallest_exponent;
    if (largest_exponent > to->most) to->most = largest_exponent;
    if (sum > to->sum) to->sum = sum;
    for (int t = 0; t < CPU_DIGIT_LEVELS; t++) {
        const int large = (int)_mm512_mask_reduce_min_epu32(used, x->large[t]);
        if (large < to->large[t]) to->large[t] = large;
    }
}

/* ---- Packing --------------------------------------------------------------------------------- */

static inline __m512i magnitude_of(__m512 x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

static inline __attribute__((always_inline)) void pack_vectors(char *to, int tile, int row,
                                                               const __m512 x[4], __m512 scale,
                                                               line_statistics *statistics)
{
    __m512i digits[CPU_DIGITS];
    split_into_digits(x, scale, digits);
    count_digits(statistics, digits[0]);
    UNROLL
    for (int w = 0; w < CPU_DIGITS; w++)
        store_row(to, w, tile, row, digits[w]);
}

/* Loads 64 elements of a line. k: number of elements from `from` to the end of the line; lanes
 * beyond it become 0. */
static inline __attribute__((always_inline)) void load_line(const float *from, int64_t k,
                                                            __m512 x[4])
{
    UNROLL
    for (int j = 0; j < 4; j++)
        x[j] = _mm512_maskz_loadu_ps(first_of_16(k - 16 * j), from + 16 * j);
}

/* Packs up to 16 lines that are contiguous along k into half `tile` (0 or 1) of a panel. The half
 * has a tile for each digit of each STEPS steps of k; line first + i becomes row i of each. Missing
 * lines become zeros. unscale[i]: 2^16 / the scale of line i. Adds the lines' statistics to *seen.
 */
static void pack_digit_lines(char *to, int tile, const cpu_words_source *s, int64_t first,
                             float unscale[TILE_ROWS], cpu_exponents *seen)
{
    line_statistics statistics;
    clear_statistics(&statistics);
    int32_t largest[TILE_ROWS] = {0};
    for (int i = 0; i < TILE_ROWS; i++) {
        const bool is_line = first + i < s->lines;
        const float *line = (const float *)s->from + (is_line ? (first + i) * s->ld : 0);
        const int64_t k = is_line ? s->k : 0;
        __m512i magnitude = _mm512_setzero_si512();
        for (int64_t p = 0; p < k; p += 16)
            magnitude = _mm512_max_epu32(
                magnitude, magnitude_of(_mm512_maskz_loadu_ps(first_of_16(k - p), line + p)));
        largest[i] = (int32_t)_mm512_reduce_max_epu32(magnitude);
        const line_scales scales = scales_of(_mm512_set1_epi32(largest[i]));
        line_statistics of_line;
        clear_statistics(&of_line);
        char *row_of_tiles = to;
        for (int64_t p = 0; p < s->k; p += STEPS, row_of_tiles += ROW_OF_TILES) {
            __m512 x[4];
            load_line(line + p, k - p, x);
            UNROLL
            for (int j = 0; j < 4; j++)
                __builtin_prefetch(line + s->ld + p + 16 * j);
            pack_vectors(row_of_tiles, tile, i, x, scales.scale, &of_line);
        }
        const __mmask16 lane = (__mmask16)(1u << i);
        statistics.sum =
            _mm512_mask_set1_epi32(statistics.sum, lane, _mm512_reduce_add_epi32(of_line.sum));
        for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
            statistics.large[t] = _mm512_mask_set1_epi32(statistics.large[t], lane,
                                                         _mm512_reduce_add_epi32(of_line.large[t]));
    }
    const __m512i all = _mm512_loadu_si512(largest);
    const line_scales scales = scales_of(all);
    _mm512_storeu_ps(unscale, scales.unscale);
    merge_statistics(seen, &statistics, all, &scales);
}

/* Loads step p of 16 lines: 16 contiguous elements. Lines and steps outside the block give 0. */
static inline __m512 load_step(const cpu_words_source *s, int64_t first, __mmask16 lines, int64_t p)
{
    return p < s->k ? _mm512_maskz_loadu_ps(lines, (const float *)s->from + p * s->ld + first)
                    : _mm512_setzero_ps();
}

/* Packs a panel of a block in which the elements of each step of k are contiguous. A row of a tile
 * then holds four steps of 16 lines, not one line. Both tiles of the panel are packed in one pass,
 * because in a large matrix each step is in another page. */
static void pack_digit_steps(char *to, const cpu_words_source *s, int64_t first,
                             float unscale[LINES], cpu_exponents *seen)
{
    const __mmask16 lines[2] = {first_of_16(s->lines - first),
                                first_of_16(s->lines - first - TILE_ROWS)};
    __m512i largest[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (int64_t p = 0; p < s->k; p++)
        for (int tile = 0; tile < 2; tile++)
            largest[tile] = _mm512_max_epu32(
                largest[tile],
                magnitude_of(load_step(s, first + tile * TILE_ROWS, lines[tile], p)));
    const line_scales scales[2] = {scales_of(largest[0]), scales_of(largest[1])};
    line_statistics statistics[2];
    clear_statistics(&statistics[0]);
    clear_statistics(&statistics[1]);
    for (int64_t p = 0; p < s->k; p += STEPS, to += ROW_OF_TILES)
        for (int q = 0; q < TILE_ROWS; q++)
            for (int tile = 0; tile < 2; tile++) {
                __m512 x[4];
                UNROLL
                for (int j = 0; j < 4; j++) {
                    const int64_t step = p + 16 * j + q, line = first + tile * TILE_ROWS;
                    x[j] = load_step(s, line, lines[tile], step);
                    __builtin_prefetch((const float *)s->from + step * s->ld + line + LINES, 0, 2);
                }
                pack_vectors(to, tile, q, x, scales[tile].scale, &statistics[tile]);
            }
    for (int tile = 0; tile < 2; tile++) {
        _mm512_storeu_ps(unscale + tile * TILE_ROWS, scales[tile].unscale);
        merge_statistics(seen, &statistics[tile], largest[tile], &scales[tile]);
    }
}

/* Packs a block. by_lines: true if each row of a tile gets one line (op(A)), false if it gets a few
 * steps of k of 16 lines (op(B)). Stops at the first panel whose exponents are out of range for
 * digits; the caller then does not use the block. */
static cpu_exponents pack_digits(char *to, const cpu_words_source *s, bool by_lines)
{
    const int64_t rows = (s->k + STEPS - 1) / STEPS, bytes = rows * ROW_OF_TILES;
    cpu_exponents seen = {.least = 256, .most = 0};
    for (int t = 0; t < CPU_DIGIT_LEVELS; t++)
        seen.large[t] = (int)s->k;
    for (int64_t i = 0; i < s->lines; i += LINES, to += bytes + CPU_DIGITS_UNSCALE_BYTES) {
        float *unscale = (float *)(void *)(to + bytes);
        if (!s->k_contiguous) pack_digit_steps(to, s, i, unscale, &seen);
        for (int tile = 0; tile < 2 && s->k_contiguous; tile++)
            pack_digit_lines(to, tile, s, i + tile * TILE_ROWS, unscale + tile * TILE_ROWS, &seen);
        if (s->k_contiguous != by_lines) transpose_tiles(to, bytes / TILE);
        if (!tgl_cpu_digits_in_range(seen)) break;
    }
    return seen;
}

cpu_exponents tgl_pack_a_digits(void *to, const cpu_words_source *source)
{
    return pack_digits(to, source, true);
}

cpu_exponents tgl_pack_b_digits(void *to, const cpu_words_source *source)
{
    return pack_digits(to, source, false);
}
