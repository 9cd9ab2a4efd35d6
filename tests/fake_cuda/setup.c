/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests over the fake libraries share.
 */
#include "setup.h"

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

static const char *const knobs[] = {
    "FAKE_CUDA_DEVICES", "FAKE_CUDA_VERSION",  "FAKE_CUDA_CAPABILITY", "FAKE_CUDA_MEMORY",
    "FAKE_CUDA_FAIL",    "FAKE_NVRTC_ARCHS",   "FAKE_NVRTC_OUTPUT",    "FAKE_NVRTC_ERROR",
    "FAKE_NVRTC_SPILL",  "FAKE_CUDA_CAPTURES", "FAKE_CUDA_NAME",       "FAKE_NVRTC_DELAY"};

static void *function_of(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    assert_non_null(handle);
    void *function = dlsym(handle, name);
    assert_non_null(function);
    dlclose(handle);
    return function;
}

void *fake_function(const char *name)
{
    return function_of(FAKE_LIBCUDA, name);
}

int live_objects(void)
{
    return ((fake_cuda_live_function *)fake_function("fake_cuda_live"))();
}

fake_cuda_launch earlier_launch(int back)
{
    return ((fake_cuda_launched_function *)fake_function("fake_cuda_launched"))(back);
}

fake_cuda_launch latest_launch(void)
{
    return earlier_launch(0);
}

int context_depth(void)
{
    return ((fake_cuda_depth_function *)fake_function("fake_cuda_depth"))();
}

int compilations(void)
{
    return ((fake_nvrtc_count_function *)function_of(FAKE_LIBNVRTC, "fake_nvrtc_count"))();
}

int fake_setup(void **state)
{
    (void)state;
    char folder[] = "/tmp/tegula-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < COUNT_OF(knobs); i++)
        unsetenv(knobs[i]);
    setenv("TEGULA_LIBCUDA", FAKE_LIBCUDA, 1);
    setenv("TEGULA_NVRTC", FAKE_LIBNVRTC, 1);
    setenv("TEGULA_CACHE", folder, 1);
    setenv("FAKE_TEST_FOLDER", folder, 1); /* a test may change TEGULA_CACHE */
    return 0;
}

const char *cache_folder(void)
{
    const char *folder = getenv("FAKE_TEST_FOLDER");
    return folder != NULL ? folder : "/nonexistent";
}

static void remove_folder(const char *path)
{
    char name[512];
    DIR *folder = opendir(path);
    if (folder == NULL) return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlink(name);
    }
    closedir(folder);
    rmdir(path);
}

int fake_teardown(void **state)
{
    (void)state;
    remove_folder(cache_folder());
    assert_int_equal(live_objects(), 0);
    assert_int_equal(context_depth(), 0);
    return 0;
}

tgl_device *open_device(const char *name)
{
    char message[512] = "";
    const tgl_device_options options = {
        .size = sizeof options, .message = message, .message_size = sizeof message};
    tgl_device *dev;
    tgl_status status = tgl_device_open(name, &options, &dev);
    if (status != TGL_OK) fail_msg("%s: %s", tgl_status_name(status), message);
    return dev;
}

static void assert_has(const char *text, const char *words)
{
    if (strstr(text, words) == NULL) fail_msg("\"%s\" is not in \"%s\"", words, text);
}

void assert_open_fails(const char *name, tgl_status expected, const char *words)
{
    char message[512] = "";
    const tgl_device_options options = {
        .size = sizeof options, .message = message, .message_size = sizeof message};
    tgl_device *dev;
    assert_status(tgl_device_open(name, &options, &dev), expected);
    assert_null(dev);
    assert_has(message, words);
}

void assert_last_error(const tgl_device *dev, const char *words)
{
    char text[2048];
    tgl_last_error(dev, text, sizeof text);
    assert_has(text, words);
}

const char *property_of(const tgl_device *dev, const char *wanted)
{
    const char *key, *value;
    for (int i = 0; tgl_device_property(dev, i, &key, &value) == TGL_OK; i++)
        if (strcmp(key, wanted) == 0) return value;
    fail_msg("there is no property \"%s\"", wanted);
    return NULL;
}

static void *filled(tgl_device *dev, size_t count, float value)
{
    void *memory;
    float *host = malloc(count * sizeof *host);
    assert_non_null(host);
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    assert_status(tgl_alloc(dev, count * sizeof *host, &memory), TGL_OK);
    assert_status(tgl_upload(dev, memory, host, count * sizeof *host), TGL_OK);
    free(host);
    return memory;
}

void assert_product(tgl_device *dev, const char *kernel, int m, int n, int k)
{
    const tgl_problem problem = tgl_problem_make(TGL_F32, m, n, k);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    const size_t size = (size_t)m * (size_t)n;
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    void *A = filled(dev, (size_t)m * (size_t)k, 1), *B = filled(dev, (size_t)k * (size_t)n, 2);
    void *C = filled(dev, size, -1);
    float *host = malloc(size * sizeof *host);
    assert_non_null(host);
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
    assert_status(tgl_download(dev, host, C, size * sizeof *host), TGL_OK);
    for (size_t i = 0; i < size; i++)
        assert_true(host[i] == 2.0f * (float)k);
    free(host);
    tgl_free(dev, A);
    tgl_free(dev, B);
    tgl_free(dev, C);
    tgl_plan_destroy(plan);
}

void assert_product_fails(tgl_device *dev, tgl_status expected)
{
    const tgl_problem problem = tgl_problem_make(TGL_F32, 1, 1, 0);
    float C = 0;
    assert_status(tgl_gemm(dev, &problem, 1, NULL, NULL, 0, &C, NULL), expected);
}
