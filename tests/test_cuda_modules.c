/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded kernels on the cuda device, with the fake libraries: sharing, lifetime, and the inputs of
 * their compilation.
 */
#include "fake_cuda/setup.h"

#include <pthread.h>

enum { UNUSED_MAX = 256 }; /* maximum number of modules without users that a device keeps */

/* *plan := a plan with one launch of a kernel with these macros, and dynamic shared memory. */
static tgl_status make_shared_plan(tgl_device *dev, const char *macros, int dynamic_shared,
                                   tgl_plan **plan)
{
    const tgl_kernel kernel = {
        .name = "test", .file = "test.cu", .symbol = "test", .parameters = "int", .source = "test"};
    const int argument = 1;
    tgl_launch_list list;
    tgl_list_builder b;
    tgl_list_begin(&b, &list);
    for (const char *at = macros; *at != '\0';) { /* "NAME=1 NAME=2" */
        char name[32];
        int value, length;
        assert_int_equal(sscanf(at, "%31[^=]=%d%n", name, &value, &length), 2);
        tgl_list_macro(&b, name, value);
        at += length;
        at += *at == ' ';
    }
    const tgl_launch launch = {.kernel = tgl_list_kernel(&b, &kernel),
                               .grid = {1, 1, 1},
                               .cluster = {1, 1, 1},
                               .threads = 32,
                               .dynamic_shared = dynamic_shared,
                               .flag = -1,
                               .repeats = 1,
                               .count = 1,
                               .last_count = 1};
    tgl_list_step(&b, "test");
    tgl_list_launch(&b, &launch, &argument, sizeof argument);
    return plan_of_launches(dev, &b, plan);
}

static tgl_status make_plan(tgl_device *dev, const char *macros, tgl_plan **plan)
{
    return make_shared_plan(dev, macros, 0, plan);
}

static tgl_plan *plan_number(tgl_device *dev, int number)
{
    char macros[32];
    tgl_plan *plan;
    snprintf(macros, sizeof macros, "NUMBER=%d", number);
    assert_status(make_plan(dev, macros, &plan), TGL_OK);
    return plan;
}

static void run(const tgl_plan *plan)
{
    static float word;
    assert_status(tgl_plan_run(plan, 1, &word, &word, 1, &word, NULL), TGL_OK);
}

/* Makes, runs and destroys plans of kernels first .. last-1. */
static void pass_through(tgl_device *dev, int first, int last)
{
    for (int i = first; i < last; i++) {
        tgl_plan *plan = plan_number(dev, i);
        run(plan);
        tgl_plan_destroy(plan);
    }
}

static void plans_share_a_module(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_plan *first = plan_number(dev, 1), *second = plan_number(dev, 1);
    assert_int_equal(loaded_modules(), 1);
    tgl_plan_destroy(first);
    run(second);
    tgl_plan_destroy(second);
    assert_int_equal(loaded_modules(), 1); /* it stays for later plans */
    const int before = compilations();
    setenv("TEGULA_CACHE", "off", 1);
    pass_through(dev, 1, 2);
    assert_int_equal(compilations(), before);
    tgl_device_close(dev);
    assert_int_equal(loaded_modules(), 0);
}

/* A launch may use 48 KB of static and dynamic shared memory without having asked for more. */
static void static_shared_memory_counts(void **state)
{
    enum { LIMIT = 48 * 1024, DYNAMIC = 40 * 1024 };
    static const int fixed[] = {0, LIMIT - DYNAMIC, LIMIT - DYNAMIC + 4, 20 * 1024};
    (void)state;
    for (int i = 0; i < (int)COUNT_OF(fixed); i++) {
        char number[16];
        tgl_plan *plan;
        snprintf(number, sizeof number, "%d", fixed[i]);
        setenv("FAKE_CUDA_SHARED", number, 1);
        tgl_device *dev = open_device("cuda");
        assert_status(make_shared_plan(dev, "NUMBER=1", DYNAMIC, &plan), TGL_OK);
        run(plan); /* the fake refuses a launch beyond the limit */
        tgl_plan_destroy(plan);
        tgl_device_close(dev);
    }
}

/* The fake reports a module that is unloaded while its kernels may still run. */
static void unused_modules_are_bounded(void **state)
{
    (void)state;
    enum { MANY = 3 * UNUSED_MAX };
    tgl_device *dev = open_device("cuda");
    tgl_plan *kept = plan_number(dev, -1);
    for (int i = 0; i < MANY; i++) {
        pass_through(dev, i, i + 1);
        pass_through(dev, -2, -1); /* this module is used again and again */
        assert_in_range(loaded_modules(), 1, UNUSED_MAX + 3);
    }
    const int before = compilations();
    setenv("TEGULA_CACHE", "/nonexistent", 1);
    run(kept);
    pass_through(dev, -2, -1);
    pass_through(dev, MANY - 100, MANY); /* the latest ones are still loaded */
    assert_int_equal(compilations(), before);
    const int modules = loaded_modules();
    pass_through(dev, 0, 1); /* the first one is not, but it is in the disk cache */
    assert_int_equal(loaded_modules(), modules + 1);
    tgl_plan_destroy(kept);
    tgl_device_close(dev);
}

static void modules_of_plans_stay(void **state)
{
    (void)state;
    enum { MANY = UNUSED_MAX + 100 };
    static tgl_plan *plans[MANY];
    tgl_device *dev = open_device("cuda");
    for (int i = 0; i < MANY; i++)
        plans[i] = plan_number(dev, i);
    assert_int_equal(loaded_modules(), MANY);
    for (int i = 0; i < MANY; i++)
        run(plans[i]);
    for (int i = 0; i < MANY; i++)
        tgl_plan_destroy(plans[i]);
    tgl_plan_destroy(plan_number(dev, -1));
    assert_in_range(loaded_modules(), 1, UNUSED_MAX);
    tgl_device_close(dev);
}

/* If waiting for the device fails, a later load unloads the modules. */
static void unloading_is_put_off(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=1", 1);
    pass_through(dev, 0, UNUSED_MAX + 50);
    assert_int_equal(loaded_modules(), UNUSED_MAX + 50);
    unsetenv("FAKE_CUDA_FAIL");
    pass_through(dev, -1, 0);
    assert_in_range(loaded_modules(), 1, UNUSED_MAX);
    tgl_device_close(dev);
}

/* Closing waits for the device's work, also if all memory is in use. */
static void closing_waits_for_work(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        tgl_device *dev = open_device("cuda");
        tgl_plan *plan = plan_number(dev, 1);
        run(plan);
        tgl_plan_destroy(plan);
        if (i == 1) setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2", 1);
        tgl_device_close(dev);
        unsetenv("FAKE_CUDA_FAIL");
    }
}

static void a_capture_goes_on_while_modules_are_unloaded(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    void *stream = create_stream();
    begin_capture(stream);
    pass_through(dev, 0, 2 * UNUSED_MAX);
    assert_in_range(loaded_modules(), 1, UNUSED_MAX + 1);
    destroy_graph(end_capture(stream));
    tgl_device_close(dev);
}

/* All macros reach the compiler: a truncated list would compile another kernel. */
static void all_macros_are_compiled(void **state)
{
    (void)state;
    enum { MANY = 3000, ROOM = 64 * 1024 };
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = plan_number(dev, 1);
    const int others = compiler_options() - 1;
    tgl_plan_destroy(plan);
    char *macros = malloc(ROOM);
    size_t length = 0;
    assert_non_null(macros);
    for (int i = 0; i < MANY; i++)
        length +=
            (size_t)snprintf(macros + length, ROOM - length, "%sM%d=%d", i > 0 ? " " : "", i, i);
    assert_status(make_plan(dev, macros, &plan), TGL_OK);
    assert_int_equal(compiler_options(), others + MANY);
    tgl_plan_destroy(plan);
    free(macros);
    tgl_device_close(dev);
}

static void *make_same(void *dev)
{
    for (int i = 0; i < 50; i++)
        pass_through(dev, i, i + 1);
    return NULL;
}

static void threads_that_want_one_kernel_wait_for_one(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    tgl_device *dev = open_device("cuda");
    const int before = compilations();
    setenv("FAKE_NVRTC_DELAY", "1", 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_same, dev), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(compilations(), before + 50);
    tgl_device_close(dev);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(static_shared_memory_counts),
        TEST(plans_share_a_module),
        TEST(unused_modules_are_bounded),
        TEST(modules_of_plans_stay),
        TEST(unloading_is_put_off),
        TEST(closing_waits_for_work),
        TEST(a_capture_goes_on_while_modules_are_unloaded),
        TEST(all_macros_are_compiled),
        TEST(threads_that_want_one_kernel_wait_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
