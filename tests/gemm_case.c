/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one product and checks everything that it may write. The indices of elements come from
 * stored_index() in cli/reference, which shares no code with the library.
 */
#include "gemm_case.h"
#include "elements.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Random problems ------------------------------------------------------------------------- */

static tgl_transpose random_transpose(uint64_t *seed, tgl_type type)
{
    const bool is_complex = element_parts(type) == 2;
    return (tgl_transpose)random_int(seed, TGL_NO_TRANS,
                                     is_complex ? TGL_CONJ_NO_TRANS : TGL_CONJ_TRANS);
}

static bool is_transposed(tgl_transpose trans)
{
    return trans == TGL_TRANS || trans == TGL_CONJ_TRANS;
}

tgl_problem problem_of(tgl_type type, int64_t m, int64_t n, int64_t k)
{
    tgl_problem p;
    if (tgl_problem_init(&p, sizeof p, type, m, n, k) != TGL_OK) abort();
    return p;
}

tgl_problem padded_problem(tgl_type type, const int64_t size[3], unsigned variant)
{
    const int64_t m = size[0], n = size[1], k = size[2], spare = variant & 4 ? 3 : 0;
    const bool trans_a = variant & 1, trans_b = variant & 2;
    tgl_problem p = problem_of(type, m, n, k);
    p.trans_a = trans_a ? TGL_TRANS : TGL_NO_TRANS;
    p.trans_b = trans_b ? TGL_TRANS : TGL_NO_TRANS;
    p.lda = (trans_a ? m : k) + spare;
    p.ldb = (trans_b ? k : n) + spare;
    p.ldc = n + spare;
    return p;
}

tgl_problem random_problem(uint64_t *seed, tgl_type type, int64_t largest)
{
    const int64_t m = random_int(seed, 0, largest), n = random_int(seed, 0, largest);
    tgl_problem p = problem_of(type, m, n, random_int(seed, 0, largest));
    p.order = (tgl_order)random_int(seed, TGL_ROW_MAJOR, TGL_COL_MAJOR);
    p.trans_a = random_transpose(seed, type);
    p.trans_b = random_transpose(seed, type);
    const bool col_major = p.order == TGL_COL_MAJOR;
    const bool flip_a = is_transposed(p.trans_a) != col_major;
    const bool flip_b = is_transposed(p.trans_b) != col_major;
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

/* ---- Matrices -------------------------------------------------------------------------------- */

/* A matrix X, or a batch of them, in guarded memory. op(X) has rows x cols elements. */
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
    const bool lines_are_rows = is_transposed(trans) != (p->order == TGL_ROW_MAJOR);
    if (ld == 0) x->ld = lines_are_rows ? cols : rows;
    const int64_t extent = stored_extent(x->order, trans, rows, cols, x->ld, x->batch, stride);
    if (!guarded_create(&x->memory, (size_t)extent * tgl_type_size(type), at_end)) return false;
    for (int64_t i = 0; i < extent * element_parts(type);
         i++) /* the elements between rows stay NaN, because no product may use them */
        element_set(type, x->memory.bytes, i, NAN);
    return true;
}

static int64_t index_of(const matrix *x, int64_t b, int64_t i, int64_t j)
{
    return b * x->stride + stored_index(x->order, x->trans, x->ld, i, j);
}

static double get(const matrix *x, const void *memory, int64_t index)
{
    return element_get(x->type, memory, index);
}

/* Reads part 0 (real) or 1 (imaginary) of an element. */
static double get_part(const matrix *x, const void *memory, int64_t index, int part)
{
    return element_get(x->type, memory, index * element_parts(x->type) + part);
}

/* The number of different matrices in a batch: 1 if all products share one (stride 0). */
static int64_t different_matrices(const matrix *x)
{
    return x->stride == 0 && x->batch > 1 ? 1 : x->batch;
}

/* Stores matrix b of the batch. X: op(X) without conjugation, as rows of `ld` numbers. */
static void store(matrix *x, int64_t b, const double *X, int64_t ld)
{
    const int parts = element_parts(x->type);
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols * parts; j++)
            element_set(x->type, x->memory.bytes, index_of(x, b, i, j / parts) * parts + j % parts,
                        X[i * ld + j]);
}

/* Fills A and B. Elements of complex matrices are made from those of a real product of m x 2n x 2k,
 * in which two neighbouring numbers of a row are one complex element; every other row of B is left
 * out. False: out of memory. */
static bool fill_factors(matrix *A, matrix *B, inputs fill, random_state *r)
{
    const int parts = element_parts(A->type);
    const int64_t m = A->rows, n = B->cols * parts, k = A->cols * parts;
    const int64_t batch_a = different_matrices(A), batch_b = different_matrices(B);
    double *a = malloc(sizeof(double) * (size_t)(m * k + 1));
    double *b = malloc(sizeof(double) * (size_t)(k * n + 1));
    const bool ok = a != NULL && b != NULL;
    for (int64_t i = 0; ok && (i < batch_a || i < batch_b); i++) {
        random_inputs(r, fill, A->type, m, n, k, a, b);
        if (i < batch_a) store(A, i, a, k);
        if (i < batch_b) store(B, i, b, n * parts);
    }
    free(a);
    free(b);
    return ok;
}

/* Fills C, a bias or a residual. False: out of memory. */
static bool fill_addend(matrix *x, inputs fill, random_state *r)
{
    const int64_t row = x->cols * element_parts(x->type);
    double *X = malloc(sizeof(double) * (size_t)(x->rows * row + 1));
    for (int64_t b = 0; X != NULL && b < different_matrices(x); b++) {
        random_addends(r, fill, x->type, x->rows * row, X);
        store(x, b, X, row);
    }
    free(X);
    return X != NULL;
}

/* ---- The reference --------------------------------------------------------------------------- */

static gemm_errors errors_of(const error_summary *sum)
{
    return (gemm_errors){sum->max, error_rms(sum), error_frobenius(sum)};
}

static double sequential_fma(bool is_f64, double x, double y, double sum)
{
    return is_f64 ? fma(x, y, sum) : (double)fmaf((float)x, (float)y, (float)sum);
}

/* The memory of a case. */
typedef struct memory_of_case {
    matrix A, B, C, D, bias, residual; /* D: only if it is another matrix than C */
    guarded arrays[4];                 /* arrays of pointers to A, B, C and D */
    guarded alpha, beta, workspace;
    unsigned char *before; /* the contents of the result's buffer before the run */
} memory_of_case;

/* ---- Sums of products ------------------------------------------------------------------------ */

/* The factors of one product of the batch, read once, and the sums of one row of op(A)*op(B). The
 * numbers of a complex type are in two planes: its real and its imaginary parts, not conjugated. */
typedef struct product_sums {
    int parts;
    int64_t m, n, k;
    double *A, *B;           /* [part][m][k] and [part][k][n] */
    reference_element *sums; /* [part of A][part of B][n] */
} product_sums;

/* False: out of memory. */
static bool sums_create(product_sums *s, const tgl_problem *p)
{
    const int parts = element_parts(p->type_a);
    *s = (product_sums){.parts = parts, .m = p->m, .n = p->n, .k = p->k};
    s->A = malloc(sizeof *s->A * (size_t)(parts * p->m * p->k + 1));
    s->B = malloc(sizeof *s->B * (size_t)(parts * p->k * p->n + 1));
    s->sums = calloc((size_t)(parts * parts * p->n + 1), sizeof *s->sums);
    return s->A != NULL && s->B != NULL && s->sums != NULL;
}

static void sums_free(product_sums *s)
{
    free(s->A);
    free(s->B);
    free(s->sums);
}

/* X := the planes of op(x), matrix b of the batch. */
static void read_planes(const matrix *x, int64_t b, double *X)
{
    const int parts = element_parts(x->type);
    for (int part = 0; part < parts; part++)
        for (int64_t i = 0; i < x->rows && x->cols > 0; i++, X += x->cols) {
            const int64_t first = index_of(x, b, i, 0), step = index_of(x, b, i, 1) - first;
            element_read(x->type, x->memory.bytes, parts * first + part, parts * step, x->cols, X);
        }
}

static void sums_read_product(product_sums *s, const memory_of_case *t, int64_t b)
{
    read_planes(&t->A, b, s->A);
    read_planes(&t->B, b, s->B);
}

static void sums_of_row(product_sums *s, tgl_type type, int64_t i)
{
    reference_element *out = s->sums;
    for (int a = 0; a < s->parts; a++)
        for (int b = 0; b < s->parts; b++, out += s->n)
            reference_row(type, s->n, s->k, 1, s->A + (a * s->m + i) * s->k, s->B + b * s->k * s->n,
                          0, NULL, out);
}

/* alpha * sum + beta * c, where the sum is computed by a loop of fused multiply-adds in the
 * accumulation type. */
static double sequential(const product_sums *s, tgl_type type, int64_t i, int64_t j, double alpha,
                         double beta, double before)
{
    const bool is_f64 = type == TGL_F64;
    double sum = 0;
    for (int64_t p = 0; p < s->k; p++)
        sum = sequential_fma(is_f64, s->A[i * s->k + p], s->B[p * s->n + j], sum);
    const double scaled = beta == 0 ? 0 : beta * before;
    return sequential_fma(is_f64, alpha, sum, scaled);
}

/* ---- Elements of the result ------------------------------------------------------------------ */

static bool has_separate_d(const gemm_case *c)
{
    return c->problem.type_d != 0;
}

/* The matrix that the product is written to. */
static const matrix *result_of(const gemm_case *c, const memory_of_case *t)
{
    return has_separate_d(c) ? &t->D : &t->C;
}

/* The contents of C before the run. If D is another matrix, nothing can have written to C. */
static const unsigned char *old_c(const gemm_case *c, const memory_of_case *t)
{
    return has_separate_d(c) ? t->C.memory.bytes : t->before;
}

/* Applies the case's epilogue to *x, which is acc + c of part `part` of an element. */
static void finish(const gemm_case *c, const memory_of_case *t, int64_t b, int64_t i, int64_t j,
                   int part, long double acc, long double old, reference_element *x)
{
    const tgl_epilogue *e = &c->epilogue;
    const int64_t problem = c->pointers ? c->problem.batch - 1 - b : b;
    long double bias = 0, residual = 0;
    if (e->bias != TGL_BIAS_NONE)
        bias = get_part(&t->bias, t->bias.memory.bytes,
                        index_of(&t->bias, problem, e->bias == TGL_BIAS_ROW ? i : j, 0), part);
    if (e->residual)
        residual = get_part(&t->residual, t->residual.memory.bytes,
                            index_of(&t->residual, problem, i, j), part);
    const tgl_type accumulator = element_accumulator(c->problem.type_a);
    reference_saturate(accumulator, x);
    if (c->expression == NULL) {
        reference_epilogue(accumulator, e, bias, residual, x);
        return;
    }
    x->value = c->expression(acc, old, bias, i, j);
    x->magnitude = 2 * (x->magnitude + fabsl(bias)) + fabsl(x->value) + fabsl(residual);
    x->value += residual;
}

/* Whether rounding may move a sum of k products of this magnitude across zero. */
static bool has_any_sign(const reference_element *sum, int64_t k, tgl_type accumulator)
{
    return sum->magnitude > 0 &&
           fabsl(sum->value) <= (long double)k * element_unit(accumulator) * sum->magnitude;
}

static bool is_conjugated(tgl_transpose trans)
{
    return trans == TGL_CONJ_TRANS || trans == TGL_CONJ_NO_TRANS;
}

/* Like check_element(), for complex types. */
static bool check_complex_element(const gemm_case *c, const memory_of_case *t,
                                  const product_sums *s, int64_t b, int64_t i, int64_t j,
                                  double bound, error_summary *ours)
{
    const tgl_problem *p = &c->problem;
    const matrix *result = result_of(c, t);
    const tgl_type type = result->type;
    const double alpha[] = {element_round(type, c->alpha), element_round(type, c->alpha_imag)};
    const double beta[] = {element_round(type, c->beta), element_round(type, c->beta_imag)};
    const int64_t before = index_of(&t->C, b, i, j), after = index_of(result, b, i, j);
    const double old[] = {get_part(&t->C, old_c(c, t), before, 0),
                          get_part(&t->C, old_c(c, t), before, 1)};
    reference_complex sum = {{0, 0}, {0, 0}};
    if (alpha[0] != 0 || alpha[1] != 0)
        sum = reference_complex_sum(s->sums + j, p->n, is_conjugated(p->trans_a),
                                    is_conjugated(p->trans_b));
    const reference_complex r = reference_complex_finish(alpha, &sum, p->k, beta, old);
    reference_element parts[] = {r.re, r.im};
    bool ok = true;
    for (int part = 0; part < 2; part++) {
        double error;
        if (c->epilogue.size != 0) finish(c, t, b, i, j, part, 0, 0, &parts[part]);
        ok &= error_add(ours, type, get_part(result, result->memory.bytes, after, part),
                        &parts[part], bound, &error);
    }
    return ok;
}

/* Compares an element of the result with its reference. Adds its error to *ours and, unless theirs
 * is NULL or the type complex, the error of a sequential sum to *theirs. False: the element is
 * wrong. */
static bool check_element(const gemm_case *c, const memory_of_case *t, const product_sums *s,
                          int64_t b, int64_t i, int64_t j, double bound, error_summary *ours,
                          error_summary *theirs)
{
    const tgl_problem *p = &c->problem;
    const tgl_type accumulator = element_accumulator(p->type_a);
    if (element_parts(p->type_a) == 2) return check_complex_element(c, t, s, b, i, j, bound, ours);
    const double alpha = element_round(accumulator, c->alpha);
    const double beta = element_round(accumulator, c->beta);
    const matrix *result = result_of(c, t);
    const double before = get(&t->C, old_c(c, t), index_of(&t->C, b, i, j));
    const double after = get(result, result->memory.bytes, index_of(result, b, i, j));

    reference_element sum = {0, 0};
    if (alpha != 0) sum = s->sums[j];
    /* If rounding may change the sign of the sum, the sum times infinity may be an infinity of
     * either sign or NaN, and an epilogue may make any number of it. */
    if (isinf(alpha) && has_any_sign(&sum, p->k, accumulator))
        return c->epilogue.size != 0 || !isfinite(after);
    reference_element r = reference_finish(p->type_a, alpha, sum, p->k, beta, before);
    if (c->epilogue.size != 0) {
        const long double acc = reference_finish(p->type_a, alpha, sum, p->k, 0, 0).value;
        finish(c, t, b, i, j, 0, acc, beta != 0 ? (long double)beta * before : 0, &r);
    }
    double error;
    if (theirs != NULL)
        error_add(theirs, result->type, sequential(s, p->type_a, i, j, alpha, beta, before), &r,
                  INFINITY, &error);
    return error_add(ours, result->type, after, &r, bound, &error);
}

/* ---- The case -------------------------------------------------------------------------------- */

void gemm_case_describe(const gemm_case *c, char *text, size_t size)
{
    const tgl_problem *p = &c->problem;
    const tgl_epilogue *e = &c->epilogue;
    snprintf(
        text, size,
        "%s to %s %lld x %lld x %lld, order %d, trans %d %d, ld %lld %lld %lld, batch %lld, stride "
        "%lld %lld %lld%s, %s (ld %lld, stride %lld), compute %d, alpha %.10g%+.10gi, beta "
        "%.10g%+.10gi%s, bias "
        "%d, "
        "activation %d, residual %d, kernel %s%s, %s, guard at %s, seed 0x%llx",
        element_type_name(p->type_a), element_type_name(p->type_d != 0 ? p->type_d : p->type_c),
        (long long)p->m, (long long)p->n, (long long)p->k, p->order, p->trans_a, p->trans_b,
        (long long)p->lda, (long long)p->ldb, (long long)p->ldc, (long long)p->batch,
        (long long)p->stride_a, (long long)p->stride_b, (long long)p->stride_c,
        c->pointers ? " by pointers" : "", has_separate_d(c) ? "another D" : "in place",
        (long long)p->ldd, (long long)p->stride_d, p->compute, c->alpha, c->alpha_imag, c->beta,
        c->beta_imag, p->scalars == TGL_SCALARS_DEVICE ? " of the device" : "", e->bias,
        e->activation, e->residual, c->kernel != NULL ? c->kernel : "any",
        c->gives_workspace ? ", own workspace" : "", inputs_name(c->fill),
        c->at_end ? "end" : "start", (unsigned long long)c->seed);
}

#define FAULT(...) (snprintf(outcome->fault, sizeof outcome->fault, __VA_ARGS__), (void)0)

static void check_result(const gemm_case *c, const memory_of_case *t, product_sums *s,
                         bool want_sequential, gemm_outcome *outcome)
{
    error_summary ours = {0}, theirs = {0};
    const tgl_problem *p = &c->problem;
    /* One rounding for each product, 4 for alpha and beta, and 8 for an epilogue. A part of a
     * complex element is a sum of 2k products, and alpha and beta have four products of parts. */
    const int parts = element_parts(p->type_a);
    const double bound = (double)p->k * parts + 4 * parts + (c->epilogue.size == 0 ? 0 : 8) +
                         error_of_rounded_inputs(p->type_a, p->compute);
    const matrix *result = result_of(c, t);
    for (int64_t b = 0; b < p->batch; b++) {
        sums_read_product(s, t, b);
        for (int64_t i = 0; i < p->m; i++) {
            sums_of_row(s, p->type_a, i);
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t at = index_of(result, b, i, j);
                if (!check_element(c, t, s, b, i, j, bound, &ours,
                                   want_sequential ? &theirs : NULL))
                    FAULT("D[%lld](%lld, %lld) was %.10g and is %.10g, an error of %.1f where %.0f "
                          "are "
                          "allowed",
                          (long long)b, (long long)i, (long long)j,
                          get_part(result, t->before, at, 0),
                          get_part(result, result->memory.bytes, at, 0), ours.max, bound);
                const size_t element = tgl_type_size(result->type);
                memcpy(t->before + (size_t)at * element,
                       result->memory.bytes + (size_t)at * element, element);
            }
        }
    }
    outcome->ours = errors_of(&ours);
    outcome->sequential = errors_of(&theirs);
    if (result->memory.size > 0 &&
        memcmp(t->before, result->memory.bytes, result->memory.size) != 0)
        FAULT("an element between the rows of D was written");
    if (!guarded_is_intact(&result->memory)) FAULT("bytes beside D were written");
    if (t->workspace.map != NULL && !guarded_is_intact(&t->workspace))
        FAULT("bytes beside the workspace were written");
}

/* The message that on_fault() prints when a guard page was accessed. The signal then ends the
 * program. */
static char running_case[600];

static void on_fault(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, running_case, strlen(running_case)) < 0) _exit(1);
}

/* An array of pointers to the matrices of a batch, in reverse order. NULL: out of memory. */
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

/* Stores a scalar of the accumulation type in guarded memory. NULL: out of memory. */
static const void *make_scalar(const gemm_case *c, double value, double imag, guarded *memory)
{
    const tgl_type type = element_accumulator(c->problem.type_a);
    if (!guarded_create(memory, tgl_type_size(type), c->at_end)) return NULL;
    element_set(type, memory->bytes, 0, value);
    if (element_parts(type) == 2) element_set(type, memory->bytes, 1, imag);
    guarded_forbid_writes(memory);
    return memory->bytes;
}

static bool make_scalars(const gemm_case *c, memory_of_case *t, tgl_operands *o)
{
    if (c->problem.scalars == TGL_SCALARS_HOST) {
        o->alpha = c->alpha;
        o->beta = c->beta;
        o->alpha_imag = c->alpha_imag;
        o->beta_imag = c->beta_imag;
        return true;
    }
    o->alpha_at = make_scalar(c, c->alpha, c->alpha_imag, &t->alpha);
    if (c->beta == 0 && c->beta_imag == 0 && c->seed % 2 == 0) return o->alpha_at != NULL;
    o->beta_at = make_scalar(c, c->beta, c->beta_imag, &t->beta);
    return o->alpha_at != NULL && o->beta_at != NULL;
}

/* Whether NULL is passed for C, which is then neither read nor written. */
static bool may_lack_c(const gemm_case *c, const tgl_operands *o)
{
    return has_separate_d(c) && c->beta == 0 && c->beta_imag == 0 && c->seed % 4 < 2 &&
           o->beta_at == NULL;
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

/* Makes the workspace that the plan requires, filled with garbage. It must be aligned to 256 bytes,
 * so it can end at a page boundary only if its size is a multiple of 256. */
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

/* Runs the plan or c->run(). If forbidden memory is accessed, prints which case did it. */
static tgl_status run_product(tgl_device *dev, const gemm_case *c, const tgl_problem *problem,
                              const tgl_plan *plan, const tgl_operands *operands)
{
    snprintf(running_case, sizeof running_case, "forbidden memory touched: ");
    const size_t length = strlen(running_case);
    gemm_case_describe(c, running_case + length, sizeof running_case - length - 1);
    strcat(running_case, "\n");
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = (int)SA_RESETHAND}, old;
    sigaction(SIGSEGV, &action, &old);
    const tgl_status status = c->run != NULL ? c->run(dev, problem, operands)
                                             : tgl_plan_run_operands(plan, operands, NULL);
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
        problem.stride_a = problem.stride_b = problem.stride_c = -1; /* not used with pointers */
        problem.stride_d = has_separate_d(c) ? -1 : 0;
    }
    if (c->run != NULL) return run_product(dev, c, &problem, NULL, &operands);
    tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    if (status != TGL_OK) return status;
    status = make_workspace(c, plan, t, &operands) ? run_product(dev, c, &problem, plan, &operands)
                                                   : TGL_NO_MEMORY;
    tgl_plan_destroy(plan);
    return status;
}

/* Makes the bias and the residual, if the epilogue has them. */
static bool create_epilogue(const gemm_case *c, memory_of_case *t)
{
    const tgl_epilogue *e = &c->epilogue;
    const tgl_problem *p = &c->problem;
    const tgl_type type = result_of(c, t)->type;
    const tgl_type bias = e->type_bias != 0 ? e->type_bias : type;
    const tgl_type residual = e->type_residual != 0 ? e->type_residual : type;
    tgl_problem tight = *p;
    tight.order = TGL_ROW_MAJOR;
    const int64_t length = e->bias == TGL_BIAS_ROW ? p->m : p->n;
    return (e->bias == TGL_BIAS_NONE || matrix_create(&t->bias, &tight, bias, TGL_NO_TRANS, length,
                                                      1, 1, e->stride_bias, c->at_end)) &&
           (!e->residual || matrix_create(&t->residual, p, residual, TGL_NO_TRANS, p->m, p->n,
                                          e->ld_residual, e->stride_residual, c->at_end));
}

/* Fills all matrices. False: out of memory. */
static bool fill_all(const gemm_case *c, memory_of_case *t)
{
    random_state r = c->seed;
    bool ok = fill_factors(&t->A, &t->B, c->fill, &r) && fill_addend(&t->C, c->fill, &r);
    guarded_forbid_writes(&t->A.memory);
    guarded_forbid_writes(&t->B.memory);
    if (ok && t->bias.memory.map != NULL) {
        ok = fill_addend(&t->bias, c->fill, &r);
        guarded_forbid_writes(&t->bias.memory);
    }
    if (ok && t->residual.memory.map != NULL) {
        ok = fill_addend(&t->residual, c->fill, &r);
        guarded_forbid_writes(&t->residual.memory);
    }
    if (ok && has_separate_d(c)) {
        ok = fill_addend(&t->D, UNIFORM_11, &r);
        guarded_forbid_writes(&t->C.memory);
    }
    if (ok) memcpy(t->before, result_of(c, t)->memory.bytes, result_of(c, t)->memory.size);
    return ok;
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
        (t->before = calloc(result_of(c, t)->memory.size + 1, 1)) == NULL || !fill_all(c, t)) {
        FAULT("no memory for the case");
        return;
    }
    outcome->status = run_guarded(dev, c, t);
    if (outcome->status == TGL_OK) {
        product_sums s;
        if (sums_create(&s, p))
            check_result(c, t, &s, want_sequential, outcome);
        else
            FAULT("no memory for the reference");
        sums_free(&s);
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
