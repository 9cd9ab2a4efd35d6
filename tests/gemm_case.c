/* SPDX-License-Identifier: Apache-2.0
 *
 * One product with everything around it. The indexing here is written from the public header alone
 * and shares nothing with the library's.
 */
#include "gemm_case.h"

#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Random numbers -------------------------------------------------------------------------- */

uint64_t random_bits(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t random_int(uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(seed) % (uint64_t)(high - low + 1));
}

double random_unit(uint64_t *seed)
{
    return ((double)(random_bits(seed) >> 12) + 0.5) / 4503599627370496.0; /* 2^52 */
}

static double random_normal(uint64_t *seed)
{
    const double radius = sqrt(-2 * log(random_unit(seed)));
    return radius * cos(6.283185307179586 * random_unit(seed));
}

static tgl_transpose random_transpose(uint64_t *seed)
{
    return (tgl_transpose)random_int(seed, TGL_NO_TRANS, TGL_CONJ_TRANS);
}

tgl_problem problem_of(tgl_type type, int64_t m, int64_t n, int64_t k)
{
    tgl_problem p;
    if (tgl_problem_init(&p, sizeof p, type, m, n, k) != TGL_OK) abort();
    return p;
}

tgl_problem random_problem(uint64_t *seed, tgl_type type, int64_t largest)
{
    const int64_t m = random_int(seed, 0, largest), n = random_int(seed, 0, largest);
    tgl_problem p = problem_of(type, m, n, random_int(seed, 0, largest));
    p.order = (tgl_order)random_int(seed, TGL_ROW_MAJOR, TGL_COL_MAJOR);
    p.trans_a = random_transpose(seed);
    p.trans_b = random_transpose(seed);
    const bool col_major = p.order == TGL_COL_MAJOR;
    const bool flip_a = (p.trans_a != TGL_NO_TRANS) != col_major;
    const bool flip_b = (p.trans_b != TGL_NO_TRANS) != col_major;
    const int64_t row_a = flip_a ? p.m : p.k, row_b = flip_b ? p.k : p.n;
    const int64_t row_c = col_major ? p.m : p.n;
    if (random_int(seed, 0, 1) == 1) {
        p.lda = (row_a > 0 ? row_a : 1) + random_int(seed, 0, 5);
        p.ldb = (row_b > 0 ? row_b : 1) + random_int(seed, 0, 5);
        p.ldc = (row_c > 0 ? row_c : 1) + random_int(seed, 0, 5);
    }
    if (random_int(seed, 0, 3) == 0) {
        p.batch = random_int(seed, 0, 4);
        p.stride_a = random_int(seed, 0, 2) * (p.m * p.k / 2 + 1);
        p.stride_b = random_int(seed, 0, 2) * (p.k * p.n / 2 + 1);
        const int64_t ldc = p.ldc > 0 ? p.ldc : row_c;
        p.stride_c = (p.m + p.n) * ldc + random_int(seed, 0, 3);
    }
    return p;
}

void separate_d(uint64_t *seed, tgl_problem *p)
{
    const bool col_major = p->order == TGL_COL_MAJOR;
    const int64_t row = col_major ? p->m : p->n, lines = col_major ? p->n : p->m;
    const int64_t tight = row > 0 ? row : 1;
    p->type_d = p->type_c;
    p->ldd = random_int(seed, 0, 1) * (tight + random_int(seed, 0, 5));
    if (p->batch < 2) return;
    p->stride_d = lines * (p->ldd > 0 ? p->ldd : tight) + random_int(seed, 0, 3);
    if (random_int(seed, 0, 1) == 1) p->stride_c = 0;
}

void vary_case(uint64_t *seed, gemm_case *c)
{
    if (random_int(seed, 0, 1) == 1) separate_d(seed, &c->problem);
    if (random_int(seed, 0, 1) == 1) c->problem.scalars = TGL_SCALARS_DEVICE;
    c->gives_workspace = random_int(seed, 0, 1) == 1;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { CANARY = 0xa5 };

bool guarded_create(guarded *g, size_t size, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = (size + page - 1) / page * page;
    *g = (guarded){.map_size = room + 2 * page, .size = size};
    void *map = mmap(NULL, g->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return false;
    g->map = map;
    if (room > 0 && mprotect(g->map + page, room, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, g->map_size);
        return false;
    }
    g->bytes = g->map + page + (at_end ? room - size : 0);
    memset(g->map + page, CANARY, room);
    return true;
}

void guarded_destroy(guarded *g)
{
    if (g->map != NULL) munmap(g->map, g->map_size);
    *g = (guarded){0};
}

void guarded_forbid_writes(guarded *g)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (g->map_size > 2 * page) mprotect(g->map + page, g->map_size - 2 * page, PROT_READ);
}

bool guarded_is_intact(const guarded *g)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const unsigned char *end = g->map + g->map_size - page;
    for (const unsigned char *p = g->map + page; p < g->bytes; p++)
        if (*p != CANARY) return false;
    for (const unsigned char *p = g->bytes + g->size; p < end; p++)
        if (*p != CANARY) return false;
    return true;
}

/* ---- Matrices -------------------------------------------------------------------------------- */

int64_t stored_index(tgl_order order, tgl_transpose trans, int64_t ld, int64_t i, int64_t j)
{
    const int64_t row = trans == TGL_NO_TRANS ? i : j, col = trans == TGL_NO_TRANS ? j : i;
    return order == TGL_ROW_MAJOR ? row * ld + col : row + col * ld;
}

int64_t stored_extent(tgl_order order, tgl_transpose trans, int64_t rows, int64_t cols, int64_t ld,
                      int64_t batch, int64_t stride)
{
    if (rows == 0 || cols == 0 || batch == 0) return 0;
    return stored_index(order, trans, ld, rows - 1, cols - 1) + 1 + (batch - 1) * stride;
}

/* op(X): rows x cols, in guarded memory. */
typedef struct matrix {
    tgl_type type;
    tgl_order order;
    tgl_transpose trans;
    int64_t rows, cols, ld, batch, stride;
    guarded memory;
} matrix;

static bool matrix_create(matrix *x, const tgl_problem *p, tgl_type type, tgl_transpose trans,
                          int64_t rows, int64_t cols, int64_t ld, int64_t stride, bool at_end)
{
    *x = (matrix){type, p->order, trans, rows, cols, ld, p->batch, stride, {0}};
    const bool lines_are_rows = (trans == TGL_NO_TRANS) == (p->order == TGL_ROW_MAJOR);
    if (ld == 0) x->ld = lines_are_rows ? cols : rows;
    const int64_t extent = stored_extent(x->order, trans, rows, cols, x->ld, x->batch, stride);
    const size_t count = (size_t)extent;
    if (!guarded_create(&x->memory, count * tgl_type_size(type), at_end)) return false;
    for (size_t i = 0; i < count; i++) /* what lies between the rows must not matter */
        if (type == TGL_F32)
            ((float *)x->memory.bytes)[i] = NAN;
        else
            ((double *)x->memory.bytes)[i] = (double)NAN;
    return true;
}

static int64_t index_of(const matrix *x, int64_t b, int64_t i, int64_t j)
{
    return b * x->stride + stored_index(x->order, x->trans, x->ld, i, j);
}

static double get(const matrix *x, const void *memory, int64_t index)
{
    return x->type == TGL_F32 ? (double)((const float *)memory)[index]
                              : ((const double *)memory)[index];
}

static void set(const matrix *x, int64_t index, double value)
{
    if (x->type == TGL_F32)
        ((float *)x->memory.bytes)[index] = (float)value;
    else
        ((double *)x->memory.bytes)[index] = value;
}

const char *inputs_name(inputs fill)
{
    static const char *const names[] = {"uniform(0,1)", "uniform(-1,1)", "normal",    "wide",
                                        "cancellation", "denormal",      "non-finite"};
    return names[fill];
}

static double non_finite(uint64_t *seed)
{
    static const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0.0, -0.0};
    const int64_t dice = random_int(seed, 0, 99);
    return dice < 5 ? values[dice] : (double)random_int(seed, -3, 3);
}

/* An element of A, B or C. partner: in CANCELLATION the element half of k before it, which it is to
 * cancel; else 0. */
static double draw(uint64_t *seed, inputs fill, tgl_type type, char name, double partner)
{
    const double least = type == TGL_F32 ? (double)FLT_MIN : DBL_MIN;
    switch (fill) {
    case UNIFORM_01:
        return random_unit(seed);
    case NORMAL:
        return random_normal(seed);
    case WIDE:
        return (random_unit(seed) - 0.5) * exp(4 * random_normal(seed));
    case CANCELLATION:
        if (partner == 0) return random_normal(seed);
        return name == 'B' ? -partner * (1 + 1e-3 * random_unit(seed)) : partner;
    case DENORMAL:
        return name == 'B' ? 1 + random_unit(seed) : least * random_unit(seed);
    case NON_FINITE:
        return non_finite(seed);
    case UNIFORM_11:
    case INPUTS_END:
        break;
    }
    return 2 * random_unit(seed) - 1;
}

static void fill_matrix(matrix *x, inputs fill, char name, uint64_t *seed)
{
    const bool k_along_rows = name != 'B'; /* of C too, where it does not matter */
    const int64_t outer = k_along_rows ? x->rows : x->cols, k = k_along_rows ? x->cols : x->rows;
    const int64_t batch = x->stride == 0 && x->batch > 1 ? 1 : x->batch;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t o = 0; o < outer; o++)
            for (int64_t p = 0; p < k; p++) {
                double partner = 0;
                if (fill == CANCELLATION && p >= (k + 1) / 2) {
                    const int64_t q = p - (k + 1) / 2;
                    partner = get(x, x->memory.bytes,
                                  k_along_rows ? index_of(x, b, o, q) : index_of(x, b, q, o));
                }
                set(x, k_along_rows ? index_of(x, b, o, p) : index_of(x, b, p, o),
                    draw(seed, fill, x->type, name, partner));
            }
}

/* ---- The reference --------------------------------------------------------------------------- */

typedef struct running {
    double max, squares, difference, norm;
    int64_t count;
} running;

/* Adds one element. False: it is non-finite where the reference is not, or the other way round. */
static bool add_element(running *sum, double value, long double reference, long double magnitude,
                        tgl_type type)
{
    if (isnan(reference)) return isnan(value);
    if (isinf(reference)) return value == (double)reference;
    if (!isfinite(value)) return false;
    const long double unit = type == TGL_F32 ? 0x1p-24L : 0x1p-53L;
    const long double least = type == TGL_F32 ? 0x1p-149L : 0x1p-1074L; /* what underflow costs */
    const long double difference = fabsl((long double)value - reference);
    const double error = (double)(difference / (unit * magnitude + least));
    if (error > sum->max) sum->max = error;
    sum->squares += error * error;
    sum->difference += (double)(difference * difference);
    sum->norm += (double)(reference * reference);
    sum->count++;
    return true;
}

static gemm_errors errors_of(const running *sum)
{
    return (gemm_errors){sum->max, sum->count > 0 ? sqrt(sum->squares / (double)sum->count) : 0,
                         sum->norm > 0 ? sqrt(sum->difference / sum->norm) : 0};
}

/* alpha * sum + beta * c as a loop of fused multiply-adds in C's type gives it. */
static double sequential(const matrix *A, const matrix *B, int64_t b, int64_t i, int64_t j,
                         double alpha, double beta, double before)
{
    const bool is_f32 = A->type == TGL_F32;
    double sum = 0;
    for (int64_t p = 0; p < A->cols; p++) {
        const double x = get(A, A->memory.bytes, index_of(A, b, i, p));
        const double y = get(B, B->memory.bytes, index_of(B, b, p, j));
        sum = is_f32 ? (double)fmaf((float)x, (float)y, (float)sum) : fma(x, y, sum);
    }
    const double scaled = beta == 0 ? 0 : beta * before;
    return is_f32 ? (double)fmaf((float)alpha, (float)sum, (float)scaled) : fma(alpha, sum, scaled);
}

/* All that a case has in memory. */
typedef struct memory_of_case {
    matrix A, B, C, D, bias, residual; /* D: only where it is not C */
    guarded arrays[4];                 /* of pointers to A, B, C and D */
    guarded alpha, beta, workspace;
    unsigned char *before; /* the result's bytes as they were */
} memory_of_case;

static bool has_separate_d(const gemm_case *c)
{
    return c->problem.type_d != 0;
}

/* The matrix that the product is written to. */
static const matrix *result_of(const gemm_case *c, const memory_of_case *t)
{
    return has_separate_d(c) ? &t->D : &t->C;
}

/* C's bytes as they were. Where D is another matrix nothing can have written to C. */
static const unsigned char *old_c(const gemm_case *c, const memory_of_case *t)
{
    return has_separate_d(c) ? t->C.memory.bytes : t->before;
}

/* A value, and the sum of magnitudes that its error is measured in. */
typedef struct reference_value {
    long double value, magnitude;
} reference_value;

static long double activated(tgl_activation activation, long double x)
{
    switch (activation) {
    case TGL_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    case TGL_ACTIVATION_GELU:
        return 0.5L * x * (1 + erfl(x * 0.707106781186547524401L));
    case TGL_ACTIVATION_SILU:
        return x / (1 + expl(-x));
    case TGL_ACTIVATION_NONE:
        break;
    }
    return x;
}

/* An activation's slope is below 2; its own roundings are of the size of its value and argument. */
static reference_value finished(const gemm_case *c, const memory_of_case *t, int64_t b, int64_t i,
                                int64_t j, reference_value acc, long double old)
{
    const tgl_epilogue *e = &c->epilogue;
    reference_value r = {acc.value + old, acc.magnitude + fabsl(old)};
    if (e->size == 0) return r;
    const int64_t problem = c->pointers ? c->problem.batch - 1 - b : b;
    long double bias = 0;
    if (e->bias != TGL_BIAS_NONE)
        bias = get(&t->bias, t->bias.memory.bytes,
                   index_of(&t->bias, problem, e->bias == TGL_BIAS_ROW ? i : j, 0));
    const long double sum = r.value + bias;
    r.magnitude += fabsl(bias);
    r.value = c->expression != NULL ? c->expression(acc.value, old, bias, i, j)
                                    : activated(e->activation, sum);
    if (c->expression != NULL || e->activation != TGL_ACTIVATION_NONE)
        r.magnitude = 2 * r.magnitude + fabsl(r.value);
    if (e->residual) {
        const int64_t at = index_of(&t->residual, problem, i, j);
        const long double residual = get(&t->residual, t->residual.memory.bytes, at);
        r.value += residual;
        r.magnitude += fabsl(residual);
    }
    return r;
}

/* Whether rounding may move a sum of k products of this magnitude across zero. */
static bool has_any_sign(long double sum, long double magnitude, int64_t k, tgl_type type)
{
    const long double unit = type == TGL_F32 ? 0x1p-24L : 0x1p-53L;
    return magnitude > 0 && fabsl(sum) <= (long double)k * unit * magnitude;
}

static bool check_element(const gemm_case *c, const memory_of_case *t, int64_t b, int64_t i,
                          int64_t j, running *ours, running *theirs)
{
    const bool is_f32 = c->problem.type_c == TGL_F32;
    const double alpha = is_f32 ? (double)(float)c->alpha : c->alpha;
    const double beta = is_f32 ? (double)(float)c->beta : c->beta;
    const matrix *result = result_of(c, t);
    const double before = get(&t->C, old_c(c, t), index_of(&t->C, b, i, j));
    const double after = get(result, result->memory.bytes, index_of(result, b, i, j));

    long double sum = 0, magnitude = 0;
    for (int64_t p = 0; p < c->problem.k && alpha != 0; p++) {
        const long double product =
            (long double)get(&t->A, t->A.memory.bytes, index_of(&t->A, b, i, p)) *
            (long double)get(&t->B, t->B.memory.bytes, index_of(&t->B, b, p, j));
        sum += product;
        magnitude += fabsl(product);
    }
    /* Such a sum times infinity is an infinity of either sign or NaN; functions of it, anything. */
    if (isinf(alpha) && has_any_sign(sum, magnitude, c->problem.k, c->problem.type_c))
        return c->epilogue.size != 0 || !isfinite(after);
    const bool reads = alpha != 0 && c->problem.k > 0;
    const reference_value acc = {reads ? alpha * sum : 0,
                                 reads ? fabsl((long double)alpha) * magnitude : 0};
    const reference_value r =
        finished(c, t, b, i, j, acc, beta != 0 ? (long double)beta * before : 0);
    if (theirs != NULL)
        add_element(theirs, sequential(&t->A, &t->B, b, i, j, alpha, beta, before), r.value,
                    r.magnitude, c->problem.type_c);
    return add_element(ours, after, r.value, r.magnitude, c->problem.type_c);
}

/* ---- The case -------------------------------------------------------------------------------- */

void gemm_case_describe(const gemm_case *c, char *text, size_t size)
{
    const tgl_problem *p = &c->problem;
    const tgl_epilogue *e = &c->epilogue;
    snprintf(
        text, size,
        "%s %lld x %lld x %lld, order %d, trans %d %d, ld %lld %lld %lld, batch %lld, stride "
        "%lld %lld %lld%s, %s (ld %lld, stride %lld), compute %d, alpha %g, beta %g%s, bias %d, "
        "activation %d, residual %d, kernel %s%s, %s, guard at %s, seed 0x%llx",
        p->type_c == TGL_F32 ? "f32" : "f64", (long long)p->m, (long long)p->n, (long long)p->k,
        p->order, p->trans_a, p->trans_b, (long long)p->lda, (long long)p->ldb, (long long)p->ldc,
        (long long)p->batch, (long long)p->stride_a, (long long)p->stride_b, (long long)p->stride_c,
        c->pointers ? " by pointers" : "", has_separate_d(c) ? "another D" : "in place",
        (long long)p->ldd, (long long)p->stride_d, p->compute, c->alpha, c->beta,
        p->scalars == TGL_SCALARS_DEVICE ? " of the device" : "", e->bias, e->activation,
        e->residual, c->kernel != NULL ? c->kernel : "any",
        c->gives_workspace ? ", own workspace" : "", inputs_name(c->fill),
        c->at_end ? "end" : "start", (unsigned long long)c->seed);
}

#define FAULT(...) (snprintf(outcome->fault, sizeof outcome->fault, __VA_ARGS__), (void)0)

static void check_result(const gemm_case *c, const memory_of_case *t, bool want_sequential,
                         gemm_outcome *outcome)
{
    running ours = {0}, theirs = {0};
    const tgl_problem *p = &c->problem;
    const matrix *result = result_of(c, t);
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t at = index_of(result, b, i, j);
                if (!check_element(c, t, b, i, j, &ours, want_sequential ? &theirs : NULL))
                    FAULT("D[%lld](%lld, %lld) was %g and is %g", (long long)b, (long long)i,
                          (long long)j, get(result, t->before, at),
                          get(result, result->memory.bytes, at));
                const size_t element = tgl_type_size(result->type);
                memcpy(t->before + (size_t)at * element,
                       result->memory.bytes + (size_t)at * element, element);
            }
    outcome->ours = errors_of(&ours);
    outcome->sequential = errors_of(&theirs);
    /* A rounding a product, those of alpha and beta, and those of an epilogue. */
    const double bound = (double)p->k + (c->epilogue.size == 0 ? 4 : 12);
    if (!(outcome->ours.max <= bound))
        FAULT("an error of %.1f units; %.0f are allowed", outcome->ours.max, bound);
    if (result->memory.size > 0 &&
        memcmp(t->before, result->memory.bytes, result->memory.size) != 0)
        FAULT("an element between the rows of D was written");
    if (!guarded_is_intact(&result->memory)) FAULT("bytes beside D were written");
    if (t->workspace.map != NULL && !guarded_is_intact(&t->workspace))
        FAULT("bytes beside the workspace were written");
}

/* Says which case it was when a guard page has been touched, and lets the signal do its work. */
static char running_case[600];

static void on_fault(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, running_case, strlen(running_case)) < 0) _exit(1);
}

/* The pointers to the matrices of a batch, the last first; NULL: no memory. */
static const void *make_array(const matrix *x, guarded *array, bool at_end)
{
    if (!guarded_create(array, (size_t)x->batch * sizeof(void *), at_end)) return NULL;
    unsigned char **pointers = (unsigned char **)(void *)array->bytes;
    for (int64_t b = 0; b < x->batch; b++)
        pointers[x->batch - 1 - b] =
            x->memory.bytes + (size_t)(b * x->stride) * tgl_type_size(x->type);
    guarded_forbid_writes(array);
    return array->bytes;
}

/* A scalar of the accumulation type, which is C's. */
static const void *make_scalar(const gemm_case *c, double value, guarded *memory)
{
    const bool is_f32 = c->problem.type_c == TGL_F32;
    if (!guarded_create(memory, is_f32 ? sizeof(float) : sizeof(double), c->at_end)) return NULL;
    if (is_f32)
        *(float *)(void *)memory->bytes = (float)value;
    else
        *(double *)(void *)memory->bytes = value;
    guarded_forbid_writes(memory);
    return memory->bytes;
}

static bool make_scalars(const gemm_case *c, memory_of_case *t, tgl_operands *o)
{
    if (c->problem.scalars == TGL_SCALARS_HOST) {
        o->alpha = c->alpha;
        o->beta = c->beta;
        return true;
    }
    o->alpha_at = make_scalar(c, c->alpha, &t->alpha);
    if (c->beta == 0 && c->seed % 2 == 0) return o->alpha_at != NULL;
    o->beta_at = make_scalar(c, c->beta, &t->beta);
    return o->alpha_at != NULL && o->beta_at != NULL;
}

/* Whether C need not be given: it is neither read nor written. */
static bool may_lack_c(const gemm_case *c, const tgl_operands *o)
{
    return has_separate_d(c) && c->beta == 0 && c->seed % 4 < 2 && o->beta_at == NULL;
}

static bool make_operands(const gemm_case *c, memory_of_case *t, tgl_operands *o)
{
    *o = (tgl_operands){.size = sizeof *o};
    if (!make_scalars(c, t, o)) return false;
    if (c->epilogue.bias != TGL_BIAS_NONE) o->bias = t->bias.memory.bytes;
    if (c->epilogue.residual) o->residual = t->residual.memory.bytes;
    const bool has_c = !may_lack_c(c, o), has_d = has_separate_d(c);
    if (!c->pointers) {
        o->A = t->A.memory.bytes;
        o->B = t->B.memory.bytes;
        if (has_c) o->C = t->C.memory.bytes;
        if (has_d) o->D = t->D.memory.bytes;
        return true;
    }
    o->A_array = make_array(&t->A, &t->arrays[0], c->at_end);
    o->B_array = make_array(&t->B, &t->arrays[1], c->at_end);
    if (has_c) o->C_array = (void *const *)make_array(&t->C, &t->arrays[2], c->at_end);
    if (has_d) o->D_array = (void *const *)make_array(&t->D, &t->arrays[3], c->at_end);
    return o->A_array != NULL && o->B_array != NULL && (!has_c || o->C_array != NULL) &&
           (!has_d || o->D_array != NULL);
}

/* What the plan asks for, full of garbage. It must be aligned to 256 bytes, and so cannot end at a
 * page if its size is no multiple of that. */
static bool make_workspace(const gemm_case *c, const tgl_plan *plan, memory_of_case *t,
                           tgl_operands *o)
{
    const size_t size = tgl_plan_workspace_size(plan);
    if (!c->gives_workspace || size == 0) return true;
    if (!guarded_create(&t->workspace, size, c->at_end && size % 256 == 0)) return false;
    o->workspace = t->workspace.bytes;
    o->workspace_bytes = size;
    return true;
}

/* Runs the plan, and says which case it was if that touches forbidden memory. */
static tgl_status run_plan(const gemm_case *c, const tgl_plan *plan, const tgl_operands *operands)
{
    snprintf(running_case, sizeof running_case, "forbidden memory touched: ");
    const size_t length = strlen(running_case);
    gemm_case_describe(c, running_case + length, sizeof running_case - length - 1);
    strcat(running_case, "\n");
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = (int)SA_RESETHAND}, old;
    sigaction(SIGSEGV, &action, &old);
    const tgl_status status = tgl_plan_run_operands(plan, operands, NULL);
    sigaction(SIGSEGV, &old, NULL);
    return status;
}

static tgl_status run_guarded(tgl_device *dev, const gemm_case *c, memory_of_case *t)
{
    const tgl_plan_options options = {.size = sizeof options,
                                      .kernel = c->kernel,
                                      .epilogue = c->epilogue.size != 0 ? &c->epilogue : NULL};
    tgl_problem problem = c->problem;
    tgl_plan *plan;
    tgl_operands operands;
    if (!make_operands(c, t, &operands)) return TGL_NO_MEMORY;
    if (c->pointers) {
        problem.batching = TGL_POINTERS;
        problem.stride_a = problem.stride_b = problem.stride_c = -1; /* not looked at */
        problem.stride_d = has_separate_d(c) ? -1 : 0;
    }
    tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    if (status != TGL_OK) return status;
    status = make_workspace(c, plan, t, &operands) ? run_plan(c, plan, &operands) : TGL_NO_MEMORY;
    tgl_plan_destroy(plan);
    return status;
}

/* Bias and residual, as far as there are any. */
static bool create_epilogue(const gemm_case *c, memory_of_case *t)
{
    const tgl_epilogue *e = &c->epilogue;
    const tgl_problem *p = &c->problem;
    tgl_problem tight = *p;
    tight.order = TGL_ROW_MAJOR;
    const int64_t length = e->bias == TGL_BIAS_ROW ? p->m : p->n;
    return (e->bias == TGL_BIAS_NONE || matrix_create(&t->bias, &tight, p->type_c, TGL_NO_TRANS,
                                                      length, 1, 1, e->stride_bias, c->at_end)) &&
           (!e->residual || matrix_create(&t->residual, p, p->type_c, TGL_NO_TRANS, p->m, p->n,
                                          e->ld_residual, e->stride_residual, c->at_end));
}

static void fill_all(const gemm_case *c, memory_of_case *t)
{
    uint64_t seed = c->seed;
    fill_matrix(&t->A, c->fill, 'A', &seed);
    fill_matrix(&t->B, c->fill, 'B', &seed);
    fill_matrix(&t->C, c->fill, 'C', &seed);
    guarded_forbid_writes(&t->A.memory);
    guarded_forbid_writes(&t->B.memory);
    if (t->bias.memory.map != NULL) {
        fill_matrix(&t->bias, c->fill, 'C', &seed);
        guarded_forbid_writes(&t->bias.memory);
    }
    if (t->residual.memory.map != NULL) {
        fill_matrix(&t->residual, c->fill, 'C', &seed);
        guarded_forbid_writes(&t->residual.memory);
    }
    if (has_separate_d(c)) {
        fill_matrix(&t->D, UNIFORM_11, 'C', &seed);
        guarded_forbid_writes(&t->C.memory);
    }
    memcpy(t->before, result_of(c, t)->memory.bytes, result_of(c, t)->memory.size);
}

static void run_case(tgl_device *dev, const gemm_case *c, bool want_sequential, memory_of_case *t,
                     gemm_outcome *outcome)
{
    const tgl_problem *p = &c->problem;
    const bool at_end = c->at_end;
    if (!matrix_create(&t->A, p, p->type_a, p->trans_a, p->m, p->k, p->lda, p->stride_a, at_end) ||
        !matrix_create(&t->B, p, p->type_b, p->trans_b, p->k, p->n, p->ldb, p->stride_b, at_end) ||
        !matrix_create(&t->C, p, p->type_c, TGL_NO_TRANS, p->m, p->n, p->ldc, p->stride_c,
                       at_end) ||
        (has_separate_d(c) && !matrix_create(&t->D, p, p->type_d, TGL_NO_TRANS, p->m, p->n, p->ldd,
                                             p->stride_d, at_end)) ||
        !create_epilogue(c, t) ||
        (t->before = calloc(result_of(c, t)->memory.size + 1, 1)) == NULL) {
        FAULT("no memory for the case");
        return;
    }
    fill_all(c, t);
    outcome->status = run_guarded(dev, c, t);
    if (outcome->status == TGL_OK) {
        check_result(c, t, want_sequential, outcome);
    } else if (outcome->status != TGL_UNSUPPORTED) {
        char sentence[400];
        tgl_last_error(sentence, sizeof sentence);
        FAULT("%s: %s", tgl_status_name(outcome->status), sentence);
    }
}

void gemm_case_run(tgl_device *dev, const gemm_case *c, bool want_sequential, gemm_outcome *outcome)
{
    memory_of_case t = {0};
    *outcome = (gemm_outcome){.status = TGL_NO_MEMORY};
    run_case(dev, c, want_sequential, &t, outcome);
    free(t.before);
    guarded_destroy(&t.A.memory);
    guarded_destroy(&t.B.memory);
    guarded_destroy(&t.C.memory);
    guarded_destroy(&t.bias.memory);
    guarded_destroy(&t.residual.memory);
    guarded_destroy(&t.D.memory);
    guarded_destroy(&t.alpha);
    guarded_destroy(&t.beta);
    guarded_destroy(&t.workspace);
    for (int i = 0; i < 4; i++)
        guarded_destroy(&t.arrays[i]);
    const size_t length = strlen(outcome->fault);
    if (length > 0 && length + 3 < sizeof outcome->fault) {
        strcat(outcome->fault, ": ");
        gemm_case_describe(c, outcome->fault + length + 2, sizeof outcome->fault - length - 2);
    }
}
