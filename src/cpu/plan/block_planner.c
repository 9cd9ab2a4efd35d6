/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans products of f16, bf16 and 8-bit types, and of f32 by words (kernels/cpu_words.h).
 * run/cpu_blocks.c runs these plans.
 */
#include "cpu/kernels/shares.h"
#include "cpu/plan/block_plan.h"
#include "cpu/plan/cpu_sharing.h"
#include "cpu/plan/word_plan.h"
#include "problem/scales.h"

/* Minimum work of a thread in a product by words, in cycles. With AMX this is the time of 4e5
 * multiply-adds of bf16. Of the values tried, it was the fastest for m = n = k = 128. */
static const double CYCLES_PER_THREAD = 1500;

/* The largest block that is converted to f32: MAX_ROWS of op(A), MAX_COLUMNS of op(B), MAX_STEPS of
 * k. Its f32 copies of A and B and its sums take 1.3 MB. If there are fewer blocks than threads,
 * rows are halved while they exceed MIN_ROWS, and columns while they exceed MIN_COLUMNS. */
enum { MAX_ROWS = 256, MAX_COLUMNS = 256, MAX_STEPS = 512, MIN_ROWS = 32, MIN_COLUMNS = 64 };
_Static_assert(MAX_STEPS <= 1024, "f32 sums of int8 would be rounded");

tgl_shape tgl_cpu_block_shape(const tgl_shape *s, int64_t m, int64_t n, int64_t k, int64_t ldc)
{
    return (tgl_shape){
        .m = m,
        .n = n,
        .k = k,
        .trans_a = s->trans_a,
        .trans_b = s->trans_b,
        .in_place = true,
        .type_a = TGL_F32,
        .type_b = TGL_F32,
        .type_c = TGL_F32,
        .type_d = TGL_F32,
        .type_accumulate = TGL_F32,
        .compute = s->compute,
        .lda = s->trans_a ? m : k,
        .ldb = s->trans_b ? k : n,
        .ldc = ldc,
        .ldd = ldc,
        .batch = 1,
        .alignment = CPU_ALIGNMENT,
    };
}

/* Chooses the blocks of a GEMV. A block is a rectangle of the matrix. The part of the vector by
 * which it is multiplied fits in the L1 cache. */
static void choose_vector_blocks(const tgl_shape *s, int threads, cpu_block_plan *h)
{
    enum { LINES = 256, LONG_LINES = 4096 };
    const bool is_row = s->m == 1, k_contiguous = is_row ? s->trans_b : !s->trans_a;
    const int64_t all = is_row ? s->n : s->m, share = 1 + (s->batch * all - 1) / threads;
    const int64_t lines = tgl_min64(tgl_min64(all, k_contiguous ? LINES : LONG_LINES), share);
    h->rows = is_row ? 1 : lines;
    h->columns = is_row ? lines : 1;
    h->steps = tgl_min64(s->k, k_contiguous ? CPU_VECTOR_STEPS : h->type->steps_of_vector);
}

static void choose_blocks_of_d(const tgl_shape *s, int threads, cpu_block_plan *h)
{
    if (h->words != NULL) {
        tgl_cpu_word_blocks(s, threads, h);
        return;
    }
    if (h->is_vector) {
        choose_vector_blocks(s, threads, h);
        return;
    }
    h->rows = tgl_min64(s->m, MAX_ROWS);
    h->columns = tgl_min64(s->n, MAX_COLUMNS);
    h->steps = tgl_min64(s->k, tgl_shape_has_blocked_scales(s) ? TGL_SCALE_BLOCK : MAX_STEPS);
    /* If there are fewer blocks than threads, k is divided, or blocks are made smaller. */
    for (;;) {
        const int64_t blocks =
            s->batch * cpu_ceil_div(s->m, h->rows) * cpu_ceil_div(s->n, h->columns);
        h->parts = tgl_cpu_parts_of_k(blocks, threads, s->k, h->steps);
        if (blocks * h->parts >= threads || (h->rows <= MIN_ROWS && h->columns <= MIN_COLUMNS))
            break;
        if (h->rows > MIN_ROWS && (h->rows >= h->columns || h->columns <= MIN_COLUMNS))
            h->rows = (h->rows + 1) / 2;
        else
            h->columns = (h->columns + 1) / 2;
    }
}

/* Whether every block is multiplied by words (cpu_words.h), so that no f32 copy is needed. */
static bool takes_only_words(const cpu_block_plan *h)
{
    return h->words != NULL && h->type->sums_are_integers;
}

/* Bytes of the buffer for a block of op(A) or op(B). It is large enough for each form that the
 * block can have: f32, words or digits. lines: rows of op(A) or columns of op(B). */
static size_t operand_bytes(const cpu_block_plan *h, int64_t lines)
{
    const size_t words = tgl_cpu_words_bytes(h->type->words, lines, h->word_steps);
    const size_t digits = h->by_digits ? tgl_cpu_words_bytes(CPU_DIGITS_F32, lines, h->steps) : 0;
    const size_t f32 = takes_only_words(h) ? 0 : (size_t)(lines * h->word_steps) * sizeof(float);
    const size_t larger = words > digits ? words : digits;
    return tgl_cpu_aligned(larger > f32 ? larger : f32);
}

/* Plans the f32 product of a whole block, unless no block needs it, and computes the sizes of the
 * workspace. Smaller blocks at the edges use the same plan. */
static void plan_product(const tgl_shape *s, const cpu_machine *machine, const cpu_kernels *kernels,
                         cpu_blocking blocking, cpu_block_plan *h)
{
    const cpu_machine one_thread = {.facts = machine->facts, .threads = 1};
    /* The padding prevents a row distance that is a power of two: all rows of sums would then
     * compete for a few sets of the caches. */
    h->sum_ld = tgl_round_up(h->columns, CPU_WORDS_LINES) + 16;
    const tgl_shape block = tgl_cpu_block_shape(s, h->rows, h->columns, h->word_steps, h->sum_ld);
    if (!takes_only_words(h)) tgl_cpu_plan(&block, kernels, blocking, &one_thread, &h->product);
    h->a_bytes = operand_bytes(h, h->rows);
    h->b_bytes = operand_bytes(h, h->columns);
    h->sum_bytes = tgl_cpu_aligned((size_t)(h->rows * h->sum_ld) * sizeof(float));
    h->row_bytes = tgl_cpu_aligned((size_t)h->columns * sizeof(float));
    const bool is_converted = h->type->sums_are_integers && h->words == NULL;
    if (is_converted || tgl_shape_has_blocked_scales(s)) h->product_bytes = h->sum_bytes;
}

/* Computes the sizes of the workspace of a GEMV. a_bytes: a block's part of the vector, as f32.
 * b_bytes: the same elements in their own type, gathered if they are strided. The sums, the row for
 * the epilogue and the products have 4 bytes for each element of the result that a block
 * computes. */
static void plan_vector_blocks(const tgl_shape *s, const cpu_tier *tier, cpu_block_plan *h)
{
    const cpu_short type = cpu_short_of(s->type_a);
    h->dot = tier->f32->short_dot[type];
    if (tier->words != NULL && tier->words->short_dot[type] != NULL)
        h->dot = tier->words->short_dot[type];
    const int64_t lines = s->m == 1 ? h->columns : h->rows;
    h->sum_ld = s->m == 1 ? lines : 1;
    h->a_bytes = tgl_cpu_aligned((size_t)h->steps * sizeof(float));
    h->b_bytes = tgl_cpu_aligned((size_t)h->steps * tgl_type_size(s->type_a));
    h->sum_bytes = h->row_bytes = h->product_bytes = tgl_cpu_aligned((size_t)lines * sizeof(float));
}

/* The number of threads, from 1 to `max`, for which there is enough work. */
static int count_threads(const tgl_shape *s, const cpu_block_plan *h, int max)
{
    const double work = (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
    const int threads = tgl_cpu_threads_for(work, max);
    if (h->words == NULL) return threads;
    const double by_words = work * h->words->cycles[h->type->words] / CYCLES_PER_THREAD;
    return by_words < 2 ? 1 : by_words < threads ? (int)by_words : threads;
}

void tgl_cpu_plan_blocks(const tgl_shape *s, const cpu_tier *tier, const cpu_words *words,
                         cpu_blocking blocking, const cpu_machine *machine, cpu_block_plan *h,
                         cpu_plan *plan)
{
    *h = (cpu_block_plan){
        .type = tgl_cpu_type_of(s), .conversions = tier->conversions, .words = words, .parts = 1};
    h->is_vector = h->words == NULL && h->type->steps_of_vector > 0 && (s->m == 1 || s->n == 1) &&
                   !tgl_shape_has_blocked_scales(s);
    *plan = (cpu_plan){.kernels = tier->f32, .path = CPU_PATH_BLOCKS, .parts = 1, .blocks = h};
    plan->threads = count_threads(s, h, machine->threads);
    choose_blocks_of_d(s, plan->threads, h);
    if (h->word_steps == 0) h->word_steps = h->steps;
    h->blocks_m = cpu_ceil_div(s->m, h->rows);
    h->blocks_n = cpu_ceil_div(s->n, h->columns);
    const int64_t blocks_k = h->steps > 0 ? cpu_ceil_div(s->k, h->steps) : 0;
    if (h->parts > blocks_k) h->parts = blocks_k > 1 ? blocks_k : 1;
    const int64_t jobs = s->batch * h->blocks_m * h->blocks_n * h->parts;
    if (jobs < plan->threads) plan->threads = (int)jobs;
    if (h->is_vector)
        plan_vector_blocks(s, tier, h);
    else
        plan_product(s, machine, tier->f32, blocking, h);
    if (tgl_shape_has_weights(s))
        h->weights_bytes = tgl_cpu_aligned(
            (size_t)((s->weights.is_a ? h->rows : h->columns) * h->word_steps) * sizeof(uint16_t));
    h->thread_bytes = h->a_bytes + h->b_bytes + h->weights_bytes + h->row_bytes + h->product_bytes +
                      tgl_cpu_aligned(h->product.workspace);
    if (h->parts == 1) h->thread_bytes += h->sum_bytes;
    plan->workspace = (size_t)plan->threads * h->thread_bytes;
    if (h->parts > 1) plan->workspace += (size_t)jobs * h->sum_bytes;
}
