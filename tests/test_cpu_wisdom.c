/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured plans of the cpu device: which lines of the wisdom its plans take, and what MEASURE
 * writes.
 */
#include "support.h"

#include "api/settings.h"
#include "backend/backend.h"

#include <fenv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], path[100];

/* This machine's fields in lines of the wisdom, and its settings. */
static char chip[TGL_NAME_SIZE], driver[TGL_NAME_SIZE];
static tgl_setting settings[TGL_SETTINGS_MAX];
static int setting_count;

/* Indices of the settings that the tests use: the planner's own, a row of the table, and a
 * blocking. */
enum { OWN = 0, ROW = 1 };
static int blocking;

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tegula-wisdom-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/wisdom", folder);
    setenv("TEGULA_WISDOM", path, 1);
    tgl_device *dev = open_cpu(2);
    dev->backend->trials->describe(dev, chip, driver);
    setting_count = dev->backend->settings->list(dev, settings);
    blocking = setting_count - 1;
    tgl_device_close(dev);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    unsetenv("TEGULA_WISDOM");
    return rmdir(folder);
}

/* Removes the file. */
static int forget(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static tgl_problem square(tgl_type type, int size)
{
    return problem_of(type, size, size, size);
}

static void key_of(const tgl_problem *problem, char key[TGL_SHAPE_KEY_SIZE])
{
    tgl_shape shape;
    assert_status(tgl_shape_make(problem, true, &shape), TGL_OK);
    tgl_shape_key(&shape, key);
}

/* Appends a line. */
static void append(const char *key, const char *kernel, const char *source, double us, int samples)
{
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fprintf(file, "%s | %s | %s | %s | %s | %s | %.3f | 1.000 | %d | burst\n", chip, driver,
            tgl_version(), source, key, kernel, us, samples);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
}

/* Appends the time of a setting. */
static void add(const tgl_problem *problem, int setting, double us, int samples)
{
    char key[TGL_SHAPE_KEY_SIZE];
    key_of(problem, key);
    append(key, settings[setting].kernel, settings[setting].source, us, samples);
}

static tgl_plan *plan_with(tgl_device *dev, const tgl_problem *problem, tgl_effort effort)
{
    tgl_plan *plan;
    const tgl_plan_options options = {
        .size = sizeof options, .effort = effort, .measure_seconds = 0.02};
    assert_status(tgl_plan_create(dev, problem, &options, &plan), TGL_OK);
    return plan;
}

/* Fails unless a new device plans the product with this kernel, and its explanation contains
 * `part`. */
static void expect(const tgl_problem *problem, const char *kernel, const char *part)
{
    char text[4096];
    tgl_device *dev = open_cpu(2);
    tgl_plan *plan = plan_with(dev, problem, TGL_EFFORT_ESTIMATE);
    assert_string_equal(tgl_plan_kernel(plan), kernel);
    tgl_plan_explain(plan, text, sizeof text);
    if (strstr(text, part) == NULL) fail_msg("no \"%s\" in:\n%s", part, text);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static int lines_of_file(void)
{
    int lines = 0;
    FILE *file = fopen(path, "r");
    for (int c; file != NULL && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file != NULL) fclose(file);
    return lines;
}

/* ---- What plans take ------------------------------------------------------------------------- */

static void the_fastest_setting_is_taken(void **state)
{
    (void)state;
    const tgl_problem problem = square(TGL_F32, 300), other = square(TGL_F32, 301);
    add(&problem, OWN, 100, 9);
    expect(&problem, settings[OWN].kernel, "settings measured: 1");
    add(&problem, ROW, 97, 9);
    add(&problem, blocking, 90, 9);
    expect(&problem, settings[blocking].kernel, "choice      cpu/");
    expect(&problem, settings[blocking].kernel, "settings measured: 3");
    expect(&other, settings[OWN].kernel, "3 lines of this chip");
    add(&problem, blocking, 120, 9); /* the later line counts */
    expect(&problem, settings[ROW].kernel, "measured    97.00 us");
}

/* The planner's own choice is kept where the difference may be noise. */
static void noise_changes_nothing(void **state)
{
    (void)state;
    const tgl_problem close = square(TGL_F32, 300), rare = square(TGL_F32, 301);
    add(&close, OWN, 100, 9);
    add(&close, ROW, 98.5, 9);
    expect(&close, settings[OWN].kernel, "measured    100.00 us");
    add(&rare, OWN, 100, 9);
    add(&rare, ROW, 50, 2);
    expect(&rare, settings[OWN].kernel, "measured    100.00 us");
    add(&rare, OWN, 100, 2); /* the first of two runs may not have found its data in caches */
    add(&rare, ROW, 50, 9);
    expect(&rare, settings[OWN].kernel, "measured    100.00 us");
}

/* Lines whose kernels are not settings of this processor, whose source (a hash of the settings'
 * values) differs, or that are of another chip. */
static void other_lines_are_not_taken(void **state)
{
    (void)state;
    static const char *const kernels[] = {"cpu/avx2:row=99",        "cpu/none:row=1", "cpu/none",
                                          "cpu/avx2:kc=1,mc=65536", "simt_128x128",   ":row=1"};
    char key[TGL_SHAPE_KEY_SIZE], other[TGL_SOURCE_SIZE];
    const tgl_problem problem = square(TGL_F32, 300);
    key_of(&problem, key);
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        append(key, kernels[i], settings[ROW].source, 1, 9);
    expect(&problem, settings[OWN].kernel, "stale       6 lines of the wisdom not used: of a");
    memcpy(other, settings[ROW].source, sizeof other);
    other[0] = other[0] == '0' ? '1' : '0';
    append(key, settings[ROW].kernel, other, 1, 9);
    expect(&problem, settings[OWN].kernel, "stale       7 lines");
    snprintf(chip + strlen(chip), sizeof chip - strlen(chip), "0");
    add(&problem, ROW, 1, 9);
    chip[strlen(chip) - 1] = '\0';
    expect(&problem, settings[OWN].kernel, "stale       7 lines");
}

/* A kernel that the caller names is not replaced. */
static void a_named_kernel_is_kept(void **state)
{
    (void)state;
    const tgl_problem problem = square(TGL_F32, 300);
    const tgl_plan_options options = {.size = sizeof options, .kernel = settings[OWN].kernel};
    add(&problem, ROW, 1, 9);
    tgl_device *dev = open_cpu(2);
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_string_equal(tgl_plan_kernel(plan), settings[OWN].kernel);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Products that were not measured take the setting that is fastest in the mean over at least 8
 * products. */
static void the_mean_serves_other_products(void **state)
{
    (void)state;
    const tgl_problem unknown = square(TGL_F32, 500), double_precision = square(TGL_F64, 500);
    for (int i = 0; i < 8; i++) {
        const tgl_problem problem = square(TGL_F32, 300 + i);
        expect(&unknown, settings[OWN].kernel, "kernel      cpu/");
        add(&problem, OWN, 100, 9);
        add(&problem, ROW, i == 0 ? 70 : 110, 9);
        add(&problem, blocking, i == 0 ? 110 : 95, 9);
    }
    expect(&unknown, settings[blocking].kernel,
           "1.034 of the planner's speed in the mean over 8 measured products");
    expect(&double_precision, settings[OWN].kernel, "24 lines of this chip");
}

/* A setting that was measured for one product does not serve others, however many products were
 * measured with other settings. */
static void the_mean_is_of_products_of_the_setting(void **state)
{
    (void)state;
    const tgl_problem unknown = square(TGL_F32, 500);
    for (int i = 0; i < 8; i++) {
        const tgl_problem problem = square(TGL_F32, 300 + i);
        add(&problem, OWN, 100, 9);
        if (i == 0) add(&problem, ROW, 50, 9);
    }
    expect(&unknown, settings[OWN].kernel, "9 lines of this chip");
    for (int i = 1; i < 8; i++) { /* the planner's own choice has too few samples */
        const tgl_problem problem = square(TGL_F32, 300 + i);
        add(&problem, OWN, 100, 1);
        add(&problem, ROW, 50, 9);
    }
    expect(&unknown, settings[OWN].kernel, "23 lines of this chip");
    for (int i = 1; i < 8; i++) {
        const tgl_problem problem = square(TGL_F32, 300 + i);
        add(&problem, OWN, 100, 9);
    }
    expect(&unknown, settings[ROW].kernel, "2.000 of the planner's speed in the mean over 8");
}

/* The mean decides, and not the number of products. */
static void a_better_mean_of_fewer_products(void **state)
{
    (void)state;
    const tgl_problem unknown = square(TGL_F32, 500);
    for (int i = 0; i < 20; i++) {
        const tgl_problem problem = square(TGL_F32, 300 + i);
        add(&problem, OWN, 100, 9);
        add(&problem, blocking, 95, 9);
        if (i < 8) add(&problem, ROW, 92, 9);
    }
    expect(&unknown, settings[ROW].kernel, "1.087 of the planner's speed in the mean over 8");
}

/* explain says why the plan has its kernel, and not which kernel a new plan would have. */
static void later_times_do_not_explain_a_plan(void **state)
{
    (void)state;
    char text[4096];
    tgl_shape shape;
    const tgl_problem problem = square(TGL_F32, 300);
    tgl_measured line = {.kernel = settings[ROW].kernel, .seconds = 1e-6, .samples = 9};
    memcpy(line.source, settings[ROW].source, sizeof line.source);
    tgl_device *dev = open_cpu(2);
    tgl_plan *plan = plan_with(dev, &problem, TGL_EFFORT_ESTIMATE);
    assert_status(tgl_shape_make(&problem, true, &shape), TGL_OK);
    tgl_wisdom_add(dev->wisdom, &shape, &line);
    tgl_plan_explain(plan, text, sizeof text);
    assert_null(strstr(text, "choice "));
    assert_null(strstr(text, "measured  "));
    tgl_plan_destroy(plan);
    plan = plan_with(dev, &problem, TGL_EFFORT_ESTIMATE);
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "choice "));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* ---- What MEASURE writes --------------------------------------------------------------------- */

static void measure_writes_settings_once(void **state)
{
    (void)state;
    const tgl_problem problem = square(TGL_F32, 130);
    tgl_device *dev = open_cpu(2);
    tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_ESTIMATE));
    assert_int_equal(lines_of_file(), 0);
    tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_MEASURE));
    const int lines = lines_of_file();
    assert_in_range(lines, 1, setting_count);
    tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_MEASURE));
    tgl_device_close(dev);
    dev = open_cpu(2);
    tgl_plan *plan = plan_with(dev, &problem, TGL_EFFORT_MEASURE);
    assert_int_equal(lines_of_file(), lines);
    char text[4096];
    tgl_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "measured to be fastest"));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* If there is nothing to choose, or nothing may be remembered, nothing is written. */
static void measure_leaves_the_file(void **state)
{
    (void)state;
    const tgl_problem tiny = square(TGL_F32, 20), vector = problem_of(TGL_F32, 1, 500, 500),
                      empty = problem_of(TGL_F32, 200, 200, 0), large = square(TGL_F32, 200);
    tgl_device *dev = open_cpu(2);
    tgl_plan_destroy(plan_with(dev, &tiny, TGL_EFFORT_MEASURE));
    tgl_plan_destroy(plan_with(dev, &vector, TGL_EFFORT_MEASURE));
    tgl_plan_destroy(plan_with(dev, &empty, TGL_EFFORT_MEASURE));
    assert_int_equal(lines_of_file(), 0);
    add(&tiny, OWN, 1, 9);
    assert_int_equal(chmod(path, 0400), 0);
    tgl_plan_destroy(plan_with(dev, &large, TGL_EFFORT_MEASURE));
    assert_int_equal(lines_of_file(), 1);
    tgl_device_close(dev);
}

/* Nothing is measured for the parts of a grouped product, whose sizes are new in each run. A later
 * product with the shape of a group is measured. */
static void groups_are_not_measured(void **state)
{
    (void)state;
    enum { SIZE = 130 };
    static float A[2 * SIZE * SIZE], B[2 * SIZE * SIZE], C[2 * SIZE * SIZE];
    const int32_t ends[] = {SIZE - 1, 2 * SIZE};
    tgl_problem problem = problem_of(TGL_F32, 2 * SIZE, SIZE, SIZE);
    problem.grouping = TGL_GROUPED_ROWS;
    problem.batch = 2;
    problem.stride_b = SIZE * SIZE;
    const tgl_operands o = {.size = sizeof o, .alpha = 1, .A = A, .B = B, .C = C, .groups = ends};
    setenv("TEGULA_EFFORT", "measure:0.02", 1);
    tgl_device *dev = open_cpu(2);
    tgl_plan *plan = plan_with(dev, &problem, TGL_EFFORT_DEFAULT);
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_int_equal(lines_of_file(), 0);
    const tgl_problem group = problem_of(TGL_F32, SIZE - 1, SIZE, SIZE);
    assert_status(tgl_gemm(dev, &group, 1, A, B, 0, C, NULL), TGL_OK);
    const int lines = lines_of_file();
    assert_in_range(lines, 1, setting_count);
    assert_status(tgl_plan_run_operands(plan, &o, NULL), TGL_OK);
    assert_status(tgl_gemm(dev, &group, 1, A, B, 0, C, NULL), TGL_OK);
    assert_int_equal(lines_of_file(), lines);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    unsetenv("TEGULA_EFFORT");
}

/* Products are not measured whose operands take more than 256 MiB or have large gaps. */
static void large_sets_are_not_measured(void **state)
{
    (void)state;
    tgl_problem gaps = square(TGL_F32, 130);
    const tgl_problem large = problem_of(TGL_F32, 8192, 8192, 130);
    gaps.ldc = 3000;
    tgl_device *dev = open_cpu(2);
    tgl_plan_destroy(plan_with(dev, &gaps, TGL_EFFORT_MEASURE));
    tgl_plan_destroy(plan_with(dev, &large, TGL_EFFORT_MEASURE));
    assert_int_equal(lines_of_file(), 0);
    gaps.ldc = 400;
    tgl_plan_destroy(plan_with(dev, &gaps, TGL_EFFORT_MEASURE));
    assert_in_range(lines_of_file(), 1, setting_count);
    tgl_device_close(dev);
}

/* A product with too few samples is measured again if the budget suffices for six runs. */
static void few_samples_are_measured_again(void **state)
{
    (void)state;
    const tgl_problem problem = square(TGL_F32, 130);
    tgl_device *dev = open_cpu(2);
    add(&problem, OWN, 10000, 1); /* the budget is 20 ms */
    tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_MEASURE));
    assert_int_equal(lines_of_file(), 1);
    add(&problem, OWN, 100, 1);
    tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_MEASURE));
    const int lines = lines_of_file();
    assert_in_range(lines, 3, 2 + setting_count);
    tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_MEASURE));
    assert_int_equal(lines_of_file(), lines); /* its own choice has enough samples now */
    tgl_device_close(dev);
}

/* The caller's floating-point exceptions stay as they are. */
static void measuring_raises_no_exceptions(void **state)
{
    (void)state;
    const tgl_problem problem = square(TGL_F32, 130);
    const tgl_plan_options options = {
        .size = sizeof options, .effort = TGL_EFFORT_MEASURE, .measure_seconds = 0.02};
    tgl_shape shape;
    tgl_device *dev = open_cpu(2);
    assert_status(tgl_device_shape(dev, &problem, true, &shape), TGL_OK);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
    tgl_settings_measure(dev, &shape, &options);
    assert_int_equal(fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO);
    feclearexcept(FE_ALL_EXCEPT);
    assert_in_range(lines_of_file(), 1, setting_count);
    tgl_device_close(dev);
}

/* The budget is exceeded by three runs at most, and the planner's own choice runs in any case. */
static void the_budget_is_kept(void **state)
{
    (void)state;
    const tgl_problem problem = square(TGL_F64, 200);
    const tgl_plan_options options = {
        .size = sizeof options, .effort = TGL_EFFORT_MEASURE, .measure_seconds = 1e-9};
    tgl_device *dev = open_cpu(1);
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_in_range(lines_of_file(), 1, setting_count - 1); /* those with the same plan */
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Opening a device creates no folder. Measuring creates the folder of the disk cache. */
static void opening_creates_no_folder(void **state)
{
    (void)state;
    char cache[100], file[160];
    const char *before = getenv("TEGULA_CACHE");
    char *saved = before != NULL ? strdup(before) : NULL;
    const tgl_problem problem = square(TGL_F32, 130);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    unsetenv("TEGULA_WISDOM");
    setenv("TEGULA_CACHE", cache, 1);
    tgl_device *dev = open_cpu(2);
    tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_ESTIMATE));
    assert_int_not_equal(access(cache, F_OK), 0);
    tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_MEASURE));
    snprintf(file, sizeof file, "%s/tegula/wisdom", cache);
    assert_int_equal(access(file, F_OK), 0);
    tgl_device_close(dev);
    unlink(file);
    snprintf(file, sizeof file, "%s/tegula", cache);
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(rmdir(cache), 0);
    setenv("TEGULA_WISDOM", path, 1);
    if (saved != NULL)
        setenv("TEGULA_CACHE", saved, 1);
    else
        unsetenv("TEGULA_CACHE");
    free(saved);
}

/* A child process of fork() makes plans, although a thread of the parent held the lock. */
static void a_child_waits_for_no_thread(void **state)
{
    (void)state;
    const tgl_problem problem = square(TGL_F32, 130);
    tgl_device *dev = open_cpu(1);
    pthread_mutex_lock(&dev->measuring);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        tgl_plan_destroy(plan_with(dev, &problem, TGL_EFFORT_MEASURE));
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pthread_mutex_unlock(&dev->measuring);
    tgl_device_close(dev);
}

/* Every setting computes the product: the results differ by rounding only. */
static void settings_change_only_rounding(void **state)
{
    (void)state;
    static const int sizes[][3] = {{90, 70, 400}, {20, 300, 300}};
    tgl_device *dev = open_cpu(2);
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        for (int i = 0; i < setting_count; i++) {
            gemm_case c = {.problem = problem_of(TGL_F32, sizes[s][0], sizes[s][1], sizes[s][2]),
                           .alpha = 1,
                           .fill = UNIFORM_11,
                           .kernel = settings[i].kernel,
                           .seed = 1};
            gemm_outcome outcome;
            gemm_case_run(dev, &c, false, &outcome);
            assert_string_equal(outcome.fault, "");
            assert_status(outcome.status, TGL_OK);
        }
    }
    tgl_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_fastest_setting_is_taken, forget),
        cmocka_unit_test_teardown(noise_changes_nothing, forget),
        cmocka_unit_test_teardown(other_lines_are_not_taken, forget),
        cmocka_unit_test_teardown(a_named_kernel_is_kept, forget),
        cmocka_unit_test_teardown(the_mean_serves_other_products, forget),
        cmocka_unit_test_teardown(the_mean_is_of_products_of_the_setting, forget),
        cmocka_unit_test_teardown(a_better_mean_of_fewer_products, forget),
        cmocka_unit_test_teardown(later_times_do_not_explain_a_plan, forget),
        cmocka_unit_test_teardown(measure_writes_settings_once, forget),
        cmocka_unit_test_teardown(measure_leaves_the_file, forget),
        cmocka_unit_test_teardown(groups_are_not_measured, forget),
        cmocka_unit_test_teardown(large_sets_are_not_measured, forget),
        cmocka_unit_test_teardown(few_samples_are_measured_again, forget),
        cmocka_unit_test_teardown(measuring_raises_no_exceptions, forget),
        cmocka_unit_test_teardown(the_budget_is_kept, forget),
        cmocka_unit_test_teardown(opening_creates_no_folder, forget),
        cmocka_unit_test_teardown(a_child_waits_for_no_thread, forget),
        cmocka_unit_test_teardown(settings_change_only_rounding, forget),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
