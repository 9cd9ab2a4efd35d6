/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs products of 8-bit types with scale factors (scaled_case.h).
 */
#include "scaled_case.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Elements -------------------------------------------------------------------------------- */

/* Columns: bits of the exponent; bits of the fraction; the largest finite value; whether larger
 * results are rounded to this value. */
static const struct format {
    int exponent, fraction;
    double greatest;
    bool saturates;
} formats[] = {
    [TGL_F32] = {8, 23, 3.4028234663852886e38, false},
    [TGL_F16] = {5, 10, 65504, false},
    [TGL_BF16] = {8, 7, 3.3895313892515355e38, false},
    [TGL_F8_E4M3] = {4, 3, 448, true},
    [TGL_F8_E5M2] = {5, 2, 57344, true},
};

static double decoded(tgl_type type, uint32_t bits)
{
    const struct format *f = &formats[type];
    const int exponent_max = (1 << f->exponent) - 1, bias = exponent_max / 2;
    const int field = (int)(bits >> f->fraction) & exponent_max;
    const uint32_t fraction = bits & ((1u << f->fraction) - 1);
    const double sign = bits >> (f->exponent + f->fraction) & 1 ? -1 : 1;
    const bool is_e4m3 = type == TGL_F8_E4M3;
    if (is_e4m3 && field == exponent_max && fraction == 7) return NAN;
    if (!is_e4m3 && field == exponent_max) return fraction != 0 ? NAN : sign * INFINITY;
    const int exponent = (field > 0 ? field : 1) - bias - f->fraction;
    return sign * ldexp((double)fraction + (field > 0 ? 1 << f->fraction : 0), exponent);
}

double scaled_load(tgl_type type, const void *memory, int64_t i)
{
    uint32_t bits = 0;
    const size_t size = tgl_type_size(type);
    memcpy(&bits, (const char *)memory + i * (int64_t)size, size);
    if (type == TGL_I8) return (int8_t)bits;
    if (type == TGL_I32) return (int32_t)bits;
    if (size > 1) return decoded(type, bits);
    static double values[2][256]; /* all values of e4m3 and e5m2, because decoding takes long */
    if (values[0][1] == 0)
        for (uint32_t j = 0; j < 512; j++)
            values[j / 256][j % 256] = decoded(j < 256 ? TGL_F8_E4M3 : TGL_F8_E5M2, j % 256);
    return values[type == TGL_F8_E5M2][bits];
}

double scaled_round(tgl_type type, double x)
{
    if (type == TGL_I8) return isnan(x) ? 0 : fmin(fmax(nearbyint(x), -128), 127);
    if (isnan(x) || x == 0) return x;
    const struct format *f = &formats[type];
    int exponent;
    frexp(x, &exponent);
    const int least = 2 - (1 << (f->exponent - 1)); /* the exponent of the least normal value */
    const int unit = (exponent - 1 > least ? exponent - 1 : least) - f->fraction;
    const double rounded = isinf(x) ? x : ldexp(nearbyint(ldexp(x, -unit)), unit);
    if (fabs(rounded) <= f->greatest) return rounded;
    return copysign(f->saturates ? f->greatest : INFINITY, x);
}

static unsigned draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Fills memory with random elements: any integers or, for other types, magnitudes of up to 4. Those
 * of FP8 include zeros and denormal numbers. */
static void fill(tgl_type type, void *memory, int64_t count, bool is_positive, unsigned *state)
{
    for (int64_t i = 0; i < count; i++) {
        const unsigned random = draw(state);
        const double x = (double)(random % 2048) / 512 - (is_positive ? 0 : 2);
        const float single = (float)x;
        const uint32_t word = type == TGL_F32 ? 0 : random;
        uint32_t bits = word;
        if (type == TGL_F32) memcpy(&bits, &single, sizeof bits);
        if (type == TGL_F8_E4M3) bits = random % 8 == 0 ? random >> 3 & 0x87 : random & 0xbf;
        if (type == TGL_F8_E5M2)
            bits = random % 8 == 0 ? random >> 3 & 0x83 : (random & 0x8f) | 0x30;
        if (type == TGL_F16) bits = (random & 0x87ff) | 0x3400;
        if (type == TGL_BF16) bits = (random & 0x80ff) | 0x3f00;
        if (is_positive && type != TGL_F32) bits &= ~(1u << (8 * tgl_type_size(type) - 1));
        memcpy((char *)memory + i * (int64_t)tgl_type_size(type), &bits, tgl_type_size(type));
    }
}

/* ---- Operands -------------------------------------------------------------------------------- */

enum { A, B, C, D, BIAS, SCALE_A, SCALE_B, SCALE_D, AMAX, GROUPS, OPERANDS };

typedef struct operand {
    tgl_type type;
    int64_t count;
    void *host, *device;
} operand;

typedef struct scaled_run {
    const scaled_case *of;
    operand x[OPERANDS];
    bool in_place;
    double *rows_of_a, *cols_of_b; /* the values of op(A), m x k, and of the transposed op(B), n x
                                      k, of one product of the batch: read_factors() */
} scaled_run;

static int64_t lines_of(const tgl_problem *p, int64_t rows, int64_t cols, tgl_transpose trans)
{
    return (trans == TGL_TRANS) != (p->order == TGL_COL_MAJOR) ? cols : rows;
}

/* The ld_scale of factors for blocks: the one that the problem states or, if that is 0, the
 * minimum. */
static int64_t ld_of(tgl_scaling scaling, int64_t ld, int64_t lines, int64_t k)
{
    return ld != 0 ? ld : scaling == TGL_SCALING_LINE_128 ? lines : (k + 127) / 128;
}

/* The number of factors in memory, including those in gaps, which are not read. */
static int64_t factors_of(tgl_scaling scaling, int64_t ld, int64_t lines, int64_t k)
{
    const int64_t used = ld_of(scaling, ld, lines, k);
    if (scaling == TGL_SCALING_LINE_128) return (k + 127) / 128 * used;
    if (scaling == TGL_SCALING_BLOCK) return (lines + 127) / 128 * used;
    return scaling == TGL_SCALING_NONE ? 0 : scaling == TGL_SCALING_LINE ? lines : 1;
}

/* Whether the operand that is scaled is one matrix with the rows of all groups. */
static bool has_all_groups(const tgl_problem *p, int scale)
{
    return p->grouping == TGL_GROUPED_ROWS && scale != SCALE_B;
}

/* The number of factors from one matrix of the batch to the next; 0: all matrices have the same
 * factors, as in a batch without groups. */
static int64_t factor_stride(const tgl_problem *p, int scale)
{
    if (p->grouping == TGL_GROUPED_NONE || has_all_groups(p, scale)) return 0;
    if (scale == SCALE_B) return factors_of(p->scaling_b, p->ld_scale_b, p->n, p->k);
    if (scale == SCALE_D) return factors_of(p->scaling_d, 0, p->m, p->k);
    return factors_of(p->scaling_a, p->ld_scale_a, p->m, p->k);
}

static void set_operands(scaled_run *r)
{
    const tgl_problem *p = &r->of->problem;
    const int64_t more = p->batch - 1;
    r->in_place = p->type_d == 0;
    r->x[A] = (operand){.type = p->type_a,
                        .count = lines_of(p, p->m, p->k, p->trans_a) * p->lda + more * p->stride_a};
    r->x[B] = (operand){.type = p->type_b,
                        .count = lines_of(p, p->k, p->n, p->trans_b) * p->ldb + more * p->stride_b};
    r->x[C] =
        (operand){.type = p->type_c,
                  .count = lines_of(p, p->m, p->n, TGL_NO_TRANS) * p->ldc + more * p->stride_c};
    if (!r->in_place)
        r->x[D] =
            (operand){.type = p->type_d,
                      .count = lines_of(p, p->m, p->n, TGL_NO_TRANS) * p->ldd + more * p->stride_d};
    const tgl_bias bias = r->of->bias;
    r->x[BIAS] = (operand){.type = TGL_F32,
                           .count = bias == TGL_BIAS_NONE  ? 0
                                    : bias == TGL_BIAS_ROW ? p->m
                                                           : p->n};
    r->x[SCALE_A] = (operand){.type = TGL_F32,
                              .count = factors_of(p->scaling_a, p->ld_scale_a, p->m, p->k) +
                                       more * factor_stride(p, SCALE_A)};
    r->x[SCALE_B] = (operand){.type = TGL_F32,
                              .count = factors_of(p->scaling_b, p->ld_scale_b, p->n, p->k) +
                                       more * factor_stride(p, SCALE_B)};
    r->x[SCALE_D] = (operand){.type = TGL_F32,
                              .count = factors_of(p->scaling_d, 0, p->m, p->k) +
                                       more * factor_stride(p, SCALE_D)};
    r->x[AMAX] = (operand){.type = TGL_F32, .count = r->of->has_amax};
    r->x[GROUPS] = (operand){.type = TGL_I32, .count = r->of->list != NULL ? p->batch : 0};
}

static tgl_status make_operands(tgl_device *dev, scaled_run *r)
{
    unsigned state = r->of->seed * 7919u + 1;
    for (int i = 0; i < OPERANDS; i++) {
        operand *x = &r->x[i];
        const size_t bytes = (size_t)x->count * tgl_type_size(x->type);
        if (bytes == 0) continue;
        x->host = malloc(bytes);
        fill(x->type, x->host, x->count, r->of->is_positive && i <= B, &state);
        if (i == GROUPS) memcpy(x->host, r->of->list->groups, bytes);
        tgl_status status = tgl_alloc(dev, bytes, &x->device);
        if (status == TGL_OK) status = tgl_upload(dev, x->device, x->host, bytes, NULL);
        if (status != TGL_OK) return status;
    }
    return TGL_OK;
}

static void free_operands(tgl_device *dev, scaled_run *r)
{
    for (int i = 0; i < OPERANDS; i++) {
        if (r->x[i].device != NULL) tgl_free(dev, r->x[i].device);
        free(r->x[i].host);
    }
}

/* ---- Reference ------------------------------------------------------------------------------- */

static int64_t at(const tgl_problem *p, tgl_transpose trans, int64_t ld, int64_t row, int64_t col)
{
    return (trans == TGL_TRANS) != (p->order == TGL_COL_MAJOR) ? col * ld + row : row * ld + col;
}

/* The factor of a row of A or column of B, `line`, for block q of k (128 elements); 1 if the
 * factors are not for blocks. first: index of the matrix's first factor. */
static double block_factor(const scaled_run *r, int scale, tgl_scaling scaling, int64_t ld,
                           int64_t first, int64_t line, int64_t q)
{
    if (scaling < TGL_SCALING_BLOCK) return 1;
    return scaled_load(TGL_F32, r->x[scale].host,
                       first +
                           (scaling == TGL_SCALING_BLOCK ? line / 128 * ld + q : q * ld + line));
}

/* The factor of a row or column, `line`; 1 if there are no factors or if they are for blocks. */
static double factor(const scaled_run *r, int scale, tgl_scaling scaling, int64_t problem,
                     int64_t line)
{
    if (scaling == TGL_SCALING_NONE || scaling >= TGL_SCALING_BLOCK) return 1;
    return scaled_load(TGL_F32, r->x[scale].host,
                       problem * factor_stride(&r->of->problem, scale) +
                           (scaling == TGL_SCALING_LINE ? line : 0));
}

/* Reads the elements of A and B once for all sums. */
static void read_factors(const scaled_run *r, int64_t problem)
{
    const tgl_problem *p = &r->of->problem;
    for (int64_t i = 0; i < p->m * p->k; i++)
        r->rows_of_a[i] =
            scaled_load(p->type_a, r->x[A].host,
                        problem * p->stride_a + at(p, p->trans_a, p->lda, i / p->k, i % p->k));
    for (int64_t i = 0; i < p->n * p->k; i++)
        r->cols_of_b[i] =
            scaled_load(p->type_b, r->x[B].host,
                        problem * p->stride_b + at(p, p->trans_b, p->ldb, i % p->k, i / p->k));
}

/* D[row][col] before it is rounded. read_factors() has read the factors of the product. *magnitude
 * := a bound of the error of the sum and the epilogue.
 */
static double expected(const scaled_run *r, int64_t problem, int64_t row, int64_t col,
                       double *magnitude)
{
    const scaled_case *c = r->of;
    const tgl_problem *p = &c->problem;
    double sum = 0, all = 0;
    double of_block = 1; /* the product of the factors of A and B for this block of k */
    uint32_t integer = 0;
    const int64_t ld_a = ld_of(p->scaling_a, p->ld_scale_a, p->m, p->k);
    const int64_t ld_b = ld_of(p->scaling_b, p->ld_scale_b, p->n, p->k);
    const int64_t first_a = problem * factor_stride(p, SCALE_A);
    const int64_t first_b = problem * factor_stride(p, SCALE_B);
    for (int64_t i = 0; i < p->k; i++) {
        if (i % 128 == 0)
            of_block = block_factor(r, SCALE_A, p->scaling_a, ld_a, first_a, row, i / 128) *
                       block_factor(r, SCALE_B, p->scaling_b, ld_b, first_b, col, i / 128);
        const double product =
            of_block * r->rows_of_a[row * p->k + i] * r->cols_of_b[col * p->k + i];
        sum += product;
        all += fabs(product);
        if (p->type_a == TGL_I8) integer += (uint32_t)(int32_t)product;
    }
    if (p->type_a == TGL_I8) sum = (int32_t)integer, all = fabs(sum);
    const double scale = c->alpha * factor(r, SCALE_A, p->scaling_a, problem, row) *
                         factor(r, SCALE_B, p->scaling_b, problem, col);
    double value = scale * sum;
    *magnitude = fabs(scale) * all * c->error;
    double others = fabs(value);
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
    if (c->activation == TGL_ACTIVATION_RELU) value = value < 0 ? 0 : value;
    const double last = factor(r, SCALE_D, p->scaling_d, problem, row);
    *magnitude = (*magnitude + others * 0x1p-21) * fabs(last);
    return value * last;
}

/* Sets `spans` to the rows of each product of the batch that are computed. Without groups these are
 * all rows. */
static void find_rows(const scaled_case *c, group_span *spans)
{
    if (c->list != NULL)
        find_group_spans(c->list, c->problem.m, spans);
    else
        for (int64_t i = 0; i < c->problem.batch; i++)
            spans[i] = (group_span){0, c->problem.m};
}

/* Compares the elements of D that are not results with those before the run. is_result[i]: not 0 if
 * element i of D is a result. */
static void compare_others(const scaled_run *r, const void *result, const char *is_result,
                           char *fault)
{
    const operand *d = &r->x[r->in_place ? C : D];
    const int64_t size = (int64_t)tgl_type_size(d->type);
    for (int64_t i = 0; i < d->count && fault[0] == '\0'; i++)
        if (!is_result[i] && memcmp((const char *)result + i * size,
                                    (const char *)d->host + i * size, (size_t)size) != 0)
            snprintf(fault, 512, "%s, seed %u, grouping %d: element %lld of D has been overwritten",
                     r->of->kernel != NULL ? r->of->kernel : "planned", r->of->seed,
                     (int)r->of->problem.grouping, (long long)i);
}

/* Compares all results, and the other elements of D. */
static void compare(const scaled_run *r, const void *result, char *fault, double *worst)
{
    const tgl_problem *p = &r->of->problem;
    const int d = r->in_place ? C : D;
    const int64_t ld = r->in_place ? p->ldc : p->ldd;
    const int64_t stride = r->in_place ? p->stride_c : p->stride_d;
    const tgl_type type = r->x[d].type;
    group_span spans[GROUPS_MAX];
    char *is_result = calloc((size_t)r->x[d].count + 1, 1);
    find_rows(r->of, spans);
    for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
        const int64_t problem = i / (p->m * p->n), row = i / p->n % p->m, col = i % p->n;
        const int64_t place = problem * stride + at(p, TGL_NO_TRANS, ld, row, col);
        double error;
        if (row == 0 && col == 0) read_factors(r, problem);
        if (row < spans[problem].first || row >= spans[problem].end) continue;
        is_result[place] = 1;
        const double exact = expected(r, problem, row, col, &error);
        const double got = scaled_load(type, result, place);
        const double low = scaled_round(type, exact - error),
                     high = scaled_round(type, exact + error);
        if (worst != NULL) *worst = fmax(*worst, fabs(got - exact) / (error / r->of->error));
        if (!(got >= low && got <= high) && fault[0] == '\0')
            snprintf(
                fault, 512,
                "%s, seed %u, %lldx%lldx%lld, trans %d %d, types %d %d %d %d, scales %d %d %d: "
                "D[%lld][%lld] is %.9g, not within %.9g of %.9g",
                r->of->kernel != NULL ? r->of->kernel : "planned", r->of->seed, (long long)p->m,
                (long long)p->n, (long long)p->k, (int)p->trans_a, (int)p->trans_b, (int)p->type_a,
                (int)p->type_b, (int)p->type_c, (int)type, (int)p->scaling_a, (int)p->scaling_b,
                (int)p->scaling_d, (long long)row, (long long)col, got, error, exact);
    }
    compare_others(r, result, is_result, fault);
    free(is_result);
}

/* Compares amax, the largest magnitude of D before the factor of D. It may differ by the largest
 * error of a result. If D is F32 without a factor, amax must equal the largest magnitude of the
 * stored D. */
static void compare_amax(const scaled_run *r, const void *result, float amax, char *fault)
{
    const tgl_problem *p = &r->of->problem;
    const int d = r->in_place ? C : D;
    const int64_t ld = r->in_place ? p->ldc : p->ldd;
    const int64_t stride = r->in_place ? p->stride_c : p->stride_d;
    double greatest = 0, error = 0, stored = 0;
    for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
        const int64_t problem = i / (p->m * p->n), row = i / p->n % p->m, col = i % p->n;
        double own;
        if (row == 0 && col == 0) read_factors(r, problem);
        const double last = factor(r, SCALE_D, p->scaling_d, problem, row);
        if (last == 0) return;
        greatest = fmax(greatest, fabs(expected(r, problem, row, col, &own) / last));
        error = fmax(error, own / fabs(last));
        stored =
            fmax(stored, fabs(scaled_load(r->x[d].type, result,
                                          problem * stride + at(p, TGL_NO_TRANS, ld, row, col))));
    }
    const bool is_stored = r->x[d].type == TGL_F32 && p->scaling_d == TGL_SCALING_NONE;
    if (fabs(amax - greatest) <= error && (!is_stored || amax == stored)) return;
    snprintf(fault, 512, "seed %u: amax_d is %.9g, not within %.9g of %.9g; of D: %.9g",
             r->of->seed, (double)amax, error, greatest, stored);
}

tgl_status scaled_case_run(tgl_device *dev, const scaled_case *c, char fault[512], double *worst)
{
    scaled_run r = {.of = c};
    const tgl_epilogue epilogue = {.size = sizeof epilogue,
                                   .bias = c->bias,
                                   .activation = c->activation,
                                   .amax = c->has_amax,
                                   .type_bias = TGL_F32};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = c->kernel, .epilogue = &epilogue};
    tgl_plan *plan = NULL;
    fault[0] = '\0';
    tgl_status status = tgl_plan_create(dev, &c->problem, &options, &plan);
    if (status != TGL_OK) return status;
    set_operands(&r);
    r.rows_of_a = malloc((size_t)(c->problem.m * c->problem.k + 1) * sizeof *r.rows_of_a);
    r.cols_of_b = malloc((size_t)(c->problem.n * c->problem.k + 1) * sizeof *r.cols_of_b);
    status = make_operands(dev, &r);
    const tgl_operands o = {.size = sizeof o,
                            .alpha = c->alpha,
                            .beta = c->beta,
                            .A = r.x[A].device,
                            .B = r.x[B].device,
                            .C = r.in_place || c->beta != 0 ? r.x[C].device : NULL,
                            .D = r.x[D].device,
                            .bias = r.x[BIAS].device,
                            .scale_a = r.x[SCALE_A].device,
                            .scale_b = r.x[SCALE_B].device,
                            .scale_d = r.x[SCALE_D].device,
                            .amax_d = r.x[AMAX].device,
                            .groups = r.x[GROUPS].device};
    if (status == TGL_OK) status = tgl_plan_run_operands(plan, &o, NULL);
    const operand *d = &r.x[r.in_place ? C : D];
    const size_t bytes = (size_t)d->count * tgl_type_size(d->type);
    void *result = malloc(bytes);
    if (status == TGL_OK) status = tgl_download(dev, result, d->device, bytes, NULL);
    if (status == TGL_OK) compare(&r, result, fault, worst);
    float amax;
    if (status == TGL_OK && c->has_amax)
        status = tgl_download(dev, &amax, r.x[AMAX].device, sizeof amax, NULL);
    if (status == TGL_OK && c->has_amax && fault[0] == '\0') compare_amax(&r, result, amax, fault);
    free(result);
    free(r.rows_of_a);
    free(r.cols_of_b);
    free_operands(dev, &r);
    tgl_plan_destroy(plan);
    return status;
}

tgl_problem scaled_problem(tgl_type type_a, tgl_type type_b, tgl_type type_d, int64_t m, int64_t n,
                           int64_t k)
{
    tgl_problem p;
    (void)tgl_problem_init(&p, sizeof p, type_a, m, n, k);
    p.type_b = type_b;
    p.type_c = type_d;
    p.lda = k;
    p.ldb = p.ldc = n;
    return p;
}
