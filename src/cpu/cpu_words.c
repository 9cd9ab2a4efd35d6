/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16, and of f32 with TGL_COMPUTE_ACCURATE, by words (words.h): when they are used,
 * and for which blocks.
 *
 * AMX rounds each sum to nearest as an FMA does, but treats denormal numbers as zero. A block is
 * therefore multiplied by words only if none can occur. Let 2^a and 2^b be the binades of the least
 * elements other than 0 of the blocks of A and B, and f the fraction bits of their type: 7 of bf16,
 * 23 of f32.
 *   - Each word is a multiple of 2^(a-f). With a-f >= -126 it is 0 or a normal number.
 *   - Each product of two words is a multiple of q = 2^(a-f+b-f), and so is each sum of products
 *     after rounding, because rounding drops low bits only. With q >= 2^-126 each sum is 0 or a
 *     normal number.
 * Sums of several blocks are added by AVX-512.
 *
 * Neither may a sum overflow in one order of the terms and not in another, nor a word round to Inf.
 * Let A's elements be below 2^(c+1) and B's below 2^(d+1). With 2^(c+1+d+1) * k * 2 < 2^127 all
 * words, products and sums are finite; the factor 2 allows for rounded words. Inf and NaN never
 * satisfy this. Blocks that are excluded take f32 FMAs, with FMA's Inf and NaN.
 */
#include "cpu/cpu.h"

/* ---- Blocks ---------------------------------------------------------------------------------- */

static bool is_f32(const tgl_shape *s)
{
    return s->type_a == TGL_F32;
}

/* The largest block. Steps: of bf16 a panel of A takes 32 KB, of f32 24 KB of the L1 cache. */
enum { MAX_LINES = 1024, BF16_STEPS = 512, F32_STEPS = 128 };

/* Measured on a Xeon with AMX at one clock, in cycles: a multiply-add of two elements by words, at
 * the rate of whole panels; packing an element; a multiply-add by f32 FMAs. */
static const double WORK[2] = {1 / 270.0, 1 / 55.0}, PACK[2] = {0.35, 1.2}, FMA = 1 / 29.0;

/* Cycles of a block of D. */
static double cost(bool f32, int64_t rows, int64_t columns, int64_t k)
{
    const double m = (double)tgl_round_up(rows, 16), n = (double)tgl_round_up(columns, 16);
    const double steps = (double)tgl_round_up(k, CPU_WORDS_STEPS);
    return (m * n * WORK[f32] + (m + n) * PACK[f32]) * steps;
}

static int64_t lines_of_block(int64_t total, int64_t blocks)
{
    return tgl_min64(total, tgl_round_up(cpu_ceil_div(total, blocks), CPU_WORDS_LINES));
}

void tgl_cpu_word_blocks(const tgl_shape *s, int threads, cpu_half_plan *h)
{
    const int64_t least_m = cpu_ceil_div(s->m, MAX_LINES), least_n = cpu_ceil_div(s->n, MAX_LINES);
    double best = 0;
    for (int64_t bm = least_m; bm < least_m + threads; bm++)
        for (int64_t bn = least_n; bn < least_n + threads; bn++) {
            const int64_t rows = lines_of_block(s->m, bm), columns = lines_of_block(s->n, bn);
            const int64_t blocks =
                s->batch * cpu_ceil_div(s->m, rows) * cpu_ceil_div(s->n, columns);
            const double cycles =
                (double)cpu_ceil_div(blocks, threads) * cost(is_f32(s), rows, columns, s->k);
            if (best > 0 && cycles >= best) continue;
            best = cycles;
            h->rows = rows;
            h->columns = columns;
        }
    h->steps = tgl_min64(s->k, is_f32(s) ? F32_STEPS : BF16_STEPS);
}

/* FMAs serve products of few rows or columns, whose elements are used too few times to be packed,
 * and small products. */
bool tgl_cpu_takes_words(const tgl_shape *s, const cpu_tier *tier, const cpu_device *cpu)
{
    if (tier->words == NULL) return false;
    const bool bf16 = s->type_a == TGL_BF16 && s->type_b == TGL_BF16;
    const bool f32 = tgl_shape_is_all(s, TGL_F32) && s->compute == TGL_COMPUTE_ACCURATE;
    if (!bf16 && !f32) return false;
    (void)cpu;
    const double products = (double)s->m * (double)s->n * (double)s->k;
    const int64_t m = tgl_min64(s->m, MAX_LINES), n = tgl_min64(s->n, MAX_LINES);
    const double blocks = (double)s->m / (double)m * ((double)s->n / (double)n);
    return s->k > 0 && blocks * cost(f32, m, n, s->k) < products * FMA && tgl_cpu_permits_amx();
}

/* ---- One block ------------------------------------------------------------------------------- */

static int log2_up(int64_t x)
{
    return x <= 1 ? 0 : 64 - __builtin_clzll((unsigned long long)(x - 1));
}

/* The condition at the head of the file. */
static bool are_exact(const tgl_shape *s, cpu_exponents a, cpu_exponents b)
{
    enum { BIAS = 127, LEAST = -126, MOST = 127 };
    const int fraction = is_f32(s) ? 23 : 7;
    if (a.most + b.most - 2 * BIAS + 2 + log2_up(s->k) + 1 > MOST) return false;
    if (a.least > a.most || b.least > b.most) return true; /* all products are 0 */
    const int least_a = a.least - BIAS - fraction, least_b = b.least - BIAS - fraction;
    return least_a >= LEAST && least_b >= LEAST && least_a + least_b >= LEAST;
}

bool tgl_cpu_multiply_words(const tgl_shape *s, const cpu_words *words, const cpu_words_source *a,
                            const cpu_words_source *b, void *packed_a, void *packed_b, float *sums,
                            int64_t ld, bool add)
{
    const int type = is_f32(s);
    const cpu_exponents of_a = words->pack_a[type](packed_a, a);
    const cpu_exponents of_b = words->pack_b[type](packed_b, b);
    if (!are_exact(s, of_a, of_b)) return false;
    words->begin();
    words->multiply[type](a->lines, b->lines, a->k, packed_a, packed_b, sums, ld, add);
    words->end();
    return true;
}
