/* SPDX-License-Identifier: Apache-2.0
 *
 * When products are computed by words (kernels/cpu_words.h), and in which blocks. cpu_types.c says
 * for which types and compute modes words are permitted.
 */
#include "cpu/plan/word_plan.h"
#include "cpu/kernels/shares.h"

static cpu_word_kind kind_of(const tgl_shape *s)
{
    return tgl_cpu_type_of(s)->words;
}

/* Maximum lines (rows of op(A) or columns of op(B)) in a block. With smaller blocks, A and B would
 * be packed more often; with larger ones, the block of sums could exceed 6.6 MB. int8 has larger
 * blocks, because its sums are usually added in D itself and packing takes a larger part of the
 * time: with 2560 instead of 1280 lines, a product with m = n = k = 2048 is 3 % faster (Zen 4).
 * MAX_LINES_OF_FEW applies if the other operand has at most FEW lines, so that a packed block is
 * still in L2 when it is multiplied. */
enum { MAX_LINES = 1280, MAX_LINES_I8 = 2560, MAX_LINES_OF_FEW = 256, FEW = 64 };

/* Minimum k of a product by digits. */
enum { MIN_DIGITS_K = 256 };

/* Costs in cycles, measured on a Xeon with AMX. PACK, by kind of words: packing one element, or
 * converting it to f32. ADD: adding one element of a product to a block of sums. EPILOGUE: reading
 * a sum for the epilogue. CALL: one call of the kernel. ADD_PART: with split-K, adding one sum over
 * a part of k; another thread has written this sum. */
static const double PACK[CPU_WORD_KINDS] = {0.35, 0.8, 0.6, 0.3, 1};
static const double ADD = 0.2, EPILOGUE = 0.8, CALL = 1000, ADD_PART = 1;

/* The estimated cycles of a block of D, rows x columns x k, with the kernels of words
 * (cpu_words.h). */
static double cycles_by_words(const cpu_words *words, cpu_word_kind kind, int64_t rows,
                              int64_t columns, int64_t k)
{
    const double m = (double)tgl_round_up(rows, 16), n = (double)tgl_round_up(columns, 16);
    const double steps = (double)tgl_round_up(k, tgl_cpu_word_steps(kind));
    const double blocks = (double)cpu_ceil_div(k, words->steps[kind]);
    return (m * n * words->cycles[kind] + (m + n) * PACK[kind]) * steps +
           m * n * (ADD * blocks + EPILOGUE) + CALL;
}

/* Lines of a block if `total` lines (rows of op(A) or columns of op(B)) are cut into `blocks`
 * nearly equal blocks. */
static int64_t even_lines(int64_t total, int64_t blocks)
{
    return tgl_min64(total, tgl_round_up(cpu_ceil_div(total, blocks), CPU_WORDS_LINES));
}

/* The minimum number of blocks for `total` lines of an operand. other: lines of the other
 * operand. */
static int64_t fewest_blocks(cpu_word_kind kind, int64_t total, int64_t other)
{
    const int64_t lines_max = kind == CPU_WORDS_I8 ? MAX_LINES_I8 : MAX_LINES;
    return cpu_ceil_div(total, other <= FEW ? MAX_LINES_OF_FEW : lines_max);
}

/* Steps of k in a block. k is cut into nearly equal blocks, because a short last block would take
 * as long as a whole one. A block may have up to 1.5 times the usual number of steps of k. f32 is
 * an exception, because its words and digits fill the L1 cache already with the usual number of
 * steps. */
static int64_t even_steps(const cpu_words *words, cpu_word_kind kind, int64_t k)
{
    const int64_t usual = words->steps[kind];
    const bool fill = kind == CPU_WORDS_F32 || kind == CPU_DIGITS_F32;
    const int64_t blocks = fill ? cpu_ceil_div(k, usual) : (k + usual / 2 - 1) / usual;
    const int64_t even = cpu_ceil_div(k, blocks > 0 ? blocks : 1);
    return tgl_min64(k, tgl_round_up(even, tgl_cpu_word_steps(kind)));
}

/* The kind of words to try first for each block: digits (cpu_words.h) if they are faster, else the
 * words of the type. */
static cpu_word_kind first_kind(const tgl_shape *s, const cpu_words *words)
{
    const cpu_word_kind kind = kind_of(s);
    const bool has_digits = kind == CPU_WORDS_F32 && words->multiply[CPU_DIGITS_F32] != NULL;
    if (!has_digits || s->k < MIN_DIGITS_K) return kind;
    const int64_t m = tgl_min64(s->m, MAX_LINES), n = tgl_min64(s->n, MAX_LINES);
    const bool faster = cycles_by_words(words, CPU_DIGITS_F32, m, n, s->k) <
                        cycles_by_words(words, kind, m, n, s->k);
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
                    cycles_by_words(h->words, kind, rows, columns, cpu_ceil_div(s->k, parts)) +
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
    h->word_steps = even_steps(h->words, kind_of(s), h->steps);
}

/* Whether the kernels of words (cpu_words.h) are faster than FMAs for a block of D; never in a
 * GEMV, which has kernels of its own. For int8 they are faster from about m = n = k = 12 on, and
 * hardly slower for smaller products. */
static bool are_words_faster(const tgl_shape *s, const cpu_words *words)
{
    const cpu_word_kind kind = first_kind(s, words);
    if (s->m == 1 || s->n == 1) return false;
    if (kind == CPU_WORDS_I8) return true;
    const int64_t m = tgl_min64(s->m, MAX_LINES), n = tgl_min64(s->n, MAX_LINES);
    const bool is_f32 = kind_of(s) == CPU_WORDS_F32;
    const double conversion = is_f32 ? 0 : (double)(m + n) * PACK[CPU_WORDS_BF16];
    const double fma = (double)m * (double)n * words->fma_cycles;
    return cycles_by_words(words, kind, m, n, s->k) < (fma + conversion) * (double)s->k;
}

/* Whether the compute mode of the product permits these kernels of words (cpu_words.h). */
static bool are_permitted(const tgl_shape *s, const cpu_words *words)
{
    const cpu_type *type = tgl_cpu_type_of(s);
    const bool rounds_to_odd = words->rounds_to_odd && !type->sums_are_integers;
    if (rounds_to_odd && s->compute == TGL_COMPUTE_IEEE) return false;
    return (type->word_modes & CPU_BIT(s->compute)) != 0;
}

static bool words_suit(const tgl_shape *s, const cpu_words *words)
{
    return words != NULL && words->multiply[kind_of(s)] != NULL && are_permitted(s, words) &&
           s->k > 0 && !tgl_shape_has_blocked_scales(s) && are_words_faster(s, words);
}

const cpu_words *tgl_cpu_words_for(const tgl_shape *s, const cpu_tier *tier)
{
    const cpu_words *words = tier->words;
    if (!words_suit(s, words)) return NULL;
    if (words->is_permitted == NULL || words->is_permitted()) return words;
    return words_suit(s, words->otherwise) ? words->otherwise : NULL;
}
