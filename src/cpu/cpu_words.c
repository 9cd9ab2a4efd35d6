/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16, of f16 unless the compute mode is IEEE, of f32 with TGL_COMPUTE_ACCURATE, and
 * of int8, by words (cpu_words.h): when they are used, and for which blocks. Those of int8 are
 * exact. Blocks of f32 are multiplied by digits where the bound of digit_error() permits it.
 *
 * AMX and AVX512-BF16 round each sum to nearest as an FMA does, BFMMLA (NEON) to odd, which IEEE
 * does not permit. All treat denormal numbers as zero. A block is therefore multiplied by words
 * only if none can occur. Let 2^a and 2^b be the binades of the least elements other than 0 of the
 * blocks of A and B, and f the fraction bits of their type: 7 of bf16, 10 of f16, 23 of f32.
 *   - Each word is a multiple of 2^(a-f). With a-f >= -126 it is 0 or a normal number.
 *   - Each product of two words is a multiple of q = 2^(a-f+b-f), and so is each sum of products
 *     after rounding, to nearest or to odd: a sum is rounded only if its last bit is above q, and
 *     the result is a multiple of this bit. With q >= 2^-126 each sum is 0 or a normal number.
 * Sums of several blocks are added by AVX-512 or NEON.
 *
 * Neither may a sum overflow in one order of the terms and not in another, nor a word round to Inf.
 * Let A's elements be below 2^(c+1) and B's below 2^(d+1). With 2^(c+1+d+1) * k * 2 <= 2^127 all
 * words, products and sums are finite; the factor 2 allows for rounded words. Inf and NaN, and f32
 * of the last binade, which may round to Inf, are excluded by their exponent. Blocks that are
 * excluded take f32 FMAs, with FMA's Inf and NaN.
 */
#include "cpu/cpu.h"

#include <math.h>

/* ---- Blocks ---------------------------------------------------------------------------------- */

cpu_word_kind tgl_cpu_word_kind(const tgl_shape *s)
{
    return s->type_a == TGL_F32   ? CPU_WORDS_F32
           : s->type_a == TGL_F16 ? CPU_WORDS_F16
           : s->type_a == TGL_I8  ? CPU_WORDS_I8
                                  : CPU_WORDS_BF16;
}

/* Lines of a block: with fewer A and B are packed more often, with more the sums leave the L2
 * cache. Sums of int8 are in D itself as a rule, and packing takes a larger share of the time: at
 * 2048 cubed 2560 lines are 3 % faster (Zen 4). The packed lines of a product with few rows or
 * columns are used at once, while they are in the L2 cache. */
enum { MAX_LINES = 1280, MAX_LINES_I8 = 2560, MAX_LINES_OF_FEW = 256, FEW = 64 };

/* Digits: the least k, and the greatest bounds of digit_error(). U(-1,1) and U(0,1) have 30 to 90,
 * and 60 to 170 with fewer products; N(0,1), whose lines have elements of up to 5 standard
 * deviations, 180 to 320, and 460 to 830 with fewer products. */
enum { MIN_DIGITS_K = 256, MOST_DIGIT_ERROR = 512, MOST_DIGIT_ERROR_OF_FEWER = 256 };

/* Cycles, measured on a Xeon with AMX: packing an element, by kind (or converting it to f32);
 * adding a sum to a block of sums; reading it for the epilogue; a call. */
static const double PACK[CPU_WORD_KINDS] = {0.35, 0.8, 0.6, 0.3, 1};
static const double ADD = 0.2, EPILOGUE = 0.8, CALL = 1000;

/* The same: adding a sum of a part of k, which another thread has written. */
static const double ADD_PART = 1;

/* Cycles of a block of D by words. */
static double cost(const cpu_words *words, cpu_word_kind kind, int64_t rows, int64_t columns,
                   int64_t k)
{
    const double m = (double)tgl_round_up(rows, 16), n = (double)tgl_round_up(columns, 16);
    const double steps = (double)tgl_round_up(k, tgl_cpu_word_steps(kind));
    const double blocks = (double)cpu_ceil_div(k, words->steps[kind]);
    return (m * n * words->cycles[kind] + (m + n) * PACK[kind]) * steps +
           m * n * (ADD * blocks + EPILOGUE) + CALL;
}

/* Blocks of nearly equal size. */
static int64_t even_lines(int64_t total, int64_t blocks)
{
    return tgl_min64(total, tgl_round_up(cpu_ceil_div(total, blocks), CPU_WORDS_LINES));
}

/* The least number of blocks. other: lines of the other operand. */
static int64_t fewest_blocks(cpu_word_kind kind, int64_t total, int64_t other)
{
    const int64_t most = kind == CPU_WORDS_I8 ? MAX_LINES_I8 : MAX_LINES;
    return cpu_ceil_div(total, other <= FEW ? MAX_LINES_OF_FEW : most);
}

/* A short last block costs as much as a whole one: 1.5 times the usual steps are one block, unless
 * words or digits of f32 fill the L1 cache. */
static int64_t even_steps(const cpu_words *words, cpu_word_kind kind, int64_t k)
{
    const int64_t usual = words->steps[kind];
    const bool fill = kind == CPU_WORDS_F32 || kind == CPU_DIGITS_F32;
    const int64_t blocks = fill ? cpu_ceil_div(k, usual) : (k + usual / 2 - 1) / usual;
    const int64_t even = cpu_ceil_div(k, blocks > 0 ? blocks : 1);
    return tgl_min64(k, tgl_round_up(even, tgl_cpu_word_steps(kind)));
}

/* The kind by which the product of a block is tried first. */
static cpu_word_kind first_kind(const tgl_shape *s, const cpu_words *words)
{
    const cpu_word_kind kind = tgl_cpu_word_kind(s);
    const bool has_digits = kind == CPU_WORDS_F32 && words->multiply[CPU_DIGITS_F32] != NULL;
    if (!has_digits || s->k < MIN_DIGITS_K) return kind;
    const int64_t m = tgl_min64(s->m, MAX_LINES), n = tgl_min64(s->n, MAX_LINES);
    const bool faster = cost(words, CPU_DIGITS_F32, m, n, s->k) < cost(words, kind, m, n, s->k);
    return faster ? CPU_DIGITS_F32 : kind;
}

int64_t tgl_cpu_parts_of_k(int64_t blocks, int threads, int64_t k, int64_t steps)
{
    const int64_t parts = tgl_min64(threads / blocks, steps > 0 ? k / steps : 1);
    return parts > 1 ? parts : 1;
}

void tgl_cpu_word_blocks(const tgl_shape *s, int threads, cpu_block_plan *h)
{
    const cpu_word_kind kind = first_kind(s, h->words);
    const int64_t least_m = fewest_blocks(kind, s->m, s->n),
                  least_n = fewest_blocks(kind, s->n, s->m);
    double best = 0;
    for (int64_t bm = least_m; bm < least_m + threads; bm++)
        for (int64_t bn = least_n; bn < least_n + threads; bn++) {
            const int64_t rows = even_lines(s->m, bm), columns = even_lines(s->n, bn);
            const int64_t blocks =
                s->batch * cpu_ceil_div(s->m, rows) * cpu_ceil_div(s->n, columns);
            const int64_t parts = tgl_cpu_parts_of_k(blocks, threads, s->k, h->words->steps[kind]);
            const double cycles =
                (double)cpu_ceil_div(blocks, threads) *
                    cost(h->words, kind, rows, columns, cpu_ceil_div(s->k, parts)) +
                (parts > 1 ? CALL + ADD_PART * (double)(s->batch * s->m * s->n * parts) / threads
                           : 0);
            if (best > 0 && cycles >= best) continue;
            best = cycles;
            h->rows = rows;
            h->columns = columns;
            h->parts = parts;
        }
    h->by_digits = kind == CPU_DIGITS_F32;
    h->steps = even_steps(h->words, kind, cpu_ceil_div(s->k, h->parts));
    h->word_steps = even_steps(h->words, tgl_cpu_word_kind(s), h->steps);
}

/* The cost of a product by words and by FMAs, per block of D. Words of int8 are faster from about
 * 12 cubed on, and below by little slower. */
static bool are_words_faster(const tgl_shape *s, const cpu_words *words)
{
    const cpu_word_kind kind = first_kind(s, words);
    if (s->m == 1 || s->n == 1) return false;
    if (kind == CPU_WORDS_I8) return true;
    const int64_t m = tgl_min64(s->m, MAX_LINES), n = tgl_min64(s->n, MAX_LINES);
    const bool is_f32 = tgl_cpu_word_kind(s) == CPU_WORDS_F32;
    const double conversion = is_f32 ? 0 : (double)(m + n) * PACK[CPU_WORDS_BF16];
    const double fma = (double)m * (double)n * words->fma_cycles;
    return cost(words, kind, m, n, s->k) < (fma + conversion) * (double)s->k;
}

/* Whether words may compute the product. A product of two f16 is the sum of four exact products of
 * words, which is rounded several times; IEEE requires one rounding. */
static bool are_permitted(const tgl_shape *s, const cpu_words *words)
{
    if (words->rounds_to_odd && s->type_a != TGL_I8 && s->compute == TGL_COMPUTE_IEEE) return false;
    switch (tgl_cpu_word_kind(s)) {
    case CPU_WORDS_F32:
        return tgl_shape_is_all(s, TGL_F32) && s->compute == TGL_COMPUTE_ACCURATE;
    case CPU_WORDS_F16:
        return s->type_b == TGL_F16 && s->compute != TGL_COMPUTE_IEEE;
    default:
        return s->type_a == s->type_b && (s->type_a == TGL_BF16 || s->type_a == TGL_I8);
    }
}

static bool suit(const tgl_shape *s, const cpu_words *words)
{
    return words != NULL && words->multiply[tgl_cpu_word_kind(s)] != NULL &&
           are_permitted(s, words) && s->k > 0 && are_words_faster(s, words);
}

const cpu_words *tgl_cpu_words_for(const tgl_shape *s, const cpu_tier *tier)
{
    const cpu_words *words = tier->words;
    if (!suit(s, words)) return NULL;
    if (words->is_permitted == NULL || words->is_permitted()) return words;
    return suit(s, words->otherwise) ? words->otherwise : NULL;
}

/* ---- One block ------------------------------------------------------------------------------- */

static int log2_up(int64_t x)
{
    return x <= 1 ? 0 : 64 - __builtin_clzll((unsigned long long)(x - 1));
}

/* The condition at the head of the file. */
static bool are_in_range(cpu_word_kind kind, int64_t k, cpu_exponents a, cpu_exponents b)
{
    enum { BIAS = 127, LEAST = -126, MOST = 127 };
    static const int fraction_bits[] = {7, 23, 10};
    const int fraction = fraction_bits[kind];
    if (a.most - BIAS >= MOST || b.most - BIAS >= MOST) return false;
    if (a.most + b.most - 2 * BIAS + 2 + log2_up(k) + 1 > MOST) return false;
    if (a.least > a.most || b.least > b.most) return true; /* all products are 0 */
    const int least_a = a.least - BIAS - fraction, least_b = b.least - BIAS - fraction;
    return least_a >= LEAST && least_b >= LEAST && least_a + least_b >= LEAST;
}

/* A bound of the error of a product of blocks of k steps by digits, divided by u S: u = 2^-24, S
 * the sum of the magnitudes of the products of elements. fewer: by multiply_fewer().
 *
 * In units of the integers: rounding them costs at most half the sum of magnitudes of A's and of
 * B's line, and 1/4 for each step. The products that are left out are at most 2^14 each for
 * low*low, and 2^22 for A's middle times B's low. A magnitude is at least the sum of the widths of
 * the levels that its highest digit reaches. In any pair of lines at least large_a[s] + large_b[t]
 * - k steps have an element of A of level s and one of B of level t. */
static double digit_error(int64_t k, const cpu_exponents *a, const cpu_exponents *b, bool fewer)
{
    /* The lower digits are at most 0.51 units of the highest. */
    const double unit = 0x1p16, lower = 0.51, steps = (double)k;
    const double left_out = 0x1p14 + 0.25 + (fewer ? 0x1p22 : 0);
    const double error = unit / 2 * (a->sum + b->sum + 2 * lower * steps) + left_out * steps;
    double least = 0; /* of S */
    for (int s = 0; s < CPU_DIGIT_LEVELS; s++)
        for (int t = 0; t < CPU_DIGIT_LEVELS; t++) {
            const double both = a->large[s] + b->large[t] - steps;
            const double width_s = s == 0 ? 2 - lower : 1 << s,
                         width_t = t == 0 ? 2 - lower : 1 << t;
            if (both > 0) least += width_s * unit * width_t * unit * both;
        }
    return least > 0 ? error / (0x1p-24 * least) : INFINITY;
}

/* The block behind this one along k, as if it were as large. */
static cpu_words_next following(const tgl_shape *s, const cpu_words_source *x, bool is_last)
{
    const int64_t element = (int64_t)tgl_type_size(s->type_a);
    if (is_last) return (cpu_words_next){.rows = 0};
    return (cpu_words_next){
        .at = (const char *)x->from + x->k * (x->k_contiguous ? 1 : x->ld) * element,
        .step = x->ld * element,
        .bytes = (x->k_contiguous ? x->k : x->lines) * element,
        .rows = x->k_contiguous ? x->lines : x->k,
    };
}

/* Whether A is multiplied without packing it: whole panels and steps, and lines that do not share
 * few sets of the L1 cache, because they are dense, or that are read for one panel of B only. */
static bool is_unpacked(const cpu_words *words, cpu_word_kind kind, const cpu_words_source *a,
                        int64_t n)
{
    return words->multiply_unpacked[kind] != NULL && a->k_contiguous &&
           a->lines % CPU_WORDS_LINES == 0 && a->k % tgl_cpu_word_steps(kind) == 0 &&
           (a->ld == a->k || n <= CPU_WORDS_LINES);
}

static bool are_permitted_elements(cpu_word_kind kind, int64_t block, int64_t k,
                                   const cpu_exponents *a, const cpu_exponents *b)
{
    switch (kind) {
    case CPU_WORDS_I8:
        return true;
    case CPU_DIGITS_F32:
        return tgl_cpu_digits_in_range(*b) &&
               digit_error(block, a, b, false) <= (double)tgl_min64(block, MOST_DIGIT_ERROR);
    default:
        return are_in_range(kind, k, *a, *b);
    }
}

/* Packs or examines A. */
static cpu_exponents prepare_a(const cpu_words *words, cpu_word_kind kind, bool unpacked,
                               void *packed, const cpu_words_source *a)
{
    if (!unpacked) return words->pack_a[kind](packed, a);
    return kind == CPU_WORDS_BF16 ? words->exponents(a) : (cpu_exponents){0};
}

bool tgl_cpu_multiply_words(const tgl_shape *s, const cpu_words *words, cpu_word_kind kind,
                            const cpu_words_source *a, const cpu_words_source *b, void *packed_a,
                            void *packed_b, void *sums, int64_t ld, bool add, bool is_last)
{
    const bool unpacked = is_unpacked(words, kind, a, b->lines);
    const cpu_exponents of_a = prepare_a(words, kind, unpacked, packed_a, a);
    if (kind == CPU_DIGITS_F32 && !tgl_cpu_digits_in_range(of_a)) return false;
    const cpu_exponents of_b = words->pack_b[kind](packed_b, b);
    if (!are_permitted_elements(kind, a->k, s->k, &of_a, &of_b)) return false;
    cpu_multiply_words_fn *multiply = words->multiply[kind];
    if (kind == CPU_DIGITS_F32 &&
        digit_error(a->k, &of_a, &of_b, true) <= MOST_DIGIT_ERROR_OF_FEWER)
        multiply = words->multiply_fewer;
    const cpu_words_next next[2] = {following(s, a, is_last), following(s, b, is_last)};
    if (words->begin != NULL) words->begin();
    if (unpacked)
        words->multiply_unpacked[kind](a, b->lines, packed_b, sums, ld, add);
    else
        multiply(a->lines, b->lines, a->k, packed_a, packed_b, sums, ld, add, next);
    if (words->end != NULL) words->end();
    return true;
}
