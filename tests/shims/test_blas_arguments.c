/* SPDX-License-Identifier: Apache-2.0
 *
 * Illegal arguments: the routine and the number that the handlers get, and that C stays as it is.
 * This program defines handlers as programs do that use a reference BLAS. Compiled with
 * LIKE_REFERENCE it has all of what the reference CBLAS has: handlers with the names for 64-bit
 * integers, and the variable that tells that a number belongs to the column-major call.
 */
#include "blas_calls.h"

#include <stdio.h>
#include <string.h>

/* What the handlers were last told. */
static char reported[200];

/* The error handlers, which libtegula_blas.so finds in the program. */
void xerbla_(const char *routine, const int32_t *info, size_t length);
void cblas_xerbla(int info, const char *routine, const char *format, ...);

void xerbla_(const char *routine, const int32_t *info, size_t length)
{
    snprintf(reported, sizeof reported, "%.*s %d", (int)length, routine, *info);
}

static void report_cblas(long long info, const char *routine, const char *format, va_list args)
{
    const int length = snprintf(reported, sizeof reported, "%s %lld", routine, info);
    if (format[0] == '\0') return;
    reported[length] = ' ';
    vsnprintf(reported + length + 1, sizeof reported - (size_t)length - 1, format, args);
}

#ifdef LIKE_REFERENCE
extern int RowMajorStrg;
int RowMajorStrg = 1; /* every call must set it */
void xerbla_64_(const char *routine, const int64_t *info, size_t length);
void cblas_xerbla_64(int64_t info, const char *routine, const char *format, ...);
static const char *const suffix_64 = " 64";

void xerbla_64_(const char *routine, const int64_t *info, size_t length)
{
    snprintf(reported, sizeof reported, "%.*s %lld 64", (int)length, routine, (long long)*info);
}

/* The number that the reference's cblas_xerbla.c makes of `info` for a row-major call. The
 * reference has no batches. */
static long long translated(long long info, const char *routine)
{
    if (!RowMajorStrg || strstr(routine, "batch") != NULL) return info;
    if (strstr(routine, "gemm") != NULL)
        return info == 4 ? 5 : info == 5 ? 4 : info == 9 ? 11 : info == 11 ? 9 : info;
    return info == 3 ? 4 : info == 4 ? 3 : info;
}

void cblas_xerbla_64(int64_t info, const char *routine, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_cblas(translated(info, routine), routine, format, args);
    va_end(args);
    strcat(reported, suffix_64);
}
#else
static const char *const suffix_64 = ""; /* one handler for 32-bit and 64-bit integers */
static long long translated(long long info, const char *routine)
{
    (void)routine;
    return info;
}
#endif

void cblas_xerbla(int info, const char *routine, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_cblas(translated(info, routine), routine, format, args);
    va_end(args);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

typedef void call_fn(const blas_name *f, const blas_call *c);

static double C[64], untouched[64];

/* Fails unless this call reports `expected` and leaves C alone. */
static void check_report(const blas_name *f, call_fn *call, blas_call c, const char *expected)
{
    static const double operand[64];
    char wanted[250];
    snprintf(wanted, sizeof wanted, "%s%s", expected, f->is_64 ? suffix_64 : "");
    reported[0] = '\0';
    c.A = c.B = operand, c.C = C;
    call(f, &c);
    if (strcmp(reported, wanted) != 0)
        fail_msg("%s: reported \"%s\" instead of \"%s\"", f->name, reported, wanted);
    assert_memory_equal(C, untouched, sizeof C);
}

/* check_report() for a CBLAS routine (its name without prefix and letter, such as "gemm") and the
 * number of an argument. */
static void check_number(const blas_name *f, call_fn *call, const char *routine, blas_call c,
                         int number)
{
    char expected[100];
    snprintf(expected, sizeof expected, "cblas_%c%s %d", f->is_double ? 'd' : 's', routine, number);
    check_report(f, call, c, expected);
}

/* check_number() with the reference's text about a wrong layout or transpose. */
static void check_setting(const blas_name *f, call_fn *call, const char *routine, blas_call c,
                          int number, const char *setting, int value)
{
    char expected[200];
    snprintf(expected, sizeof expected, "cblas_%c%s %d Illegal %s setting, %d\n",
             f->is_double ? 'd' : 's', routine, number, setting, value);
    check_report(f, call, c, expected);
}

/* C(2x3) := A(2x4) * B(4x3), without padding. */
static blas_call legal_call(int layout)
{
    const bool by_rows = layout == ROW_MAJOR;
    return (blas_call){.layout = layout,
                       .trans_a = NO_TRANS,
                       .trans_b = NO_TRANS,
                       .m = 2,
                       .n = 3,
                       .k = 4,
                       .alpha = 1,
                       .lda = by_rows ? 4 : 2,
                       .ldb = by_rows ? 3 : 4,
                       .ldc = by_rows ? 3 : 2,
                       .stride_a = 8,
                       .stride_b = 12,
                       .stride_c = 6,
                       .batch = 1};
}

#define WITH(call, ...)                                                                            \
    ({                                                                                             \
        blas_call c = call;                                                                        \
        __VA_ARGS__;                                                                               \
        c;                                                                                         \
    })

static void test_fortran_gemm(void **state)
{
    (void)state;
    const blas_call legal = legal_call(COL_MAJOR);
    const struct {
        blas_call call;
        int number;
    } cases[] = {
        {WITH(legal, c.trans_a = 0), 1},
        {WITH(legal, c.trans_b = 0), 2},
        {WITH(legal, c.m = -1), 3},
        {WITH(legal, c.n = -1), 4},
        {WITH(legal, c.k = -1), 5},
        {WITH(legal, c.lda = 1), 8},
        {WITH(legal, c.trans_a = TRANS; c.lda = 3), 8},
        {WITH(legal, c.ldb = 3), 10},
        {WITH(legal, c.trans_b = TRANS; c.ldb = 2), 10},
        {WITH(legal, c.ldc = 1), 13},
        {WITH(legal, c.m = 0; c.lda = 0), 8}, /* at least 1 */
        {WITH(legal, c.m = 0; c.ldc = 0), 13},
        /* Of several wrong arguments the first one is reported. */
        {WITH(legal, c.trans_a = 0; c.trans_b = 0; c.m = -1), 1},
        {WITH(legal, c.m = -1; c.n = -1; c.k = -1; c.lda = 0), 3},
        {WITH(legal, c.k = -1; c.lda = 0; c.ldc = 0), 5},
        {WITH(legal, c.lda = 0; c.ldb = 0; c.ldc = 0), 8},
    };
    for (size_t i = 0; i < COUNT_OF(gemm_names); i++)
        for (size_t j = 0; j < COUNT_OF(cases) && !gemm_names[i].is_cblas; j++) {
            char expected[20];
            snprintf(expected, sizeof expected, "%cGEMM  %d", gemm_names[i].is_double ? 'D' : 'S',
                     cases[j].number);
            check_report(&gemm_names[i], call_gemm, cases[j].call, expected);
        }
}

/* A routine with the arguments of cblas_xgemm() up to ldc. lda, ldb, ldc: their numbers. */
static void check_cblas_gemm(const blas_name *f, call_fn *call, const char *routine, int lda,
                             int ldb, int ldc)
{
    for (int layout = ROW_MAJOR; layout <= COL_MAJOR; layout++) {
        const bool by_rows = layout == ROW_MAJOR;
        const blas_call legal = legal_call(layout);
        check_setting(f, call, routine, WITH(legal, c.layout = 100; c.trans_a = 0), 1, "layout",
                      100);
        check_setting(f, call, routine, WITH(legal, c.trans_a = 114; c.trans_b = 0), 2, "TransA",
                      114);
        check_setting(f, call, routine, WITH(legal, c.trans_b = -1; c.m = -1), 3, "TransB", -1);
        check_number(f, call, routine, WITH(legal, c.m = -1), 4);
        check_number(f, call, routine, WITH(legal, c.n = -1), 5);
        check_number(f, call, routine, WITH(legal, c.k = -1), 6);
        check_number(f, call, routine, WITH(legal, c.lda--), lda);
        check_number(f, call, routine, WITH(legal, c.ldb--), ldb);
        check_number(f, call, routine, WITH(legal, c.ldc--), ldc);
        /* The reference checks the column-major call that replaces a row-major one. */
        check_number(f, call, routine, WITH(legal, c.m = -1; c.n = -1), by_rows ? 5 : 4);
        check_number(f, call, routine, WITH(legal, c.lda--; c.ldb--), by_rows ? ldb : lda);
    }
}

static void test_cblas_gemm(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gemm_names); i++)
        if (gemm_names[i].is_cblas) check_cblas_gemm(&gemm_names[i], call_gemm, "gemm", 9, 11, 14);
}

static void test_gemv(void **state)
{
    (void)state;
    const blas_call base = {.layout = COL_MAJOR,
                            .trans_a = NO_TRANS,
                            .m = 3,
                            .n = 2,
                            .alpha = 1,
                            .lda = 3,
                            .ldb = 1,
                            .ldc = 1};
    const struct {
        blas_call call;
        int number, cblas_number;
    } cases[] = {
        {WITH(base, c.trans_a = 0), 1, 2},
        {WITH(base, c.m = -1), 2, 3},
        {WITH(base, c.n = -1), 3, 4},
        {WITH(base, c.lda = 2), 6, 7},
        {WITH(base, c.m = c.n = 0; c.lda = 0), 6, 7},
        {WITH(base, c.ldb = 0), 8, 9},
        {WITH(base, c.ldc = 0), 11, 12},
        {WITH(base, c.m = 0; c.ldb = 0; c.ldc = 0), 8, 9}, /* also if there is nothing to do */
    };
    for (size_t i = 0; i < COUNT_OF(gemv_names); i++)
        for (size_t j = 0; j < COUNT_OF(cases); j++) {
            const blas_name *f = &gemv_names[i];
            char expected[20];
            snprintf(expected, sizeof expected, "%cGEMV  %d", f->is_double ? 'D' : 'S',
                     cases[j].number);
            if (!f->is_cblas)
                check_report(f, call_gemv, cases[j].call, expected);
            else if (cases[j].number == 1)
                check_setting(f, call_gemv, "gemv", cases[j].call, 2, "TransA", 0);
            else
                check_number(f, call_gemv, "gemv", cases[j].call, cases[j].cblas_number);
        }
}

static void test_row_major_gemv(void **state)
{
    (void)state;
    const blas_call base = {.layout = ROW_MAJOR,
                            .trans_a = NO_TRANS,
                            .m = 2,
                            .n = 3,
                            .alpha = 1,
                            .lda = 3,
                            .ldb = 1,
                            .ldc = 1};
    for (size_t i = 0; i < COUNT_OF(gemv_names); i++) {
        const blas_name *f = &gemv_names[i];
        if (!f->is_cblas) continue;
        check_setting(f, call_gemv, "gemv", WITH(base, c.layout = 0), 1, "layout", 0);
        check_setting(f, call_gemv, "gemv", WITH(base, c.trans_a = 99), 2, "TransA", 99);
        check_number(f, call_gemv, "gemv", WITH(base, c.m = -1), 3);
        check_number(f, call_gemv, "gemv", WITH(base, c.n = -1), 4);
        check_number(f, call_gemv, "gemv", WITH(base, c.m = -1; c.n = -1), 4);
        check_number(f, call_gemv, "gemv", WITH(base, c.lda = 2), 7);
        check_number(f, call_gemv, "gemv", WITH(base, c.ldb = 0), 9);
        check_number(f, call_gemv, "gemv", WITH(base, c.ldc = 0), 12);
    }
}

static void test_strided(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(strided_names); i++) {
        const blas_name *f = &strided_names[i];
        check_cblas_gemm(f, call_strided, "gemm_batch_strided", 9, 12, 16);
        check_number(f, call_strided, "gemm_batch_strided",
                     WITH(legal_call(ROW_MAJOR), c.batch = -1), 18);
    }
}

/* A call_fn: calls a batch of a legal group and this one. */
static void call_second_group(const blas_name *f, const blas_call *c)
{
    const void *A[] = {c->A, c->A}, *B[] = {c->B, c->B};
    void *results[] = {c->C, c->C};
    group_call groups = {.count = c->batch == -2 ? -1 : 2, .A = A, .B = B, .C = results};
    groups.group[0] = legal_call(c->layout), groups.size[0] = 1;
    groups.group[1] = *c, groups.size[1] = c->batch;
    call_groups(f, &groups);
}

/* The first group does not run if the second one is illegal. */
static void test_groups(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(batch_names); i++) {
        const blas_name *f = &batch_names[i];
        check_cblas_gemm(f, call_second_group, "gemm_batch", 9, 11, 14);
        check_number(f, call_second_group, "gemm_batch", WITH(legal_call(COL_MAJOR), c.batch = -1),
                     16);
        check_number(f, call_second_group, "gemm_batch", WITH(legal_call(COL_MAJOR), c.batch = -2),
                     15);
    }
}

static int fill_c(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(C); i++)
        C[i] = untouched[i] = 0.5 + (double)i;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fortran_gemm), cmocka_unit_test(test_cblas_gemm),
        cmocka_unit_test(test_gemv),         cmocka_unit_test(test_row_major_gemv),
        cmocka_unit_test(test_strided),      cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests_name("BLAS: illegal arguments", tests, fill_c, NULL);
}
