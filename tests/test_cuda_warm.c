/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiling ahead of time, with the fake NVRTC: reports, cache entries, and the exit status of the
 * command.
 */
#include <getopt.h>
#include <unistd.h>

#include "fake_cuda/setup.h"

#include "cli.h"

/* What the callback has received. */
typedef struct seen {
    int reports, cached, unclean, failed, not_kept;
    char first[64], last[64]; /* "KERNEL ARCH" */
    int registers, shared, local, spilled;
} seen;

static void look(const tgl_warm_report *report, void *user)
{
    seen *s = user;
    assert_int_equal(report->size, sizeof *report);
    snprintf(s->last, sizeof s->last, "%s %s", report->kernel, report->arch);
    if (s->reports++ == 0) memcpy(s->first, s->last, sizeof s->first);
    s->cached += report->from_cache;
    s->unclean += !report->is_clean;
    if (report->status == TGL_DRIVER) {
        s->not_kept++;
        assert_non_null(strstr(report->message, "could not be kept"));
        return;
    }
    if (report->status != TGL_OK) {
        s->failed++;
        assert_status(report->status, TGL_COMPILE);
        assert_non_null(strstr(report->message, "what the log says"));
        assert_null(report->image);
        return;
    }
    assert_string_equal(report->message, "");
    assert_memory_equal(report->image, "fake cubin", 10);
    assert_int_equal(report->image_size, strlen(report->image) + 1);
    assert_non_null(strstr(report->image, report->symbol));
    s->registers = report->registers;
    s->shared = report->shared_bytes;
    s->local = report->local_bytes;
    s->spilled = report->spill_bytes;
}

static tgl_status warm(const char *archs, const char *kernel, seen *s)
{
    *s = (seen){0};
    const tgl_warm_options options = {
        .size = sizeof options, .archs = archs, .kernel = kernel, .report = look, .user = s};
    return tgl_warm(&options);
}

static void each_kernel_is_reported_for_each_architecture(void **state)
{
    (void)state;
    seen s;
    assert_status(warm("sm_86,sm_90a,90,sm_90", "ladder/naive", &s), TGL_OK);
    assert_int_equal(s.reports, 2); /* Hopper has several names */
    assert_string_equal(s.first, "ladder/naive sm_86");
    assert_string_equal(s.last, "ladder/naive sm_90a");
    assert_int_equal(s.registers, 40);
    assert_int_equal(s.shared, 1024);
    assert_int_equal(s.local, 0);
    assert_int_equal(s.spilled, 0);
    assert_int_equal(s.unclean, 0);
    assert_int_equal(s.cached, 0);
    assert_status(warm("newest", "measure/copy", &s), TGL_OK);
    assert_string_equal(s.first, "measure/copy sm_120a");
    assert_status(warm(NULL, NULL, &s), TGL_OK);
    assert_true(s.reports > 6 * 3);
    assert_string_equal(s.first, "ladder/naive sm_75");
}

/* If each layout has a kernel of its own, the name contains the layout. */
static void layouts_are_named(void **state)
{
    (void)state;
    seen s;
    assert_status(warm("sm_90", "simt_64x64x16", &s), TGL_OK);
    assert_int_equal(s.reports, 4);
    assert_string_equal(s.first, "simt_64x64x16 NN sm_90a");
    assert_string_equal(s.last, "simt_64x64x16 TN sm_90a");
    assert_status(warm("sm_90", "ladder/naive", &s), TGL_OK);
    assert_string_equal(s.first, "ladder/naive sm_90a");
}

static void the_kernels_of_a_family(void **state)
{
    (void)state;
    seen s;
    assert_status(warm("sm_90", "small_batch", &s), TGL_OK);
    assert_true(s.reports >= 4);
    assert_string_equal(s.first, "small_batch_16x16 NN sm_90a");
    assert_string_equal(s.last, "small_batch_144x32 TN sm_90a");
}

/* Kernels of other types than F32 are compiled only on request, and named with the type. */
static void types_are_asked_for(void **state)
{
    (void)state;
    seen s = {0};
    tgl_warm_options options = {.size = sizeof options,
                                .archs = "sm_90",
                                .kernel = "skinny_8",
                                .report = look,
                                .user = &s,
                                .type = TGL_BF16};
    assert_status(tgl_warm(&options), TGL_OK);
    assert_int_equal(s.reports, 4);
    assert_string_equal(s.first, "skinny_8 NN bf16 sm_90a");
    assert_string_equal(s.last, "skinny_8 TN bf16 sm_90a");
    s = (seen){0};
    options.type = TGL_I8; /* a type that the kernel does not multiply */
    assert_status(tgl_warm(&options), TGL_OK);
    assert_int_equal(s.reports, 0);
    options.type = (tgl_type)99;
    assert_status(tgl_warm(&options), TGL_BAD_TYPE);
    assert_last_error("options.type is 99");
}

static void kernels_skip_chips_they_are_not_made_for(void **state)
{
    (void)state;
    seen s;
    assert_status(warm("sm_75,sm_80", "ladder/async_copy", &s), TGL_OK);
    assert_int_equal(s.reports, 1);
    assert_string_equal(s.first, "ladder/async_copy sm_80");
}

/* Whether a rung of the ladder multiplies FP32, as those of chapter 1. The other chapters multiply
 * f16 and TF32. */
static bool is_of_first_chapter(const char *rung)
{
    return strncmp(rung, "ladder/f16_", 11) != 0 && strncmp(rung, "ladder/words_", 13) != 0;
}

static void a_device_finds_what_was_compiled_ahead(void **state)
{
    (void)state;
    seen s;
    assert_status(warm("sm_90", NULL, &s), TGL_OK);
    const int before = compilations();
    tgl_device *dev = open_device("cuda");
    const char *kernel;
    for (int i = 0; (kernel = tgl_kernel_name(dev, i)) != NULL; i++)
        if (strncmp(kernel, "ladder/", 7) == 0 && is_of_first_chapter(kernel))
            assert_product(dev, kernel, 2, 2, 2);
    tgl_device_close(dev);
    assert_status(warm("sm_90", NULL, &s), TGL_OK);
    assert_int_equal(s.cached, s.reports);
    assert_int_equal(s.registers, 40);
    assert_int_equal(compilations(), before);
}

static void spills_are_seen_even_in_the_cache(void **state)
{
    (void)state;
    seen s;
    setenv("FAKE_NVRTC_SPILL", "24", 1);
    for (int i = 0; i < 2; i++) {
        assert_status(warm("sm_80", "ladder/naive", &s), TGL_OK);
        assert_int_equal(s.cached, i);
        assert_int_equal(s.unclean, 1);
        assert_int_equal(s.local, 24);
        assert_int_equal(s.spilled, 48);
    }
}

static void one_failure_does_not_stop_the_others(void **state)
{
    (void)state;
    seen s;
    setenv("FAKE_NVRTC_ERROR", "what the log says", 1);
    assert_status(warm("sm_80,sm_90", "ladder/naive", &s), TGL_COMPILE);
    assert_int_equal(s.reports, 2);
    assert_int_equal(s.failed, 2);
    assert_last_error("what the log says");
}

static void requests_that_make_no_sense(void **state)
{
    (void)state;
    static const char *const archs[] = {
        "",       "sm_", "sm_91", "sm_90b",  "sm_80,", ",sm_80",
        "all,no", "-90", "0",     "sm_90aa", "sm_080", "sm_99999999999999999999999999999999"};
    seen s;
    for (size_t i = 0; i < COUNT_OF(archs); i++) {
        assert_status(warm(archs[i], NULL, &s), TGL_UNSUPPORTED);
        assert_int_equal(s.reports, 0);
        assert_last_error("sm_75 to sm_120");
    }
    assert_status(warm("all", "ladder/none", &s), TGL_UNKNOWN_KERNEL);
    assert_last_error("ladder/none");
    setenv("TEGULA_NVRTC", "/nonexistent", 1);
    assert_status(warm("all", NULL, &s), TGL_NO_COMPILER);
    assert_status(tgl_warm(NULL), TGL_BAD_ARGUMENT);
    const tgl_warm_options strange = {.size = 3};
    assert_status(tgl_warm(&strange), TGL_BAD_ARGUMENT);
}

/* Makes a folder for the entries that belongs to this user, but in which no file can be written. */
static void make_full_cache(void)
{
    char link[256];
    snprintf(link, sizeof link, "%s/tegula", cache_folder());
    assert_int_equal(symlink("/proc/self", link), 0);
    setenv("TEGULA_CACHE", cache_folder(), 1);
}

static void what_is_not_kept_is_told(void **state)
{
    (void)state;
    char file[256];
    seen s;
    snprintf(file, sizeof file, "%s/file", cache_folder());
    fclose(fopen(file, "w"));
    setenv("TEGULA_CACHE", file,
           1); /* not a folder: nothing is compiled, because that takes long */
    const int before = compilations();
    assert_status(warm("sm_80", NULL, &s), TGL_DRIVER);
    assert_int_equal(compilations(), before);
    assert_last_error("nothing would be kept, as the cache is off (");
    assert_last_error("TEGULA_CACHE=off");

    make_full_cache();
    assert_status(warm("sm_80,sm_90", "ladder/naive", &s), TGL_DRIVER);
    assert_int_equal(s.reports, 2);
    assert_int_equal(s.not_kept, 2);
    assert_last_error("ladder/naive was compiled for sm_90a, but could not be kept in /tmp/");

    static const char *const off[] = {"off", ""};
    for (size_t i = 0; i < COUNT_OF(off); i++) {
        setenv("TEGULA_CACHE", off[i], 1);
        assert_status(warm("sm_80", "ladder/naive", &s), TGL_OK);
        assert_int_equal(s.reports, 1);
    }
}

/* ---- The command ----------------------------------------------------------------------------- */

static int command(const char *first, const char *second)
{
    char name[] = "warm", one[64], two[64];
    snprintf(one, sizeof one, "%s", first);
    snprintf(two, sizeof two, "%s", second);
    char *arguments[] = {name, one, two, NULL};
    optind = 0; /* restarts getopt */
    return command_warm(3, arguments);
}

static void the_command_tells_by_its_exit_code(void **state)
{
    (void)state;
    assert_int_equal(command("--arch", "sm_80,newest"), EXIT_DONE);
    assert_int_equal(command("--arch", "sm_1"), EXIT_MISUSE);
    assert_int_equal(command("--kernel", "none"), EXIT_MISUSE);
    assert_int_equal(command("--no-such", "option"), EXIT_MISUSE);
    make_full_cache();
    assert_int_equal(command("--arch", "sm_80"), EXIT_FAILED);
    setenv("TEGULA_CACHE", "/proc/self/stat", 1);
    assert_int_equal(command("--arch", "sm_80"), EXIT_FAILED);
    setenv("TEGULA_CACHE", "off", 1);
    assert_int_equal(command("--arch", "sm_80"), EXIT_DONE);
    setenv("FAKE_NVRTC_SPILL", "8", 1);
    assert_int_equal(command("--arch", "sm_80"), EXIT_FAILED);
    unsetenv("FAKE_NVRTC_SPILL");
    setenv("FAKE_NVRTC_ERROR", "what the log says", 1);
    assert_int_equal(command("--arch", "sm_80"), EXIT_FAILED);
    setenv("TEGULA_NVRTC", "/nonexistent", 1);
    assert_int_equal(command("--arch", "sm_80"), EXIT_FAILED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_kernel_is_reported_for_each_architecture),
        TEST(layouts_are_named),
        TEST(the_kernels_of_a_family),
        TEST(types_are_asked_for),
        TEST(kernels_skip_chips_they_are_not_made_for),
        TEST(a_device_finds_what_was_compiled_ahead),
        TEST(spills_are_seen_even_in_the_cache),
        TEST(one_failure_does_not_stop_the_others),
        TEST(requests_that_make_no_sense),
        TEST(what_is_not_kept_is_told),
        TEST(the_command_tells_by_its_exit_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
