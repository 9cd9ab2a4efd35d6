/* SPDX-License-Identifier: Apache-2.0
 *
 * libtegula_blas.so with TEGULA_BLAS_DEVICE=cuda and the fake CUDA driver: which products run on
 * the GPU, what happens when it fails, threads and child processes. CTest runs test_blas_products
 * with this driver too.
 */
#include "blas_calls.h"
#include "shim_child.h"

#include <pthread.h>
#include <sched.h>
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

/* Computes C := A*B + 2*C of m x n x k ones by sgemm_(). C begins `offset` bytes behind an aligned
 * address. Returns whether it is right. */
static bool multiplies_ones(int m, int n, int k, int offset)
{
    const size_t size_c = (size_t)m * (size_t)n * sizeof(float);
    float *A = malloc((size_t)m * (size_t)k * sizeof *A);
    float *B = malloc((size_t)k * (size_t)n * sizeof *B);
    char *C = malloc(size_c + (size_t)offset);
    bool is_right = A != NULL && B != NULL && C != NULL;
    const float one = 1, expected = (float)k + 2;
    for (int i = 0; is_right && i < m * k; i++)
        A[i] = 1;
    for (int i = 0; is_right && i < k * n; i++)
        B[i] = 1;
    for (size_t i = 0; is_right && i < size_c; i += sizeof one)
        memcpy(C + offset + i, &one, sizeof one);
    const blas_call c = {.layout = COL_MAJOR,
                         .trans_a = NO_TRANS,
                         .trans_b = NO_TRANS,
                         .m = m,
                         .n = n,
                         .k = k,
                         .alpha = 1,
                         .beta = 2,
                         .A = A,
                         .B = B,
                         .C = C + offset,
                         .lda = m,
                         .ldb = k,
                         .ldc = m};
    if (is_right) call_gemm(&(blas_name){"sgemm_", false, false, false}, &c);
    for (size_t i = 0; is_right && i < size_c; i += sizeof one) {
        float element; /* C may be misaligned */
        memcpy(&element, C + offset + i, sizeof element);
        is_right = element == expected;
    }
    free(A), free(B), free(C);
    return is_right;
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

static bool multiplies_row(void)
{
    return multiplies_ones(1, N, N, 0);
}

static bool multiplies_column(void)
{
    return multiplies_ones(N, 1, N, 0);
}

static bool multiplies_vector(void)
{
    static float A[N * N], x[N], y[N];
    for (int i = 0; i < N; i++)
        A[i * N + i] = 1, x[i] = (float)i;
    const blas_call c = {.layout = COL_MAJOR,
                         .trans_a = NO_TRANS,
                         .m = N,
                         .n = N,
                         .alpha = 1,
                         .A = A,
                         .B = x,
                         .C = y,
                         .lda = N,
                         .ldb = 1,
                         .ldc = 1};
    call_gemv(&(blas_name){"sgemv_", false, false, false}, &c);
    for (int i = 0; i < N; i++)
        if (y[i] != x[i]) return false;
    return true;
}

/* Products with one row or one column stay on the CPU, whatever the size says. */
static void test_vectors(void **state)
{
    (void)state;
    check_server(NULL, NULL, multiplies_row, "tegula");
    check_server(NULL, NULL, multiplies_column, "tegula");
    check_server(NULL, NULL, multiplies_vector, "tegula");
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

/* If no GPU opens, there is one message, and the CPU computes. */
static void test_no_gpu(void **state)
{
    (void)state;
    static const char begin[] = "tegula_blas: cuda does not open: TEGULA_LIBCUDA names no ";
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

/* If the GPU has no memory, the CPU computes the product without a message. */
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

/* A matrix that is not aligned to its elements is copied. */
static bool multiplies_misaligned_and_aligned(void)
{
    return multiplies_ones(20, 20, 20, 1) && multiplies_ones(20, 20, 20, 0);
}

static void test_misaligned(void **state)
{
    (void)state;
    int status;
    const char *output = traced_output(NULL, NULL, multiplies_misaligned_and_aligned, &status);
    assert_string_equal(output, "tegula_blas: sgemm NN m=20 n=20 k=20 alpha=1 lda=20 ldb=20 beta=2 "
                                "ldc=20: tegula on the GPU\n"
                                "tegula_blas: sgemm NN m=20 n=20 k=20 alpha=1 lda=20 ldb=20 beta=2 "
                                "ldc=20: tegula on the GPU\n");
    assert_int_equal(status, 0);
}

/* C has four tiles. A tile is stored after the next one has been enqueued. If the copy of the
 * second tile fails, no tile has been stored; if that of the third fails, one has. */
static const char fails_before_tiles[] = "cuMemcpyDtoHAsync_v2=1:1";
static const char fails_between_tiles[] = "cuMemcpyDtoHAsync_v2=1:2";

static bool multiplies_tiles(void)
{
    return multiplies_ones(1100, 1100, 4, 0);
}

/* If the GPU fails after tiles of C were stored, the CPU computes the rest without a message. */
static void test_late_failure(void **state)
{
    (void)state;
    int status;
    const char *output =
        traced_output("FAKE_CUDA_FAIL", fails_before_tiles, multiplies_tiles, &status);
    assert_non_null(strstr(output, "tegula_blas: the GPU has failed: "));
    assert_true(ends_with(output, "ldc=1100: tegula\n"));
    assert_int_equal(status, 0);
    output = traced_output("FAKE_CUDA_FAIL", fails_between_tiles, multiplies_tiles, &status);
    assert_string_equal(output, "tegula_blas: sgemm NN m=1100 n=1100 k=4 alpha=1 lda=1100 ldb=4 "
                                "beta=2 ldc=1100: tegula on the GPU\n");
    assert_int_equal(status, 0);
}

/* If the CPU cannot compute the rest, the process is aborted. */
static void test_failure_of_both(void **state)
{
    (void)state;
    int status;
    setenv("FAKE_CUDA_FAIL", fails_between_tiles, 1);
    const char *output = traced_output("TEGULA_CPU", "none", multiplies_tiles, &status);
    unsetenv("FAKE_CUDA_FAIL");
    assert_non_null(strstr(output, "tegula_blas: the GPU has failed: "));
    assert_true(ends_with(output, " C is undefined.\n"));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
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
    return is_right_in_threads(THREADS, multiply_often);
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

/* The parent has used the GPU, so its child computes on the CPU. */
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

static bool enters_namespace(void)
{
    return unshare(CLONE_NEWPID) == 0;
}

static bool is_right_in_namespace(void)
{
    return enters_namespace() && is_right_in_child(NULL, NULL, adds);
}

static bool multiplies_as_number_one(void)
{
    return multiplies() && is_right_in_namespace();
}

/* Parent and child are both number 1 of a namespace of process IDs. */
static bool has_child_of_the_same_number(void)
{
    return enters_namespace() && is_right_in_child(NULL, NULL, multiplies_as_number_one);
}

static void test_same_number(void **state)
{
    (void)state;
    if (!can_fork_threads()) skip();
    if (!is_right_in_child(NULL, NULL, enters_namespace)) skip(); /* only root may */
    int status;
    const char *output = traced_output(NULL, NULL, has_child_of_the_same_number, &status);
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
        cmocka_unit_test(test_size),           cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_invalid_size),   cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_no_gpu),         cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_failed_gpu),     cmocka_unit_test(test_misaligned),
        cmocka_unit_test(test_late_failure),   cmocka_unit_test(test_failure_of_both),
        cmocka_unit_test(test_batches),        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork),           cmocka_unit_test(test_same_number),
        cmocka_unit_test(test_fork_meanwhile),
    };
    return cmocka_run_group_tests_name("BLAS: GPU", tests, NULL, NULL);
}
