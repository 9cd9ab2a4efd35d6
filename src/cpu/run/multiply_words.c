/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiplies a block of a product by words (cpu_words.h), if its elements permit that. Elements of
 * int8 always do, and their products are exact. Blocks of f32 are multiplied by int8 digits if
 * tgl_cpu_digit_error() is small enough. The rest of this comment is about bf16 words.
 *
 * AMX and AVX512-BF16 round each sum to nearest, as an FMA does. BFMMLA (NEON) rounds to odd. All
 * of them treat denormal numbers as zero. A block is therefore multiplied by words only if no
 * denormal number can occur in it. Let the least magnitudes other than 0 in the blocks of A and B
 * be at least 2^a and 2^b, and let f be the number of fraction bits of their type: 7 of bf16, 10 of
 * f16, 23 of f32.
 * - Each word is a multiple of 2^(a-f) or 2^(b-f). If a-f and b-f are at least -126, each word is 0
 *   or a normal number.
 * - Each product of two words is a multiple of q = 2^(a-f+b-f). So is each sum of products after
 *   rounding, to nearest or to odd: rounding leaves a sum unchanged or makes it a multiple of a
 *   power of two above q. If q >= 2^-126, each sum is 0 or a normal number.
 *
 * The sums of several blocks are added by instructions of AVX-512 or NEON, which do not treat
 * denormal numbers as zero.
 *
 * Besides, no word may be rounded to Inf, and no sum may overflow in one order of its terms and not
 * in another. Let A's elements be below 2^(c+1) and B's below 2^(d+1). If 2^(c+1+d+1) * k * 2 <=
 * 2^127, all words, products and sums are finite; the factor 2 allows for rounded words. A block is
 * not multiplied by words if it has Inf, NaN, or a number of at least 2^127, which may be rounded
 * to Inf. Instead, f32 FMAs compute it, with their Inf and NaN.
 */
#include "cpu/run/multiply_words.h"
#include "base/integers.h"

#include <math.h>

/* A block of k steps is multiplied by digits only if tgl_cpu_digit_error() is at most min(k,
 * DIGIT_ERROR_MAX), and by cpu_words.multiply_fewer(), which omits more products, only if the
 * error with these omissions is at most DIGIT_ERROR_MAX_OF_FEWER. Typical values for blocks of
 * random elements, with those of multiply_fewer() in parentheses: 30 to 90 (60 to 170) if uniform
 * in (-1,1) or (0,1), 180 to 320 (460 to 830) if normal. */
enum { DIGIT_ERROR_MAX = 512, DIGIT_ERROR_MAX_OF_FEWER = 256 };

static int log2_up(int64_t x)
{
    return x <= 1 ? 0 : 64 - __builtin_clzll((unsigned long long)(x - 1));
}

bool tgl_cpu_words_in_range(cpu_word_kind kind, int64_t k, cpu_exponents a, cpu_exponents b)
{
    enum { BIAS = 127, EXPONENT_MIN = -126, EXPONENT_MAX = 127 };
    static const int fraction_bits[] = {7, 23, 10};
    const int fraction = fraction_bits[kind];
    if (a.most - BIAS >= EXPONENT_MAX || b.most - BIAS >= EXPONENT_MAX) return false;
    if (a.most + b.most - 2 * BIAS + 2 + log2_up(k) + 1 > EXPONENT_MAX) return false;
    if (a.least > a.most || b.least > b.most) return true; /* all products are 0 */
    const int least_a = a.least - BIAS - fraction, least_b = b.least - BIAS - fraction;
    return least_a >= EXPONENT_MIN && least_b >= EXPONENT_MIN && least_a + least_b >= EXPONENT_MIN;
}

/* A bound of the error of any element of C. In this comment a and b are the integers that the
 * digits write. First, a bound of the error of the sum of a*b over k:
 *
 *     error = (sum of |a| over a line of A + sum of |b| over a line of B) / 2 + k/4 + k*omitted
 *
 * Rounding changes each element by at most 1/2. This gives the first two terms, and k/4 bounds the
 * products of two rounding errors. `omitted` bounds the products of digits that are not computed in
 * one step of k: 2^14 for low*low and, if `fewer` is true, 2^22 for (middle digit of A) * (low
 * digit of B).
 *
 * The result is error / (u S), with u = 2^-24 and S = sum over k of |a*b|. S is not known; this
 * lower bound is used instead:
 *
 *     S >= sum over s and t of width[s] * width[t] * max(0, large_a[s] + large_b[t] - k)
 *
 * s and t are levels: an element reaches level t if its highest digit has a magnitude of at least
 * 2^(t+1). large_a[s] is the least number of elements in any line of A that reach level s
 * (cpu_exponents.large); large_b[t] is the same for B. width[t] is the magnitude that level t adds
 * to level t-1, so that |a| is at least the sum of the widths of the levels that a reaches. For
 * every line of A and every line of B, there are at least large_a[s] + large_b[t] - k steps in
 * which a reaches level s and b reaches level t. */
double tgl_cpu_digit_error(int64_t k, const cpu_exponents *a, const cpu_exponents *b, bool fewer)
{
    /* The magnitude of the two lower digits together is at most 0.51 units of the highest digit. */
    const double unit = 0x1p16, lower = 0.51, steps = (double)k;
    const double left_out = 0x1p14 + 0.25 + (fewer ? 0x1p22 : 0);
    const double error = unit / 2 * (a->sum + b->sum + 2 * lower * steps) + left_out * steps;
    double least = 0; /* a lower bound of S */
    for (int s = 0; s < CPU_DIGIT_LEVELS; s++)
        for (int t = 0; t < CPU_DIGIT_LEVELS; t++) {
            const double both = a->large[s] + b->large[t] - steps;
            const double width_s = s == 0 ? 2 - lower : 1 << s,
                         width_t = t == 0 ? 2 - lower : 1 << t;
            if (both > 0) least += width_s * unit * width_t * unit * both;
        }
    return least > 0 ? error / (0x1p-24 * least) : INFINITY;
}

/* Whether A is read in place, not packed. The lines of A must be a multiple of CPU_WORDS_LINES, and
 * its k a multiple of tgl_cpu_word_steps(). The rows of A must not compete for few sets of the L1
 * cache. They do not if they follow each other without gaps (ld == k), or if they are read only
 * once, for a single panel of B. */
static bool is_unpacked(const cpu_words *words, cpu_word_kind kind, const cpu_words_source *a,
                        int64_t n)
{
    return words->multiply_unpacked[kind] != NULL && a->k_contiguous &&
           a->lines % CPU_WORDS_LINES == 0 && a->k % tgl_cpu_word_steps(kind) == 0 &&
           (a->ld == a->k || n <= CPU_WORDS_LINES);
}

/* Whether the ranges of the elements permit this kind of words (head of this file). block, k: steps
 * of k of the block and of the whole product. */
static bool are_permitted_elements(cpu_word_kind kind, int64_t block, int64_t k,
                                   const cpu_exponents *a, const cpu_exponents *b)
{
    switch (kind) {
    case CPU_WORDS_I8:
        return true;
    case CPU_DIGITS_F32:
        return tgl_cpu_digits_in_range(*b) &&
               tgl_cpu_digit_error(block, a, b, false) <= (double)tgl_min64(block, DIGIT_ERROR_MAX);
    default:
        return tgl_cpu_words_in_range(kind, k, *a, *b);
    }
}

/* Packs A, or only determines the range of the elements of an A that is not packed. */
static cpu_exponents prepare_a(const cpu_words *words, cpu_word_kind kind, bool unpacked,
                               void *packed, const cpu_words_source *a)
{
    if (!unpacked) return words->pack_a[kind](packed, a);
    return kind == CPU_WORDS_BF16 ? words->exponents(a) : (cpu_exponents){0};
}

bool tgl_cpu_multiply_words(const cpu_words *words, cpu_word_kind kind, int64_t k,
                            const cpu_words_product *x)
{
    const bool unpacked = is_unpacked(words, kind, &x->a, x->b.lines);
    const cpu_exponents of_a = prepare_a(words, kind, unpacked, x->packed_a, &x->a);
    if (kind == CPU_DIGITS_F32 && !tgl_cpu_digits_in_range(of_a)) return false;
    const cpu_exponents of_b = words->pack_b[kind](x->packed_b, &x->b);
    if (!are_permitted_elements(kind, x->a.k, k, &of_a, &of_b)) return false;
    cpu_multiply_words_fn *multiply =
        unpacked ? words->multiply_unpacked[kind] : words->multiply[kind];
    if (kind == CPU_DIGITS_F32 &&
        tgl_cpu_digit_error(x->a.k, &of_a, &of_b, true) <= DIGIT_ERROR_MAX_OF_FEWER)
        multiply = words->multiply_fewer;
    if (words->begin != NULL) words->begin();
    multiply(x);
    if (words->end != NULL) words->end();
    return true;
}
