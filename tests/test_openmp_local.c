/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that load plugins, as Python does: an OpenMP runtime in a local scope of the loader,
 * loaded after the device was opened, is asked too. And the number of threads that a program sets.
 */
#include "support.h"

#include "base/openmp.h"

#include <dlfcn.h>
#include <pthread.h>

enum { THREADS = 3, N = 200 };

static float A[N * N], C[N * N];

static void multiply(void *dev)
{
    const tgl_problem problem = problem_of(TGL_F32, N, N, N);
    assert_status(tgl_gemm(dev, &problem, 1, A, A, 0, C, NULL), TGL_OK);
}

static int number_of_threads(const tgl_device *dev)
{
    double threads = 0;
    assert_status(tgl_device_number(dev, TGL_NUMBER_THREADS, &threads), TGL_OK);
    return (int)threads;
}

/* ---- OpenMP ---------------------------------------------------------------------------------- */

#ifdef PLUGIN

static openmp_runtimes runtimes;

static void expect_region(void *unused)
{
    (void)unused;
    assert_true(tgl_in_openmp_region(&runtimes));
}

#endif

static void a_runtime_in_a_local_scope_is_found(void **state)
{
    (void)state;
#ifndef PLUGIN
    skip();
#else
    typedef void call_fn(void (*body)(void *), void *argument);
    call_fn *call_in_region;
    assert_false(tgl_in_openmp_region(&runtimes));
    tgl_device *dev = open_cpu(THREADS);
    void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(plugin);
    assert_null(dlsym(RTLD_DEFAULT, "omp_in_parallel"));
    *(void **)&call_in_region = dlsym(plugin, "call_in_region");
    assert_false(tgl_in_openmp_region(&runtimes));
    call_in_region(expect_region, NULL);
    const int before = threads_of_process();
    call_in_region(multiply, dev);
    assert_int_equal(threads_of_process(), before);
    multiply(dev);
    assert_int_equal(threads_of_process(), before + THREADS - 1);
    tgl_device_close(dev);
#endif
}

/* ---- tgl_set_threads() ----------------------------------------------------------------------- */

static void programs_limit_the_threads(void **state)
{
    (void)state;
    tgl_device *dev = open_cpu(THREADS);
    const int before = threads_of_process();
    assert_status(tgl_set_threads(dev, 1), TGL_OK);
    assert_int_equal(number_of_threads(dev), 1);
    multiply(dev);
    assert_int_equal(threads_of_process(), before);
    assert_status(tgl_set_threads(dev, 2), TGL_OK);
    multiply(dev);
    assert_int_equal(threads_of_process(), before + 1);
    assert_status(tgl_set_threads(dev, 0), TGL_OK);
    assert_int_equal(number_of_threads(dev), THREADS);
    multiply(dev);
    assert_int_equal(threads_of_process(), before + THREADS - 1);
    tgl_device_close(dev);
}

static void the_number_is_limited_by_the_processors(void **state)
{
    (void)state;
    double processors;
    tgl_device *dev = open_cpu(1);
    const int before = threads_of_process();
    multiply(dev); /* its plan is for one thread */
    assert_int_equal(threads_of_process(), before);
    assert_status(tgl_device_number(dev, TGL_NUMBER_PROCESSORS, &processors), TGL_OK);
    assert_status(tgl_set_threads(dev, 1000000), TGL_OK);
    assert_int_equal(number_of_threads(dev), (int)processors);
    multiply(dev);
    if (processors > 1) assert_true(threads_of_process() > before);
    assert_status(tgl_set_threads(dev, -1), TGL_BAD_ARGUMENT);
    assert_int_equal(number_of_threads(dev), (int)processors);
    assert_status(tgl_set_threads(NULL, 1), TGL_BAD_ARGUMENT);
    tgl_device_close(dev);
}

/* A plan that divides k among its threads computes bitwise the same results with fewer threads. */
static void plans_keep_their_bits(void **state)
{
    (void)state;
    enum { SIDE = 8, K = 60000 };
    float *x = test_malloc(2 * SIDE * K * sizeof *x), expected[SIDE * SIDE], got[SIDE * SIDE];
    uint64_t seed = 5;
    for (int i = 0; i < 2 * SIDE * K; i++)
        x[i] = (float)random_int(&seed, -1000, 1000) / 77;
    tgl_device *dev = open_cpu(THREADS);
    const tgl_problem problem = problem_of(TGL_F32, SIDE, SIDE, K);
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 1, x, x + SIDE * K, 0, expected, NULL), TGL_OK);
    for (int threads = 1; threads < THREADS; threads++) {
        assert_status(tgl_set_threads(dev, threads), TGL_OK);
        assert_status(tgl_plan_run(plan, 1, x, x + SIDE * K, 0, got, NULL), TGL_OK);
        assert_memory_equal(got, expected, sizeof got);
    }
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    test_free(x);
}

static void other_devices_say_that_they_cannot(void **state)
{
    (void)state;
    tgl_device *dev;
    if (tgl_device_open("sim", NULL, &dev) != TGL_OK) skip();
    assert_status(tgl_set_threads(dev, 1), TGL_UNSUPPORTED);
    tgl_device_close(dev);
}

static void *do_nothing(void *argument)
{
    return argument;
}

static int set_up(void **state)
{
    (void)state;
    pthread_t thread; /* with the first thread, the thread sanitizer starts one of its own */
    if (pthread_create(&thread, NULL, do_nothing, NULL) != 0) return 1;
    pthread_join(thread, NULL);
    for (int i = 0; i < N * N; i++)
        A[i] = 1;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_runtime_in_a_local_scope_is_found),
        cmocka_unit_test(programs_limit_the_threads),
        cmocka_unit_test(the_number_is_limited_by_the_processors),
        cmocka_unit_test(plans_keep_their_bits),
        cmocka_unit_test(other_devices_say_that_they_cannot),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
