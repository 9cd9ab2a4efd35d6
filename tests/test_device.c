/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: names, options, errors, properties, memory (src/api/device_handle.c) and timers
 * (src/backend/timer.c).
 */
#include "support.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Open and close -------------------------------------------------------------------------- */

static void devices_open_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "cpu:0", "cpu:00"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        tgl_device *dev;
        assert_status(tgl_device_open(names[i], NULL, &dev), TGL_OK);
        assert_string_equal(tgl_device_name(dev), "cpu");
        tgl_device_close(dev);
    }
    tgl_device *dev;
    assert_status(tgl_device_open("auto", NULL, &dev), TGL_OK);
    tgl_device_close(dev);
    tgl_device_close(NULL);
    assert_string_equal(tgl_device_name(NULL), "");
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "CPU",
                                        "cp",
                                        "cpux",
                                        "cpu:",
                                        "cpu:1",
                                        "cpu:-1",
                                        "cpu:0x0",
                                        "cpu:0 ",
                                        "cpu: 0",
                                        ":0",
                                        "auto:0",
                                        "cpu:99999999999999999999",
                                        "a name longer than any device has"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        tgl_device *dev = (tgl_device *)1;
        forget_error();
        assert_status(tgl_device_open(names[i], NULL, &dev), TGL_NO_DEVICE);
        assert_null(dev);
        assert_new_sentence();
    }
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    tgl_device_options options = {.size = sizeof options, .threads = -1};
    tgl_device *dev = (tgl_device *)1;
    assert_status(tgl_device_open("cpu", &options, &dev), TGL_BAD_ARGUMENT);
    assert_null(dev);
    assert_sentence("options.threads is -1; it must not be negative");

    options.threads = 0;
    assert_status(tgl_device_open(NULL, &options, &dev), TGL_BAD_ARGUMENT);
    assert_sentence("the device's name is NULL");
    assert_status(tgl_device_open("cpu", &options, NULL), TGL_BAD_ARGUMENT);
    options.size--;
    assert_status(tgl_device_open("cpu", &options, &dev), TGL_BAD_ARGUMENT);
    options.size = 0;
    assert_status(tgl_device_open("cpu", &options, &dev), TGL_BAD_ARGUMENT);
    char message[200], expected[200];
    tgl_last_error(message, sizeof message);
    snprintf(expected, sizeof expected,
             "options.size is 0; set options.size = sizeof options, which is %zu in this version "
             "of the library",
             sizeof options);
    assert_string_equal(message, expected);
}

static void nonsense_in_the_environment_is_told(void **state)
{
    (void)state;
    const char *before = getenv("TEGULA_CPU");
    char *kept = before != NULL ? strdup(before) : NULL;
    static const char *const values[] = {"nonsense", "avx", "portable,nonsense", "512"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        setenv("TEGULA_CPU", values[i], 1);
        char message[300], expected[200];
        tgl_device *dev;
        assert_status(tgl_device_open("cpu", NULL, &dev), TGL_BAD_SETTING);
        tgl_last_error(message, sizeof message);
        snprintf(expected, sizeof expected,
                 "TEGULA_CPU=\"%s\" is not the name of an instruction set that this processor has; "
                 "available here: ",
                 values[i]);
        assert_non_null(strstr(message, expected));
        assert_non_null(strstr(message, "portable"));
    }
    if (kept != NULL)
        setenv("TEGULA_CPU", kept, 1);
    else
        unsetenv("TEGULA_CPU");
    free(kept);
}

/* A device opens with each of the tiers portable, neon, avx2 and avx512 that the processor has. */
static void every_tier_of_this_processor_opens(void **state)
{
    (void)state;
    const char *before = getenv("TEGULA_CPU");
    char *kept = before != NULL ? strdup(before) : NULL;
    const char *tiers[3] = {"portable", NULL, NULL};
#if defined(__aarch64__)
    tiers[1] = "neon";
#elif defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) tiers[1] = "avx2";
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        tiers[2] = "avx512";
#endif
    for (size_t i = 0; i < COUNT_OF(tiers); i++) {
        if (tiers[i] == NULL) continue;
        setenv("TEGULA_CPU", tiers[i], 1);
        tgl_device *dev;
        assert_status(tgl_device_open("cpu", NULL, &dev), TGL_OK);
        tgl_device_close(dev);
    }
    if (kept != NULL)
        setenv("TEGULA_CPU", kept, 1);
    else
        unsetenv("TEGULA_CPU");
    free(kept);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Fails if the call succeeds or sets no error message. */
#define FAILS(call)                                                                                \
    do {                                                                                           \
        char sentence_of_call[400];                                                                \
        forget_error();                                                                            \
        if ((call) == TGL_OK) fail_msg("%s succeeds", #call);                                      \
        tgl_last_error(sentence_of_call, sizeof sentence_of_call);                                 \
        if (strcmp(sentence_of_call, "problem is NULL") == 0)                                      \
            fail_msg("%s sets no sentence", #call);                                                \
    } while (0)

static void failures_of_devices_have_sentences(void **state)
{
    tgl_device *dev = *state, *none;
    const char *key, *value;
    double number;
    FAILS(tgl_device_open(NULL, NULL, &none));
    FAILS(tgl_device_open("cpu", NULL, NULL));
    FAILS(tgl_device_open("nothing", NULL, &none));
    FAILS(tgl_device_open("cuda:99", NULL, &none));
    FAILS(tgl_device_property(dev, -1, &key, &value));
    FAILS(tgl_device_property(dev, 1000, &key, &value));
    FAILS(tgl_device_property(NULL, 0, &key, &value));
    FAILS(tgl_device_property(dev, 0, NULL, &value));
    FAILS(tgl_device_number(dev, (tgl_number)-1, &number));
    FAILS(tgl_device_number(dev, TGL_NUMBER_CAPABILITY, &number));
    FAILS(tgl_device_number(NULL, TGL_NUMBER_THREADS, &number));
    FAILS(tgl_device_measure(dev, (tgl_ceiling)9, &number));
    FAILS(tgl_device_measure(dev, TGL_CEILING_COPY, NULL));
    FAILS(tgl_device_measure(NULL, TGL_CEILING_COPY, &number));
    FAILS(tgl_device_sync(NULL));
}

static void failures_of_memory_have_sentences(void **state)
{
    tgl_device *dev = *state;
    double number;
    void *memory;
    FAILS(tgl_alloc(dev, 8, NULL));
    FAILS(tgl_alloc(NULL, 8, &memory));
    FAILS(tgl_alloc(dev, SIZE_MAX, &memory));
    FAILS(tgl_upload(dev, NULL, &number, 1, NULL));
    FAILS(tgl_upload(NULL, &number, &number, 1, NULL));
    FAILS(tgl_download(dev, &number, NULL, 1, NULL));
    FAILS(tgl_download(NULL, &number, &number, 1, NULL));
}

static void failures_of_products_have_sentences(void **state)
{
    tgl_device *dev = *state;
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    tgl_counters counters = {.size = sizeof counters};
    tgl_problem small;
    tgl_plan *plan, *none;
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    FAILS(tgl_problem_init(&small, 8, TGL_F32, 1, 1, 1));
    FAILS(tgl_gemm(NULL, &problem, 1, NULL, NULL, 0, NULL, NULL));
    FAILS(tgl_gemm(dev, &problem, 1, NULL, NULL, 0, NULL, NULL));
    FAILS(tgl_gemm_batched(NULL, &problem, 1, NULL, NULL, 0, NULL, NULL));
    FAILS(tgl_gemm_batched(dev, &problem, 1, NULL, NULL, 0, NULL, NULL));
    FAILS(tgl_plan_create(dev, &problem, NULL, NULL));
    FAILS(tgl_plan_create(NULL, &problem, NULL, &none));
    FAILS(tgl_plan_run(NULL, 1, NULL, NULL, 0, NULL, NULL));
    FAILS(tgl_plan_run(plan, 1, NULL, NULL, 0, NULL, NULL));
    FAILS(tgl_plan_run_operands(NULL, NULL, NULL));
    FAILS(tgl_plan_run_operands(plan, NULL, NULL));
    FAILS(tgl_plan_counters(NULL, &counters));
    FAILS(tgl_plan_counters(plan, NULL));
    FAILS(tgl_plan_counters(plan, &counters)); /* the cpu counts nothing */
    assert_int_equal(tgl_plan_trace(plan, NULL, 0), 0);
    FAILS(tgl_chip_explain("nothing", &problem, NULL, NULL, 0, NULL));
    FAILS(tgl_chip_explain(NULL, &problem, NULL, NULL, 0, NULL));
    tgl_plan_destroy(plan);
}

static void failures_of_the_rest_have_sentences(void **state)
{
    const tgl_warm_options too_small = {.size = 3};
    tgl_timer *timer, *none;
    double number;
    assert_status(tgl_timer_create(*state, &timer), TGL_OK);
    FAILS(tgl_timer_create(NULL, &none));
    FAILS(tgl_timer_create(*state, NULL));
    FAILS(tgl_timer_start(NULL, NULL));
    FAILS(tgl_timer_stop(NULL, NULL, &number));
    FAILS(tgl_timer_stop(timer, NULL, &number));
    FAILS(tgl_timer_stop(timer, NULL, NULL));
    int passed;
    FAILS(tgl_timer_passed(NULL, &passed));
    FAILS(tgl_timer_passed(timer, &passed));
    FAILS(tgl_timer_passed(timer, NULL));
    FAILS(tgl_warm(&too_small));
    tgl_timer_destroy(timer);
}

/* Calls of one thread do not change another thread's error message. */
static void *fail_in_another_thread(void *state)
{
    char *first = calloc(1, 200);
    tgl_problem problem = problem_of(TGL_F32, 1, 1, -5);
    if (first == NULL) return NULL;
    const size_t length = tgl_last_error(first, 200); /* nothing has failed here */
    if (length > 0) return first;
    tgl_gemm(state, &problem, 1, NULL, NULL, 0, NULL, NULL);
    tgl_last_error(first, 200);
    return first;
}

static void sentences_are_kept_for_each_thread(void **state)
{
    pthread_t thread;
    void *other;
    forget_error();
    assert_int_equal(pthread_create(&thread, NULL, fail_in_another_thread, *state), 0);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_non_null(other);
    assert_string_equal(other, "k is -5; it must not be negative");
    assert_sentence("problem is NULL");
    free(other);
}

/* Calls that succeed leave the error message as it is. */
static void success_leaves_the_sentence(void **state)
{
    tgl_device *dev = *state, *opened;
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 1);
    const float one = 1;
    float c = 0;
    tgl_plan *plan;
    forget_error();
    assert_status(tgl_gemm(dev, &problem, 1, &one, &one, 0, &c, NULL), TGL_OK);
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    assert_status(tgl_plan_run(plan, 1, &one, &one, 0, &c, NULL), TGL_OK);
    assert_status(tgl_device_sync(dev), TGL_OK);
    assert_status(tgl_device_open("auto", NULL, &opened), TGL_OK);
    tgl_device_close(opened);
    tgl_plan_destroy(plan);
    assert_sentence("problem is NULL");
}

static void the_last_error_is_the_latest(void **state)
{
    tgl_device *dev = *state;
    char text[200];
    tgl_problem problem = problem_of(TGL_F32, -1, 1, 1);
    tgl_gemm(dev, &problem, 1, NULL, NULL, 0, NULL, NULL);
    problem = problem_of(TGL_F32, 1, -1, 1);
    tgl_gemm(dev, &problem, 1, NULL, NULL, 0, NULL, NULL);
    const size_t length = tgl_last_error(text, sizeof text);
    assert_string_equal(text, "n is -1; it must not be negative");
    assert_int_equal(length, strlen(text));

    char cut[5];
    assert_int_equal(tgl_last_error(cut, sizeof cut), length);
    assert_string_equal(cut, "n is");
    assert_int_equal(tgl_last_error(NULL, 100), length);
    strcpy(cut, "x");
    assert_int_equal(tgl_last_error(cut, 0), length);
    assert_string_equal(cut, "x");
}

/* ---- What a device says of itself ------------------------------------------------------------ */

static void properties_are_pairs_of_text(void **state)
{
    tgl_device *dev = *state;
    const char *key, *value;
    int count = 0;
    for (; tgl_device_property(dev, count, &key, &value) == TGL_OK; count++) {
        assert_true(strlen(key) > 0);
        assert_non_null(value);
        const char *again_key, *again_value;
        assert_status(tgl_device_property(dev, count, &again_key, &again_value), TGL_OK);
        assert_string_equal(again_key, key);
    }
    assert_in_range(count, 1, 1000);
    assert_status(tgl_device_property(dev, -1, &key, &value), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_property(dev, INT32_MAX, &key, &value), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_property(NULL, 0, &key, &value), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_property(dev, 0, NULL, &value), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_property(dev, 0, &key, NULL), TGL_BAD_ARGUMENT);
}

static void kernels_have_names(void **state)
{
    tgl_device *dev = *state;
    int count = 0;
    for (; tgl_kernel_name(dev, count) != NULL; count++)
        for (int i = 0; i < count; i++)
            assert_string_not_equal(tgl_kernel_name(dev, i), tgl_kernel_name(dev, count));
    assert_in_range(count, 1, 1000);
    assert_null(tgl_kernel_name(dev, -1));
    assert_null(tgl_kernel_name(dev, INT32_MAX));
    assert_null(tgl_kernel_name(NULL, 0));
}

/* tgl_device_number() gives the numbers of the properties, whose text is for people. */
static void numbers_are_known(void **state)
{
    tgl_device *dev = *state;
    double value = 0;
    for (int i = TGL_NUMBER_PROCESSORS; i <= TGL_NUMBER_SHARED_BLOCK_BYTES; i++) {
        value = -1;
        forget_error();
        const tgl_status status = tgl_device_number(dev, (tgl_number)i, &value);
        if (status == TGL_OK) {
            assert_true(value > 0 && isfinite(value));
            continue;
        }
        assert_status(status, TGL_UNSUPPORTED);
        assert_new_sentence();
        assert_true(value == -1);
    }
    assert_status(tgl_device_number(dev, TGL_NUMBER_THREADS, &value), TGL_OK);
    assert_true(value == 2); /* as setup_cpu() asks for */
    assert_status(tgl_device_number(dev, TGL_NUMBER_PROCESSORS, &value), TGL_OK);
    assert_true(value >= 1 && value == floor(value));
    assert_status(tgl_device_number(dev, TGL_NUMBER_L1_BYTES, &value), TGL_OK);
    assert_true(value >= 4096);
    double l2;
    assert_status(tgl_device_number(dev, TGL_NUMBER_L2_BYTES, &l2), TGL_OK);
    assert_true(l2 >= value);
    assert_status(tgl_device_number(dev, TGL_NUMBER_CAPABILITY, &value), TGL_UNSUPPORTED);
    assert_status(tgl_device_number(dev, TGL_NUMBER_SHARED_BLOCK_BYTES, &value), TGL_UNSUPPORTED);
    static const int bad[] = {-1, TGL_NUMBER_SHARED_BLOCK_BYTES + 1, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(tgl_device_number(dev, (tgl_number)bad[i], &value), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_number(dev, TGL_NUMBER_THREADS, NULL), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_number(NULL, TGL_NUMBER_THREADS, &value), TGL_BAD_ARGUMENT);
}

static void bad_ceilings_are_refused(void **state)
{
    tgl_device *dev = *state;
    double value;
    assert_status(tgl_device_measure(dev, (tgl_ceiling)3, &value), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_measure(dev, (tgl_ceiling)-1, &value), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_measure(dev, TGL_CEILING_COPY, NULL), TGL_BAD_ARGUMENT);
    assert_status(tgl_device_measure(NULL, TGL_CEILING_COPY, &value), TGL_BAD_ARGUMENT);
}

static void ceilings_are_measured(void **state)
{
    tgl_device *dev = *state;
    for (int ceiling = TGL_CEILING_FMA_F32; ceiling <= TGL_CEILING_COPY; ceiling++) {
        double value = 0;
        assert_status(tgl_device_measure(dev, (tgl_ceiling)ceiling, &value), TGL_OK);
        assert_true(value > 1e6 && value < 1e18);
    }
}

/* The copy for this measurement takes hundreds of megabytes, which a limit denies here. */
static void a_ceiling_that_is_not_measured_is_not_told(void **state)
{
    struct rlimit before, now;
    double value = -1;
    long pages = 0;
    FILE *sizes = fopen("/proc/self/statm", "r"); /* a sanitizer reserves terabytes */
    if (sizes == NULL || fscanf(sizes, "%ld", &pages) != 1) skip();
    fclose(sizes);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (32 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
    const tgl_status status = tgl_device_measure(*state, TGL_CEILING_COPY, &value);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_status(status, TGL_NO_MEMORY);
    assert_true(value == -1);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void memory_is_aligned_and_usable(void **state)
{
    tgl_device *dev = *state;
    static const size_t sizes[] = {1, 255, 256, 257, 1 << 20};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char *memory, *back = malloc(sizes[i]), *data = malloc(sizes[i]);
        assert_non_null(back);
        assert_non_null(data);
        memset(data, (int)i + 1, sizes[i]);
        assert_status(tgl_alloc(dev, sizes[i], (void **)&memory), TGL_OK);
        assert_int_equal((uintptr_t)memory % 256, 0);
        assert_status(tgl_upload(dev, memory, data, sizes[i], NULL), TGL_OK);
        assert_status(tgl_download(dev, back, memory, sizes[i], NULL), TGL_OK);
        assert_memory_equal(back, data, sizes[i]);
        tgl_free(dev, memory);
        free(back);
        free(data);
    }
    assert_status(tgl_device_sync(dev), TGL_OK);
    assert_status(tgl_device_sync(NULL), TGL_BAD_ARGUMENT);
}

static void no_bytes_give_null(void **state)
{
    tgl_device *dev = *state;
    void *memory = (void *)1;
    assert_status(tgl_alloc(dev, 0, &memory), TGL_OK);
    assert_null(memory);
    tgl_free(dev, NULL);
    tgl_free(NULL, NULL);
    assert_status(tgl_upload(dev, NULL, NULL, 0, NULL), TGL_OK);
    assert_status(tgl_download(dev, NULL, NULL, 0, NULL), TGL_OK);
}

static void absurd_sizes_are_refused(void **state)
{
    tgl_device *dev = *state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2 + 1, SIZE_MAX / 2 - 4096,
                                   (size_t)1 << 60};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        void *memory = (void *)1;
        assert_status(tgl_alloc(dev, sizes[i], &memory), TGL_NO_MEMORY);
        assert_null(memory);
        char text[200], expected[40];
        tgl_last_error(text, sizeof text);
        snprintf(expected, sizeof expected, "%zu", sizes[i]);
        assert_non_null(strstr(text, expected));
    }
}

static void bad_copies_are_refused(void **state)
{
    tgl_device *dev = *state;
    char byte = 0, text[100];
    assert_status(tgl_upload(dev, NULL, &byte, 1, NULL), TGL_BAD_ARGUMENT);
    tgl_last_error(text, sizeof text);
    assert_string_equal(text, "a copy of 1 bytes to NULL");
    assert_status(tgl_download(dev, &byte, NULL, 1, NULL), TGL_BAD_ARGUMENT);
    tgl_last_error(text, sizeof text);
    assert_string_equal(text, "a copy of 1 bytes from NULL");
    assert_status(tgl_upload(NULL, &byte, &byte, 1, NULL), TGL_BAD_ARGUMENT);
    void *memory = (void *)1;
    assert_status(tgl_alloc(NULL, 1, &memory), TGL_BAD_ARGUMENT);
    assert_null(memory);
    assert_status(tgl_alloc(dev, 1, NULL), TGL_BAD_ARGUMENT);
}

/* ---- Timers ---------------------------------------------------------------------------------- */

static void timers_tell_the_time(void **state)
{
    tgl_device *dev = *state;
    tgl_timer *timer;
    assert_status(tgl_timer_create(dev, &timer), TGL_OK);
    double before = -1;
    forget_error();
    assert_status(tgl_timer_stop(timer, NULL, &before), TGL_BAD_ARGUMENT); /* it was not started */
    assert_new_sentence();
    assert_true(before == -1);
    for (int i = 0; i < 2; i++) {
        double seconds = -1;
        assert_status(tgl_timer_start(timer, NULL), TGL_OK);
        usleep(2000);
        int passed = -1;
        assert_status(tgl_timer_passed(timer, &passed), TGL_OK);
        assert_int_equal(passed, 1);
        assert_status(tgl_timer_stop(timer, NULL, &seconds), TGL_OK);
        assert_true(seconds >= 0.002 && seconds < 60);
    }
    assert_status(tgl_timer_stop(timer, NULL, NULL), TGL_BAD_ARGUMENT);
    tgl_timer_destroy(timer);
    tgl_timer_destroy(NULL);
    double seconds;
    assert_status(tgl_timer_start(NULL, NULL), TGL_BAD_ARGUMENT);
    assert_status(tgl_timer_stop(NULL, NULL, &seconds), TGL_BAD_ARGUMENT);
    assert_status(tgl_timer_create(dev, NULL), TGL_BAD_ARGUMENT);
    timer = (tgl_timer *)1;
    assert_status(tgl_timer_create(NULL, &timer), TGL_BAD_ARGUMENT);
    assert_null(timer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_open_by_name),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(nonsense_in_the_environment_is_told),
        cmocka_unit_test(every_tier_of_this_processor_opens),
        cmocka_unit_test(failures_of_devices_have_sentences),
        cmocka_unit_test(failures_of_memory_have_sentences),
        cmocka_unit_test(failures_of_products_have_sentences),
        cmocka_unit_test(failures_of_the_rest_have_sentences),
        cmocka_unit_test(sentences_are_kept_for_each_thread),
        cmocka_unit_test(success_leaves_the_sentence),
        cmocka_unit_test(the_last_error_is_the_latest),
        cmocka_unit_test(properties_are_pairs_of_text),
        cmocka_unit_test(kernels_have_names),
        cmocka_unit_test(numbers_are_known),
        cmocka_unit_test(bad_ceilings_are_refused),
        cmocka_unit_test(ceilings_are_measured),
        cmocka_unit_test(a_ceiling_that_is_not_measured_is_not_told),
        cmocka_unit_test(memory_is_aligned_and_usable),
        cmocka_unit_test(no_bytes_give_null),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(bad_copies_are_refused),
        cmocka_unit_test(timers_tell_the_time),
    };
    return cmocka_run_group_tests(tests, setup_cpu, teardown_device);
}
