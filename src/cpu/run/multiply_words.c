/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16, of f16 unless the compute mode is IEEE, of f32 with TGL_COMPUTE_ACCURATE, and
 * of int8, by words (cpu_words.h): which blocks permit it. Those of int8 are
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
#include "cpu/run/multiply_words.h"
#include "base/integers.h"

#include <math.h>

/* The greatest bounds of digit_error(). U(-1,1) and U(0,1) have 30 to 90,
 * and 60 to 170 with fewer products; N(0,1), whose lines have elements of up to 5 standard
 * deviations, 180 to 320, and 460 to 830 with fewer products. */
enum { MOST_DIGIT_ERROR = 512, MOST_DIGIT_ERROR_OF_FEWER = 256 };

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

/* The block behind this one along k, as if it were as large. element: bytes. */
static cpu_words_next next_block(const cpu_words_source *x, int64_t element)
{
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

bool tgl_cpu_multiply_words(const cpu_word_block *x, cpu_word_kind kind)
{
    const cpu_words *words = x->words;
    const cpu_words_source *a = &x->a, *b = &x->b;
    const bool unpacked = is_unpacked(words, kind, a, b->lines);
    const cpu_exponents of_a = prepare_a(words, kind, unpacked, x->packed_a, a);
    if (kind == CPU_DIGITS_F32 && !tgl_cpu_digits_in_range(of_a)) return false;
    const cpu_exponents of_b = words->pack_b[kind](x->packed_b, b);
    if (!are_permitted_elements(kind, a->k, x->k, &of_a, &of_b)) return false;
    cpu_multiply_words_fn *multiply = words->multiply[kind];
    if (kind == CPU_DIGITS_F32 &&
        digit_error(a->k, &of_a, &of_b, true) <= MOST_DIGIT_ERROR_OF_FEWER)
        multiply = words->multiply_fewer;
    cpu_words_product product = {
        .m = a->lines,
        .n = b->lines,
        .k = a->k,
        .a = x->packed_a,
        .b = x->packed_b,
        .c = x->sums,
        .ldc = x->sum_ld,
        .add = x->add,
    };
    if (!x->is_last) {
        product.next[0] = next_block(a, (int64_t)x->element);
        product.next[1] = next_block(b, (int64_t)x->element);
    }
    if (words->begin != NULL) words->begin();
    if (unpacked)
        words->multiply_unpacked[kind](a, b->lines, x->packed_b, x->sums, x->sum_ld, x->add);
    else
        multiply(&product);
    if (words->end != NULL) words->end();
    return true;
}
