/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of f16, bf16 and int8, and of f32 by words. D is cut into blocks, and each thread
 * computes whole blocks:
 *
 *     for each block of kb steps of k
 *         pack the block of op(A), mb x kb, and of op(B), kb x nb, as words, and multiply them, if
 *         that suits the product (cpu_words.c); else
 *             convert the blocks to f32
 *             add their product to a block of sums, mb x nb: a product of cpu_gemm.c or cpu_small.c
 *             on one thread
 *     for each row of the block, unless the block of sums is the result
 *         alpha, beta*C and the epilogue in the accumulation type, rounded once to D's type
 *
 * Where D has fewer blocks than there are threads, several threads compute parts of a block, each
 * over a part of k, and all threads add them.
 *
 * A matrix times a vector is not converted beforehand, but as it is loaded.
 *
 * Products of int8 are exact. So is the f32 product of one block, whose sums are at most 1024 *
 * 2^14 = 2^24. It is added to sums of int32 modulo 2^32.
 *
 * The blocks of a thread stay in its L2 cache. Converting a block costs little beside the product,
 * in which each of its elements is used nb or mb times.
 */
#include "cpu/run/cpu_blocks.h"
#include "cpu/kernels/shares.h"
#include "cpu/run/batch_matrix.h"
#include "cpu/run/cpu_gemm.h"
#include "cpu/run/cpu_small.h"
#include "cpu/run/multiply_words.h"

#include <string.h>

/* Block `index` of blocks of `size` that cover `total`. */
static int64_t size_of_block(int64_t total, int64_t size, int64_t index)
{
    return tgl_min64(size, total - index * size);
}

static bool is_i8(const tgl_shape *s)
{
    return s->type_a == TGL_I8;
}

typedef struct block_job {
    const tgl_shape *shape;
    const cpu_plan *plan;
    const tgl_run *run;
    char *workspace;
    thread_pool *threads;
    _Atomic int64_t taken; /* compute_blocks() */
} block_job;

/* One block of D, and the memory of the thread that computes it. */
typedef struct d_block {
    int64_t problem, row, rows, column, columns;
    float *a, *b;
    void *sums; /* f32, of int8 int32 */
    int64_t sum_ld;
    float *product; /* of converted blocks: the sums themselves, but for int8 */
    int64_t product_ld;
    void *line;
    char *inner;
    int64_t first;  /* step of k: its products set the sums, and those of later steps are added */
    bool by_digits; /* the next block of k is tried by digits */
} d_block;

/* to[i] := element index + i of a matrix of this type, i < n. */
static void read_line(const cpu_conversions *convert, tgl_type type, float *to, const void *from,
                      int64_t index, int64_t n)
{
    if (type == TGL_F32)
        memcpy(to, (const float *)from + index, (size_t)n * sizeof *to);
    else
        convert->widen[cpu_conversion_of(type)](
            to, (const char *)from + index * (int64_t)tgl_type_size(type), n);
}

static void write_line(const cpu_conversions *convert, tgl_type type, void *to, int64_t index,
                       const float *from, int64_t n)
{
    if (type == TGL_F32)
        memcpy((float *)to + index, from, (size_t)n * sizeof *from);
    else
        convert->narrow[cpu_conversion_of(type)]((uint16_t *)to + index, from, n);
}

/* Converts a block of a stored matrix, and stores its rows one after the other. */
static void read_block(const cpu_conversions *convert, tgl_type type, float *to,
                       const cpu_words_source *from)
{
    const int64_t rows = from->k_contiguous ? from->lines : from->k;
    const int64_t n = from->k_contiguous ? from->k : from->lines;
    for (int64_t i = 0; i < rows; i++)
        read_line(convert, type, to + i * n, from->from, i * from->ld, n);
}

/* to[p] := step p of a vector. gathered: memory for its elements. */
static void read_vector(const cpu_conversions *convert, tgl_type type, float *to, char *gathered,
                        const cpu_words_source *from)
{
    const size_t element = tgl_type_size(type);
    if (from->k_contiguous || from->ld == 1) {
        read_line(convert, type, to, from->from, 0, from->k);
        return;
    }
    for (int64_t p = 0; p < from->k; p++)
        memcpy(gathered + p * (int64_t)element,
               (const char *)from->from + p * from->ld * (int64_t)element, element);
    read_line(convert, type, to, gathered, 0, from->k);
}

/* Multiplies a matrix by a vector, which are the block. */
static void multiply_vector(const block_job *job, const d_block *x, const cpu_words_source *a,
                            const cpu_words_source *b, bool add)
{
    const tgl_shape *s = job->shape;
    const cpu_kernels *kernels = job->plan->kernels;
    const cpu_conversions *convert = job->plan->blocks->conversions;
    const cpu_words_source *matrix = s->m == 1 ? b : a, *vector = s->m == 1 ? a : b;
    const int type = cpu_conversion_of(s->type_a);
    const void *product = x->product; /* int32 of dot products of int8 */
    read_vector(convert, s->type_a, x->a, (char *)x->b, vector);
    (matrix->k_contiguous ? job->plan->blocks->dot : kernels->short_combine[type])(
        x->product, matrix->from, matrix->ld, matrix->lines, matrix->k, x->a);
    if (is_i8(s) && matrix->k_contiguous && !add)
        memcpy(x->sums, product, (size_t)matrix->lines * sizeof(int32_t));
    else if (is_i8(s) && matrix->k_contiguous)
        convert->combine_i32(x->sums, matrix->lines, 1, 1, product, 1);
    else if (is_i8(s))
        convert->add_integers(x->sums, x->product, matrix->lines, add);
    else
        kernels->reduce(x->sums, 1, matrix->lines, x->product, 0, 1, 1, add);
}

/* Multiplies the block by f32 FMAs. */
static void multiply_converted(const block_job *job, const d_block *x, const cpu_words_source *a,
                               const cpu_words_source *b, bool add)
{
    const tgl_shape *s = job->shape;
    const cpu_block_plan *h = job->plan->blocks;
    read_block(h->conversions, s->type_a, x->a, a);
    read_block(h->conversions, s->type_b, x->b, b);
    const tgl_shape block = tgl_cpu_block_shape(s, x->rows, x->columns, a->k, x->product_ld);
    const tgl_run run = {
        .alpha = 1,
        .beta = add && !is_i8(s),
        .has_product = true,
        .at = {[TGL_AT_A] = x->a,
               [TGL_AT_B] = x->b,
               [TGL_AT_C] = x->product,
               [TGL_AT_D] = x->product},
    };
    if (h->product.path == CPU_PATH_SMALL)
        tgl_cpu_small_run(&block, &h->product, &run, job->threads);
    else
        tgl_cpu_gemm(&block, &h->product, &run, x->inner, job->threads);
    for (int64_t i = 0; i < x->rows && is_i8(s); i++)
        h->conversions->add_integers((int32_t *)x->sums + i * x->sum_ld,
                                     x->product + i * x->product_ld, x->columns, add);
}

/* The block of op(A), of k steps from `first` on. */
static cpu_words_source source_of_a(const block_job *job, const d_block *x, int64_t first,
                                    int64_t k)
{
    const tgl_shape *s = job->shape;
    const int64_t element = (int64_t)tgl_type_size(s->type_a);
    const int64_t at = s->trans_a ? first * s->lda + x->row : x->row * s->lda + first;
    return (cpu_words_source){tgl_cpu_a_of(s, job->run, x->problem, element) + at * element, s->lda,
                              !s->trans_a, x->rows, k};
}

static cpu_words_source source_of_b(const block_job *job, const d_block *x, int64_t first,
                                    int64_t k)
{
    const tgl_shape *s = job->shape;
    const int64_t element = (int64_t)tgl_type_size(s->type_b);
    const int64_t at = s->trans_b ? x->column * s->ldb + first : first * s->ldb + x->column;
    return (cpu_words_source){tgl_cpu_b_of(s, job->run, x->problem, element) + at * element, s->ldb,
                              s->trans_b, x->columns, k};
}

/* Adds the products of k steps from `first` on to the sums; the first ones set them. False: their
 * elements are not suited to this kind of words. */
static bool multiply_words(const block_job *job, const d_block *x, int64_t first, int64_t k,
                           cpu_word_kind kind)
{
    const cpu_words_source a = source_of_a(job, x, first, k), b = source_of_b(job, x, first, k);
    return tgl_cpu_multiply_words(job->shape, job->plan->blocks->words, kind, &a, &b, x->a, x->b,
                                  x->sums, x->sum_ld, first > x->first, first + k == job->shape->k);
}

/* Multiplies k steps by words or, where their elements do not permit words, by f32 FMAs. */
static void multiply_steps(const block_job *job, const d_block *x, int64_t first, int64_t k)
{
    const tgl_shape *s = job->shape;
    const cpu_block_plan *h = job->plan->blocks;
    const cpu_words_source a = source_of_a(job, x, first, k), b = source_of_b(job, x, first, k);
    if (h->is_vector)
        multiply_vector(job, x, &a, &b, first > x->first);
    else if (h->words == NULL || !multiply_words(job, x, first, k, tgl_cpu_word_kind(s)))
        multiply_converted(job, x, &a, &b, first > x->first);
}

/* Block p of k, by digits or in smaller blocks. Where digits do not suit once, the next blocks are
 * not tried. */
static void multiply_block(const block_job *job, d_block *x, int64_t p)
{
    const cpu_block_plan *h = job->plan->blocks;
    const int64_t first = p * h->steps, k = size_of_block(job->shape->k, h->steps, p);
    x->by_digits = x->by_digits && multiply_words(job, x, first, k, CPU_DIGITS_F32);
    for (int64_t i = 0; i < k && !x->by_digits; i += h->word_steps)
        multiply_steps(job, x, first + i, tgl_min64(h->word_steps, k - i));
}

/* The f32 operand of the epilogue at `index`, read to `line`; NULL: there is none. */
static const float *read_addend(const cpu_conversions *convert, tgl_type type, float *line,
                                const void *from, int64_t index, int64_t n)
{
    if (from == NULL) return NULL;
    read_line(convert, type, line, from, index, n);
    return line;
}

/* D := epilogue(alpha*sum + beta*C) in f32, in one row of the block. */
static void store_f32(const block_job *job, const d_block *x, int64_t i)
{
    const tgl_shape *s = job->shape;
    const tgl_run *run = job->run;
    const tgl_shape_epilogue *e = &s->epilogue;
    const cpu_kernels *kernels = job->plan->kernels;
    const cpu_conversions *convert = job->plan->blocks->conversions;
    const int64_t row = x->row + i, n = x->columns;
    float *sums = (float *)x->sums + i * x->sum_ld, *line = x->line;
    if (!run->has_product || run->alpha != 1)
        kernels->scale(sums, n, run->has_product ? run->alpha : 0);
    if (run->beta != 0) {
        const void *C = tgl_cpu_c_of(s, run, x->problem, (int64_t)tgl_type_size(s->type_c));
        read_line(convert, s->type_c, line, C, row * s->ldc + x->column, n);
        kernels->reduce(sums, 1, n, line, n, 1, run->beta, 1);
    }
    const bool by_row = e->bias == TGL_BIAS_ROW;
    if (!tgl_epilogue_is_none(e)) {
        const float *addend =
            read_addend(convert, e->type_bias, line, run->at[TGL_AT_BIAS],
                        x->problem * e->stride_bias + (by_row ? row : x->column), by_row ? 1 : n);
        kernels->finish(sums, n, addend, by_row ? 0 : 1, e->activation, NULL);
        addend = read_addend(convert, e->type_residual, line, run->at[TGL_AT_RESIDUAL],
                             x->problem * e->stride_residual + row * e->ld_residual + x->column, n);
        kernels->finish(sums, n, NULL, 1, TGL_ACTIVATION_NONE, addend);
    }
    void *D = tgl_cpu_d_of(s, run, x->problem, (int64_t)tgl_type_size(s->type_d));
    write_line(convert, s->type_d, D, row * s->ldd + x->column, sums, n);
}

/* The same modulo 2^32. */
static void store_i32(const block_job *job, const d_block *x, int64_t i)
{
    const tgl_shape *s = job->shape;
    const tgl_run *run = job->run;
    const tgl_shape_epilogue *e = &s->epilogue;
    const cpu_conversions *convert = job->plan->blocks->conversions;
    const int64_t row = x->row + i, n = x->columns;
    int32_t *sums = (int32_t *)x->sums + i * x->sum_ld;
    const int32_t *bias = run->at[TGL_AT_BIAS], *residual = run->at[TGL_AT_RESIDUAL];
    const int32_t alpha = run->has_product ? (int32_t)run->alpha : 0;
    if (!run->has_product) memset(sums, 0, (size_t)n * sizeof *sums);
    if (run->beta != 0) {
        const int32_t *C = (const void *)tgl_cpu_c_of(s, run, x->problem, sizeof *C);
        convert->combine_i32(sums, n, alpha, (int32_t)run->beta, C + row * s->ldc + x->column, 1);
    } else if (alpha != 1) {
        const int32_t nothing = 0;
        convert->combine_i32(sums, n, alpha, 0, &nothing, 0);
    }
    if (bias != NULL) {
        bias += x->problem * e->stride_bias;
        if (e->bias == TGL_BIAS_ROW)
            convert->combine_i32(sums, n, 1, 1, bias + row, 0);
        else
            convert->combine_i32(sums, n, 1, 1, bias + x->column, 1);
    }
    if (e->activation == TGL_ACTIVATION_RELU) convert->relu_i32(sums, n);
    if (residual != NULL) {
        residual += x->problem * e->stride_residual + row * e->ld_residual + x->column;
        convert->combine_i32(sums, n, 1, 1, residual, 1);
    }
    int32_t *D = (void *)tgl_cpu_d_of(s, run, x->problem, sizeof *D);
    memcpy(D + row * s->ldd + x->column, sums, (size_t)n * sizeof *sums);
}

/* Whether the sums are the results, and it pays to have them in D. If rows of D are a multiple of 8
 * KB apart, the rows of a tile share a set of the L1 cache: a block of sums and a copy are 5 to 20
 * % faster then, else they are slower (2048 and 1024 cubed, Xeon with AMX). Sums of int8 in D are
 * always faster. */
static bool are_results(const block_job *job)
{
    const tgl_shape *s = job->shape;
    const bool is_vector = job->plan->blocks->is_vector;
    if (job->plan->blocks->parts > 1) return false;
    if (is_vector && s->n == 1 && s->ldd != 1) return false; /* its sums are contiguous */
    const bool pays = is_i8(s) || (s->type_d == TGL_F32 && (is_vector || s->ldd % 2048 != 0));
    return pays && job->run->has_product && s->k > 0 && job->run->alpha == 1 &&
           job->run->beta == 0 && tgl_epilogue_is_none(&s->epilogue);
}

/* Block `index` of D. */
static d_block block_at(const block_job *job, int64_t index, char *memory)
{
    const tgl_shape *s = job->shape;
    const cpu_block_plan *h = job->plan->blocks;
    const int64_t block_m = index / h->blocks_n % h->blocks_m, block_n = index % h->blocks_n;
    d_block x = {
        .problem = index / (h->blocks_m * h->blocks_n),
        .row = block_m * h->rows,
        .rows = size_of_block(s->m, h->rows, block_m),
        .column = block_n * h->columns,
        .columns = size_of_block(s->n, h->columns, block_n),
        .a = (void *)memory,
        .b = (void *)(memory + h->a_bytes),
        .sums = (void *)(memory + h->a_bytes + h->b_bytes),
        .sum_ld = h->sum_ld,
        .line = (void *)(memory + h->a_bytes + h->b_bytes + h->sum_bytes),
        .inner = memory + h->thread_bytes - tgl_cpu_aligned(h->product.workspace),
        .by_digits = h->by_digits,
    };
    if (are_results(job)) {
        char *D = tgl_cpu_d_of(s, job->run, x.problem, sizeof(float));
        x.sums = D + (x.row * s->ldd + x.column) * (int64_t)sizeof(float);
        x.sum_ld = s->ldd;
    }
    const bool has_product = h->product_bytes > 0;
    x.product = has_product ? (void *)(x.inner - h->product_bytes) : x.sums;
    x.product_ld = has_product ? h->sum_ld : x.sum_ld;
    return x;
}

static int64_t blocks_of_d(const block_job *job)
{
    const cpu_block_plan *h = job->plan->blocks;
    return job->shape->batch * h->blocks_m * h->blocks_n;
}

static char *memory_at(const block_job *job, int64_t index)
{
    return job->workspace + (size_t)index * job->plan->blocks->thread_bytes;
}

static void store_row(const block_job *job, const d_block *x, int64_t row)
{
    (is_i8(job->shape) ? store_i32 : store_f32)(job, x, row);
}

/* Blocks of D, or parts of them: then there are no more than the plan has threads, and the sums of
 * each stay in memory of its own. */
static void compute_blocks(void *context, int thread, int team)
{
    block_job *job = context;
    const cpu_block_plan *h = job->plan->blocks;
    const int64_t blocks = blocks_of_d(job);
    const bool stores_rows = h->parts == 1 && !are_results(job);
    for (int64_t i = thread; i < blocks * h->parts; i = cpu_next_item(&job->taken, team)) {
        const int64_t first = cpu_share(h->blocks_k, h->parts, i % h->parts);
        const int64_t end = cpu_share(h->blocks_k, h->parts, i % h->parts + 1);
        d_block x = block_at(job, i / h->parts, memory_at(job, h->parts > 1 ? i : thread));
        x.first = first * h->steps;
        for (int64_t p = first; job->run->has_product && p < end; p++)
            multiply_block(job, &x, p);
        for (int64_t row = 0; stores_rows && row < x.rows; row++)
            store_row(job, &x, row);
    }
}

/* sums += count rows of sums, which are `step` elements apart. */
static void add_row(const block_job *job, void *sums, int64_t n, int64_t step, int64_t count)
{
    const cpu_plan *plan = job->plan;
    const float *first = (const float *)sums + step;
    const int32_t *integers = sums;
    if (!is_i8(job->shape)) plan->kernels->reduce(sums, 1, n, first, step, count, 1, 1);
    for (int64_t i = 1; i <= count && is_i8(job->shape); i++)
        plan->blocks->conversions->combine_i32(sums, n, 1, 1, integers + i * step, 1);
}

/* Adds the parts of each block, in an order that does not depend on the threads, which share its
 * rows. */
static void add_parts(void *context, int thread, int team)
{
    const block_job *job = context;
    const cpu_block_plan *h = job->plan->blocks;
    const int64_t step = (int64_t)(h->thread_bytes / sizeof(float)), others = h->parts - 1;
    for (int64_t i = 0; i < blocks_of_d(job); i++) {
        d_block x = block_at(job, i, memory_at(job, i * h->parts));
        x.line = block_at(job, i, memory_at(job, thread)).line;
        const int64_t end = cpu_share(x.rows, team, thread + 1);
        for (int64_t row = cpu_share(x.rows, team, thread); row < end; row++) {
            float *sums = (float *)x.sums + row * x.sum_ld;
            if (job->run->has_product) add_row(job, sums, x.columns, step, others);
            store_row(job, &x, row);
        }
    }
}

void tgl_cpu_blocks(const tgl_shape *shape, const cpu_plan *plan, const tgl_run *run,
                    char *workspace, thread_pool *threads)
{
    block_job job = {
        .shape = shape, .plan = plan, .run = run, .workspace = workspace, .threads = threads};
    tgl_thread_pool_run(threads, plan->threads, compute_blocks, &job);
    if (plan->blocks->parts > 1) tgl_thread_pool_run(threads, plan->threads, add_parts, &job);
}
