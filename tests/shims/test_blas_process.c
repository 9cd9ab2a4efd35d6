/* SPDX-License-Identifier: Apache-2.0
 *
 * libtegula_blas.so in a process: its first call comes from many threads at once, the process
 * forks, an environment variable is invalid, the process has no xerbla, and Tegula cannot compute a
 * product. Each test runs in a child, where the library has not been used yet.
 */
#include "blas_calls.h"
#include "shim_child.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 150, THREADS = 8 };

/* ---- Products -------------------------------------------------------------------------------- */

static const blas_name sgemm = {"sgemm_", false, false, false};
static const blas_name cblas_dgemm = {"cblas_dgemm", true, false, true};

static bool multiplies(void)
{
    return multiplies_square(N, 0);
}

static void *multiply_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++)
        if (!multiplies()) return "wrong";
    return NULL;
}

static bool multiply_by_threads(void)
{
    return is_right_in_threads(THREADS, multiply_often);
}

/* ---- Children -------------------------------------------------------------------------------- */

static void check_output(const char *variable, const char *value, child_fn *fn,
                         const char *expected)
{
    assert_string_equal(output_of(variable, value, fn), expected);
}

static void test_threads(void **state)
{
    (void)state;
    assert_true(is_right_in_child(NULL, NULL, multiply_by_threads));
}

static bool forks_after_threads(void)
{
    return multiply_by_threads() && is_right_in_child(NULL, NULL, multiply_by_threads) &&
           multiplies();
}

/* Children are forked while other threads compute, and while they open the device. */
static bool forks_meanwhile(void)
{
    pthread_t thread;
    bool is_right = pthread_create(&thread, NULL, multiply_often, NULL) == 0;
    for (int i = 0; i < 10; i++)
        is_right = is_right_in_child(NULL, NULL, multiplies) && is_right;
    void *wrong;
    pthread_join(thread, &wrong);
    return is_right && wrong == NULL;
}

static void test_fork(void **state)
{
    (void)state;
    if (!can_fork_threads()) skip();
    assert_true(is_right_in_child(NULL, NULL, forks_after_threads));
    for (int i = 0; i < 5; i++)
        assert_true(is_right_in_child(NULL, NULL, forks_meanwhile));
}

/* ---- What it prints -------------------------------------------------------------------------- */

static bool uses_every_routine(void)
{
    double A[16] = {1, 2, 3, 4}, C[16];
    const void *pointers[] = {A};
    void *results[] = {C};
    blas_call c = {.layout = ROW_MAJOR,
                   .trans_a = TRANS,
                   .trans_b = NO_TRANS,
                   .m = 1,
                   .n = 2,
                   .k = 3,
                   .alpha = 0.5,
                   .A = A,
                   .B = A,
                   .C = C,
                   .lda = 4,
                   .ldb = 5,
                   .ldc = 6,
                   .batch = 1};
    group_call groups = {.count = 1, .size = {1}, .A = pointers, .B = pointers, .C = results};
    call_gemm(&sgemm,
              &(blas_call){
                  .trans_a = NO_TRANS, .trans_b = TRANS, .alpha = 1, .lda = 1, .ldb = 1, .ldc = 1});
    call_gemm(&cblas_dgemm, &c);
    call_strided(&(blas_name){"cblas_dgemm_batch_strided", true, false, true}, &c);
    groups.group[0] = c;
    call_groups(&(blas_name){"cblas_dgemm_batch64_", true, true, true}, &groups);
    c.m = 3, c.n = 2, c.ldb = 1, c.ldc = -1;
    call_gemv(&(blas_name){"cblas_dgemv", true, false, true}, &c);
    return true;
}

static void test_trace(void **state)
{
    (void)state;
    check_output(
        "TEGULA_BLAS_TRACE", "1", uses_every_routine,
        "tegula_blas: sgemm NT m=0 n=0 k=0 alpha=1 lda=1 ldb=1 beta=0 ldc=1: nothing to do\n"
        "tegula_blas: cblas_dgemm NT m=2 n=1 k=3 alpha=0.5 lda=5 ldb=4 beta=0 ldc=6: tegula\n"
        "tegula_blas: cblas_dgemm_batch_strided NT m=2 n=1 k=3 alpha=0.5 lda=5 ldb=4 beta=0 "
        "ldc=6 batch=1: tegula\n"
        "tegula_blas: cblas_dgemm_batch NT m=2 n=1 k=3 alpha=0.5 lda=5 ldb=4 beta=0 ldc=6 "
        "batch=1: tegula\n"
        "tegula_blas: cblas_dgemv N m=2 n=3 alpha=0.5 lda=4 incx=1 beta=0 incy=-1: tegula\n");
    check_output("TEGULA_BLAS_TRACE", "0", uses_every_routine, "");
    check_output("TEGULA_BLAS_TRACE", "", uses_every_routine, "");
    check_output(NULL, NULL, uses_every_routine, "");
}

/* A product that is too small for the GPU does not open it. */
static void test_device_setting(void **state)
{
    (void)state;
    check_output("TEGULA_BLAS_DEVICE", "cpu", multiplies, "");
    check_output("TEGULA_BLAS_DEVICE", "cuda", multiplies, "");
    check_output("TEGULA_BLAS_DEVICE", "cuda:1", multiplies, "");
    check_output("TEGULA_BLAS_DEVICE", "", multiplies, "");
    static const char *const invalid[] = {"gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda1"};
    for (size_t i = 0; i < COUNT_OF(invalid); i++) {
        char expected[200];
        snprintf(expected, sizeof expected,
                 "tegula_blas: TEGULA_BLAS_DEVICE is \"%s\"; it must be cpu, cuda or cuda:N. "
                 "Products run on the cpu device.\n",
                 invalid[i]);
        check_output("TEGULA_BLAS_DEVICE", invalid[i], multiplies, expected);
    }
}

/* The messages of the reference BLAS, whose handlers end the program; without a handler the call
 * returns. */
static bool makes_mistakes(void)
{
    double C[4] = {7, 7, 7, 7};
    const blas_call c = {.layout = ROW_MAJOR,
                         .trans_a = NO_TRANS,
                         .trans_b = NO_TRANS,
                         .m = 2,
                         .n = 2,
                         .k = 2,
                         .lda = 1,
                         .ldb = 2,
                         .ldc = 2,
                         .C = C};
    blas_call with_setting = c;
    with_setting.trans_b = 5;
    call_gemm(&sgemm, &c);
    call_gemm(&(blas_name){"dgemm_64_", false, true, true}, &c);
    call_gemm(&cblas_dgemm, &c);
    call_gemm(&(blas_name){"cblas_sgemm64_", true, true, false}, &with_setting);
    return C[0] == 7 && C[1] == 7;
}

static void test_no_handler(void **state)
{
    (void)state;
    check_output(NULL, NULL, makes_mistakes,
                 " ** On entry to SGEMM parameter number  8 had an illegal value\n"
                 " ** On entry to DGEMM parameter number  8 had an illegal value\n"
                 "Parameter 9 to routine cblas_dgemm was incorrect\n"
                 "Parameter 3 to routine cblas_sgemm was incorrect\n"
                 "Illegal TransB setting, 5\n");
}

/* ---- The next BLAS (fake_blas.c) ------------------------------------------------------------- */

/* Makes a call with alpha = 3 and beta = 4. Returns whether fake_blas.c got its arguments. */
static bool next_gets(const blas_name *f, bool is_misaligned)
{
    _Alignas(double) char memory[64 * sizeof(double) + 1];
    char *C = memory + (is_misaligned ? 1 : 0);
    double A[1], B[1];
    set(A, f->is_double, 0, 5), set(B, f->is_double, 0, 6);
    const blas_call c = {.layout = COL_MAJOR,
                         .trans_a = TRANS,
                         .trans_b = NO_TRANS,
                         .m = 14,
                         .n = 1,
                         .k = 1,
                         .alpha = 3,
                         .beta = 4,
                         .A = A,
                         .B = B,
                         .C = C,
                         .lda = 15,
                         .ldb = 16,
                         .ldc = 17};
    const double expected[13] = {'T', 'N', 14, 1, 1, 3, 5, 15, 6, 16, 4, 17, 11};
    call_gemm(f, &c);
    bool is_right = true;
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const size_t element = f->is_double ? sizeof(double) : sizeof(float);
        double found[1]; /* aligned, unlike C */
        memcpy(found, C + i * element, element);
        is_right = is_right && get(found, f->is_double, 0) == expected[i];
    }
    return is_right;
}

static bool next_serves(void)
{
    return next_gets(&sgemm, false) && next_gets(&cblas_dgemm, false) &&
           next_gets(&(blas_name){"sgemm_64_", false, true, false}, false);
}

/* A product that Tegula refuses goes to the next BLAS: C is not aligned to its elements. */
static bool next_serves_misaligned(void)
{
    return next_gets(&cblas_dgemm, true) && multiplies();
}

static void test_next(void **state)
{
    (void)state;
    const char *output = output_of("TEGULA_CPU", "none", next_serves);
    const char *begin =
        "tegula_blas: the cpu device does not open: TEGULA_CPU=\"none\" is not the ";
    const char *end =
        ". Products are computed by the next BLAS, or by a slow loop if there is none.\n";
    assert_true(strncmp(output, begin, strlen(begin)) == 0);
    assert_true(strlen(output) > strlen(end));
    assert_string_equal(output + strlen(output) - strlen(end), end);
    check_output(NULL, NULL, next_serves_misaligned, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_fork),
        cmocka_unit_test(test_trace),      cmocka_unit_test(test_device_setting),
        cmocka_unit_test(test_no_handler), cmocka_unit_test(test_next),
    };
    return cmocka_run_group_tests_name("BLAS: process", tests, NULL, NULL);
}
