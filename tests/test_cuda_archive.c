/* SPDX-License-Identifier: Apache-2.0
 *
 * The archive of compiled kernels, with the fake libraries: it is used before NVRTC, a file that is
 * stale, damaged or hostile is not used, and plans compile only what they need.
 */
#include "fake_cuda/setup.h"

#include "cuda/archive_kernels.h"
#include "cuda/cuda_state.h"
#include "cuda/kernel_archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 40 };

/* Offsets in the file: see kernel_archive.c. */
enum {
    LIBRARY = 16,
    ARCH = 32,
    NVRTC = 48,
    COUNT = 52,
    SIZE = 56,
    SOURCES = 64,
    CHECKSUM = 96,
    HEADER = 128,
    OFFSET = 32,
    LENGTH = 40,
    ENTRY = 104
};

static char path[300];

/* Sets TEGULA_ARCHIVE, and returns the path. */
static const char *name_archive(void)
{
    snprintf(path, sizeof path, "%s/test.kernels", cache_folder());
    setenv("TEGULA_ARCHIVE", path, 1);
    return path;
}

static tgl_plan *plan_of_side(tgl_device *dev, int side)
{
    const tgl_problem problem = problem_of(TGL_F32, side, side, side);
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
    return plan;
}

/* Writes an archive with the kernels of the product. The fake NVRTC compiles them as on another
 * machine, so that none of them is in the disk cache. */
static void write_archive(void)
{
    tgl_archived kernels[16];
    unsetenv("TEGULA_ARCHIVE");
    setenv("TEGULA_CACHE", "off", 1);
    tgl_device *dev = open_device("cuda");
    const tgl_cuda *cuda = dev->state;
    tgl_plan *plan = plan_of_side(dev, SIDE);
    const int count = plan->list.kernel_count;
    assert_in_range(count, 1, 16);
    for (int i = 0; i < count; i++) {
        const tgl_kernel *kernel = plan->list.kernels[i];
        assert_status(tgl_cuda_kernel_key(kernel, cuda->arch.name, &kernels[i].key), TGL_OK);
        assert_status(
            tgl_cuda_compile_small(&cuda->nvrtc, NULL, kernel, cuda->arch.name, &kernels[i].binary),
            TGL_OK);
    }
    assert_status(
        tgl_archive_write(name_archive(), cuda->arch.name, cuda->nvrtc.version, kernels, count),
        TGL_OK);
    for (int i = 0; i < count; i++)
        free(kernels[i].binary.image);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Fails unless the product is right. Returns the number of compilations that it takes. */
static int compilations_of_product(void)
{
    tgl_device *dev = open_device("cuda");
    const int before = compilations();
    assert_product(dev, NULL, SIDE, SIDE, SIDE);
    const int count = compilations() - before;
    tgl_device_close(dev);
    return count;
}

/* Fails unless the product's kernel is compiled, and `tegula info` says why. */
static void assert_unused(const char *why)
{
    tgl_device *dev = open_device("cuda");
    const char *text = property_of(dev, "archive");
    if (strstr(text, why) == NULL) fail_msg("%s", text);
    tgl_device_close(dev);
    assert_true(compilations_of_product() > 0);
}

static unsigned char *read_file(size_t *size)
{
    struct stat info;
    const int file = open(path, O_RDONLY);
    assert_int_equal(fstat(file, &info), 0);
    *size = (size_t)info.st_size;
    unsigned char *data = malloc(*size);
    assert_non_null(data);
    assert_int_equal(read(file, data, *size), info.st_size);
    close(file);
    return data;
}

static void write_file(const unsigned char *data, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(file, data, size), (ssize_t)size);
    close(file);
}

/* Corrects the checksum after a change of header or index. */
static void sign(unsigned char *data, size_t size)
{
    uint32_t count;
    tgl_sha256 hash;
    memcpy(&count, data + COUNT, sizeof count);
    if (count > (size - HEADER) / ENTRY) count = (uint32_t)((size - HEADER) / ENTRY);
    memset(data + CHECKSUM, 0, TGL_SHA256_BYTES);
    tgl_sha256_start(&hash);
    tgl_sha256_add(&hash, data, HEADER + count * (size_t)ENTRY);
    tgl_sha256_finish(&hash, data + CHECKSUM);
}

static void put(unsigned char *at, uint64_t value, size_t size)
{
    memcpy(at, &value, size);
}

/* ---- A good archive -------------------------------------------------------------------------- */

static void it_comes_before_the_compiler(void **state)
{
    (void)state;
    write_archive();
    assert_int_equal(compilations_of_product(), 0);
    tgl_device *dev = open_device("cuda");
    tgl_plan *plan = plan_of_side(dev, SIDE);
    char text[8192];
    tgl_plan_explain(plan, text, sizeof text);
    if (strstr(text, "from the archive") == NULL) fail_msg("%s", text);
    assert_non_null(strstr(property_of(dev, "archive"), "kernels)"));
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* Products whose kernels are not in the archive are compiled. */
static void other_products_are_compiled(void **state)
{
    (void)state;
    write_archive();
    tgl_device *dev = open_device("cuda");
    const int before = compilations();
    assert_product(dev, "simt_128x128x8", 300, 300, 300);
    assert_true(compilations() > before);
    tgl_device_close(dev);
}

/* Plans a product whose kernel is not in the archive. It cannot be compiled, for the reason `why`.
 */
static void assert_not_compiled(tgl_device *dev, const char *why)
{
    const tgl_problem other = problem_of(TGL_F32, 300, 300, 300);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "simt_128x128x8"};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &other, &options, &plan), TGL_NO_COMPILER);
    assert_last_error("not in the archive");
    assert_last_error(why);
}

static void it_needs_no_compiler(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_CAPABILITY", "90", 1);
    write_archive();
    setenv("TEGULA_NVRTC", "/nonexistent", 1);
    tgl_device *dev = open_device("cuda");
    assert_string_equal(property_of(dev, "NVRTC"), "not found");
    assert_string_equal(property_of(dev, "compiled for"), "sm_90a");
    assert_product(dev, NULL, SIDE, SIDE, SIDE);
    assert_not_compiled(dev, "TEGULA_NVRTC names no library that can be loaded: /nonexistent");
    tgl_device_close(dev);
    setenv("TEGULA_ARCHIVE", "off", 1);
    assert_open_fails("cuda", TGL_NO_COMPILER, "/nonexistent");
}

/* Without a compiler, products of a list that are in the archive run one after the other. */
static void lists_need_no_compiler(void **state)
{
    (void)state;
    enum { PRODUCTS = 3 };
    static float A[SIDE * SIDE], C[PRODUCTS][SIDE * SIDE];
    tgl_problem problems[PRODUCTS];
    tgl_operands operands[PRODUCTS];
    setenv("FAKE_CUDA_CAPABILITY", "90", 1);
    write_archive();
    setenv("TEGULA_NVRTC", "/nonexistent", 1);
    tgl_device *dev = open_device("cuda");
    for (int i = 0; i < SIDE * SIDE; i++)
        A[i] = 1;
    for (int i = 0; i < PRODUCTS; i++) {
        problems[i] = problem_of(TGL_F32, SIDE, SIDE, SIDE);
        operands[i] =
            (tgl_operands){.size = sizeof *operands, .alpha = i + 1, .A = A, .B = A, .C = C[i]};
    }
    const int before = launches_so_far();
    assert_status(tgl_grouped_list(dev, PRODUCTS, problems, operands, NULL), TGL_OK);
    assert_in_range(launches_so_far() - before, PRODUCTS, 16 * PRODUCTS);
    for (int i = 0; i < PRODUCTS; i++)
        assert_true(C[i][SIDE * SIDE - 1] == (float)(SIDE * (i + 1)));
    tgl_device_close(dev);
}

/* An NVRTC that does not compile for the chip any more is treated as none. */
static void it_needs_no_compiler_of_the_chip(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_CAPABILITY", "90", 1);
    write_archive();
    setenv("FAKE_NVRTC_ARCHS", "100,120", 1);
    tgl_device *dev = open_device("cuda");
    assert_string_equal(property_of(dev, "NVRTC"), "13.0, which does not compile for this GPU");
    assert_product(dev, NULL, SIDE, SIDE, SIDE);
    assert_not_compiled(dev, "no longer compiles for compute capability 9.0");
    tgl_device_close(dev);
    setenv("TEGULA_ARCHIVE", "off", 1);
    assert_open_fails("cuda", TGL_NO_COMPILER, "no longer compiles for compute capability 9.0");
}

/* If the driver cannot load a kernel of the archive, it is compiled. */
static void code_that_the_driver_refuses_is_compiled(void **state)
{
    (void)state;
    tgl_archived kernel;
    unsetenv("TEGULA_ARCHIVE");
    setenv("TEGULA_CACHE", "off", 1);
    tgl_device *dev = open_device("cuda");
    const tgl_cuda *cuda = dev->state;
    tgl_plan *plan = plan_of_side(dev, SIDE);
    static char image[] = "fake cubin sm_12 nothing";
    assert_status(tgl_cuda_kernel_key(plan->list.kernels[0], cuda->arch.name, &kernel.key), TGL_OK);
    kernel.binary = (tgl_binary){.image = image, .size = sizeof image};
    assert_status(tgl_archive_write(name_archive(), cuda->arch.name, 13000, &kernel, 1), TGL_OK);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
    assert_true(compilations_of_product() > 0);
}

/* ---- No archive ------------------------------------------------------------------------------ */

static void a_missing_archive_is_silent(void **state)
{
    (void)state;
    setenv("TEGULA_CACHE", "off", 1);
    setenv("TEGULA_ARCHIVE", "/dev/null/file", 1);
    assert_unused("there is no /dev/null/file");
    setenv("TEGULA_ARCHIVE", "", 1);
    assert_unused("off (TEGULA_ARCHIVE)");
    setenv("TEGULA_ARCHIVE", "relative.kernels", 1);
    assert_unused("no absolute path");
}

static void files_of_others_are_not_used(void **state)
{
    (void)state;
    char link[320];
    write_archive();
    assert_int_equal(chmod(path, 0664), 0);
    assert_unused("others may write to it");
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(compilations_of_product(), 0);
    snprintf(link, sizeof link, "%s.link", path);
    assert_int_equal(symlink(path, link), 0);
    setenv("TEGULA_ARCHIVE", link, 1);
    assert_unused("symbolic link");
    setenv("TEGULA_ARCHIVE", cache_folder(), 1);
    assert_unused("no regular file");
    assert_int_equal(unlink(link), 0);
}

/* ---- Stale, torn, hostile -------------------------------------------------------------------- */

static void stale_archives_are_not_used(void **state)
{
    static const struct {
        int at;
        const char *text, *why;
    } cases[] = {{0, "TEGULA KERNELS0", "no archive"},
                 {LIBRARY, "0.0.1", "another version"},
                 {ARCH, "sm_70", "another architecture"},
                 {SOURCES, "other", "other sources"}};
    (void)state;
    size_t size;
    write_archive();
    unsigned char *data = read_file(&size), *changed = malloc(size);
    assert_non_null(changed);
    for (int i = 0; i < (int)COUNT_OF(cases); i++) {
        memcpy(changed, data, size);
        memcpy(changed + cases[i].at, cases[i].text, strlen(cases[i].text) + 1);
        sign(changed, size);
        write_file(changed, size);
        assert_unused(cases[i].why);
    }
    memcpy(changed, data, size);
    put(changed + NVRTC, 99000, 4);
    sign(changed, size);
    write_file(changed, size);
    assert_unused("newer than the driver");
    memcpy(changed, data, size);
    sign(changed, size); /* the checksum does not change */
    assert_memory_equal(changed, data, size);
    free(changed);
    free(data);
}

static void torn_archives_are_not_used(void **state)
{
    (void)state;
    size_t size;
    write_archive();
    unsigned char *data = read_file(&size);
    const size_t sizes[] = {0, 1, HEADER - 1, HEADER, HEADER + ENTRY, size - 1};
    for (int i = 0; i < (int)COUNT_OF(sizes); i++) {
        write_file(data, sizes[i]);
        assert_unused("incomplete");
    }
    free(data);
}

/* A changed byte of header or index is noticed when the file is opened, one of the code when the
 * kernel is loaded. */
static void damaged_archives_are_not_used(void **state)
{
    (void)state;
    size_t size;
    write_archive();
    unsigned char *data = read_file(&size);
    uint32_t count;
    uint64_t code, length;
    memcpy(&count, data + COUNT, 4);
    for (size_t i = 0; i < HEADER + ENTRY; i += 7) {
        data[i] ^= 4;
        write_file(data, size);
        assert_unused("off");
        data[i] ^= 4;
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&code, data + HEADER + i * ENTRY + OFFSET, 8);
        memcpy(&length, data + HEADER + i * ENTRY + LENGTH, 8);
        data[code + length / 2] ^= 1;
    }
    write_file(data, size);
    assert_true(compilations_of_product() > 0);
    free(data);
}

/* Archives with a correct checksum but impossible offsets or lengths, a wrong number of entries, or
 * two equal keys. */
static void hostile_archives_are_not_used(void **state)
{
    (void)state;
    size_t size;
    write_archive();
    unsigned char *data = read_file(&size), *changed = malloc(size);
    const struct {
        size_t at, bytes;
        uint64_t value;
    } cases[] = {{COUNT, 4, 0xffffffff},           {COUNT, 4, size},
                 {HEADER + OFFSET, 8, 0},          {HEADER + OFFSET, 8, size},
                 {HEADER + OFFSET, 8, UINT64_MAX}, {HEADER + LENGTH, 8, UINT64_MAX},
                 {HEADER + LENGTH, 8, size},       {HEADER + LENGTH, 8, 0}};
    assert_non_null(changed);
    for (int i = 0; i < (int)COUNT_OF(cases); i++) {
        memcpy(changed, data, size);
        put(changed + cases[i].at, cases[i].value, cases[i].bytes);
        sign(changed, size);
        write_file(changed, size);
        assert_unused("damaged");
    }
    memcpy(changed, data, size);
    uint32_t count;
    memcpy(&count, changed + COUNT, 4);
    if (count > 1) { /* two equal keys */
        memcpy(changed + HEADER + ENTRY, changed + HEADER, TGL_SHA256_BYTES);
        sign(changed, size);
        write_file(changed, size);
        assert_unused("damaged");
    }
    free(changed);
    free(data);
}

/* ---- tgl_warm() ------------------------------------------------------------------------------ */

static void warm_writes_an_archive(void **state)
{
    (void)state;
    setenv("TEGULA_CACHE", "off", 1);
    tgl_warm_options options = {.size = sizeof options,
                                .archs = "sm_90",
                                .type = TGL_F64,
                                .archive = name_archive(),
                                .archive_kernels = 20};
    size_t size, again;
    assert_status(tgl_warm(&options), TGL_OK);
    tgl_archive *archive = tgl_archive_open("sm_90a", 13000);
    assert_int_equal(tgl_archive_count(archive), 20);
    tgl_archive_close(archive);
    unsigned char *first = read_file(&size);
    assert_status(tgl_warm(&options), TGL_OK);
    unsigned char *second = read_file(&again);
    assert_int_equal(size, again); /* the file does not depend on the order of the threads */
    assert_memory_equal(first, second, size);
    free(first);
    free(second);
    options.archs = "sm_80,sm_90";
    assert_status(tgl_warm(&options), TGL_BAD_ARGUMENT);
    options.archs = "sm_90";
    options.kernel = "dmma";
    assert_status(tgl_warm(&options), TGL_BAD_ARGUMENT);
    options.kernel = NULL;
    options.type = TGL_F8_E5M2;
    assert_status(tgl_warm(&options), TGL_UNSUPPORTED);
    assert_last_error("no kernels of e5m2 for compute capability 9.0");
    assert_last_error("of bf16, f16, f32, f64, i8, e4m3, c64, c128");
    options.type = TGL_F64;
    options.archive = "/dev/null/file";
    assert_status(tgl_warm(&options), TGL_DRIVER);
    options.archive = path;
    setenv("FAKE_NVRTC_ERROR", "what the log says", 1);
    assert_status(tgl_warm(&options), TGL_COMPILE);
    assert_last_error("what the log says");
}

/* The samples of an archive have nearly all kernels of other products, too. */
static void samples_cover_other_products(void **state)
{
    (void)state;
    const tgl_chip *chip = tgl_chip_find("h200");
    tgl_samples samples = {.count = 0};
    assert_status(tgl_samples_add(&samples, chip, TGL_F64, TGL_SAMPLE_PRODUCTS, 0), TGL_OK);
    tgl_samples_sort(&samples);
    const int known = samples.count, products = samples.products;
    assert_int_equal(products, TGL_SAMPLE_PRODUCTS);
    for (int i = 1; i < known; i++)
        assert_true(samples.kernels[i].products <= samples.kernels[i - 1].products);
    assert_status(tgl_samples_add(&samples, chip, TGL_F64, 500, 1), TGL_OK);
    assert_int_equal(samples.products, products + 500);
    assert_in_range(samples.count - known, 0, 500 * 3 / 100);
    tgl_samples_free(&samples);
}

/* Whether the samples have a kernel with this symbol and macro. NULL: any. */
static bool has_sample(const tgl_samples *samples, const char *symbol, const char *macro)
{
    for (int i = 0; i < samples->count; i++) {
        const tgl_kernel *kernel = samples->kernels[i].kernel;
        if ((symbol == NULL || strcmp(kernel->symbol, symbol) == 0) &&
            (macro == NULL || strstr(kernel->macros, macro) != NULL))
            return true;
    }
    return false;
}

/* The samples have int8, FP8 with factors, complex and grouped products. */
static void samples_have_all_kinds(void **state)
{
    (void)state;
    static const struct {
        tgl_type type;
        const char *symbol, *macro;
    } table[] = {{TGL_I8, NULL, "SCALE_A=2"},      {TGL_I8, "gemm_wgmma", "TYPE_D=8"},
                 {TGL_F8_E4M3, NULL, "SCALE_A=1"}, {TGL_F8_E4M3, NULL, "SCALE_A=2"},
                 {TGL_C64, "expand", NULL},        {TGL_C64, "decompose", NULL},
                 {TGL_C128, "gemm_dmma", NULL},    {TGL_BF16, "groups", NULL},
                 {TGL_BF16, NULL, "GROUPED=1"},    {TGL_BF16, NULL, "GROUPED=2"},
                 {TGL_F8_E4M3, NULL, "SCALE_A=3"}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        tgl_samples samples = {.count = 0};
        assert_status(tgl_samples_add(&samples, tgl_chip_find("h200"), table[i].type, 400, 0),
                      TGL_OK);
        if (!has_sample(&samples, table[i].symbol, table[i].macro))
            fail_msg("%s: no kernel %s, macro %s", tgl_type_name(table[i].type),
                     table[i].symbol != NULL ? table[i].symbol : "",
                     table[i].macro != NULL ? table[i].macro : "");
        tgl_samples_free(&samples);
    }
}

/* ---- What a plan compiles -------------------------------------------------------------------- */

/* The alternative for matrices that begin anywhere is compiled by the first run that takes it, also
 * in a capture, and once. */
static void alternatives_are_compiled_when_they_are_needed(void **state)
{
    (void)state;
    static _Alignas(16) float words[4 * 64 * 64];
    const tgl_problem problem = problem_of(TGL_F32, 64, 64, 64);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "simt_64x64x16"};
    tgl_plan *plan;
    tgl_device *dev = open_device("cuda");
    const int before = compilations();
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    assert_int_equal(plan->list.kernel_count, 2);
    assert_int_equal(compilations(), before + 1);
    assert_status(tgl_plan_run(plan, 1, words, words, 0, words, NULL), TGL_OK);
    assert_status(tgl_plan_run(plan, 0, words, words + 1, 0, words, NULL), TGL_OK);
    assert_int_equal(compilations(), before + 1);
    void *stream = create_stream();
    begin_capture(stream);
    assert_status(tgl_plan_run(plan, 1, words, words + 1, 0, words, stream), TGL_OK);
    destroy_graph(end_capture(stream));
    assert_int_equal(compilations(), before + 2);
    assert_status(tgl_plan_run(plan, 1, words, words + 1, 0, words, NULL), TGL_OK);
    assert_int_equal(compilations(), before + 2);
    destroy_stream(stream);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

/* An alternative that is compiled late and fails fails this run, and no other. */
static void a_late_failure_is_the_runs(void **state)
{
    (void)state;
    static _Alignas(16) float words[4 * 64 * 64];
    const tgl_problem problem = problem_of(TGL_F32, 64, 64, 64);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "simt_64x64x16"};
    tgl_plan *plan;
    setenv("TEGULA_CACHE", "off", 1);
    tgl_device *dev = open_device("cuda");
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    setenv("FAKE_NVRTC_ERROR", "what the log says", 1);
    assert_status(tgl_plan_run(plan, 1, words, words + 1, 0, words, NULL), TGL_COMPILE);
    assert_status(tgl_plan_run(plan, 1, words, words, 0, words, NULL), TGL_OK);
    unsetenv("FAKE_NVRTC_ERROR");
    assert_status(tgl_plan_run(plan, 1, words, words + 1, 0, words, NULL), TGL_OK);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_comes_before_the_compiler),
        TEST(other_products_are_compiled),
        TEST(it_needs_no_compiler),
        TEST(lists_need_no_compiler),
        TEST(it_needs_no_compiler_of_the_chip),
        TEST(code_that_the_driver_refuses_is_compiled),
        TEST(a_missing_archive_is_silent),
        TEST(files_of_others_are_not_used),
        TEST(stale_archives_are_not_used),
        TEST(torn_archives_are_not_used),
        TEST(damaged_archives_are_not_used),
        TEST(hostile_archives_are_not_used),
        TEST(warm_writes_an_archive),
        TEST(samples_cover_other_products),
        TEST(samples_have_all_kinds),
        TEST(alternatives_are_compiled_when_they_are_needed),
        TEST(a_late_failure_is_the_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
