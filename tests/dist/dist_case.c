/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs random distributed products: sizes from 0 to primes above 100, real types of 16 bits and
 * more, int8, both orders and all transposes. The layouts are shards, copies and block-cyclic grids
 * that need not use all ranks. The division of the work is given or planned.
 */
#include "dist_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct matrix {
    tgl_dist_layout layout;
    tgl_type type;
    int64_t rows, columns; /* size of the whole matrix */
    int64_t local_rows, local_columns;
    char *whole; /* the whole matrix without padding, in the order of the problem */
    char *local; /* this rank's part, with leading dimension layout.ld */
    size_t local_bytes;
} matrix;

typedef struct test_case {
    tgl_problem problem;
    matrix a, b, c;
    double alpha, beta;
    tgl_epilogue epilogue;
    tgl_dist_options options;
    bool has_epilogue;
    uint64_t state; /* state of the random numbers */
    int rank, ranks;
    bool is_fake; /* whether the device is of the fake driver, which supports f32 and few epilogues
                   */
} test_case;

/* ---- Random choices -------------------------------------------------------------------------- */

static int64_t draw(test_case *t, int64_t below)
{
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((t->state >> 33) % (uint64_t)below);
}

static int64_t draw_size(test_case *t)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 7, 16, 31, 64, 97, 113, 128};
    return draw(t, 3) == 0 ? sizes[draw(t, sizeof sizes / sizeof sizes[0])] : 1 + draw(t, 90);
}

static void draw_layout(test_case *t, matrix *x)
{
    tgl_dist_layout *l = &x->layout;
    const int64_t kind = draw(t, 6);
    if (kind == 0) {
        tgl_dist_rows(l, sizeof *l, x->rows, x->columns, t->ranks);
    } else if (kind == 1) {
        tgl_dist_columns(l, sizeof *l, x->rows, x->columns, t->ranks);
    } else if (kind == 2) {
        tgl_dist_replicated(l, sizeof *l, x->rows, x->columns);
    } else {
        tgl_dist_rows(l, sizeof *l, x->rows, x->columns, 1 + (int)draw(t, t->ranks));
        l->grid_columns = 1 + (int)draw(t, t->ranks / l->grid_rows);
        l->block_rows = 1 + draw(t, 40);
        l->block_columns = 1 + draw(t, 40);
        l->first_rows = draw(t, l->block_rows + 1);
        l->first_columns = draw(t, l->block_columns + 1);
        l->source_row = (int)draw(t, l->grid_rows);
        l->source_column = (int)draw(t, l->grid_columns);
        l->grid_order = draw(t, 2) ? TGL_ROW_MAJOR : TGL_COL_MAJOR;
    }
}

/* ---- Elements -------------------------------------------------------------------------------- */

/* A small integer converted to F16 or BF16: its sign, exponent and the highest bits of the
 * fraction. */
static uint16_t to_half(tgl_type type, int value)
{
    const float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == TGL_BF16) return (uint16_t)(bits >> 16);
    if (value == 0) return 0;
    return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) |
                      (bits >> 13 & 0x3ff));
}

static void put(tgl_type type, char *at, int value)
{
    const float f32 = (float)value;
    const double f64 = value;
    const int8_t i8 = (int8_t)value;
    const int32_t i32 = value;
    const uint16_t f16 = to_half(type, value);
    const void *from = type == TGL_F32   ? (const void *)&f32
                       : type == TGL_F64 ? (const void *)&f64
                       : type == TGL_I8  ? (const void *)&i8
                       : type == TGL_I32 ? (const void *)&i32
                                         : (const void *)&f16;
    memcpy(at, from, tgl_type_size(type));
}

static int64_t index_in(const test_case *t, int64_t ld, int64_t row, int64_t column)
{
    return t->problem.order == TGL_ROW_MAJOR ? row * ld + column : row + column * ld;
}

/* The index in the whole matrix of row or column `local` of a rank's part. It is found by going
 * through all blocks, so that this test does not depend on the formulas of the library. */
static int64_t global_index(int64_t size, int64_t first, int64_t block, int parts, int source,
                            int part, int64_t local)
{
    int64_t index = 0, seen = 0;
    for (int64_t i = 0; index < size; i++) {
        const int64_t length = i == 0 && first > 0 ? first : block;
        const int64_t here = index + length < size ? length : size - index;
        if ((source + i) % parts == part) {
            if (local < seen + here) return index + local - seen;
            seen += here;
        }
        index += here;
    }
    return -1;
}

static void copy_local(const test_case *t, matrix *x)
{
    const tgl_dist_layout *l = &x->layout;
    const bool by_rows = l->grid_order == TGL_ROW_MAJOR;
    const int row_part =
        by_rows ? t->rank / l->grid_columns % l->grid_rows : t->rank % l->grid_rows;
    const int column_part =
        by_rows ? t->rank % l->grid_columns : t->rank / l->grid_rows % l->grid_columns;
    const size_t element = tgl_type_size(x->type);
    const int64_t ld = t->problem.order == TGL_ROW_MAJOR ? x->columns : x->rows;
    for (int64_t i = 0; i < x->local_rows; i++)
        for (int64_t j = 0; j < x->local_columns; j++) {
            const int64_t row = global_index(x->rows, l->first_rows, l->block_rows, l->grid_rows,
                                             l->source_row, row_part, i);
            const int64_t column = global_index(x->columns, l->first_columns, l->block_columns,
                                                l->grid_columns, l->source_column, column_part, j);
            memcpy(x->local + (size_t)index_in(t, l->ld, i, j) * element,
                   x->whole + (size_t)index_in(t, ld, row, column) * element, element);
        }
}

/* Fills a matrix, and copies this rank's part of it. */
static void fill(test_case *t, matrix *x)
{
    const size_t element = tgl_type_size(x->type);
    x->whole = calloc((size_t)(x->rows * x->columns) + 1, element);
    for (int64_t i = 0; i < x->rows * x->columns; i++)
        put(x->type, x->whole + (size_t)i * element, (int)draw(t, 7) - 3);
    draw_layout(t, x);
    tgl_dist_local(&x->layout, t->rank, &x->local_rows, &x->local_columns);
    const bool by_rows = t->problem.order == TGL_ROW_MAJOR;
    const int64_t width = by_rows ? x->local_columns : x->local_rows;
    const int64_t lines = by_rows ? x->local_rows : x->local_columns;
    x->layout.ld = width + draw(t, 3);
    x->local_bytes = (size_t)(lines * x->layout.ld) * element;
    x->local = calloc(x->local_bytes + 1, 1);
    copy_local(t, x);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void draw_types(test_case *t)
{
    static const tgl_type types[][2] = {{TGL_F64, TGL_F64}, {TGL_F64, TGL_F64},
                                        {TGL_F32, TGL_F32}, {TGL_BF16, TGL_BF16},
                                        {TGL_F16, TGL_F32}, {TGL_I8, TGL_I32}};
    const int64_t i = draw(t, (int64_t)(sizeof types / sizeof types[0]) - t->is_fake);
    t->a.type = t->b.type = types[i][0];
    t->c.type = types[i][1];
}

static void draw_epilogue(test_case *t)
{
    t->has_epilogue = t->c.type != TGL_I32 && draw(t, 3) == 0;
    if (!t->has_epilogue) return;
    t->epilogue = (tgl_epilogue){.size = sizeof t->epilogue, .bias = (tgl_bias)draw(t, 3)};
    if (t->is_fake) {
        t->epilogue.bias = t->problem.order == TGL_ROW_MAJOR ? TGL_BIAS_COLUMN : TGL_BIAS_ROW;
        return;
    }
    t->epilogue.activation = draw(t, 2) ? TGL_ACTIVATION_RELU : TGL_ACTIVATION_NONE;
}

static void draw_options(test_case *t)
{
    t->options = (tgl_dist_options){.size = sizeof t->options};
    draw_epilogue(t);
    if (t->has_epilogue) t->options.epilogue = &t->epilogue;
    if (draw(t, 2)) t->options.panel = 1 + draw(t, 50);
    if (draw(t, 3) == 0) return;
    t->options.parts_m = 1 + (int)draw(t, t->ranks);
    t->options.parts_n = 1 + (int)draw(t, t->ranks / t->options.parts_m);
    t->options.parts_k = 1 + (int)draw(t, t->ranks / (t->options.parts_m * t->options.parts_n));
}

static void make(test_case *t)
{
    static const tgl_transpose trans[] = {TGL_TRANS, TGL_NO_TRANS, TGL_CONJ_TRANS,
                                          TGL_CONJ_NO_TRANS};
    const int64_t m = draw_size(t), n = draw_size(t), k = draw_size(t);
    draw_types(t);
    tgl_problem *p = &t->problem;
    tgl_problem_init(p, sizeof *p, t->a.type, m, n, k);
    p->type_c = t->c.type;
    p->order = draw(t, 2) ? TGL_ROW_MAJOR : TGL_COL_MAJOR;
    p->trans_a = trans[draw(t, 4)];
    p->trans_b = trans[draw(t, 4)];
    t->alpha = (double)draw(t, 4) - 1;
    t->beta = (double)draw(t, 3) - 1;
    const bool a = p->trans_a == TGL_TRANS || p->trans_a == TGL_CONJ_TRANS;
    const bool b = p->trans_b == TGL_TRANS || p->trans_b == TGL_CONJ_TRANS;
    t->a.rows = a ? k : m, t->a.columns = a ? m : k;
    t->b.rows = b ? n : k, t->b.columns = b ? k : n;
    t->c.rows = m, t->c.columns = n;
    fill(t, &t->a);
    fill(t, &t->b);
    fill(t, &t->c);
    draw_options(t);
}

/* Makes the whole bias. *local := this rank's part of it. */
static char *make_bias(test_case *t, char **local)
{
    matrix x = {.type = t->c.type, .rows = t->c.rows, .columns = t->c.columns};
    const bool by_row = t->epilogue.bias == TGL_BIAS_ROW;
    const size_t element = tgl_type_size(x.type);
    const int64_t size = by_row ? x.rows : x.columns;
    char *whole = calloc((size_t)size + 1, element);
    *local = calloc((size_t)size + 1, element);
    for (int64_t i = 0; i < size; i++)
        put(x.type, whole + (size_t)i * element, (int)draw(t, 7) - 3);
    x.layout = t->c.layout;
    x.local_rows = by_row ? t->c.local_rows : t->c.local_rows > 0;
    x.local_columns = by_row ? t->c.local_columns > 0 : t->c.local_columns;
    x.whole = calloc((size_t)(x.rows * x.columns) + 1, element);
    for (int64_t row = 0; row < x.rows; row++)
        for (int64_t column = 0; column < x.columns; column++)
            memcpy(x.whole +
                       (size_t)index_in(t, t->problem.order == TGL_ROW_MAJOR ? x.columns : x.rows,
                                        row, column) *
                           element,
                   whole + (size_t)(by_row ? row : column) * element, element);
    x.layout.ld = t->problem.order == TGL_ROW_MAJOR ? x.local_columns : x.local_rows;
    x.local = *local;
    copy_local(t, &x);
    free(x.whole);
    return whole;
}

/* Computes the product of the whole matrices on this rank's cpu device, and stores it in the whole
 * C. */
static tgl_status reference(const test_case *t, const char *bias)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .epilogue = t->has_epilogue ? &t->epilogue : NULL};
    const tgl_device_options one_thread = {.size = sizeof one_thread, .threads = 1};
    tgl_device *dev;
    tgl_plan *plan;
    tgl_status status = tgl_device_open("cpu", &one_thread, &dev);
    if (status != TGL_OK) return status;
    status = tgl_plan_create(dev, &t->problem, &options, &plan);
    if (status != TGL_OK) return tgl_device_close(dev), status;
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = t->alpha,
                                   .beta = t->beta,
                                   .A = t->a.whole,
                                   .B = t->b.whole,
                                   .C = t->c.whole,
                                   .bias = bias};
    status = tgl_plan_run_operands(plan, &operands, NULL);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    return status;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* A rank's parts of the matrices in the memory of its device. */
typedef struct parts {
    void *a, *b, *c, *bias;
} parts;

static void *to_device(tgl_device *dev, const char *host, size_t bytes)
{
    void *memory = NULL;
    if (host == NULL || bytes == 0) return NULL;
    if (tgl_alloc(dev, bytes, &memory) != TGL_OK ||
        tgl_upload(dev, memory, host, bytes, NULL) != TGL_OK)
        abort();
    return memory;
}

/* Runs a plan on copies of the parts in device memory. */
static tgl_status run_plan(test_case *t, tgl_dist *dist, tgl_device *dev, tgl_dist_plan *plan,
                           const char *bias)
{
    const size_t bias_bytes =
        (size_t)(t->epilogue.bias == TGL_BIAS_ROW ? t->c.rows : t->c.columns) *
        tgl_type_size(t->c.type);
    const parts p = {
        to_device(dev, t->a.local, t->a.local_bytes), to_device(dev, t->b.local, t->b.local_bytes),
        to_device(dev, t->c.local, t->c.local_bytes), to_device(dev, bias, bias_bytes)};
    tgl_status status = tgl_dist_plan_run(plan, t->alpha, p.a, p.b, t->beta, p.c, p.bias);
    if (status == TGL_OK) status = tgl_dist_synchronize(dist);
    if (status == TGL_OK && p.c != NULL)
        status = tgl_download(dev, t->c.local, p.c, t->c.local_bytes, NULL);
    tgl_free(dev, p.a), tgl_free(dev, p.b), tgl_free(dev, p.c), tgl_free(dev, p.bias);
    return status;
}

static bool report(const test_case *t, unsigned seed, const char *what)
{
    char text[400];
    tgl_dist_last_error(text, sizeof text);
    const tgl_problem *p = &t->problem;
    fprintf(stderr,
            "seed %u, rank %d of %d: %s (%s)\n  %lld x %lld x %lld, order %d, trans %d %d, type "
            "%d, alpha %g, beta %g, "
            "panel %lld, parts %d %d %d\n",
            seed, t->rank, t->ranks, what, text, (long long)p->m, (long long)p->n, (long long)p->k,
            p->order, p->trans_a, p->trans_b, p->type_a, t->alpha, t->beta,
            (long long)t->options.panel, t->options.parts_m, t->options.parts_n,
            t->options.parts_k);
    return false;
}

/* Whether two elements are equal. Zeros of both signs are, because the sign depends on the order of
 * summation. */
static bool is_equal(tgl_type type, const char *x, const char *y)
{
    static const char zero[8] = {0};
    const size_t element = tgl_type_size(type);
    if (memcmp(x, y, element) == 0) return true;
    return memcmp(x, zero, element - 1) == 0 && memcmp(y, zero, element - 1) == 0 &&
           (x[element - 1] & 0x7f) == 0 && (y[element - 1] & 0x7f) == 0 && type != TGL_I32;
}

static bool run_and_compare(test_case *t, tgl_dist *dist, tgl_device *dev, unsigned seed)
{
    char *bias = NULL, *local_bias = NULL;
    if (t->epilogue.bias != TGL_BIAS_NONE) bias = make_bias(t, &local_bias);
    tgl_dist_plan *plan;
    tgl_status status = tgl_dist_plan_create(dist, &t->problem, &t->a.layout, &t->b.layout,
                                             &t->c.layout, &t->options, &plan);
    bool ok = true;
    if (status == TGL_UNSUPPORTED && t->options.parts_m > 0) {
        t->options.parts_m = t->options.parts_n = t->options.parts_k = 0;
        status = tgl_dist_plan_create(dist, &t->problem, &t->a.layout, &t->b.layout, &t->c.layout,
                                      &t->options, &plan);
    }
    if (status == TGL_OK) {
        status = run_plan(t, dist, dev, plan, local_bias);
        tgl_dist_plan_destroy(plan);
    }
    if (status != TGL_OK) ok = report(t, seed, tgl_status_name(status));
    if (ok && reference(t, bias) != TGL_OK) ok = report(t, seed, "no reference");
    if (ok) {
        char *result = malloc(t->c.local_bytes + 1);
        memcpy(result, t->c.local, t->c.local_bytes);
        copy_local(t, &t->c); /* does not change the padding */
        for (size_t i = 0; ok && i < t->c.local_bytes; i += tgl_type_size(t->c.type))
            if (!is_equal(t->c.type, result + i, t->c.local + i))
                ok = report(t, seed, "a difference");
        free(result);
    }
    free(bias), free(local_bias);
    return ok;
}

bool dist_case_run(tgl_dist *dist, tgl_device *dev, unsigned seed)
{
    test_case t = {.rank = tgl_dist_rank(dist), .ranks = tgl_dist_ranks(dist)};
    t.is_fake = strcmp(tgl_device_name(dev), "cpu") != 0;
    t.state = seed * 2654435761u + 12345;
    make(&t);
    const bool ok = run_and_compare(&t, dist, dev, seed);
    matrix *all[] = {&t.a, &t.b, &t.c};
    for (int i = 0; i < 3; i++)
        free(all[i]->whole), free(all[i]->local);
    return ok;
}
