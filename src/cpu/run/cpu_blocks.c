/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of f16, bf16 and 8-bit types, and of f32 by words, which are bf16 or int8 numbers that
 * represent the elements (kernels/cpu_words.h). D, the output, is cut into blocks. A job is a block
 * of D or, with split-K, its sums over a part of k:
 *
 *     for each block of kb steps of k
 *         pack the block of op(A), mb x kb, and of op(B), kb x nb, as words, and multiply them, if
 *         the elements permit it (multiply_words.c); else
 *             convert the blocks to f32
 *             add their product to a block of sums, mb x nb; cpu_gemm.c, cpu_small.c or
 *             cpu_vector.c computes this product on one thread
 *     for each row of the block, unless the block of sums is the result
 *         apply alpha, scale factors, beta*C and the epilogue in the accumulation type, or in f32
 *         if sums in int32 are scaled; round once to D's type
 *
 * If scale factors differ by block of k (TGL_SCALING_BLOCK, TGL_SCALING_LINE_128), kb is 128, and
 * the product of a block is multiplied by the block's factors before it is added to the sums.
 *
 * Weights of 8 or 4 bits are first expanded to the 16-bit type of the other operand, block by
 * block.
 *
 * A GEMV of f16, bf16 or int8 does not convert blocks of the matrix: its kernel converts elements
 * while it loads them.
 *
 * Products of int8 are exact. The f32 product of one block is exact, too, because its sums are at
 * most 1024 * 2^14 = 2^24. It is added to sums in int32, modulo 2^32.
 *
 * Converting a block costs little beside the product, in which each element of the block is used nb
 * or mb times.
 */
#include "cpu/run/cpu_blocks.h"
#include "cpu/run/block_sums.h"
#include "cpu/run/convert_lines.h"
#include "cpu/run/cpu_gemm.h"
#include "cpu/run/cpu_small.h"
#include "cpu/run/cpu_vector.h"
#include "cpu/run/expand_weights.h"
#include "cpu/run/multiply_words.h"
#include "problem/scales.h"

/* A job's block of D, and the buffers with which it is computed. */
typedef struct d_block {
    const cpu_product *product;
    const cpu_block_plan *plan;
    const cpu_sum_functions *functions;
    cpu_block_sums sums;
    bool is_result; /* the sums are the final results, and sums.sums is in D */
    /* Buffers for the block of op(A) and of op(B): as f32, words or digits. */
    float *a, *b;
    void *weights;   /* buffer for a block of weights, expanded to 16 bits */
    float *products; /* products of a block, f32 (int32 for dot products of int8); equal to
                        sums.sums if they need no buffer of their own */
    int64_t products_ld;
    char *inner;    /* workspace of the plan of the f32 product */
    int64_t first;  /* first step of k of the job: its products overwrite the sums */
    bool by_digits; /* try digits for the next block of k */
} d_block;

/* ---- Reading blocks -------------------------------------------------------------------------- */

/* Expands the block of weights to 16 bits. lines: the job's rows (if A has the weights) or
 * columns. */
static cpu_words_source expanded(const d_block *x, cpu_range lines, int64_t first, int64_t k)
{
    const cpu_weights_block block = {.shape = x->product->shape,
                                     .run = x->product->run,
                                     .conversions = x->plan->conversions,
                                     .problem = x->sums.problem,
                                     .line = lines.begin,
                                     .lines = cpu_length(lines),
                                     .first = first,
                                     .k = k};
    return tgl_cpu_expand_weights(&block, x->weights);
}

/* The block of op(A): the job's rows, and k steps from step `first` on. */
static cpu_words_source source_of_a(const d_block *x, int64_t first, int64_t k)
{
    const tgl_shape *s = x->product->shape;
    if (tgl_shape_has_weights(s) && s->weights.is_a) return expanded(x, x->sums.rows, first, k);
    const int64_t element = (int64_t)tgl_type_size(s->type_a), row = x->sums.rows.begin;
    const int64_t at = s->trans_a ? first * s->lda + row : row * s->lda + first;
    const char *A = tgl_cpu_a_of(s, x->product->run, x->sums.problem, element);
    return (cpu_words_source){A + at * element, s->lda, !s->trans_a, cpu_length(x->sums.rows), k};
}

static cpu_words_source source_of_b(const d_block *x, int64_t first, int64_t k)
{
    const tgl_shape *s = x->product->shape;
    if (tgl_shape_has_weights(s) && !s->weights.is_a) return expanded(x, x->sums.columns, first, k);
    const int64_t element = (int64_t)tgl_type_size(s->type_b), column = x->sums.columns.begin;
    const int64_t at = s->trans_b ? column * s->ldb + first : first * s->ldb + column;
    const char *B = tgl_cpu_b_of(s, x->product->run, x->sums.problem, element);
    return (cpu_words_source){B + at * element, s->ldb, s->trans_b, cpu_length(x->sums.columns), k};
}

/* Converts a block to f32. `to` has the order of the source, with contiguous rows. */
static void read_block(const d_block *x, float *to, const cpu_words_source *from, tgl_type type)
{
    const int64_t rows = from->k_contiguous ? from->lines : from->k;
    const int64_t n = from->k_contiguous ? from->k : from->lines;
    for (int64_t i = 0; i < rows; i++)
        cpu_read_line(x->plan->conversions, type, to + i * n, from->from, i * from->ld, n);
}

/* Reads a vector as f32: x->a[p] := element p. If its elements are strided, they are first gathered
 * in x->b. */
static void read_vector(const d_block *x, const cpu_words_source *from)
{
    const tgl_type type = x->product->shape->type_a;
    const bool strided = !from->k_contiguous && from->ld != 1;
    const size_t element = tgl_type_size(type);
    char *gathered = (void *)x->b;
    for (int64_t p = 0; p < from->k && strided; p++, gathered += element)
        memcpy(gathered, (const char *)from->from + p * from->ld * (int64_t)element, element);
    cpu_read_line(x->plan->conversions, type, x->a, strided ? x->b : from->from, 0, from->k);
}

/* ---- The product of one block ---------------------------------------------------------------- */

/* The block that follows x along k, as if it had the same size. element: bytes of an element. */
static cpu_words_next next_block(const cpu_words_source *x, int64_t element)
{
    return (cpu_words_next){
        .at = (const char *)x->from + x->k * (x->k_contiguous ? 1 : x->ld) * element,
        .step = x->ld * element,
        .bytes = (x->k_contiguous ? x->k : x->lines) * element,
        .rows = x->k_contiguous ? x->lines : x->k,
    };
}

/* Multiplies k steps, from `first` on, by words, and adds the products to the sums; the first steps
 * of a job overwrite the sums. Returns false if the ranges of the elements do not permit this kind
 * of words (multiply_words.c); the sums are then unchanged. */
static bool add_by_words(const d_block *x, int64_t first, int64_t k, cpu_word_kind kind)
{
    const tgl_shape *s = x->product->shape;
    const int64_t element = (int64_t)tgl_type_size(s->type_a);
    cpu_words_product product = {
        .a = source_of_a(x, first, k),
        .b = source_of_b(x, first, k),
        .packed_a = x->a,
        .packed_b = x->b,
        .c = x->sums.sums,
        .ldc = x->sums.ld,
        .add = first > x->first,
    };
    if (first + k < s->k && !tgl_shape_has_weights(s)) {
        product.next[0] = next_block(&product.a, element);
        product.next[1] = next_block(&product.b, element);
    }
    return tgl_cpu_multiply_words(x->plan->words, kind, s->k, &product);
}

/* Computes the f32 product of converted blocks. A product of one row or column comes here only if
 * its type has no GEMV kernels (8-bit floating point), or if its scale factors differ by block of
 * k. Its converted blocks are multiplied by the f32 GEMV (CPU_PATH_VECTOR) or, if they are small,
 * by register tiles like any product. */
static void run_block(const cpu_product *product)
{
    const cpu_path path = product->plan->path;
    if (path == CPU_PATH_VECTOR)
        tgl_cpu_vector(product);
    else
        (path == CPU_PATH_SMALL ? tgl_cpu_small_run : tgl_cpu_gemm)(product);
}

/* As add_by_words(), but converts the blocks to f32 and multiplies them with FMAs. */
static void add_converted(const d_block *x, int64_t first, int64_t k)
{
    const tgl_shape *s = x->product->shape;
    const cpu_plan *plan = &x->plan->product;
    const int64_t m = cpu_length(x->sums.rows), n = cpu_length(x->sums.columns);
    const cpu_words_source a = source_of_a(x, first, k), b = source_of_b(x, first, k);
    const bool add = first > x->first, is_separate = x->products != x->sums.sums;
    read_block(x, x->a, &a, s->type_a);
    read_block(x, x->b, &b, s->type_b);
    const tgl_shape block = tgl_cpu_block_shape(s, m, n, k, x->products_ld);
    const tgl_run run = {
        .alpha = 1,
        .beta = add && !is_separate,
        .has_product = true,
        .at = {[TGL_AT_A] = x->a,
               [TGL_AT_B] = x->b,
               [TGL_AT_C] = x->products,
               [TGL_AT_D] = x->products},
    };
    const cpu_product product = {&block, plan, &run, x->inner, NULL};
    run_block(&product);
    for (int64_t i = 0; i < m && is_separate; i++) {
        float *row = x->products + i * x->products_ld;
        if (tgl_shape_has_blocked_scales(s))
            tgl_cpu_scale_products(&x->sums, row, i, n, first / TGL_SCALE_BLOCK);
        x->functions->add_products(x->product->plan, (float *)x->sums.sums + i * x->sums.ld, row, n,
                                   add);
    }
}

/* As add_by_words(), but for a GEMV: by dot products with x, or by adding rows of the matrix,
 * multiplied by the elements of x. */
static void add_by_vector(const d_block *x, int64_t first, int64_t k)
{
    const tgl_shape *s = x->product->shape;
    const cpu_plan *plan = x->product->plan;
    const cpu_words_source a = source_of_a(x, first, k), b = source_of_b(x, first, k);
    const cpu_words_source *matrix = s->m == 1 ? &b : &a, *vector = s->m == 1 ? &a : &b;
    const bool add = first > x->first;
    read_vector(x, vector);
    if (matrix->k_contiguous) {
        x->plan->dot(x->products, matrix->from, matrix->ld, matrix->lines, k, x->a);
        x->functions->add_dots(plan, x->sums.sums, x->products, matrix->lines, add);
    } else {
        plan->kernels->short_combine[cpu_short_of(s->type_a)](x->products, matrix->from, matrix->ld,
                                                              matrix->lines, k, x->a);
        x->functions->add_products(plan, x->sums.sums, x->products, matrix->lines, add);
    }
}

/* Multiplies k steps with GEMV kernels, by words (cpu_words.h), or with f32 FMAs if the plan has no
 * words or the ranges of the elements do not permit them. */
static void multiply_steps(const d_block *x, int64_t first, int64_t k)
{
    if (x->plan->is_vector)
        add_by_vector(x, first, k);
    else if (x->plan->words == NULL || !add_by_words(x, first, k, x->plan->type->words))
        add_converted(x, first, k);
}

/* Multiplies k steps by digits or, if the elements do not permit digits (multiply_words.c), in
 * blocks of word_steps steps without digits. After a block for which digits failed, the job does
 * not try them again. */
static void multiply_block(d_block *x, int64_t first, int64_t k)
{
    x->by_digits = x->by_digits && add_by_words(x, first, k, CPU_DIGITS_F32);
    for (int64_t i = 0; i < k && !x->by_digits; i += x->plan->word_steps)
        multiply_steps(x, first + i, tgl_min64(x->plan->word_steps, k - i));
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* Whether the sums need no further operation, so that they are added directly in D. If ldd is a
 * multiple of 8 KB, the rows of a tile share a set of the L1 cache: a separate block of sums,
 * copied to D, is then 5 to 20 % faster (m = n = k = 1024 and 2048, Xeon with AMX). Sums of int8
 * are always faster in D. */
static bool are_results(const cpu_product *product)
{
    const tgl_shape *s = product->shape;
    const cpu_block_plan *h = product->plan->blocks;
    if (h->parts > 1) return false;
    /* The sums of a GEMV are contiguous; a column of D is contiguous only if ldd is 1. */
    if (h->is_vector && s->n == 1 && s->ldd != 1) return false;
    const bool pays = h->type->sums_are_integers ||
                      (s->type_d == TGL_F32 && (h->is_vector || s->ldd % 2048 != 0));
    return pays && product->run->has_product && s->k > 0 && product->run->alpha == 1 &&
           product->run->beta == 0 && tgl_epilogue_is_none(&s->epilogue) &&
           !tgl_shape_has_scales(s);
}

/* Takes `bytes` bytes from the front of the memory: returns *memory, and advances *memory. */
static void *take(char **memory, size_t bytes)
{
    char *taken = *memory;
    *memory += bytes;
    return taken;
}

static d_block block_of(const cpu_product *product, const cpu_job *job)
{
    const tgl_shape *s = product->shape;
    const cpu_block_plan *h = product->plan->blocks;
    char *memory = job->memory;
    d_block x = {
        .product = product,
        .plan = h,
        .functions = !h->type->sums_are_integers ? &tgl_cpu_sums_f32
                     : tgl_shape_has_scales(s)   ? &tgl_cpu_sums_scaled
                                                 : &tgl_cpu_sums_i32,
        .sums = {product, job->problem, job->rows, job->columns, job->sums, h->sum_ld, NULL},
        .is_result = are_results(product),
        .first = job->k.begin,
        .by_digits = h->by_digits,
    };
    x.a = take(&memory, h->a_bytes);
    x.b = take(&memory, h->b_bytes);
    x.weights = take(&memory, h->weights_bytes);
    if (job->sums == NULL) x.sums.sums = take(&memory, h->sum_bytes);
    x.sums.line = take(&memory, h->row_bytes);
    if (x.is_result) {
        char *D = tgl_cpu_d_of(s, product->run, job->problem, sizeof(float));
        x.sums.sums = D + (job->rows.begin * s->ldd + job->columns.begin) * (int64_t)sizeof(float);
        x.sums.ld = s->ldd;
    }
    const bool is_separate = h->product_bytes > 0;
    x.products = is_separate ? take(&memory, h->product_bytes) : x.sums.sums;
    x.products_ld = is_separate ? h->sum_ld : x.sums.ld;
    x.inner = memory;
    return x;
}

static void compute_block(const cpu_product *product, const cpu_job *job)
{
    d_block x = block_of(product, job);
    const int64_t steps = x.plan->steps;
    for (int64_t p = job->k.begin; product->run->has_product && p < job->k.end; p += steps)
        multiply_block(&x, p, tgl_min64(steps, job->k.end - p));
    const bool stores = job->sums == NULL && !x.is_result;
    for (int64_t row = 0; stores && row < cpu_length(job->rows); row++)
        x.functions->store_row(&x.sums, row);
}

static void add_parts_of_block(const cpu_product *product, const cpu_job *job, cpu_range rows)
{
    const d_block x = block_of(product, job);
    const cpu_block_plan *h = x.plan;
    const int64_t step = (int64_t)(h->sum_bytes / sizeof(float));
    for (int64_t i = rows.begin - job->rows.begin; i < rows.end - job->rows.begin; i++) {
        float *sums = (float *)x.sums.sums + i * x.sums.ld;
        if (product->run->has_product)
            x.functions->add_parts(product->plan, sums, cpu_length(job->columns), step,
                                   h->parts - 1);
        x.functions->store_row(&x.sums, i);
    }
}

void tgl_cpu_blocks(const cpu_product *product)
{
    const cpu_block_plan *h = product->plan->blocks;
    const cpu_cut cut = {
        .grid_m = h->blocks_m,
        .grid_n = h->blocks_n,
        .parts = h->parts,
        .unit_m = h->rows,
        .unit_n = h->columns,
        .unit_k = h->steps,
        .problems = product->shape->batch,
        .thread_bytes = h->thread_bytes,
        .sum_bytes = h->sum_bytes,
        .compute = compute_block,
        .add_parts = add_parts_of_block,
    };
    tgl_cpu_run_jobs(product, &cut);
}
