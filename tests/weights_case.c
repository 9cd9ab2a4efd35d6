/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs products with weights of 8 or 4 bits (weights_case.h).
 */
#include "weights_case.h"
#include "scaled_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C, D, BIAS, FACTORS, ZEROS, OPERANDS };

typedef struct operand {
    tgl_type type;
    int64_t count, skip; /* in bytes for B, in elements for the others; `skip` come before the
                            matrix */
    void *host, *device;
} operand;

typedef struct weights_run {
    const weights_case *of;
    operand x[OPERANDS];
    bool in_place;
    double *rows_of_a, *columns; /* the values of op(A), m x k, and of the weights, n x k, of one
                                    product of the batch: read_factors() */
} weights_run;

static unsigned draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ---- Operands -------------------------------------------------------------------------------- */

static bool is_flipped(const tgl_problem *p, tgl_transpose trans)
{
    return (trans == TGL_TRANS) != (p->order == TGL_COL_MAJOR);
}

static int64_t lines_of(const tgl_problem *p, int64_t rows, int64_t cols, tgl_transpose trans)
{
    return is_flipped(p, trans) ? cols : rows;
}

static int64_t at(const tgl_problem *p, tgl_transpose trans, int64_t ld, int64_t row, int64_t col)
{
    return is_flipped(p, trans) ? col * ld + row : row * ld + col;
}

/* The number of elements of a batch, with the padding of the last row. */
static int64_t count_of(const tgl_problem *p, int64_t rows, int64_t cols, tgl_transpose trans,
                        int64_t ld, int64_t stride)
{
    return lines_of(p, rows, cols, trans) * ld + (p->batch - 1) * stride;
}

static int64_t ld_of_factors(const tgl_problem *p)
{
    return p->scaling_b != TGL_SCALING_GROUP ? 0 : p->ld_scale_b != 0 ? p->ld_scale_b : p->n;
}

/* The index of the factor of a weight. */
static int64_t factor_at(const tgl_problem *p, int64_t problem, int64_t k, int64_t column)
{
    const int64_t group = p->scaling_b == TGL_SCALING_GROUP ? k / p->scale_group : 0;
    return problem * p->stride_scale_b + group * ld_of_factors(p) +
           (p->scaling_b == TGL_SCALING_TENSOR ? 0 : column);
}

static void set_operands(weights_run *r)
{
    const weights_case *c = r->of;
    const tgl_problem *p = &c->problem;
    const int64_t b = count_of(p, p->k, p->n, p->trans_b, p->ldb, p->stride_b);
    const int64_t factors = p->k > 0 ? factor_at(p, p->batch - 1, p->k - 1, p->n - 1) + 1 : 0;
    const bool has_factors = p->scaling_b != TGL_SCALING_NONE;
    r->in_place = p->type_d == 0;
    r->x[A] = (operand){.type = p->type_a,
                        .count = count_of(p, p->m, p->k, p->trans_a, p->lda, p->stride_a),
                        .skip = c->skip_a};
    r->x[B] = (operand){
        .type = TGL_I8, .count = p->type_b == TGL_I4 ? (b + 1) / 2 : b, .skip = c->skip_b};
    r->x[C] = (operand){.type = p->type_c,
                        .count = count_of(p, p->m, p->n, TGL_NO_TRANS, p->ldc, p->stride_c)};
    if (!r->in_place)
        r->x[D] = (operand){.type = p->type_d,
                            .count = count_of(p, p->m, p->n, TGL_NO_TRANS, p->ldd, p->stride_d)};
    r->x[BIAS] = (operand){.type = TGL_F32,
                           .count = c->bias == TGL_BIAS_NONE  ? 0
                                    : c->bias == TGL_BIAS_ROW ? p->m
                                                              : p->n};
    r->x[FACTORS] = (operand){.type = TGL_F32, .count = has_factors ? factors : 0};
    r->x[ZEROS] = (operand){.type = TGL_I8, .count = p->type_zero_b != 0 ? factors : 0};
}

/* A random number of either sign with a magnitude from 1/4 to 4; a power of two if is_power. */
static float draw_factor(bool is_power, unsigned *state)
{
    const unsigned random = draw(state);
    const double magnitude =
        ldexp(is_power ? 1 : 1 + (random >> 4) % 4096 / 4096.0, (int)(random % 4) - 2);
    return (float)(random & 8 ? -magnitude : magnitude);
}

static void fill(const weights_case *c, int number, operand *x, unsigned *state)
{
    const bool has_bytes = x->type == TGL_I8;
    for (int64_t i = 0; i < x->count; i++) {
        const unsigned random = draw(state);
        const float factor = draw_factor(number == FACTORS && c->is_exact, state);
        uint32_t bits = random;
        if (x->type == TGL_F32) memcpy(&bits, &factor, sizeof bits);
        if (x->type == TGL_F16) bits = (random & 0x83ff) | (10 + random % 6) << 10;
        if (x->type == TGL_BF16) bits = (random & 0x807f) | (122 + random % 6) << 7;
        const size_t size = has_bytes ? 1 : tgl_type_size(x->type);
        memcpy((char *)x->host + (size_t)(x->skip + i) * size, &bits, size);
    }
}

static tgl_status make_operands(tgl_device *dev, weights_run *r)
{
    unsigned state = r->of->seed * 7919u + 1;
    for (int i = 0; i < OPERANDS; i++) {
        operand *x = &r->x[i];
        const size_t bytes = (size_t)(x->count + x->skip) * tgl_type_size(x->type);
        if (x->count == 0) continue;
        x->host = calloc(1, bytes);
        fill(r->of, i, x, &state);
        tgl_status status = tgl_alloc(dev, bytes, &x->device);
        if (status == TGL_OK) status = tgl_upload(dev, x->device, x->host, bytes, NULL);
        if (status != TGL_OK) return status;
    }
    return TGL_OK;
}

static void free_operands(tgl_device *dev, weights_run *r)
{
    for (int i = 0; i < OPERANDS; i++) {
        if (r->x[i].device != NULL) tgl_free(dev, r->x[i].device);
        free(r->x[i].host);
    }
}

/* The address of an operand on the device; NULL if it has no elements. */
static void *on_device(const operand *x)
{
    if (x->device == NULL) return NULL;
    return (char *)x->device + x->skip * (int64_t)tgl_type_size(x->type);
}

/* ---- Reference ------------------------------------------------------------------------------- */

static double integer_at(const weights_run *r, int64_t i)
{
    const operand *x = &r->x[B];
    if (r->of->problem.type_b == TGL_I8) return scaled_load(TGL_I8, x->host, x->skip + i);
    const int byte = ((const unsigned char *)x->host)[x->skip + i / 2];
    const int half = i % 2 == 0 ? byte & 15 : byte >> 4;
    return half < 8 ? half : half - 16;
}

/* The value of a weight, not rounded to 16 bits. */
static double weight(const weights_run *r, int64_t problem, int64_t k, int64_t column)
{
    const tgl_problem *p = &r->of->problem;
    const int64_t b = problem * p->stride_b + at(p, p->trans_b, p->ldb, k, column);
    const int64_t i = factor_at(p, problem, k, column);
    const double q = integer_at(r, b);
    const double zero = p->type_zero_b != 0 ? scaled_load(TGL_I8, r->x[ZEROS].host, i) : 0;
    if (p->scaling_b == TGL_SCALING_NONE) return q;
    return (q - zero) * scaled_load(TGL_F32, r->x[FACTORS].host, i);
}

/* Reads the elements of A and the weights once for all sums. */
static void read_factors(const weights_run *r, int64_t problem)
{
    const tgl_problem *p = &r->of->problem;
    if (r->of->alpha == 0) return;
    for (int64_t i = 0; i < p->m * p->k; i++)
        r->rows_of_a[i] = scaled_load(p->type_a, r->x[A].host,
                                      r->x[A].skip + problem * p->stride_a +
                                          at(p, p->trans_a, p->lda, i / p->k, i % p->k));
    for (int64_t i = 0; i < p->n * p->k; i++)
        r->columns[i] = weight(r, problem, i % p->k, i / p->k);
}

/* D[row][col] before it is rounded, for the product of read_factors(). *error := a bound of its
 * error. */
static double expected(const weights_run *r, int64_t problem, int64_t row, int64_t col,
                       double *error)
{
    const weights_case *c = r->of;
    const tgl_problem *p = &c->problem;
    double sum = 0, magnitude = 0;
    for (int64_t i = 0; i < p->k && c->alpha != 0; i++) {
        const double product = r->rows_of_a[row * p->k + i] * r->columns[col * p->k + i];
        sum += product;
        magnitude += fabs(product);
    }
    const double of_weights = c->is_exact ? 0 : p->type_a == TGL_F16 ? 0x1p-11 : 0x1p-8;
    *error = fabs(c->alpha) * magnitude * (of_weights + ((double)p->k + 8) * 0x1p-24);
    double value = c->alpha * sum, others = 0;
    if (c->beta != 0) {
        const int64_t i = problem * p->stride_c + at(p, TGL_NO_TRANS, p->ldc, row, col);
        const double addend = c->beta * scaled_load(p->type_c, r->x[C].host, i);
        value += addend;
        others += fabs(addend);
    }
    if (c->bias != TGL_BIAS_NONE) {
        const double addend =
            scaled_load(TGL_F32, r->x[BIAS].host, c->bias == TGL_BIAS_ROW ? row : col);
        value += addend;
        others += fabs(addend);
    }
    *error += (others + fabs(value)) * 0x1p-22;
    return value;
}

static void describe(const weights_case *c, char text[256])
{
    const tgl_problem *p = &c->problem;
    snprintf(text, 256,
             "%s, seed %u, %lldx%lldx%lld, batch %lld, order %d, trans %d %d, types %d %d %d, ld "
             "%lld %lld, factors %d of %d, zeros %d",
             c->kernel != NULL ? c->kernel : "planned", c->seed, (long long)p->m, (long long)p->n,
             (long long)p->k, (long long)p->batch, (int)p->order, (int)p->trans_a, (int)p->trans_b,
             (int)p->type_a, (int)p->type_b, (int)p->type_c, (long long)p->lda, (long long)p->ldb,
             (int)p->scaling_b, p->scale_group, (int)p->type_zero_b);
}

static void compare(const weights_run *r, const void *result, char fault[512])
{
    const tgl_problem *p = &r->of->problem;
    const int64_t ld = r->in_place ? p->ldc : p->ldd;
    const int64_t stride = r->in_place ? p->stride_c : p->stride_d;
    const tgl_type type = r->x[r->in_place ? C : D].type;
    for (int64_t i = 0; i < p->batch * p->m * p->n && fault[0] == '\0'; i++) {
        const int64_t problem = i / (p->m * p->n), row = i / p->n % p->m, col = i % p->n;
        double error;
        char text[256];
        if (row == 0 && col == 0) read_factors(r, problem);
        const double exact = expected(r, problem, row, col, &error);
        const double got =
            scaled_load(type, result, problem * stride + at(p, TGL_NO_TRANS, ld, row, col));
        if (got >= scaled_round(type, exact - error) && got <= scaled_round(type, exact + error))
            continue;
        describe(r->of, text);
        snprintf(fault, 512, "%s: D[%lld][%lld] of %lld is %.9g, not within %.9g of %.9g", text,
                 (long long)row, (long long)col, (long long)problem, got, error, exact);
    }
}

static tgl_status run(const tgl_plan *plan, const weights_run *r)
{
    const bool reads_c = r->in_place || r->of->beta != 0;
    const tgl_operands o = {.size = sizeof o,
                            .alpha = r->of->alpha,
                            .beta = r->of->beta,
                            .A = on_device(&r->x[A]),
                            .B = on_device(&r->x[B]),
                            .C = reads_c ? on_device(&r->x[C]) : NULL,
                            .D = on_device(&r->x[D]),
                            .bias = on_device(&r->x[BIAS]),
                            .scale_b = on_device(&r->x[FACTORS]),
                            .zero_b = on_device(&r->x[ZEROS])};
    return tgl_plan_run_operands(plan, &o, NULL);
}

tgl_status weights_case_run(tgl_device *dev, const weights_case *c, char fault[512])
{
    weights_run r = {.of = c};
    const tgl_epilogue epilogue = {.size = sizeof epilogue, .bias = c->bias, .type_bias = TGL_F32};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = c->kernel, .epilogue = &epilogue};
    tgl_plan *plan = NULL;
    fault[0] = '\0';
    tgl_status status = tgl_plan_create(dev, &c->problem, &options, &plan);
    if (status != TGL_OK) return status;
    set_operands(&r);
    r.rows_of_a = malloc((size_t)(c->problem.m * c->problem.k + 1) * sizeof *r.rows_of_a);
    r.columns = malloc((size_t)(c->problem.n * c->problem.k + 1) * sizeof *r.columns);
    status = make_operands(dev, &r);
    if (status == TGL_OK) status = run(plan, &r);
    const operand *d = &r.x[r.in_place ? C : D];
    const size_t bytes = (size_t)d->count * tgl_type_size(d->type);
    void *result = malloc(bytes);
    if (status == TGL_OK) status = tgl_download(dev, result, d->device, bytes, NULL);
    if (status == TGL_OK) compare(&r, result, fault);
    free(result);
    free(r.rows_of_a);
    free(r.columns);
    free_operands(dev, &r);
    tgl_plan_destroy(plan);
    return status;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

tgl_problem weights_problem(tgl_type type_a, tgl_type type_b, int64_t m, int64_t n, int64_t k,
                            int group)
{
    tgl_problem p;
    (void)tgl_problem_init(&p, sizeof p, type_a, m, n, k);
    p.type_b = type_b;
    p.lda = k;
    p.ldb = type_b == TGL_I4 ? (n + 1) / 2 * 2 : n;
    p.ldc = n;
    p.scaling_b = group > 0 ? TGL_SCALING_GROUP : TGL_SCALING_LINE;
    p.scale_group = group;
    return p;
}

/* Draws the leading dimension of a matrix: padded by 0 to 6 elements; for I4 rounded up to an even
 * number. */
static int64_t draw_ld(unsigned *state, const tgl_problem *p, int64_t rows, int64_t cols,
                       tgl_transpose trans, tgl_type type)
{
    const int64_t line = is_flipped(p, trans) ? rows : cols;
    const int64_t ld = (line > 0 ? line : 1) + draw(state) % 7;
    return type == TGL_I4 ? (ld + 1) / 2 * 2 : ld;
}

static void draw_factors(unsigned *state, tgl_problem *p)
{
    static const tgl_scaling scalings[] = {TGL_SCALING_GROUP, TGL_SCALING_GROUP, TGL_SCALING_LINE,
                                           TGL_SCALING_TENSOR, TGL_SCALING_NONE};
    p->scaling_b = scalings[draw(state) % 5];
    p->scale_group = p->scaling_b == TGL_SCALING_GROUP ? 32 << draw(state) % 3 : 0;
    const bool pads = draw(state) % 2 == 0;
    if (pads && p->scaling_b == TGL_SCALING_GROUP) p->ld_scale_b = p->n + 3;
    if (draw(state) % 2 == 0 && p->scaling_b != TGL_SCALING_NONE) p->type_zero_b = TGL_I8;
}

static void draw_batch(unsigned *state, tgl_problem *p)
{
    p->batch = draw(state) % 4 == 0 ? 3 : 1;
    if (p->batch == 1) return;
    p->stride_a = lines_of(p, p->m, p->k, p->trans_a) * p->lda + draw(state) % 3;
    p->stride_c = lines_of(p, p->m, p->n, TGL_NO_TRANS) * p->ldc;
    if (p->type_d != 0) p->stride_d = lines_of(p, p->m, p->n, TGL_NO_TRANS) * p->ldd + 1;
    if (draw(state) % 3 > 0)
        p->stride_b = lines_of(p, p->k, p->n, p->trans_b) * p->ldb + draw(state) % 2 * 2;
    if (draw(state) % 3 > 0 && p->scaling_b != TGL_SCALING_NONE)
        p->stride_scale_b = factor_at(p, 0, p->k, p->n) + 5;
}

weights_case weights_random_case(unsigned seed, int64_t m, int64_t n, int64_t k)
{
    static const double scalars[] = {1, 1, -0.75, 2, 0};
    unsigned state = seed * 2654435761u + 17, *s = &state;
    const tgl_type type_a = draw(s) % 2 == 0 ? TGL_F16 : TGL_BF16;
    const tgl_type type_b = draw(s) % 3 == 0 ? TGL_I8 : TGL_I4;
    const int64_t rows = 1 + draw(s) % m, columns = 1 + draw(s) % n;
    const int64_t depth = draw(s) % 20 == 0 ? 0 : 1 + draw(s) % k;
    weights_case c = {.problem = weights_problem(type_a, type_b, rows, columns, depth, 32),
                      .seed = seed};
    tgl_problem *p = &c.problem;
    p->order = draw(s) % 2 == 0 ? TGL_ROW_MAJOR : TGL_COL_MAJOR;
    p->trans_a = draw(s) % 2 == 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->trans_b = draw(s) % 2 == 0 ? TGL_TRANS : TGL_NO_TRANS;
    p->type_c = draw(s) % 2 == 0 ? type_a : TGL_F32;
    p->type_d = draw(s) % 2 == 0 ? 0 : draw(s) % 2 == 0 ? type_a : TGL_F32;
    p->lda = draw_ld(s, p, rows, depth, p->trans_a, type_a);
    p->ldb = draw_ld(s, p, depth, columns, p->trans_b, type_b);
    p->ldc = draw_ld(s, p, rows, columns, TGL_NO_TRANS, p->type_c);
    p->ldd = p->type_d != 0 ? draw_ld(s, p, rows, columns, TGL_NO_TRANS, p->type_d) : 0;
    draw_factors(s, p);
    draw_batch(s, p);
    c.alpha = scalars[draw(s) % 5];
    c.beta = scalars[1 + draw(s) % 4];
    c.bias = (tgl_bias)(draw(s) % 3);
    c.is_exact = draw(s) % 2 == 0;
    c.skip_a = (int)(draw(s) % 2);
    c.skip_b = (int)(draw(s) % 3);
    return c;
}
