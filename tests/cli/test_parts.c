/* SPDX-License-Identifier: Apache-2.0
 *
 * Small parts of the program: statistics, names of kernels, headers of NumPy files, labels of
 * types, and how bench takes samples.
 */
#include "bench_report.h"
#include "kernel_names.h"
#include "npy.h"
#include "problem_options.h"
#include "stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Statistics ------------------------------------------------------------------------------ */

static void quantiles(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_true(stats_quantile(odd, 3, 0.5) == 3);
    assert_true(stats_quantile(even, 4, 0.5) == 2.5);
    assert_true(stats_quantile(even, 4, 0) == 1);
    assert_true(stats_quantile(even, 4, 1) == 4);
    assert_true(stats_quantile(one, 1, 0.5) == 7);
}

static void geometric_means(void **state)
{
    (void)state;
    geometric_mean g = {0};
    assert_true(geometric_mean_value(&g) == 0);
    geometric_mean_add(&g, 0.5);
    geometric_mean_add(&g, 8);
    assert_true(fabs(geometric_mean_value(&g) - 2) < 1e-12);
}

/* ---- Names of kernels ------------------------------------------------------------------------ */

static void kernels_that_are_asked_for(void **state)
{
    (void)state;
    tgl_device *dev;
    assert_int_equal(tgl_device_open("cpu", NULL, &dev), TGL_OK);
    const char *name = tgl_kernel_name(dev, 0), *other = tgl_kernel_name(dev, 1);
    assert_non_null(name);
    assert_true(kernel_is_asked(dev, "all", name) && kernel_is_asked(dev, "gemm", name));
    assert_true(kernel_is_asked(dev, "cpu", name) && kernel_is_asked(dev, name, name));
    assert_false(kernel_is_asked(dev, "cp", name) || kernel_is_asked(dev, "ladder", name));
    assert_false(kernel_is_asked(dev, "auto", name));
    assert_true(other == NULL || !kernel_is_asked(dev, name, other));
    assert_true(kernel_is_auto_asked(dev, "all") && !kernel_is_auto_asked(dev, name));
    assert_true(kernel_is_rung("ladder/naive") && !kernel_is_rung(name));
    assert_false(kernel_has_option(name, "splits=2"));
    tgl_device_close(dev);
}

static void options_that_kernels_have(void **state)
{
    (void)state;
    assert_true(kernel_has_option("simt_128x256x8", "splits=2,whole=1,depth=32"));
    assert_true(kernel_has_option("simt_128x256x8:splits=3", "strips=1"));
    assert_true(kernel_has_option("skinny_4", "splits=2"));
    assert_true(kernel_has_option("skinny_4", "blocks=1"));
    assert_false(kernel_has_option("gemv", "splits=2"));
    assert_false(kernel_has_option("simt_128x256x8", "blocks=1"));
    assert_false(kernel_has_option("nonsense", "splits=2"));
}

/* ---- NumPy headers --------------------------------------------------------------------------- */

static void headers_come_back(void **state)
{
    (void)state;
    const npy_header header = {
        .type = TGL_F64, .fortran_order = true, .dimensions = 2, .shape = {3, 0}};
    char text[NPY_HEADER_MAX], message[200];
    const size_t length = npy_format(&header, text);
    assert_int_equal(length % 64, 0);
    npy_header again;
    assert_true(npy_parse((unsigned char *)text, length, &again, message, sizeof message));
    assert_true(again.type == TGL_F64 && again.fortran_order);
    assert_true(again.dimensions == 2 && again.shape[0] == 3 && again.shape[1] == 0 &&
                again.data_offset == length);
    for (size_t cut = 0; cut < length; cut++)
        assert_false(npy_parse((unsigned char *)text, cut, &again, message, sizeof message));
}

static void headers_of_all_types_and_shapes(void **state)
{
    (void)state;
    const tgl_type types[] = {TGL_F32, TGL_F64, TGL_F16, TGL_BF16};
    for (int i = 0; i < 12; i++) {
        const npy_header header = {
            .type = types[i % 4], .dimensions = 1 + i / 4, .shape = {2, 3, 4}};
        static unsigned char file[NPY_HEADER_MAX + 24 * 8];
        char text[NPY_HEADER_MAX], message[200] = "";
        const size_t length = npy_format(&header, text);
        npy_header again;
        memcpy(file, text, length);
        if (!npy_parse(file, length + 24 * 8, &again, message, sizeof message))
            fail_msg("%s", message);
        assert_true(again.type == header.type && again.dimensions == header.dimensions);
        assert_memory_equal(again.shape, header.shape,
                            sizeof header.shape[0] * (size_t)header.dimensions);
    }
}

/* ---- Options --------------------------------------------------------------------------------- */

static void labels_of_types(void **state)
{
    (void)state;
    problem_options o = problem_options_start();
    o.m = o.n = o.k = 8;
    tgl_problem p = problem_of_options(&o);
    assert_string_equal(problem_type_label(&p).text, "f32");
    o.compute = TGL_COMPUTE_TF32;
    o.has_compute = true;
    p = problem_of_options(&o);
    assert_string_equal(problem_type_label(&p).text, "tf32");
    o.type = TGL_F16;
    o.type_d = TGL_F32;
    o.batch = 3;
    p = problem_of_options(&o);
    assert_string_equal(problem_type_label(&p).text, "f16-f32");
    assert_int_equal(problem_result_type(&p), TGL_F32);
    assert_int_equal(p.stride_a, 64);
    assert_int_equal(p.stride_d, 64);
    assert_int_equal(tgl_problem_check(&p), TGL_OK);
}

/* ---- bench ----------------------------------------------------------------------------------- */

/* The text that report_finish() prints. */
static const char *end_of(bench_report *report)
{
    static char text[2000];
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    report_finish(report);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* If a large product on the CPU is far below the FMA rate, the report says that other programs ran.
 */
static void a_busy_machine_is_seen(void **state)
{
    static const struct {
        int64_t m;
        double of_fma;
        bool is_slow;
    } rows[] = {{1024, 0.8, false}, {1024, 0.3, true}, {64, 0.3, false}};
    (void)state;
    contest_settings settings = {.threads = 1};
    bench_report report = {.settings = &settings};
    assert_int_equal(tgl_device_open("cpu", NULL, &settings.dev), TGL_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        contest t = {.settings = &settings,
                     .problem = cli_problem(TGL_F32, rows[i].m, 1024, 1024),
                     .all = {{.right = true}},
                     .fma = 1e12};
        t.all[0].seconds = problem_flops(&t.problem) / (rows[i].of_fma * t.fma);
        report.slow = 0;
        report_add(&report, &t);
        assert_int_equal(report.slow, rows[i].is_slow);
    }
    report.slow = 2;
    assert_non_null(strstr(end_of(&report), "The machine was busy: 2 rows are less than half of "));
    report.slow = 0;
    assert_null(strstr(end_of(&report), "busy"));
    tgl_device_close(settings.dev);
}

/* With several threads, calls for at least half of a sample's 2 ms come before each sample and wake
 * the threads. On a busy machine fewer calls may fit into that time: one of a few tries suffices.
 */
static void threads_are_awake_in_a_sample(void **state)
{
    enum { ROUNDS = 50, TRIES = 5 };
    (void)state;
    double best_fma[2] = {0};
    kept_matrices kept = {0};
    contest_settings settings = {.threads = 2,
                                 .repeat = ROUNDS,
                                 .plan = {.size = sizeof settings.plan},
                                 .best_fma = best_fma,
                                 .kept = &kept};
    const tgl_problem problem = cli_problem(TGL_F32, 16, 16, 16);
    bool are_awake = false;
    assert_int_equal(tgl_device_open("cpu", NULL, &settings.dev), TGL_OK);
    for (int i = 0; i < TRIES && !are_awake; i++) {
        contest t;
        assert_int_equal(contest_run(&t, &settings, &problem), TGL_OK);
        are_awake = (double)t.calls > 1.2 * ROUNDS * t.all[0].calls;
        contest_release(&t);
    }
    assert_true(are_awake);
    kept_matrices_free(&kept);
    tgl_device_close(settings.dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles),
        cmocka_unit_test(geometric_means),
        cmocka_unit_test(kernels_that_are_asked_for),
        cmocka_unit_test(options_that_kernels_have),
        cmocka_unit_test(headers_come_back),
        cmocka_unit_test(headers_of_all_types_and_shapes),
        cmocka_unit_test(labels_of_types),
        cmocka_unit_test(a_busy_machine_is_seen),
        cmocka_unit_test(threads_are_awake_in_a_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
