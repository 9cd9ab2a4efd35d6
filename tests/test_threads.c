/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads at once on one device, one plan, or a device each; and results that are bitwise the
 * same from run to run. Under the thread sanitizer this is where races show.
 */
#include "support.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 12, SHAPES = 12 };

/* Inputs of one shape, and the result that every run must give. */
typedef struct sample {
    tgl_problem problem;
    double *A, *B, *expected;
    size_t bytes; /* of C */
} sample;

static sample samples[SHAPES];

static void *random_matrix(tgl_type type, int64_t count, uint64_t *seed)
{
    double *matrix = malloc((size_t)count * sizeof *matrix + 1);
    for (int64_t i = 0; i < count; i++)
        if (type == TGL_F32)
            ((float *)matrix)[i] = (float)random_unit(seed);
        else
            matrix[i] = random_unit(seed);
    return matrix;
}

static bool result_is_expected(tgl_status status, const sample *s, const void *C)
{
    return status == TGL_OK && memcmp(C, s->expected, s->bytes) == 0;
}

static int make_samples(void **state)
{
    tgl_device *dev = open_cpu(2);
    uint64_t seed = 6;
    for (int i = 0; i < SHAPES; i++) {
        sample *s = &samples[i];
        const tgl_type type = i % 2 ? TGL_F64 : TGL_F32;
        const int64_t m = random_int(&seed, 1, 90), n = random_int(&seed, 1, 90);
        const int64_t k = random_int(&seed, 1, 300);
        s->problem = problem_of(type, i == 0 ? 1 : m, i == 1 ? 1 : n, k);
        s->A = random_matrix(type, m * k, &seed);
        s->B = random_matrix(type, k * n, &seed);
        s->bytes = (size_t)(s->problem.m * s->problem.n) * tgl_type_size(type);
        s->expected = malloc(s->bytes);
        assert_status(tgl_gemm(dev, &s->problem, 1.5, s->A, s->B, 0, s->expected, NULL), TGL_OK);
    }
    *state = dev;
    return 0;
}

static int free_samples(void **state)
{
    for (int i = 0; i < SHAPES; i++) {
        free(samples[i].A);
        free(samples[i].B);
        free(samples[i].expected);
    }
    return teardown_device(state);
}

/* What one thread does, and how often it did not get what it expected. */
typedef struct worker {
    pthread_t thread;
    tgl_device *dev;
    tgl_plan *plan; /* a plan of samples[0], or NULL */
    int number, faults;
} worker;

static void run_workers(worker workers[THREADS], void *(*work)(void *))
{
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].faults, 0);
    }
}

static void *call_gemm(void *argument)
{
    worker *w = argument;
    void *C = malloc(90 * 90 * sizeof(double));
    for (int i = 0; i < ROUNDS * SHAPES; i++) {
        const sample *s = &samples[(i * 5 + w->number) % SHAPES];
        memset(C, 0xff, s->bytes);
        const tgl_status status = tgl_gemm(w->dev, &s->problem, 1.5, s->A, s->B, 0, C, NULL);
        w->faults += !result_is_expected(status, s, C);
    }
    free(C);
    return NULL;
}

static void many_threads_share_a_device(void **state)
{
    worker workers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        workers[i].dev = *state;
    run_workers(workers, call_gemm);
}

static void devices_are_independent(void **state)
{
    (void)state;
    worker workers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        workers[i].dev = open_cpu(1 + i % 3);
    run_workers(workers, call_gemm);
    for (int i = 0; i < THREADS; i++)
        tgl_device_close(workers[i].dev);
}

static void *run_one_plan(void *argument)
{
    worker *w = argument;
    const sample *s = &samples[SHAPES - 1];
    void *C = malloc(s->bytes);
    for (int i = 0; i < 10 * ROUNDS; i++) {
        memset(C, 0xff, s->bytes);
        const tgl_status status = tgl_plan_run(w->plan, 1.5, s->A, s->B, 0, C, NULL);
        w->faults += !result_is_expected(status, s, C);
    }
    free(C);
    return NULL;
}

static void many_threads_share_a_plan(void **state)
{
    tgl_plan *plan;
    assert_status(tgl_plan_create(*state, &samples[SHAPES - 1].problem, NULL, &plan), TGL_OK);
    worker workers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        workers[i].plan = plan;
    run_workers(workers, run_one_plan);
    tgl_plan_destroy(plan);
}

/* Every call has another shape, so that plans are made and evicted while others run. */
static void *call_many_shapes(void *argument)
{
    worker *w = argument;
    float A[64], B[64], C[64];
    for (int i = 0; i < 64; i++)
        A[i] = B[i] = 1;
    for (int i = 0; i < 2000; i++) {
        tgl_problem problem = problem_of(TGL_F32, 1 + i % 3, 1 + i % 4, 1 + i % 5);
        problem.lda = 5 + (i * 7 + w->number) % 700;
        if (problem.m > 1) problem.lda = 5;
        problem.ldc = 4 + i % 3;
        problem.stride_c = i % 300; /* a batch of one: does not matter */
        const tgl_status status = tgl_gemm(w->dev, &problem, 1, A, B, 0, C, NULL);
        w->faults += status != TGL_OK || C[0] != (float)problem.k;
    }
    return NULL;
}

static void plans_come_and_go_while_others_run(void **state)
{
    worker workers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        workers[i].dev = *state;
    run_workers(workers, call_many_shapes);
}

/* Several threads fail at a time. Each error message must be whole. */
static void *fail_often(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 300; i++) {
        const tgl_problem problem = problem_of(TGL_F32, -1 - w->number, 1, 1);
        char text[100];
        w->faults += tgl_gemm(w->dev, &problem, 1, NULL, NULL, 0, NULL, NULL) != TGL_BAD_M;
        tgl_last_error(text, sizeof text);
        w->faults += strncmp(text, "m is -", 6) != 0 || strstr(text, "; it must not") == NULL;
    }
    return NULL;
}

static void errors_are_kept_whole(void **state)
{
    worker workers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        workers[i].dev = *state;
    run_workers(workers, fail_often);
}

static void results_are_bitwise_the_same_from_run_to_run(void **state)
{
    (void)state;
    void *C = malloc(90 * 90 * sizeof(double));
    for (int run = 0; run < 5; run++) {
        tgl_device *dev = open_cpu(2);
        for (int i = 0; i < SHAPES; i++)
            for (int repeat = 0; repeat < 3; repeat++) {
                const sample *s = &samples[i];
                const tgl_status status = tgl_gemm(dev, &s->problem, 1.5, s->A, s->B, 0, C, NULL);
                assert_true(result_is_expected(status, s, C));
            }
        tgl_device_close(dev);
    }
    free(C);
}

/* Large enough that every thread has work, and that a reduction over k would be split. */
static void large_results_are_bitwise_the_same(void **state)
{
    static const int64_t shapes[][3] = {
        {300, 310, 320}, {1000, 4, 900}, {16, 16, 20000}, {1, 3000, 500}};
    uint64_t seed = 7;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        const tgl_problem problem = problem_of(TGL_F32, m, n, k);
        void *A = random_matrix(TGL_F32, m * k, &seed), *B = random_matrix(TGL_F32, k * n, &seed);
        const size_t bytes = (size_t)(m * n) * sizeof(float);
        void *first = malloc(bytes), *again = malloc(bytes);
        assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, first, NULL), TGL_OK);
        for (int repeat = 0; repeat < 5; repeat++) {
            memset(again, 0, bytes);
            assert_status(tgl_gemm(*state, &problem, 1, A, B, 0, again, NULL), TGL_OK);
            assert_memory_equal(first, again, bytes);
        }
        free(A);
        free(B);
        free(first);
        free(again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_share_a_device),
        cmocka_unit_test(devices_are_independent),
        cmocka_unit_test(many_threads_share_a_plan),
        cmocka_unit_test(plans_come_and_go_while_others_run),
        cmocka_unit_test(errors_are_kept_whole),
        cmocka_unit_test(results_are_bitwise_the_same_from_run_to_run),
        cmocka_unit_test(large_results_are_bitwise_the_same),
    };
    return cmocka_run_group_tests(tests, make_samples, free_samples);
}
