/* SPDX-License-Identifier: Apache-2.0 */
#include "measured_case.h"

#include <sys/stat.h>
#include <unistd.h>

double compilation_seconds;
_Atomic double host_seconds;
atomic_int waits;

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    if (id != CLOCK_MONOTONIC) {
        atomic_fetch_add(&waits, 1);
        return __real_clock_gettime(id, now);
    }
    const double seconds = 1000 + host_seconds + compilation_seconds * compilations();
    now->tv_sec = (time_t)seconds;
    now->tv_nsec = (long)(1e9 * (seconds - (double)now->tv_sec));
    return 0;
}

const char *wisdom_path(void)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/wisdom", cache_folder());
    return path;
}

int setup_measured(void **state)
{
    const int code = fake_setup(state);
    setenv("FAKE_CUDA_US", "1000", 1);
    setenv("FAKE_CUDA_FAST", "32", 1);
    setenv("TEGULA_COMPUTE", "ieee", 1);
    compilation_seconds = 0;
    host_seconds = 0;
    return code;
}

int teardown_measured(void **state)
{
    chmod(wisdom_path(), 0600);
    unlink(wisdom_path());
    return fake_teardown(state);
}

tgl_problem problem_of_size(void)
{
    tgl_problem problem;
    assert_status(tgl_problem_init(&problem, sizeof problem, TGL_F32, SIZE, SIZE, SIZE), TGL_OK);
    return problem;
}

tgl_plan *plan_with(tgl_device *dev, tgl_effort effort, double seconds)
{
    const tgl_problem problem = problem_of_size();
    const tgl_plan_options options = {
        .size = sizeof options, .effort = effort, .measure_seconds = seconds};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    return plan;
}

const char *choice_of(tgl_effort effort, double seconds, char text[200])
{
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = plan_with(dev, effort, seconds);
    snprintf(text, 200, "%s", tgl_plan_kernel(plan));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    return text;
}

char *read_wisdom(int *lines)
{
    enum { SIZE_MAX_OF_FILE = 1 << 20 };
    char *text = calloc(1, SIZE_MAX_OF_FILE);
    assert_non_null(text);
    FILE *file = fopen(wisdom_path(), "r");
    if (file != NULL) {
        assert_true(fread(text, 1, SIZE_MAX_OF_FILE - 1, file) < SIZE_MAX_OF_FILE - 1);
        fclose(file);
    }
    *lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        ++*lines;
    return text;
}

int count_lines(void)
{
    int lines;
    free(read_wisdom(&lines));
    return lines;
}

double device_seconds(void)
{
    return 1e-9 * (double)*(const uint64_t *)fake_function("fake_device_ns");
}
