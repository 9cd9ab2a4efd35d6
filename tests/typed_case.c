/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one product of F32, F64, F16 or BF16 and checks its result and the gaps between its rows.
 */
#include "typed_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Elements -------------------------------------------------------------------------------- */

/* A binary format: bits of the fraction, and the exponent of its least normal number. */
typedef struct format {
    int fraction, least;
} format;

static format format_of(tgl_type type)
{
    return type == TGL_F16 ? (format){10, -14} : (format){7, -126};
}

static double from_bits(format f, uint16_t bits)
{
    const int width = 15 - f.fraction, exponent = bits >> f.fraction & ((1 << width) - 1);
    const int fraction = bits & ((1 << f.fraction) - 1), implied = exponent > 0 ? 1 : 0;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << width) - 1) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * ldexp(fraction + (implied << f.fraction),
                        f.least - f.fraction + (implied ? exponent - 1 : 0));
}

static uint16_t to_bits(format f, double x)
{
    const int width = 15 - f.fraction;
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const uint16_t infinite = (uint16_t)(((1 << width) - 1) << f.fraction);
    int exponent;
    if (isnan(x)) return (uint16_t)(infinite | 1 << (f.fraction - 1));
    if (isinf(x)) return sign | infinite;
    frexp(x, &exponent); /* |x| < 2^exponent */
    const int scale = exponent - 1 > f.least ? exponent - 1 : f.least;
    /* The number in units of its last place, rounded to even by the default rounding mode. An
     * overflow of the fraction carries into the exponent. */
    const long units = lrint(ldexp(fabs(x), f.fraction - scale));
    const long bits = units == 0 ? 0 : units + ((long)(scale - f.least) << f.fraction);
    return sign | (uint16_t)(bits < infinite ? bits : infinite);
}

double typed_load(tgl_type type, const void *memory, int64_t i)
{
    if (type == TGL_F32) return (double)((const float *)memory)[i];
    if (type == TGL_F64) return ((const double *)memory)[i];
    return from_bits(format_of(type), ((const uint16_t *)memory)[i]);
}

void typed_store(tgl_type type, void *memory, int64_t i, double x)
{
    if (type == TGL_F32)
        ((float *)memory)[i] = (float)x;
    else if (type == TGL_F64)
        ((double *)memory)[i] = x;
    else
        ((uint16_t *)memory)[i] = to_bits(format_of(type), x);
}

const char *typed_name(tgl_type type)
{
    return type == TGL_F32 ? "f32" : type == TGL_F64 ? "f64" : type == TGL_F16 ? "f16" : "bf16";
}

static double roundoff(tgl_type type)
{
    return type == TGL_F64   ? 0x1p-53
           : type == TGL_F32 ? 0x1p-24
           : type == TGL_F16 ? 0x1p-11
                             : 0x1p-8;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* A batch of stored matrices, `stride` elements apart. */
typedef struct stored {
    tgl_type type;
    int64_t rows, cols, ld, stride;
    guarded memory;
} stored;

enum { BATCH_MAX = 8 };

typedef struct memory_of_case {
    stored a, b, c, d, bias, residual;
    void *before; /* the result's buffer before the run */
    const void *a_array[BATCH_MAX], *b_array[BATCH_MAX];
    void *c_array[BATCH_MAX], *d_array[BATCH_MAX];
    float alpha, beta; /* rounded, for scalars in device memory */
} memory_of_case;

static double draw(const typed_case *c, uint64_t *seed)
{
    const double x = 2 * random_unit(seed) - 1;
    if (c->is_finite || random_int(seed, 0, 40) > 0) return x;
    return random_int(seed, 0, 1) ? (double)NAN : x < 0 ? -(double)INFINITY : (double)INFINITY;
}

/* Makes a matrix of random elements. The elements between its rows are NaN. */
static bool create(const typed_case *c, stored *x, uint64_t *seed)
{
    const int64_t batch = x->stride == 0 ? 1 : c->problem.batch;
    const int64_t extent = (batch - 1) * x->stride + (x->rows - 1) * x->ld + x->cols;
    const size_t size = (size_t)extent * tgl_type_size(x->type);
    if (!guarded_create(&x->memory, size, c->at_end)) return false;
    for (int64_t i = 0; i < extent; i++)
        typed_store(x->type, x->memory.bytes, i, (double)NAN);
    for (int64_t z = 0; z < batch; z++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++)
                typed_store(x->type, x->memory.bytes, z * x->stride + i * x->ld + j, draw(c, seed));
    return true;
}

static double at(const stored *x, const void *memory, int64_t z, int64_t i, int64_t j)
{
    return typed_load(x->type, memory, z * x->stride + i * x->ld + j);
}

static bool create_all(const typed_case *c, memory_of_case *m)
{
    const tgl_problem *p = &c->problem;
    const tgl_epilogue *e = &c->epilogue;
    const tgl_type type_d = p->type_d != 0 ? p->type_d : p->type_c;
    const bool ta = p->trans_a != TGL_NO_TRANS, tb = p->trans_b != TGL_NO_TRANS;
    uint64_t seed = c->seed;
    m->a = (stored){p->type_a, ta ? p->k : p->m, ta ? p->m : p->k, p->lda, p->stride_a, {0}};
    m->b = (stored){p->type_b, tb ? p->n : p->k, tb ? p->k : p->n, p->ldb, p->stride_b, {0}};
    m->c = (stored){p->type_c, p->m, p->n, p->ldc, p->stride_c, {0}};
    m->d = (stored){type_d, p->m, p->n, p->ldd, p->stride_d, {0}};
    m->bias = (stored){e->type_bias != 0 ? e->type_bias : type_d,
                       1,
                       e->bias == TGL_BIAS_ROW ? p->m : p->n,
                       1,
                       e->stride_bias,
                       {0}};
    m->residual = (stored){e->type_residual != 0 ? e->type_residual : type_d,
                           p->m,
                           p->n,
                           e->ld_residual != 0 ? e->ld_residual : p->n,
                           e->stride_residual,
                           {0}};
    m->alpha = (float)c->alpha;
    m->beta = (float)c->beta;
    if (!create(c, &m->a, &seed) || !create(c, &m->b, &seed) || !create(c, &m->c, &seed))
        return false;
    if (p->type_d != 0 && !create(c, &m->d, &seed)) return false;
    if (e->bias != TGL_BIAS_NONE && !create(c, &m->bias, &seed)) return false;
    if (e->residual && !create(c, &m->residual, &seed)) return false;
    m->before = malloc(m->c.memory.size + 1);
    if (m->before == NULL) return false;
    memcpy(m->before, m->c.memory.bytes, m->c.memory.size);
    guarded_forbid_writes(&m->a.memory);
    guarded_forbid_writes(&m->b.memory);
    if (p->type_d != 0) guarded_forbid_writes(&m->c.memory);
    return true;
}

static void destroy_all(memory_of_case *m)
{
    stored *const all[] = {&m->a, &m->b, &m->c, &m->d, &m->bias, &m->residual};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        guarded_destroy(&all[i]->memory);
    free(m->before);
}

/* ---- The run --------------------------------------------------------------------------------- */

static void *problem_at(const stored *x, int64_t z)
{
    return x->memory.bytes + (size_t)(z * x->stride) * tgl_type_size(x->type);
}

static tgl_operands operands_of(const typed_case *c, memory_of_case *m)
{
    const tgl_problem *p = &c->problem;
    const bool is_f64 = p->type_a == TGL_F64;
    tgl_operands o = {.size = sizeof o, .alpha = c->alpha, .beta = c->beta};
    if (p->scalars == TGL_SCALARS_DEVICE) {
        o.alpha = o.beta = 0;
        o.alpha_at = is_f64 ? (const void *)&c->alpha : &m->alpha;
        o.beta_at = is_f64 ? (const void *)&c->beta : &m->beta;
    }
    for (int64_t z = 0; z < p->batch && c->pointers; z++) {
        m->a_array[z] = problem_at(&m->a, z);
        m->b_array[z] = problem_at(&m->b, z);
        m->c_array[z] = problem_at(&m->c, z);
        m->d_array[z] = p->type_d != 0 ? problem_at(&m->d, z) : NULL;
    }
    if (c->pointers) {
        o.A_array = m->a_array;
        o.B_array = m->b_array;
        o.C_array = m->c_array;
        if (p->type_d != 0) o.D_array = m->d_array;
    } else {
        o.A = m->a.memory.bytes;
        o.B = m->b.memory.bytes;
        o.C = m->c.memory.bytes;
        if (p->type_d != 0) o.D = m->d.memory.bytes;
    }
    o.bias = m->bias.memory.bytes;
    o.residual = m->residual.memory.bytes;
    return o;
}

static tgl_status run(tgl_device *dev, const typed_case *c, memory_of_case *m)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = c->kernel,
                                      .epilogue = c->epilogue.size != 0 ? &c->epilogue : NULL};
    const tgl_operands operands = operands_of(c, m);
    tgl_problem problem = c->problem;
    tgl_plan *plan;
    if (c->pointers) {
        problem.batching = TGL_POINTERS;
        problem.stride_a = problem.stride_b = problem.stride_c = problem.stride_d = 0;
    }
    tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    if (status != TGL_OK) return status;
    status = tgl_plan_run_operands(plan, &operands, NULL);
    tgl_plan_destroy(plan);
    return status;
}

/* ---- The reference --------------------------------------------------------------------------- */

static long double activated(tgl_activation activation, long double x)
{
    switch (activation) {
    case TGL_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    case TGL_ACTIVATION_GELU:
        return x / 2 * (1 + erfl(x * sqrtl(0.5L)));
    case TGL_ACTIVATION_SILU:
        return x / (1 + expl(-x));
    default:
        return x;
    }
}

/* The expected D[z][i][j]. *bound := the maximum error of a result, because each sum, each product
 * and the result itself are rounded. */
static long double expected(const typed_case *c, const memory_of_case *m, int64_t z, int64_t i,
                            int64_t j, double *bound)
{
    const tgl_problem *p = &c->problem;
    const tgl_epilogue *e = &c->epilogue;
    const bool ta = p->trans_a != TGL_NO_TRANS, tb = p->trans_b != TGL_NO_TRANS;
    const bool has_product = p->k > 0 && c->alpha != 0;
    long double sum = 0, size = 0;
    for (int64_t q = 0; q < p->k && has_product; q++) {
        const long double x = at(&m->a, m->a.memory.bytes, z, ta ? q : i, ta ? i : q);
        const long double y = at(&m->b, m->b.memory.bytes, z, tb ? j : q, tb ? q : j);
        sum += x * y;
        size += fabsl(x * y);
    }
    long double value = has_product ? c->alpha * sum : 0;
    size *= fabs(c->alpha);
    if (c->beta != 0) {
        const long double old = at(&m->c, m->before, z, i, j);
        value += c->beta * old;
        size += fabsl(c->beta * old);
    }
    if (e->bias != TGL_BIAS_NONE) {
        const long double bias = typed_load(m->bias.type, m->bias.memory.bytes,
                                            z * m->bias.stride + (e->bias == TGL_BIAS_ROW ? i : j));
        value += bias;
        size += fabsl(bias);
    }
    value = activated(e->activation, value);
    if (e->residual) {
        const long double residual = at(&m->residual, m->residual.memory.bytes, z, i, j);
        value += residual;
        size += fabsl(residual);
    }
    const double sums = roundoff(p->type_a == TGL_F64 ? TGL_F64 : TGL_F32);
    const double error = (double)(p->k + 16) * sums * (double)size;
    *bound = error + roundoff(m->d.type) * ((double)fabsl(value) + error);
    if (m->d.type == TGL_F16) *bound += 0x1p-25; /* half of the least denormal number */
    return value;
}

static void describe(const typed_case *c, char *text, size_t size)
{
    const tgl_problem *p = &c->problem;
    snprintf(text, size,
             "%s %s to %s, %s%s m=%d n=%d k=%d lda=%d ldb=%d ldc=%d ldd=%d batch=%d%s alpha=%g "
             "beta=%g bias=%d activation=%d residual=%d scalars=%d at_end=%d seed=%llu",
             c->kernel, typed_name(p->type_a), typed_name(p->type_d != 0 ? p->type_d : p->type_c),
             p->trans_a != TGL_NO_TRANS ? "T" : "N", p->trans_b != TGL_NO_TRANS ? "T" : "N",
             (int)p->m, (int)p->n, (int)p->k, (int)p->lda, (int)p->ldb, (int)p->ldc, (int)p->ldd,
             (int)p->batch, c->pointers ? " by pointers" : "", c->alpha, c->beta,
             (int)c->epilogue.bias, (int)c->epilogue.activation, c->epilogue.residual,
             (int)p->scalars, c->at_end, (unsigned long long)c->seed);
}

static bool is_right(long double value, double bound, double result)
{
    if (isnan(value)) return isnan(result);
    if (isinf(value)) return result == (double)value;
    return fabsl(result - value) <= bound;
}

/* Compares every element, and the padding between the rows and around the matrix. */
static void check(const typed_case *c, const memory_of_case *m, char *fault, size_t size)
{
    const tgl_problem *p = &c->problem;
    const stored *d = p->type_d != 0 ? &m->d : &m->c;
    char text[400];
    describe(c, text, sizeof text);
    for (int64_t z = 0; z < p->batch; z++)
        for (int64_t i = 0; i < p->m; i++) {
            for (int64_t j = 0; j < p->n; j++) {
                double bound;
                const long double value = expected(c, m, z, i, j, &bound);
                const double result = at(d, d->memory.bytes, z, i, j);
                if (is_right(value, bound, result)) continue;
                snprintf(fault, size, "D[%d](%d, %d) = %.17g, not %.17Lg +- %g: %s", (int)z, (int)i,
                         (int)j, result, value, bound, text);
                return;
            }
            for (int64_t j = p->n; j < d->ld && i + 1 < p->m; j++)
                if (!isnan(at(d, d->memory.bytes, z, i, j))) {
                    snprintf(fault, size, "row %d is written past its end: %s", (int)i, text);
                    return;
                }
        }
    if (!guarded_is_intact(&d->memory)) snprintf(fault, size, "written outside of D: %s", text);
}

tgl_status typed_case_run(tgl_device *dev, const typed_case *c, char *fault, size_t size)
{
    memory_of_case m = {0};
    tgl_status status = TGL_NO_MEMORY;
    char text[400], sentence[1000];
    fault[0] = '\0';
    if (c->problem.batch <= BATCH_MAX && create_all(c, &m)) status = run(dev, c, &m);
    if (status == TGL_OK) {
        check(c, &m, fault, size);
    } else if (status != TGL_UNSUPPORTED) {
        describe(c, text, sizeof text);
        tgl_last_error(sentence, sizeof sentence);
        snprintf(fault, size, "%s: %s: %s", tgl_status_name(status), sentence, text);
    }
    destroy_all(&m);
    return status;
}
