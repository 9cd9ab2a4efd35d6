/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda device on a real GPU; skipped if there is none. Every kernel compared with a reference,
 * the caller's context, threads, exhausted memory, and a kernel that faults. `make gpu` runs it
 * before a release. test_cuda_streams.c tests streams and graphs.
 */
#include "driver_calls.h"
#include "support.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup_cuda(void **state)
{
    char message[512];
    tgl_status status = tgl_device_open("cuda", NULL, (tgl_device **)state);
    tgl_last_error(message, sizeof message);
    if (status != TGL_OK) print_error("%s: %s\n", tgl_status_name(status), message);
    return status == TGL_OK ? 0 : -1;
}

/* ---- Products -------------------------------------------------------------------------------- */

typedef struct product {
    int m, n, k;
    int pad;    /* elements between rows */
    int offset; /* elements before the first: 1 breaks every alignment except that of the element */
    double alpha, beta;
} product;

static const product products[] = {
    {1, 1, 1, 0, 0, 1, 0},         {1, 1, 4097, 0, 0, 1, 0},    {3, 5, 7, 1, 1, -0.5, 1},
    {31, 33, 65, 0, 0, 1, -0.5},   {64, 64, 64, 0, 0, 1, 0},    {127, 130, 3, 3, 1, 1, 1},
    {128, 256, 16, 0, 0, 1, 1},    {129, 257, 63, 4, 0, 1, 0},  {130, 32, 127, 0, 1, -0.5, 0},
    {256, 512, 128, 0, 0, 1, 0.5}, {300, 200, 100, 4, 0, 0, 2}, {257, 300, 0, 0, 0, 1, 0},
    {1, 1000, 300, 0, 0, 1, 0},    {1000, 1, 300, 1, 0, 1, 0},  {255, 255, 255, 1, 1, 2, -1},
};

/* A matrix of rows x cols on the host and on the device, with NaN around its elements. */
typedef struct matrix {
    int rows, cols, ld, offset;
    size_t count;
    float *host;
    float *dev; /* including the offset */
    void *memory;
} matrix;

static float random_value(uint32_t *seed) /* (-1, 1) */
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int32_t)*seed / 2147483648.0f;
}

static matrix make_matrix(tgl_device *dev, int rows, int cols, const product *p, uint32_t seed)
{
    matrix x = {.rows = rows, .cols = cols, .ld = cols + p->pad, .offset = p->offset};
    if (x.ld < 1) x.ld = 1;
    x.count = (size_t)rows * (size_t)x.ld + (size_t)x.offset + 1;
    x.host = malloc(x.count * sizeof *x.host);
    assert_non_null(x.host);
    for (size_t i = 0; i < x.count; i++)
        x.host[i] = NAN;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            x.host[x.offset + i * x.ld + j] = random_value(&seed);
    assert_ok(tgl_alloc(dev, x.count * sizeof *x.host, &x.memory));
    assert_ok(tgl_upload(dev, x.memory, x.host, x.count * sizeof *x.host, NULL));
    x.dev = (float *)x.memory + x.offset;
    return x;
}

static void free_matrix(tgl_device *dev, matrix *x)
{
    tgl_free(dev, x->memory);
    free(x->host);
}

static double at(const matrix *x, int i, int j)
{
    return (double)x->host[x->offset + i * x->ld + j];
}

/* The expected C, and for each element the accepted error: the bound of sequential summation. */
static void reference(const product *p, const matrix *A, const matrix *B, const matrix *C,
                      double *expected, double *bound)
{
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) {
            double sum = 0, size = 0;
            for (int q = 0; q < p->k && p->alpha != 0; q++) {
                const double term = at(A, i, q) * at(B, q, j);
                sum += term;
                size += fabs(term);
            }
            const double old = p->beta != 0 ? p->beta * at(C, i, j) : 0;
            expected[i * p->n + j] = p->alpha * sum + old;
            bound[i * p->n + j] = (p->k + 4) * 0x1p-24 * (fabs(p->alpha) * size + fabs(old));
        }
}

static void compare(const char *kernel, const product *p, const matrix *before, const float *after,
                    const double *expected, const double *bound)
{
    for (size_t x = 0; x < before->count; x++) {
        const int64_t place = (int64_t)x - before->offset;
        const int i = (int)(place / before->ld), j = (int)(place % before->ld);
        if (place < 0 || i >= p->m || j >= p->n) { /* elements around C must not change */
            assert_memory_equal(&after[x], &before->host[x], sizeof after[x]);
            continue;
        }
        const double error = fabs((double)after[x] - expected[i * p->n + j]);
        if (!(error <= bound[i * p->n + j])) /* a NaN fails, too */
            fail_msg("%s, m=%d n=%d k=%d alpha=%g beta=%g: C(%d, %d) is %g, not %g", kernel, p->m,
                     p->n, p->k, p->alpha, p->beta, i, j, (double)after[x], expected[i * p->n + j]);
    }
}

/* False: the kernel does not support the product. */
static bool run_kernel(tgl_device *dev, const char *kernel, const product *p, const matrix *A,
                       const matrix *B, const matrix *C, float *result)
{
    tgl_problem problem = problem_of(TGL_F32, p->m, p->n, p->k);
    problem.lda = A->ld;
    problem.ldb = B->ld;
    problem.ldc = C->ld;
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    const size_t bytes = C->count * sizeof *C->host;
    tgl_plan *plan;
    const tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    if (status == TGL_UNSUPPORTED) return false; /* the kernel supports fewer rows */
    assert_ok(status);
    float *again = malloc(bytes);
    assert_true(again != NULL && result != NULL);
    for (int i = 0; i < 2; i++) { /* both results must be bitwise equal */
        assert_ok(tgl_upload(dev, C->memory, C->host, bytes, NULL));
        assert_ok(tgl_plan_run(plan, p->alpha, A->dev, B->dev, p->beta, C->dev, NULL));
        assert_ok(tgl_download(dev, i == 0 ? result : again, C->memory, bytes, NULL));
    }
    assert_memory_equal(again, result, bytes);
    free(again);
    tgl_plan_destroy(plan);
    return true;
}

static void every_kernel_agrees_with_the_reference(void **state)
{
    tgl_device *dev = *state;
    const char *kernel;
    for (size_t c = 0; c < COUNT_OF(products); c++) {
        const product *p = &products[c];
        matrix A = make_matrix(dev, p->m, p->k, p, 1), B = make_matrix(dev, p->k, p->n, p, 2);
        matrix C = make_matrix(dev, p->m, p->n, p, 3);
        const size_t elements = (size_t)p->m * (size_t)p->n;
        double *expected = malloc(elements * sizeof *expected);
        double *bound = malloc(elements * sizeof *bound);
        float *result = malloc(C.count * sizeof *result);
        if (expected == NULL || bound == NULL || result == NULL) abort();
        reference(p, &A, &B, &C, expected, bound);
        for (int i = 0; (kernel = tgl_kernel_name(dev, i)) != NULL; i++) {
            if (run_kernel(dev, kernel, p, &A, &B, &C, result))
                compare(kernel, p, &C, result, expected, bound);
        }
        free(expected);
        free(bound);
        free(result);
        free_matrix(dev, &A);
        free_matrix(dev, &B);
        free_matrix(dev, &C);
    }
}

/* ---- Epilogues and pointers ------------------------------------------------------------------ */

/* *expected := gelu(expected + bias[row]) + residual, and *bound := the accepted error. */
static void finish_reference(const product *p, const matrix *bias, const matrix *residual,
                             double *expected, double *bound)
{
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) {
            const double x = expected[i * p->n + j] + at(bias, i, 0);
            const double value = 0.5 * x * (1 + erf(x * 0.7071067811865476));
            const double size = fabs(at(bias, i, 0)) + fabs(x) + fabs(at(residual, i, j));
            expected[i * p->n + j] = value + at(residual, i, j);
            bound[i * p->n + j] = 2 * bound[i * p->n + j] + 8 * 0x1p-24 * size;
        }
}

/* False: the kernel does not support the product. */
static bool run_epilogue(tgl_device *dev, const char *kernel, const product *p, const matrix *A,
                         const matrix *B, const matrix *C, const matrix *bias,
                         const matrix *residual, float *result)
{
    tgl_problem problem = problem_of(TGL_F32, p->m, p->n, p->k);
    problem.lda = A->ld;
    problem.ldb = B->ld;
    problem.ldc = C->ld;
    const tgl_epilogue epilogue = {.size = sizeof epilogue,
                                   .bias = TGL_BIAS_ROW,
                                   .activation = TGL_ACTIVATION_GELU,
                                   .residual = 1,
                                   .ld_residual = residual->ld};
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = kernel, .epilogue = &epilogue};
    const tgl_operands operands = {.size = sizeof operands,
                                   .alpha = p->alpha,
                                   .beta = p->beta,
                                   .A = A->dev,
                                   .B = B->dev,
                                   .C = C->dev,
                                   .bias = bias->dev,
                                   .residual = residual->dev};
    const size_t bytes = C->count * sizeof *C->host;
    tgl_plan *plan;
    const tgl_status status = tgl_plan_create(dev, &problem, &options, &plan);
    if (status == TGL_UNSUPPORTED) return false;
    assert_ok(status);
    assert_ok(tgl_upload(dev, C->memory, C->host, bytes, NULL));
    assert_ok(tgl_plan_run_operands(plan, &operands, NULL));
    assert_ok(tgl_download(dev, result, C->memory, bytes, NULL));
    tgl_plan_destroy(plan);
    return true;
}

static void every_kernel_has_epilogues(void **state)
{
    static const product some[] = {{129, 260, 70, 3, 1, -0.5, 2}, {7, 260, 300, 0, 0, 1, 0}};
    tgl_device *dev = *state;
    const char *kernel;
    for (size_t c = 0; c < COUNT_OF(some); c++) {
        const product *p = &some[c], tight = {.pad = 0};
        matrix A = make_matrix(dev, p->m, p->k, p, 1), B = make_matrix(dev, p->k, p->n, p, 2);
        matrix C = make_matrix(dev, p->m, p->n, p, 3),
               residual = make_matrix(dev, p->m, p->n, p, 4);
        matrix bias = make_matrix(dev, p->m, 1, &tight, 5);
        const size_t elements = (size_t)p->m * (size_t)p->n;
        double *expected = malloc(elements * sizeof *expected);
        double *bound = malloc(elements * sizeof *bound);
        float *result = malloc(C.count * sizeof *result);
        if (expected == NULL || bound == NULL || result == NULL) abort();
        reference(p, &A, &B, &C, expected, bound);
        finish_reference(p, &bias, &residual, expected, bound);
        for (int i = 0; (kernel = tgl_kernel_name(dev, i)) != NULL; i++)
            if (run_epilogue(dev, kernel, p, &A, &B, &C, &bias, &residual, result))
                compare(kernel, p, &C, result, expected, bound);
        free(expected);
        free(bound);
        free(result);
        matrix *const all[] = {&A, &B, &C, &residual, &bias};
        for (size_t i = 0; i < COUNT_OF(all); i++)
            free_matrix(dev, all[i]);
    }
}

/* relu(A*B) - row + 2*col for a product of 2 x 2 x 1, column-major. Small numbers are exact. */
static void an_expression_knows_rows_and_columns(void **state)
{
    tgl_device *dev = *state;
    tgl_problem problem = problem_of(TGL_F32, 2, 2, 1);
    tgl_epilogue epilogue = {.size = sizeof epilogue, .expression = "relu(acc) - row + 2 * col"};
    const tgl_plan_options options = {.size = sizeof options, .epilogue = &epilogue};
    const float a[] = {1, -1}, b[] = {3, 5}, expected[] = {3, -1, 7, 1}; /* C by columns */
    float c[4];
    void *A, *B, *C;
    tgl_plan *plan;
    problem.order = TGL_COL_MAJOR;
    assert_ok(tgl_alloc(dev, sizeof a, &A));
    assert_ok(tgl_alloc(dev, sizeof b, &B));
    assert_ok(tgl_alloc(dev, sizeof c, &C));
    assert_ok(tgl_upload(dev, A, a, sizeof a, NULL));
    assert_ok(tgl_upload(dev, B, b, sizeof b, NULL));
    assert_ok(tgl_plan_create(dev, &problem, &options, &plan));
    assert_ok(tgl_plan_run(plan, 1, A, B, 0, C, NULL));
    assert_ok(tgl_download(dev, c, C, sizeof c, NULL));
    for (int i = 0; i < 4; i++)
        assert_true(c[i] == expected[i]);
    tgl_plan_destroy(plan);
    tgl_free(dev, A), tgl_free(dev, B), tgl_free(dev, C);

    epilogue.expression = "acc * scale";
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_COMPILE);
    char text[4096];
    tgl_last_error(text, sizeof text);
    if (strstr(text, "scale") == NULL) fail_msg("%s", text);
}

/* Products of small numbers are exact. C[i] := A[i]*B, where the A[i] lie in memory in another
 * order than the C[i]. */
static void batches_of_pointers(void **state)
{
    enum { BATCH = 300, M = 17, N = 20, K = 24 };
    tgl_device *dev = *state;
    const size_t a_count = (size_t)BATCH * M * K, b_count = (size_t)K * N,
                 c_count = (size_t)BATCH * M * N;
    float *a = malloc(a_count * sizeof *a), *b = malloc(b_count * sizeof *b);
    float *c = malloc(c_count * sizeof *c);
    void *A, *B, *C, *pointers[3], *host[3][BATCH];
    if (a == NULL || b == NULL || c == NULL) abort();
    for (size_t i = 0; i < a_count; i++)
        a[i] = (float)(i % 13) - 6;
    for (size_t i = 0; i < b_count; i++)
        b[i] = (float)(i % 11) - 5;
    assert_ok(tgl_alloc(dev, a_count * sizeof *a, &A));
    assert_ok(tgl_alloc(dev, b_count * sizeof *b, &B));
    assert_ok(tgl_alloc(dev, c_count * sizeof *c, &C));
    assert_ok(tgl_upload(dev, A, a, a_count * sizeof *a, NULL));
    assert_ok(tgl_upload(dev, B, b, b_count * sizeof *b, NULL));
    for (int i = 0; i < BATCH; i++) {
        host[0][i] = (float *)A + (size_t)(BATCH - 1 - i) * M * K;
        host[1][i] = B;
        host[2][i] = (float *)C + (size_t)i * M * N;
    }
    for (int i = 0; i < 3; i++) {
        assert_ok(tgl_alloc(dev, sizeof host[i], &pointers[i]));
        assert_ok(tgl_upload(dev, pointers[i], host[i], sizeof host[i], NULL));
    }
    tgl_problem problem = problem_of(TGL_F32, M, N, K);
    problem.batch = BATCH;
    problem.batching = TGL_POINTERS;
    for (int promise = 0; promise <= 16; promise += 16) {
        problem.alignment = promise;
        assert_ok(
            tgl_gemm_batched(dev, &problem, 1, pointers[0], pointers[1], 0, pointers[2], NULL));
        assert_ok(tgl_download(dev, c, C, c_count * sizeof *c, NULL));
        for (size_t e = 0; e < c_count; e++) {
            const size_t i = BATCH - 1 - e / ((size_t)M * N), row = e / N % M, col = e % N;
            float sum = 0;
            for (size_t q = 0; q < K; q++)
                sum += a[(i * M + row) * K + q] * b[q * N + col];
            assert_true(c[e] == sum);
        }
    }
    for (int i = 0; i < 3; i++)
        tgl_free(dev, pointers[i]);
    tgl_free(dev, A), tgl_free(dev, B), tgl_free(dev, C);
    free(a), free(b), free(c);
}

/* ---- A small product that every other test can start on a stream ----------------------------- */

enum { SIDE = 200 };

/* C := A*B + C with A of ones and B of twos: adds 2*SIDE to each element of C, exactly. */
typedef struct adder {
    tgl_device *dev;
    tgl_plan *plan;
    void *A, *B, *C;
} adder;

static void *constant(tgl_device *dev, float value)
{
    return constant_floats(dev, (size_t)SIDE * SIDE, value);
}

static adder make_adder(tgl_device *dev)
{
    const tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, SIDE);
    adder x = {.dev = dev, .A = constant(dev, 1), .B = constant(dev, 2), .C = constant(dev, 0)};
    assert_ok(tgl_plan_create(dev, &problem, NULL, &x.plan));
    return x;
}

static void start(const adder *x, void *stream)
{
    assert_ok(tgl_plan_run(x->plan, 1, x->A, x->B, 1, x->C, stream));
}

/* Fails unless C has been incremented `times` times; then frees everything. */
static void finish(adder *x, int times)
{
    static const size_t count = (size_t)SIDE * SIDE;
    float *host = malloc(count * sizeof *host);
    assert_non_null(host);
    assert_ok(tgl_download(x->dev, host, x->C, count * sizeof *host, NULL));
    for (size_t i = 0; i < count; i++)
        assert_true(host[i] == 2.0f * SIDE * (float)times);
    free(host);
    tgl_plan_destroy(x->plan);
    tgl_free(x->dev, x->A);
    tgl_free(x->dev, x->B);
    tgl_free(x->dev, x->C);
}

/* ---- Callers that use the driver API directly ------------------------------------------------ */

static void the_caller_s_context_stays(void **state)
{
    DRIVER(get, "cuCtxGetCurrent", void **);
    DRIVER(create, "cuCtxCreate_v2", void **, unsigned, int);
    DRIVER(destroy, "cuCtxDestroy_v2", void *);
    void *mine, *now;
    assert_int_equal(get(&now), 0);
    assert_null(now); /* no context is current yet */
    assert_int_equal(create(&mine, 0, 0), 0);
    adder work = make_adder(*state);
    start(&work, NULL);
    finish(&work, 1);
    tgl_device *second;
    assert_status(tgl_device_open("cuda", NULL, &second), TGL_OK);
    tgl_device_close(second);
    assert_int_equal(get(&now), 0);
    assert_ptr_equal(now, mine);
    assert_int_equal(destroy(mine), 0);
    assert_int_equal(get(&now), 0);
    assert_null(now);
}

/* The context is used and stays current. */
static void a_device_on_the_caller_s_context(void **state)
{
    DRIVER(get, "cuCtxGetCurrent", void **);
    DRIVER(create, "cuCtxCreate_v2", void **, unsigned, int);
    DRIVER(destroy, "cuCtxDestroy_v2", void *);
    (void)state;
    const tgl_device_options options = {.size = sizeof options, .current_context = 1};
    tgl_device *dev;
    void *mine, *now;
    assert_status(tgl_device_open("cuda", &options, &dev), TGL_BAD_ARGUMENT);
    assert_int_equal(create(&mine, 0, 0), 0);
    assert_ok(tgl_device_open("cuda:0", &options, &dev));
    adder work = make_adder(dev);
    start(&work, NULL);
    finish(&work, 1);
    tgl_device_close(dev);
    assert_int_equal(get(&now), 0);
    assert_ptr_equal(now, mine);
    assert_int_equal(destroy(mine), 0);
}

/* ---- Threads, memory, time ------------------------------------------------------------------- */

static void *add_often(void *dev)
{
    adder work = make_adder(dev);
    for (int i = 0; i < 50; i++)
        start(&work, NULL);
    finish(&work, 50);
    return NULL;
}

static void many_threads_share_a_device(void **state)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_often, *state), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void exhausted_memory_is_told_and_survived(void **state)
{
    void *memory;
    assert_status(tgl_alloc(*state, (size_t)1 << 50, &memory), TGL_NO_MEMORY);
    assert_null(memory);
    adder work = make_adder(*state);
    start(&work, NULL);
    finish(&work, 1);
}

static void time_passes(void **state)
{
    tgl_timer *timer;
    double seconds = -1;
    adder work = make_adder(*state);
    assert_ok(tgl_timer_create(*state, &timer));
    assert_ok(tgl_timer_start(timer, NULL));
    for (int i = 0; i < 100; i++)
        start(&work, NULL);
    assert_ok(tgl_timer_stop(timer, NULL, &seconds));
    assert_true(seconds > 0 && seconds < 1);
    tgl_timer_destroy(timer);
    finish(&work, 100);
}

/* The measured rate is above half of the theoretical one (2 operations per lane and clock), and at
 * most 10 % above it. */
static void ceilings_are_plausible(void **state)
{
    static const tgl_number factors[] = {TGL_NUMBER_PROCESSORS, TGL_NUMBER_CLOCK_HZ,
                                         TGL_NUMBER_FP32_LANES};
    double paper = 2, rate = 0, bytes = 0, factor;
    for (size_t i = 0; i < COUNT_OF(factors); i++) {
        assert_ok(tgl_device_number(*state, factors[i], &factor));
        paper *= factor;
    }
    assert_ok(tgl_device_measure(*state, TGL_CEILING_FMA_F32, &rate));
    assert_ok(tgl_device_measure(*state, TGL_CEILING_COPY, &bytes));
    print_message("FP32 FMA %.1f of %.1f TFLOP/s, copy %.0f GB/s\n", 1e-12 * rate, 1e-12 * paper,
                  1e-9 * bytes);
    assert_true(rate > 0.5 * paper && rate < 1.1 * paper);
    assert_true(bytes > 1e10);
}

/* ---- A kernel that faults -------------------------------------------------------------------- */

/* In a process of its own, because a fault may end all CUDA work of a process. */
static void fault(void)
{
    tgl_device *dev, *other = NULL;
    void *memory;
    if (tgl_device_open("cuda:0", NULL, &dev) != TGL_OK) exit(1);
    tgl_device_open("cuda:1", NULL, &other); /* if there is one */
    const tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, SIDE);
    void *nowhere = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (tgl_gemm(dev, &problem, 1, nowhere, nowhere, 0, nowhere, NULL) != TGL_OK) exit(2);
    if (tgl_device_sync(dev) != TGL_DEVICE_LOST) exit(3);
    if (tgl_last_error(NULL, 0) < 20) exit(4);
    if (tgl_alloc(dev, 1, &memory) != TGL_DEVICE_LOST) exit(5);
    if (tgl_gemm(dev, &problem, 1, nowhere, nowhere, 0, nowhere, NULL) != TGL_DEVICE_LOST) exit(6);
    tgl_device_close(dev);
    if (other != NULL) {
        char message[512];
        const tgl_status status = tgl_alloc(other, 1, &memory);
        const size_t length = tgl_last_error(message, sizeof message);
        print_message("cuda:1: %s: %s\n", tgl_status_name(status), status == TGL_OK ? "" : message);
        if (status != TGL_OK && status != TGL_DEVICE_LOST) exit(7); /* CUDA allows both */
        if (status == TGL_OK) tgl_free(other, memory);
        if (status != TGL_OK && length < 20) exit(9);
        if (tgl_device_sync(other) != status) exit(8);
        tgl_device_close(other);
    }
    exit(0);
}

static void a_fault_loses_the_device(void **state)
{
    (void)state;
    char *const arguments[] = {"test_cuda_device", "fault", NULL};
    pid_t child;
    int result = -1;
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "fault") == 0) fault();
    tgl_device *dev;
    tgl_status status = tgl_device_open("cuda", NULL, &dev);
    if (status == TGL_NO_DEVICE || status == TGL_NO_COMPILER) {
        printf("skipped: %s\n", tgl_status_text(status));
        return 77;
    }
    tgl_device_close(dev);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_caller_s_context_stays), /* first: no context is current yet */
        cmocka_unit_test(a_device_on_the_caller_s_context),
        cmocka_unit_test(every_kernel_agrees_with_the_reference),
        cmocka_unit_test(every_kernel_has_epilogues),
        cmocka_unit_test(an_expression_knows_rows_and_columns),
        cmocka_unit_test(batches_of_pointers),
        cmocka_unit_test(many_threads_share_a_device),
        cmocka_unit_test(exhausted_memory_is_told_and_survived),
        cmocka_unit_test(time_passes),
        cmocka_unit_test(ceilings_are_plausible),
        cmocka_unit_test(a_fault_loses_the_device),
    };
    return cmocka_run_group_tests(tests, setup_cuda, teardown_device);
}
