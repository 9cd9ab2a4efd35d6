/* SPDX-License-Identifier: Apache-2.0
 *
 * CGEMM, ZGEMM, their 3M names, CGEMV and ZGEMV of libtegula_blas.so against a reference in double
 * complex: every exported name, with both layouts, all transposes and conjugates, special values of
 * alpha and beta, padding, increments of both signs, and matrices that are not aligned. Elements
 * that must not be read are NaN, and all of C and y is compared.
 */
#include "blas_calls.h"

#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONJ_NO_TRANS = 114, SIZE = 5000 };

/* The arguments of xGEMM, or of xGEMV as in blas_call. */
typedef struct call {
    int layout, trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    double complex alpha, beta;
    char *A, *B, *C;
} call;

/* A way to call: the precision, the interface and the integers. */
typedef struct interface {
    bool is_double, is_cblas, is_64;
} interface;

static size_t element_of(interface f)
{
    return f.is_double ? sizeof(double complex) : sizeof(float complex);
}

static double complex load(interface f, const char *memory, int64_t index)
{
    float complex single;
    double complex value;
    if (f.is_double) memcpy(&value, memory + index * (int64_t)sizeof value, sizeof value);
    if (f.is_double) return value;
    memcpy(&single, memory + index * (int64_t)sizeof single, sizeof single);
    return single;
}

static void store(interface f, char *memory, int64_t index, double complex value)
{
    const float complex single = (float complex)value;
    memcpy(memory + index * (int64_t)element_of(f), f.is_double ? (const void *)&value : &single,
           element_of(f));
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Writes the name of a routine, "gemm", for this interface. scipy: with the prefix of the wheels.
 */
static void name_of(interface f, const char *routine, bool scipy, bool other_64, char name[64])
{
    const char *suffix = f.is_cblas ? f.is_64 ? other_64 ? "_64" : "64_" : ""
                         : f.is_64  ? "_64_"
                                    : "_";
    snprintf(name, 64, "%s%s%s%s%s", scipy ? "scipy_" : "", f.is_cblas ? "cblas_" : "",
             f.is_double ? "z" : "c", routine, suffix);
}

static char letter_of(int trans)
{
    return "NTCr"[trans - NO_TRANS];
}

#define CALLS_OF(I)                                                                                \
    static void gemm_##I(interface f, void *address, const call *c, const void *alpha,             \
                         const void *beta)                                                         \
    {                                                                                              \
        typedef void fortran(const char *, const char *, const I *, const I *, const I *,          \
                             const void *, const void *, const I *, const void *, const I *,       \
                             const void *, void *, const I *, size_t, size_t);                     \
        typedef void cblas(int, int, int, I, I, I, const void *, const void *, I, const void *, I, \
                           const void *, void *, I);                                               \
        const I m = (I)c->m, n = (I)c->n, k = (I)c->k;                                             \
        const I lda = (I)c->lda, ldb = (I)c->ldb, ldc = (I)c->ldc;                                 \
        const char a = letter_of(c->trans_a), b = letter_of(c->trans_b);                           \
        if (f.is_cblas)                                                                            \
            ((cblas *)address)(c->layout, c->trans_a, c->trans_b, m, n, k, alpha, c->A, lda, c->B, \
                               ldb, beta, c->C, ldc);                                              \
        else                                                                                       \
            ((fortran *)address)(&a, &b, &m, &n, &k, alpha, c->A, &lda, c->B, &ldb, beta, c->C,    \
                                 &ldc, 1, 1);                                                      \
    }                                                                                              \
    static void gemv_##I(interface f, void *address, const call *c, const void *alpha,             \
                         const void *beta)                                                         \
    {                                                                                              \
        typedef void fortran(const char *, const I *, const I *, const void *, const void *,       \
                             const I *, const void *, const I *, const void *, void *, const I *,  \
                             size_t);                                                              \
        typedef void cblas(int, int, I, I, const void *, const void *, I, const void *, I,         \
                           const void *, void *, I);                                               \
        const I m = (I)c->m, n = (I)c->n, lda = (I)c->lda, incx = (I)c->ldb, incy = (I)c->ldc;     \
        const char trans = letter_of(c->trans_a);                                                  \
        if (f.is_cblas)                                                                            \
            ((cblas *)address)(c->layout, c->trans_a, m, n, alpha, c->A, lda, c->B, incx, beta,    \
                               c->C, incy);                                                        \
        else                                                                                       \
            ((fortran *)address)(&trans, &m, &n, alpha, c->A, &lda, c->B, &incx, beta, c->C,       \
                                 &incy, 1);                                                        \
    }
CALLS_OF(int32_t)
CALLS_OF(int64_t)

static void run(interface f, const char *name, bool is_gemv, const call *c)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL) fail_msg("%s is not exported", name);
    char alpha[sizeof(double complex)], beta[sizeof(double complex)];
    store(f, alpha, 0, c->alpha);
    store(f, beta, 0, c->beta);
    if (f.is_64)
        (is_gemv ? gemv_int64_t : gemm_int64_t)(f, address, c, alpha, beta);
    else
        (is_gemv ? gemv_int32_t : gemm_int32_t)(f, address, c, alpha, beta);
}

/* ---- Reference ------------------------------------------------------------------------------- */

static bool is_transposed(int trans)
{
    return trans == TRANS || trans == CONJ_TRANS;
}

/* Element (row, column) of op(X). */
static double complex element(interface f, const call *c, const char *X, int trans, int64_t ld,
                              int64_t row, int64_t column)
{
    const bool by_rows = (c->layout == ROW_MAJOR) != is_transposed(trans);
    const double complex z = load(f, X, by_rows ? row * ld + column : row + column * ld);
    return trans == CONJ_TRANS || trans == CONJ_NO_TRANS ? conj(z) : z;
}

/* expected[index] := alpha*sum + beta*expected[index]. */
static void finish(interface f, const call *c, char *expected, int64_t index, double complex sum)
{
    double complex result = c->alpha != 0 ? c->alpha * sum : 0;
    if (c->beta != 0) result += c->beta * load(f, expected, index);
    store(f, expected, index, result);
}

static void expect_gemm(interface f, const call *c, char *expected)
{
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            double complex sum = 0;
            for (int64_t l = 0; c->alpha != 0 && l < c->k; l++)
                sum += element(f, c, c->A, c->trans_a, c->lda, i, l) *
                       element(f, c, c->B, c->trans_b, c->ldb, l, j);
            finish(f, c, expected, c->layout == ROW_MAJOR ? i * c->ldc + j : i + j * c->ldc, sum);
        }
}

/* Index of element i of a vector. */
static int64_t at(int64_t length, int64_t increment, int64_t i)
{
    return (increment < 0 ? i - length + 1 : i) * increment;
}

static void expect_gemv(interface f, const call *c, char *expected)
{
    const bool transposed = is_transposed(c->trans_a);
    const int64_t rows = transposed ? c->n : c->m, columns = transposed ? c->m : c->n;
    for (int64_t i = 0; i < rows && columns > 0; i++) {
        double complex sum = 0;
        for (int64_t j = 0; c->alpha != 0 && j < columns; j++)
            sum += element(f, c, c->A, c->trans_a, c->lda, i, j) *
                   load(f, c->B, at(columns, c->ldb, j));
        finish(f, c, expected, at(rows, c->ldc, i), sum);
    }
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static double complex random_scalar(uint64_t *seed)
{
    static const double complex values[] = {0, 1, -1.5, 0.75 * I, 1 - 2 * I};
    return values[next_random(seed) % COUNT_OF(values)];
}

/* Memory of SIZE elements, random or NaN, that begin `shift` bytes behind its aligned address. */
static char *elements(uint64_t *seed, interface f, bool is_nan, int shift)
{
    char *memory = malloc(SIZE * sizeof(double complex) + 64);
    assert_non_null(memory);
    for (int64_t i = 0; i < SIZE; i++) {
        const double re = next_random(seed) / 2147483648.0 - 1;
        const double im = next_random(seed) / 2147483648.0 - 1;
        store(f, memory + shift, i, is_nan ? (double)NAN : re + im * I);
    }
    return memory;
}

static void compare(interface f, const char *name, const call *c, const char *expected)
{
    const double bound = (f.is_double ? 0x1p-53 : 0x1p-24) * 40 * (double)(c->k + c->m + c->n + 4);
    for (int64_t i = 0; i < SIZE; i++) {
        const double complex x = load(f, c->C, i), y = load(f, expected, i);
        const bool is_same = cabs(x - y) <= bound || (isnan(creal(x)) && isnan(creal(y)));
        if (!is_same)
            fail_msg("%s: layout=%d trans=%d,%d m=%lld n=%lld k=%lld alpha=%g%+gi beta=%g%+gi "
                     "ld=%lld,%lld,%lld: element %lld is %g%+gi and not %g%+gi",
                     name, c->layout, c->trans_a, c->trans_b, (long long)c->m, (long long)c->n,
                     (long long)c->k, creal(c->alpha), cimag(c->alpha), creal(c->beta),
                     cimag(c->beta), (long long)c->lda, (long long)c->ldb, (long long)c->ldc,
                     (long long)i, creal(x), cimag(x), creal(y), cimag(y));
    }
}

/* The leading dimension of a stored matrix X with some padding; op(X) is rows x columns. */
static int64_t random_ld(uint64_t *seed, int layout, int trans, int64_t rows, int64_t columns)
{
    const int64_t least = (layout == ROW_MAJOR) != is_transposed(trans) ? columns : rows;
    return (least > 1 ? least : 1) + random_between(seed, 0, 3);
}

static call random_call(uint64_t *seed, interface f, bool is_gemv)
{
    call c = {.layout = f.is_cblas && next_random(seed) % 2 ? ROW_MAJOR : COL_MAJOR,
              .trans_a = NO_TRANS + (int)(next_random(seed) % 4),
              .trans_b = NO_TRANS + (int)(next_random(seed) % 4),
              .m = random_between(seed, 0, 30),
              .n = random_between(seed, 0, 30),
              .k = random_between(seed, 0, 30),
              .alpha = random_scalar(seed),
              .beta = random_scalar(seed)};
    if (is_gemv) {
        c.k = 0;
        c.lda = random_ld(seed, c.layout, NO_TRANS, c.m, c.n);
        c.ldb = random_between(seed, 1, 3) * (next_random(seed) % 2 ? 1 : -1);
        c.ldc = random_between(seed, 1, 3) * (next_random(seed) % 2 ? 1 : -1);
        return c;
    }
    c.lda = random_ld(seed, c.layout, c.trans_a, c.m, c.k);
    c.ldb = random_ld(seed, c.layout, c.trans_b, c.k, c.n);
    c.ldc = random_ld(seed, c.layout, NO_TRANS, c.m, c.n);
    return c;
}

static void test_name(uint64_t *seed, interface f, const char *name, bool is_gemv)
{
    for (int i = 0; i < 60; i++) {
        call c = random_call(seed, f, is_gemv);
        const int shift = i % 4 == 3 ? 2 : 0;
        char *A = elements(seed, f, c.alpha == 0, shift), *B = elements(seed, f, c.alpha == 0, 0);
        char *C = elements(seed, f, c.beta == 0, shift);
        char *expected = malloc(SIZE * sizeof(double complex));
        assert_non_null(expected);
        c.A = A + shift, c.B = B, c.C = C + shift;
        memcpy(expected, c.C, SIZE * element_of(f));
        (is_gemv ? expect_gemv : expect_gemm)(f, &c, expected);
        run(f, name, is_gemv, &c);
        compare(f, name, &c, expected);
        free(A), free(B), free(C), free(expected);
    }
}

static void test_routine(const char *routine, bool is_gemv)
{
    uint64_t seed = 44;
    char name[64];
    for (int i = 0; i < 8; i++) {
        const interface f = {i & 1, i & 2, i & 4};
        for (int scipy = 0; scipy < 2; scipy++) {
            name_of(f, routine, scipy, false, name);
            test_name(&seed, f, name, is_gemv);
        }
        if (!f.is_cblas || !f.is_64) continue;
        name_of(f, routine, false, true, name);
        test_name(&seed, f, name, is_gemv);
    }
}

static void test_gemm(void **state)
{
    (void)state;
    test_routine("gemm", false);
}

static void test_gemm3m(void **state)
{
    (void)state;
    test_routine("gemm3m", false);
}

static void test_gemv(void **state)
{
    (void)state;
    test_routine("gemv", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm3m),
        cmocka_unit_test(test_gemv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
