/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured plans on the cuda device, with the fake libraries: what is measured, remembered and
 * chosen.
 */
#include "measured_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_wisdom(const char *text)
{
    FILE *file = fopen(wisdom_path(), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(wisdom_path(), 0600);
}

static bool explains(const char *words)
{
    static char text[65536];
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = plan_with(dev, TGL_EFFORT_ESTIMATE, 0);
    tgl_plan_explain(plan, text, sizeof text);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    return strstr(text, words) != NULL;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static void the_fastest_is_chosen_and_remembered(void **state)
{
    (void)state;
    char estimated[200], measured[200], again[200];
    choice_of(TGL_EFFORT_ESTIMATE, 0, estimated);
    assert_int_equal(count_lines(), 0);
    choice_of(TGL_EFFORT_MEASURE, 0.5, measured);
    assert_int_equal(strncmp(measured, "simt_32x", 8), 0);
    assert_string_not_equal(measured, estimated);
    const int lines = count_lines(), compiled = compilations();
    const double used = device_seconds();
    assert_true(lines > 10);
    assert_true(explains("measured to be fastest"));
    assert_true(explains("us in bursts"));
    choice_of(TGL_EFFORT_ESTIMATE, 0, again); /* the wisdom serves ESTIMATE, too */
    assert_string_equal(again, measured);
    choice_of(TGL_EFFORT_MEASURE, 0.5, again); /* and nothing is measured twice */
    assert_string_equal(again, measured);
    assert_int_equal(count_lines(), lines);
    assert_int_equal(compilations(), compiled);
    assert_true(device_seconds() == used);
}

static void a_measured_product_is_right(void **state)
{
    (void)state;
    setenv("TEGULA_EFFORT", "measure:0.1", 1);
    tgl_device *dev = open_device("cuda");
    assert_product(dev, NULL, SIZE, SIZE, SIZE);
    assert_true(count_lines() > 1);
    tgl_device_close(dev);
}

static void the_budget_is_kept(void **state)
{
    (void)state;
    static const double budgets[] = {0.1, 0.03, 0.01, 0.0001};
    setenv("FAKE_CUDA_FAST", "0", 1); /* there are more candidates than time */
    for (size_t i = 0; i < COUNT_OF(budgets); i++) {
        char kernel[200];
        const double before = device_seconds();
        unlink(wisdom_path());
        choice_of(TGL_EFFORT_MEASURE, budgets[i], kernel);
        const double used = device_seconds() - before;
        if (used > budgets[i] + 0.0011) fail_msg("%g s were used of %g", used, budgets[i]);
        assert_true(used > 0.5 * budgets[i]);
    }
    assert_int_equal(count_lines(), 1); /* there was time for one run */
}

/* The first run takes the whole budget and is the only sample. Later plans do not measure again. */
static void a_large_product_is_measured_once(void **state)
{
    (void)state;
    char kernel[200];
    double budgets[] = {0.2, 4};
    setenv("FAKE_CUDA_FAST", "0", 1);
    for (size_t i = 0; i < COUNT_OF(budgets); i++) {
        setenv("FAKE_CUDA_US", i == 0 ? "300000" : "5000000", 1);
        unlink(wisdom_path());
        choice_of(TGL_EFFORT_MEASURE, budgets[i], kernel);
        assert_in_range(count_lines(), 1, 2);
        assert_true(explains(", 1 sample, "));
        const double used = device_seconds();
        choice_of(TGL_EFFORT_MEASURE, budgets[i], kernel);
        assert_true(device_seconds() == used);
    }
}

/* 0.2 s: 200 launches of a millisecond. */
static void the_budget_is_a_fifth_of_a_second_by_default(void **state)
{
    (void)state;
    char kernel[200];
    setenv("FAKE_CUDA_FAST", "0", 1); /* there are more candidates than time */
    const double before = device_seconds();
    choice_of(TGL_EFFORT_MEASURE, 0, kernel);
    const double used = device_seconds() - before;
    assert_true(used > 0.15 && used < 0.202);
}

/* The planner's choice runs first, while the clock rises. Its time of the rounds at the end counts.
 */
static void a_rising_clock_does_not_favour_later_candidates(void **state)
{
    (void)state;
    char kernel[200], text[16];
    setenv("FAKE_CUDA_FAST", "0", 1);
    snprintf(text, sizeof text, "%.0f", 1e6 * device_seconds() + 15000);
    setenv("FAKE_CUDA_COLD", text, 1);
    choice_of(TGL_EFFORT_MEASURE, 1, kernel);
    assert_true(explains("us in bursts"));
    int lines;
    char *wisdom = read_wisdom(&lines), own[220], estimated[200];
    unlink(wisdom_path());
    snprintf(own, sizeof own, "| %s |", choice_of(TGL_EFFORT_ESTIMATE, 0, estimated));
    const char *first = strstr(wisdom, own), *last = first;
    for (const char *at = first; at != NULL; at = strstr(at + 1, own))
        last = at;
    assert_non_null(first);
    assert_int_equal(strncmp(first + strlen(own), " 1200.000 |", 11), 0);
    assert_int_equal(strncmp(last + strlen(own), " 1000.000 |", 11), 0);
    free(wisdom);
}

static void the_power_limit_takes_a_larger_budget(void **state)
{
    (void)state;
    char burst[200], sustained[200], again[200];
    setenv("FAKE_CUDA_US", "10000", 1);
    choice_of(TGL_EFFORT_MEASURE, 1.9, burst);
    int lines;
    char *text = read_wisdom(&lines);
    assert_null(strstr(text, "sustained"));
    free(text);
    choice_of(TGL_EFFORT_MEASURE, 3, sustained);
    text = read_wisdom(&lines);
    assert_non_null(strstr(text, " | sustained\n"));
    free(text);
    assert_true(explains("at the power limit"));
    choice_of(TGL_EFFORT_MEASURE, 3, again);
    assert_string_equal(again, sustained);
    assert_int_equal(count_lines(), lines);
}

/* The number of lines is the current one, and reading the property changes no error message. */
static void the_property_counts_what_was_measured(void **state)
{
    (void)state;
    char expected[40], before[200], after[200];
    tgl_device *dev = open_device("cuda");
    tgl_alloc(dev, (size_t)-1, &(void *){NULL}); /* an earlier error */
    tgl_last_error(before, sizeof before);
    const char *first = property_of(dev, "wisdom");
    assert_non_null(strstr(first, "(0 lines of this chip)"));
    tgl_last_error(after, sizeof after);
    assert_string_equal(after, before);
    tgl_plan_destroy(plan_with(dev, TGL_EFFORT_MEASURE, 0.1));
    snprintf(expected, sizeof expected, "(%d lines of this chip)", count_lines());
    assert_non_null(strstr(property_of(dev, "wisdom"), expected));
    assert_non_null(strstr(first, "(0 lines of this chip)")); /* valid until the device is closed */
    tgl_device_close(dev);
}

/* ---- When nothing is measured ---------------------------------------------------------------- */

static void a_named_kernel_is_not_measured(void **state)
{
    (void)state;
    const tgl_problem problem = problem_of_size();
    const tgl_plan_options options = {
        .size = sizeof options, .kernel = "simt_64x64x16", .effort = TGL_EFFORT_MEASURE};
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_int_equal(count_lines(), 0);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Calls tgl_gemm() in `stream` while the stream `captured` is captured; NULL: none is. */
static void call_gemm(tgl_device *dev, void *stream, void *captured)
{
    const size_t bytes = (size_t)SIZE * SIZE * sizeof(float);
    const tgl_problem problem = problem_of_size();
    void *memory;
    assert_status(tgl_alloc(dev, 3 * bytes, &memory), TGL_OK);
    char *at = memory;
    if (captured != NULL) begin_capture(captured);
    assert_status(tgl_gemm(dev, &problem, 1, at, at + bytes, 0, at + 2 * bytes, stream), TGL_OK);
    if (captured != NULL) destroy_graph(end_capture(captured));
    tgl_free(dev, memory);
}

/* Measuring would run work on other streams in the middle of a capture. */
static void nothing_is_measured_while_a_stream_is_captured(void **state)
{
    (void)state;
    setenv("TEGULA_EFFORT", "measure", 1);
    tgl_device *dev = open_device("cuda");
    void *stream = create_stream();
    call_gemm(dev, stream, stream);
    assert_int_equal(count_lines(), 0);
    destroy_stream(stream);
    stream = create_blocking_stream(); /* tgl_plan_create() does not know the stream */
    begin_capture(stream);
    tgl_plan *plan = plan_with(dev, TGL_EFFORT_MEASURE, 0);
    destroy_graph(end_capture(stream));
    tgl_plan_destroy(plan);
    assert_int_equal(count_lines(), 0);
    destroy_stream(stream);
    tgl_device_close(dev);
}

/* A product whose first call was captured is measured by the next call that is not. */
static void a_capture_only_delays_measuring(void **state)
{
    (void)state;
    setenv("TEGULA_EFFORT", "measure:0.1", 1);
    tgl_device *dev = open_device("cuda");
    void *stream = create_stream();
    call_gemm(dev, stream, stream);
    assert_int_equal(count_lines(), 0);
    call_gemm(dev, stream, NULL);
    const int lines = count_lines();
    assert_true(lines > 1);
    const double used = device_seconds();
    call_gemm(dev, stream, stream);
    call_gemm(dev, stream, NULL);
    assert_int_equal(count_lines(), lines);
    assert_true(device_seconds() - used < 0.005);
    destroy_stream(stream);
    tgl_device_close(dev);
}

static void a_read_only_wisdom_keeps_plans(void **state)
{
    (void)state;
    char before[200], after[200];
    choice_of(TGL_EFFORT_ESTIMATE, 0, before);
    write_wisdom("# nothing\n");
    chmod(wisdom_path(), 0400); /* root may write to it all the same */
    const double used = device_seconds();
    choice_of(TGL_EFFORT_MEASURE, 0.5, after);
    assert_string_equal(after, before);
    assert_true(device_seconds() == used);
    assert_int_equal(count_lines(), 1);
    assert_true(explains("read-only"));
}

static void without_memory_nothing_is_measured(void **state)
{
    (void)state;
    char kernel[200];
    setenv("FAKE_CUDA_MEMORY", "37500", 1); /* three matrices take 12288 bytes */
    choice_of(TGL_EFFORT_MEASURE, 0.1, kernel);
    assert_int_equal(count_lines(), 0);
}

static void failures_of_the_driver_are_no_failures_of_the_plan(void **state)
{
    (void)state;
    static const char *const failures[] = {"cuStreamCreate=2", "cuMemGetInfo_v2=1",
                                           "cuMemcpyDtoDAsync_v2=1", "cuEventCreate=2",
                                           "cuMemcpyHtoDAsync_v2=1"};
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        char kernel[200];
        setenv("FAKE_CUDA_FAIL", failures[i], 1);
        choice_of(TGL_EFFORT_MEASURE, 0.05, kernel);
        assert_int_equal(count_lines(), 0);
    }
}

/* The timers that exist. */
static int timers;

tgl_status __real_tgl_timer_create(tgl_device *dev, tgl_timer **timer);
tgl_status __wrap_tgl_timer_create(tgl_device *dev, tgl_timer **timer);
void __real_tgl_timer_destroy(tgl_timer *timer);
void __wrap_tgl_timer_destroy(tgl_timer *timer);

tgl_status __wrap_tgl_timer_create(tgl_device *dev, tgl_timer **timer)
{
    const tgl_status status = __real_tgl_timer_create(dev, timer);
    timers += status == TGL_OK;
    return status;
}

void __wrap_tgl_timer_destroy(tgl_timer *timer)
{
    timers -= timer != NULL;
    __real_tgl_timer_destroy(timer);
}

/* If a candidate faults, the timer of the measurement is freed, although the context is lost. */
static void a_fault_while_measuring_keeps_no_timer(void **state)
{
    (void)state;
    const tgl_problem problem = problem_of_size();
    const tgl_plan_options options = {.size = sizeof options, .effort = TGL_EFFORT_MEASURE};
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan;
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel=700:5", 1);
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_DEVICE_LOST);
    assert_int_equal(timers, 0);
    tgl_device_close(dev);
}

static void without_a_file_the_process_remembers(void **state)
{
    (void)state;
    setenv("TEGULA_WISDOM", "off", 1);
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = plan_with(dev, TGL_EFFORT_MEASURE, 0.5);
    assert_int_equal(strncmp(tgl_plan_kernel(plan), "simt_32x", 8), 0);
    const double used = device_seconds();
    tgl_plan *again = plan_with(dev, TGL_EFFORT_ESTIMATE, 0);
    assert_string_equal(tgl_plan_kernel(again), tgl_plan_kernel(plan));
    assert_true(device_seconds() == used);
    tgl_plan_destroy(again);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    assert_int_equal(count_lines(), 0);
}

/* ---- Stale and hostile lines ----------------------------------------------------------------- */

/* Replaces the first `from` in each line of the wisdom by `to`. */
static void edit_wisdom(const char *from, const char *to)
{
    int lines;
    char *text = read_wisdom(&lines), *save;
    FILE *file = fopen(wisdom_path(), "w");
    assert_non_null(file);
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char *at = strstr(line, from);
        assert_non_null(at);
        fprintf(file, "%.*s%s%s\n", (int)(at - line), line, to, at + strlen(from));
    }
    fclose(file);
    free(text);
}

/* Changes the hash of the kernel source in each line. */
static void edit_sources(void)
{
    int lines;
    char *text = read_wisdom(&lines);
    for (char *at = text; (at = strstr(at, tgl_version())) != NULL;) {
        at += strlen(tgl_version()) + 3;
        *at = *at == '0' ? '1' : '0';
    }
    write_wisdom(text);
    free(text);
}

static void stale_lines_are_not_used(void **state)
{
    (void)state;
    char estimated[200], kernel[200], version[40];
    snprintf(version, sizeof version, " | %s | ", tgl_version());
    choice_of(TGL_EFFORT_ESTIMATE, 0, estimated);
    for (int i = 0; i < 4; i++) {
        unlink(wisdom_path());
        choice_of(TGL_EFFORT_MEASURE, 0.2, kernel);
        assert_string_not_equal(kernel, estimated);
        if (i == 0)
            edit_wisdom("CUDA 13.0", "CUDA 12.9");
        else if (i == 1)
            edit_wisdom(version, " | 0.1.7 | ");
        else if (i == 2)
            edit_wisdom("Fake GPU", "Some GPU");
        else
            edit_sources();
        choice_of(TGL_EFFORT_ESTIMATE, 0, kernel);
        assert_string_equal(kernel, estimated);
        if (i != 2) assert_true(explains(" of the wisdom not used: of another "));
        const double used = device_seconds();
        choice_of(TGL_EFFORT_MEASURE, 0.2, kernel); /* measures again */
        assert_true(device_seconds() > used);
        assert_string_not_equal(kernel, estimated);
    }
}

/* Lines for the product with kernels that the planner could not choose, or that do not exist. */
static void hostile_kernels_are_not_run(void **state)
{
    (void)state;
    static const char *const kernels[] = {"ladder/naive",     "simt_32x64x16:splits=100000",
                                          "wgmma_128x128",    "cpu/avx2",
                                          "%s%n%n",           "simt_32x64x16:",
                                          "simt_32x64x16",    "../../etc/passwd",
                                          "accurate_128x128", ""};
    char estimated[200], kernel[200];
    choice_of(TGL_EFFORT_ESTIMATE, 0, estimated);
    choice_of(TGL_EFFORT_MEASURE, 0.02, kernel);
    int lines;
    char *text = read_wisdom(&lines);
    assert_true(lines > 0);
    text[strcspn(text, "\n")] = '\0';
    char *fields[10], *at = text;
    for (int i = 0; i < 10; i++, at += 3) {
        fields[i] = at;
        at = i < 9 ? strstr(at, " | ") : at + strlen(at);
        assert_non_null(at);
        if (i < 9) *at = '\0';
    }
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        char line[1000];
        snprintf(line, sizeof line, "%s | %s | %s | %s | %s | %s | 0.001 | 0.000 | 5 | burst\n",
                 fields[0], fields[1], fields[2], fields[3], fields[4], kernels[i]);
        write_wisdom(line);
        choice_of(TGL_EFFORT_ESTIMATE, 0, kernel);
        assert_string_equal(kernel, estimated);
    }
    free(text);
}

/* ---- A peer ---------------------------------------------------------------------------------- */

static void the_time_of_a_peer_is_remembered(void **state)
{
    (void)state;
    char before[200], after[200];
    double ratio = 7;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = plan_with(dev, TGL_EFFORT_ESTIMATE, 0);
    assert_status(tgl_plan_set_peer(plan, 0.5), TGL_UNSUPPORTED); /* it was not measured */
    assert_status(tgl_plan_peer(plan, &ratio), TGL_UNSUPPORTED);
    tgl_plan_destroy(plan);
    plan = plan_with(dev, TGL_EFFORT_MEASURE, 0.1);
    snprintf(before, sizeof before, "%s", tgl_plan_kernel(plan));
    assert_status(tgl_plan_peer(plan, &ratio), TGL_UNSUPPORTED);
    assert_status(tgl_plan_set_peer(plan, 0), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_set_peer(plan, -1), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_set_peer(plan, NAN), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_set_peer(plan, INFINITY), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_set_peer(NULL, 1), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_peer(plan, NULL), TGL_BAD_ARGUMENT);
    assert_status(tgl_plan_set_peer(plan, 2), TGL_OK);
    assert_status(tgl_plan_set_peer(plan, 0.25), TGL_OK); /* faster than all kernels */
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    dev = open_device("cuda");
    plan = plan_with(dev, TGL_EFFORT_ESTIMATE, 0);
    assert_string_equal(tgl_plan_kernel(plan), before); /* a peer is no kernel */
    assert_status(tgl_plan_peer(plan, &ratio), TGL_OK);
    assert_true(fabs(ratio - 0.25) < 1e-4);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    edit_wisdom("CUDA 13.0", "CUDA 12.9");
    choice_of(TGL_EFFORT_ESTIMATE, 0, after);
    assert_false(explains("\npeer "));
}

/* The ratio is that of the plan's kernel, also if another kernel was measured to be faster since.
 */
static void a_peer_is_compared_with_the_kernel_of_the_plan(void **state)
{
    (void)state;
    double ratio = 0;
    const tgl_problem problem = problem_of_size();
    tgl_shape shape;
    tgl_measured *lines;
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = plan_with(dev, TGL_EFFORT_MEASURE, 0.1);
    assert_status(tgl_plan_set_peer(plan, 2), TGL_OK);
    assert_status(tgl_device_shape(dev, &problem, true, &shape), TGL_OK);
    const int count = tgl_wisdom_find(dev->wisdom, &shape, &lines);
    assert_true(count > 1 && strcmp(lines[0].kernel, tgl_plan_kernel(plan)) == 0);
    tgl_measured faster = lines[1], own = lines[0];
    free(lines);
    faster.seconds = own.seconds / 8;
    tgl_wisdom_add(dev->wisdom, &shape, &faster);
    assert_status(tgl_plan_peer(plan, &ratio), TGL_OK);
    assert_true(fabs(ratio - 2) < 1e-3);
    tgl_plan *other = plan_with(dev, TGL_EFFORT_ESTIMATE, 0);
    assert_string_not_equal(tgl_plan_kernel(other), tgl_plan_kernel(plan));
    assert_status(tgl_plan_peer(other, &ratio), TGL_OK);
    assert_true(fabs(ratio - 16) < 1e-2);
    tgl_plan_destroy(other);
    /* At the power limit the clock is lower, so such a time is not compared with a burst. */
    own.is_sustained = true;
    tgl_wisdom_add(dev->wisdom, &shape, &own);
    assert_status(tgl_plan_peer(plan, &ratio), TGL_UNSUPPORTED);
    assert_status(tgl_plan_set_peer(plan, 3), TGL_OK);
    assert_status(tgl_plan_peer(plan, &ratio), TGL_OK);
    assert_true(fabs(ratio - 3) < 1e-3);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- Several threads and processes ----------------------------------------------------------- */

static void *measure_in_thread(void *dev)
{
    tgl_plan_destroy(plan_with(dev, TGL_EFFORT_MEASURE, 0.1));
    return NULL;
}

static void threads_measure_a_product_once(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    tgl_device *dev = open_device("cuda");
    const double before = device_seconds();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, measure_in_thread, dev), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(device_seconds() - before < 0.102);
    tgl_device_close(dev);
}

/* The time for which a thread waits while another one measures does not count in its host time. */
static void a_thread_that_has_waited_still_compiles(void **state)
{
    (void)state;
    pthread_t thread;
    tgl_device *dev = open_device("cuda");
    const int before = compilations();
    pthread_mutex_lock(&dev->measuring);
    const int waits_before = waits;
    assert_int_equal(pthread_create(&thread, NULL, measure_in_thread, dev), 0);
    while (waits == waits_before) /* until the thread is about to wait */
        usleep(1000);
    host_seconds = 1.3; /* the limit is 0.25 s */
    pthread_mutex_unlock(&dev->measuring);
    pthread_join(thread, NULL);
    assert_true(compilations() - before > 2);
    tgl_device_close(dev);
}

/* A device that was opened before another process has measured reads what that process wrote. */
static void a_second_process_measures_nothing(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        char kernel[200];
        choice_of(TGL_EFFORT_MEASURE, 0.3, kernel);
        _exit(strncmp(kernel, "simt_32x", 8) == 0 ? 0 : 1);
    }
    int code;
    tgl_device *dev = open_device("cuda");
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    const double used = device_seconds();
    tgl_plan *plan = plan_with(dev, TGL_EFFORT_MEASURE, 0.3);
    assert_int_equal(strncmp(tgl_plan_kernel(plan), "simt_32x", 8), 0);
    assert_true(device_seconds() == used);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- Options --------------------------------------------------------------------------------- */

static void the_environment_is_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {"fast",       "measure:", "measure:-1",  "measure:0",
                                        "measure:1x", "MEASURE",  "measure:1e3", "measure 1"};
    static const char *const right[] = {"",          "estimate",  "measure", "measure:0.25",
                                        "measure:3", "measure:.5"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        setenv("TEGULA_EFFORT", wrong[i], 1);
        assert_open_fails("cuda", TGL_BAD_SETTING, "TEGULA_EFFORT");
    }
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        setenv("TEGULA_EFFORT", right[i], 1);
        tgl_device_close(open_device("cuda"));
    }
}

static void options_are_checked(void **state)
{
    (void)state;
    static const tgl_plan_options wrong[] = {
        {.size = sizeof(tgl_plan_options), .effort = (tgl_effort)3},
        {.size = sizeof(tgl_plan_options), .effort = (tgl_effort)-1},
        {.size = sizeof(tgl_plan_options), .measure_seconds = -1},
        {.size = sizeof(tgl_plan_options), .measure_seconds = NAN},
        {.size = sizeof(tgl_plan_options), .measure_seconds = INFINITY}};
    const tgl_problem problem = problem_of_size();
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_status(tgl_plan_create(dev, &problem, &wrong[i], &plan), TGL_BAD_ARGUMENT);
    tgl_device_close(dev);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_measured, teardown_measured)
    const struct CMUnitTest tests[] = {
        TEST(the_fastest_is_chosen_and_remembered),
        TEST(a_measured_product_is_right),
        TEST(the_budget_is_kept),
        TEST(a_large_product_is_measured_once),
        TEST(the_budget_is_a_fifth_of_a_second_by_default),
        TEST(a_rising_clock_does_not_favour_later_candidates),
        TEST(the_power_limit_takes_a_larger_budget),
        TEST(the_property_counts_what_was_measured),
        TEST(a_named_kernel_is_not_measured),
        TEST(nothing_is_measured_while_a_stream_is_captured),
        TEST(a_capture_only_delays_measuring),
        TEST(a_read_only_wisdom_keeps_plans),
        TEST(without_memory_nothing_is_measured),
        TEST(failures_of_the_driver_are_no_failures_of_the_plan),
        TEST(a_fault_while_measuring_keeps_no_timer),
        TEST(without_a_file_the_process_remembers),
        TEST(stale_lines_are_not_used),
        TEST(hostile_kernels_are_not_run),
        TEST(the_time_of_a_peer_is_remembered),
        TEST(a_peer_is_compared_with_the_kernel_of_the_plan),
        TEST(threads_measure_a_product_once),
        TEST(a_thread_that_has_waited_still_compiles),
        TEST(a_second_process_measures_nothing),
        TEST(the_environment_is_checked),
        TEST(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
