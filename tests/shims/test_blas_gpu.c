/* SPDX-License-Identifier: Apache-2.0
 *
 * libtegula_blas.so with TEGULA_BLAS_DEVICE=cuda and the fake CUDA driver: which products run on
 * the GPU, what happens when it fails, threads and child processes. CTest runs test_blas_products
 * with a GPU too.
 */
#include "blas_calls.h"
#include "shim_child.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { N = 150, THREADS = 8 };

static bool multiplies(void)
{
    return multiplies_square(N, 0);
}

static bool adds(void)
{
    return multiplies_square(N, 2);
}

/* Runs fn() with a line for each call on stderr, and all products on the GPU. */
static const char *traced_output(const char *variable, const char *value, child_fn *fn, int *status)
{
    setenv("TEGULA_BLAS_TRACE", "1", 1);
    setenv("TEGULA_BLAS_GPU_SIZE", "1", 0);
    const char *output = output_of_child(variable, value, fn, status);
    unsetenv("TEGULA_BLAS_TRACE");
    unsetenv("TEGULA_BLAS_GPU_SIZE");
    return output;
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void check_server(const char *variable, const char *value, child_fn *fn, const char *server)
{
    char end[100];
    int status;
    snprintf(end, sizeof end, ": %s\n", server);
    const char *output = traced_output(variable, value, fn, &status);
    if (!ends_with(output, end)) fail_msg("%s", output);
    assert_int_equal(status, 0);
}

/* ---- Which products -------------------------------------------------------------------------- */

static void test_size(void **state)
{
    (void)state;
    check_server("TEGULA_BLAS_GPU_SIZE", "150", multiplies, "tegula on the GPU");
    check_server("TEGULA_BLAS_GPU_SIZE", "150.5", multiplies, "tegula");
    check_server("TEGULA_BLAS_DEVICE", "cuda:0", multiplies, "tegula on the GPU");
    check_server("TEGULA_BLAS_DEVICE", "cpu", multiplies, "tegula");
    check_server("TEGULA_BLAS_DEVICE", "", multiplies, "tegula");
}

static void test_invalid_size(void **state)
{
    (void)state;
    static const char *const values[] = {"many", "0", "-3", "10x", "nan"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char expected[300];
        snprintf(expected, sizeof expected,
                 "tegula_blas: TEGULA_BLAS_GPU_SIZE is \"%s\"; it must be a number from 1 on. The "
                 "library chooses the products that run on the GPU.\n",
                 values[i]);
        assert_string_equal(output_of("TEGULA_BLAS_GPU_SIZE", values[i], multiplies), expected);
    }
}

static bool multiplies_small_and_large(void)
{
    return multiplies_square(150, 0) && multiplies_square(450, 0);
}

/* With one thread, the estimate is between these sizes. */
static void test_estimate(void **state)
{
    (void)state;
    setenv("TEGULA_BLAS_TRACE", "1", 1);
    const char *output = output_of("OMP_NUM_THREADS", "1", multiplies_small_and_large);
    unsetenv("TEGULA_BLAS_TRACE");
    assert_string_equal(output,
                        "tegula_blas: sgemm TN m=150 n=150 k=150 alpha=1 lda=150 ldb=150 beta=0 "
                        "ldc=150: tegula\n"
                        "tegula_blas: sgemm TN m=450 n=450 k=450 alpha=1 lda=450 ldb=450 beta=0 "
                        "ldc=450: tegula on the GPU\n");
}

/* ---- Failures -------------------------------------------------------------------------------- */

static bool multiplies_and_adds(void)
{
    return multiplies() && adds();
}

/* One message, and the CPU computes. */
static void test_no_gpu(void **state)
{
    (void)state;
    static const char begin[] = "tegula_blas: cuda does not open: TEGULA_LIBCUDA: ";
    int status;
    const char *output =
        traced_output("TEGULA_LIBCUDA", "/nonexistent", multiplies_and_adds, &status);
    assert_true(strncmp(output, begin, strlen(begin)) == 0);
    const char *second = strstr(output, "Products run on the cpu device.\ntegula_blas: sgemm");
    assert_non_null(second);
    assert_null(strstr(second, "does not open"));
    assert_true(ends_with(output, ": tegula\n"));
    assert_int_equal(status, 0);
}

/* C is unchanged then, and the CPU computes the product, without a message. */
static void test_no_memory(void **state)
{
    (void)state;
    check_server("FAKE_CUDA_MEMORY", "3000", adds, "tegula");
    check_server("FAKE_CUDA_FAIL", "cuMemHostAlloc=2", adds, "tegula");
}

/* The CPU computes the product: the copy fails before any element of C is stored. */
static void test_failed_gpu(void **state)
{
    (void)state;
    static const char message[] = "tegula_blas: the GPU has failed: copying a tile from the device";
    int status;
    const char *output =
        traced_output("FAKE_CUDA_FAIL", "cuMemcpyDtoHAsync_v2=1", multiplies_and_adds, &status);
    assert_true(strncmp(output, message, strlen(message)) == 0);
    assert_true(ends_with(output, ": tegula\n"));
    assert_int_equal(status, 0);
}

/* ---- Batches --------------------------------------------------------------------------------- */

/* C[i] := A*B[i] of two products, A with a 1 in each row: copies of B. */
static bool multiplies_batch(void)
{
    enum { SIDE = 20, AREA = SIDE * SIDE };
    static double A[AREA], B[2 * AREA], C[2 * AREA];
    const void *a[] = {A, A}, *b[] = {B, B + AREA};
    void *c[] = {C, C + AREA};
    for (int i = 0; i < AREA; i++)
        A[i] = i % (SIDE + 1) == 0, B[i] = i, B[AREA + i] = -i;
    const blas_call call = {.layout = COL_MAJOR,
                            .trans_a = NO_TRANS,
                            .trans_b = NO_TRANS,
                            .m = SIDE,
                            .n = SIDE,
                            .k = SIDE,
                            .alpha = 1,
                            .A = A,
                            .B = B,
                            .C = C,
                            .lda = SIDE,
                            .ldb = SIDE,
                            .ldc = SIDE,
                            .stride_b = AREA,
                            .stride_c = AREA,
                            .batch = 2};
    const group_call groups = {.count = 1, .size = {2}, .group = {call}, .A = a, .B = b, .C = c};
    call_strided(&(blas_name){"cblas_dgemm_batch_strided", true, false, true}, &call);
    bool is_right = true;
    for (int i = 0; i < 2 * AREA; i++)
        is_right = is_right && C[i] == B[i];
    memset(C, 0, sizeof C);
    call_groups(&(blas_name){"cblas_dgemm_batch", true, false, true}, &groups);
    for (int i = 0; i < 2 * AREA; i++)
        is_right = is_right && C[i] == B[i];
    return is_right;
}

/* A batch runs on the GPU if each of its products would. */
static void test_batches(void **state)
{
    (void)state;
    check_server("TEGULA_BLAS_GPU_SIZE", "20", multiplies_batch, "tegula on the GPU");
    check_server("TEGULA_BLAS_GPU_SIZE", "21", multiplies_batch, "tegula");
}

/* ---- Threads and processes ------------------------------------------------------------------- */

static void *multiply_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++)
        if (!multiplies()) return "wrong";
    return NULL;
}

static bool multiply_by_threads(void)
{
    pthread_t threads[THREADS];
    bool is_right = true;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, multiply_often, NULL) != 0) return false;
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        is_right = is_right && wrong == NULL;
    }
    return is_right;
}

static void test_threads(void **state)
{
    (void)state;
    check_server(NULL, NULL, multiply_by_threads, "tegula on the GPU");
}

static bool multiplies_and_forks(void)
{
    return multiplies() && is_right_in_child(NULL, NULL, adds);
}

/* The parent has the GPU, its child computes on the CPU. */
static void test_fork(void **state)
{
    (void)state;
    if (!can_fork_threads()) skip();
    int status;
    const char *output = traced_output(NULL, NULL, multiplies_and_forks, &status);
    assert_non_null(strstr(output, "beta=0 ldc=150: tegula on the GPU\n"));
    assert_true(ends_with(output, "beta=2 ldc=150: tegula\n"));
    assert_int_equal(status, 0);
}

/* Children are forked while other threads open the GPU and compute there. */
static bool forks_meanwhile(void)
{
    pthread_t thread;
    bool is_right = pthread_create(&thread, NULL, multiply_often, NULL) == 0;
    for (int i = 0; i < 5; i++)
        is_right = is_right_in_child(NULL, NULL, adds) && is_right;
    void *wrong;
    pthread_join(thread, &wrong);
    return is_right && wrong == NULL;
}

static void test_fork_meanwhile(void **state)
{
    (void)state;
    if (!can_fork_threads()) skip();
    for (int i = 0; i < 3; i++) {
        int status;
        traced_output(NULL, NULL, forks_meanwhile, &status);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),      cmocka_unit_test(test_invalid_size),
        cmocka_unit_test(test_estimate),  cmocka_unit_test(test_no_gpu),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_failed_gpu),
        cmocka_unit_test(test_batches),   cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork),      cmocka_unit_test(test_fork_meanwhile),
    };
    return cmocka_run_group_tests_name("BLAS: GPU", tests, NULL, NULL);
}
