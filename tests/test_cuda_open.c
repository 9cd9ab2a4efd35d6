/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening CUDA devices, with the fake libraries: devices, missing devices, and the error messages.
 */
#include "fake_cuda/setup.h"

#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <unistd.h>

/* Fails unless "auto" opens the device of this name. */
static void assert_auto_is(const char *name)
{
    tgl_device *dev = open_device("auto");
    assert_string_equal(tgl_device_name(dev), name);
    tgl_device_close(dev);
}

static void auto_prefers_cuda(void **state)
{
    (void)state;
    assert_auto_is("cuda:0");
}

static void without_a_driver(void **state)
{
    (void)state;
    setenv("TEGULA_LIBCUDA", "/nonexistent/libcuda.so", 1);
    assert_open_fails("cuda", TGL_NO_DEVICE, "/nonexistent/libcuda.so");
    assert_auto_is("cpu");
}

static void with_a_library_that_is_no_driver(void **state)
{
    (void)state;
    setenv("TEGULA_LIBCUDA", "", 1); /* as without the variable */
    tgl_device *dev = NULL;
    char message[300] = "";
    if (tgl_device_open("cuda", NULL, &dev) != TGL_OK) tgl_last_error(message, sizeof message);
    if (strstr(message, "too old") != NULL) fail_msg("%s", message);
    tgl_device_close(dev);
    setenv("TEGULA_LIBCUDA", __FILE__, 1);
    assert_open_fails("cuda", TGL_NO_DEVICE,
                      "TEGULA_LIBCUDA names no library that can be loaded: " __FILE__);
    setenv("TEGULA_LIBCUDA", FAKE_LIBNVRTC, 1);
    assert_open_fails("cuda", TGL_NO_DEVICE, "too old");
    assert_auto_is("cpu");
}

static void without_a_device(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_FAIL", "cuInit=100", 1);
    assert_open_fails("cuda", TGL_NO_DEVICE, "CUDA_ERROR_NO_DEVICE");
    assert_auto_is("cpu");
    setenv("FAKE_CUDA_FAIL", "cuInit=999", 1); /* an error for which the driver has no name */
    assert_open_fails("cuda", TGL_NO_DEVICE, "no CUDA device");
    unsetenv("FAKE_CUDA_FAIL");
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    assert_open_fails("cuda", TGL_NO_DEVICE, "0 CUDA devices");
    assert_auto_is("cpu");
}

static void devices_by_number(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    tgl_device *first = open_device("cuda"), *second = open_device("cuda:1");
    assert_string_equal(tgl_device_name(first), "cuda:0");
    assert_string_equal(tgl_device_name(second), "cuda:1");
    assert_string_equal(property_of(second, "chip"), "Fake GPU 1");
    tgl_device_close(first);
    tgl_device_close(second);
    assert_open_fails("cuda:2", TGL_NO_DEVICE, "2 CUDA devices");
    assert_open_fails("cuda:x", TGL_NO_DEVICE, "cuda:x");
}

static void without_a_compiler(void **state)
{
    (void)state;
    setenv("TEGULA_NVRTC", "/nonexistent", 1);
    assert_open_fails("cuda", TGL_NO_COMPILER, "/nonexistent");
    assert_open_fails("auto", TGL_NO_COMPILER,
                      "TEGULA_NVRTC"); /* there is a GPU, so the failure is reported */
    setenv("TEGULA_NVRTC", __FILE__, 1);
    assert_open_fails("cuda", TGL_NO_COMPILER,
                      "TEGULA_NVRTC names no library that can be loaded: " __FILE__);
    setenv("TEGULA_NVRTC", FAKE_LIBCUDA, 1);
    assert_open_fails("cuda", TGL_NO_COMPILER, "no NVRTC");
    setenv("TEGULA_NVRTC", FAKE_LIBNVRTC, 1);
    setenv("FAKE_NVRTC_VERSION", "11020", 1);
    assert_open_fails("cuda", TGL_NO_COMPILER, "which is NVRTC 11.2; 11.4 or later is needed");
    setenv("FAKE_NVRTC_VERSION", "11040", 1);
    tgl_device_close(open_device("cuda"));
}

static void the_compiler_s_folder_serves(void **state)
{
    (void)state;
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", FAKE_LIBNVRTC);
    *strrchr(folder, '/') = '\0';
    setenv("TEGULA_NVRTC", folder, 1);
    tgl_device_close(open_device("cuda"));
}

/* An architecture that only the fake NVRTC supports distinguishes it from a real one that may be
 * installed. */
static void toolkits_and_wheels_are_searched(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *folder;
    } places[] = {{"CUDA_HOME", "lib64"},
                  {"VIRTUAL_ENV", "lib/python3.11/site-packages/nvidia/cu13/lib"}};
    if (dlopen("libnvrtc.so", RTLD_NOW) != NULL || dlopen("libnvrtc.so.13", RTLD_NOW) != NULL ||
        dlopen("libnvrtc.so.12", RTLD_NOW) != NULL)
        skip(); /* the loader's path is searched first */
    unsetenv("TEGULA_NVRTC");
    setenv("FAKE_NVRTC_ARCHS", "81", 1);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        char command[2048], folder[] = "/tmp/tegula-test-XXXXXX";
        assert_non_null(mkdtemp(folder));
        snprintf(command, sizeof command, "mkdir -p %s/%s && ln -s %s %s/%s/libnvrtc.so.13", folder,
                 places[i].folder, FAKE_LIBNVRTC, folder, places[i].folder);
        assert_int_equal(system(command), 0);
        setenv(places[i].variable, folder, 1);
        tgl_nvrtc nvrtc;
        if (i == 0 || access("/usr/local/cuda", F_OK) != 0) { /* searched before wheels */
            assert_status(tgl_nvrtc_open(&nvrtc), TGL_OK);
            assert_int_equal(nvrtc.archs[0], 81);
            tgl_nvrtc_close(&nvrtc);
        }
        unsetenv(places[i].variable);
        snprintf(command, sizeof command, "rm -r %s", folder);
        assert_int_equal(system(command), 0);
    }
}

/* Columns: compute capability; architectures that NVRTC supports; the one that kernels are compiled
 * for (NULL: none). Code for Tegras (87, 101) does not run on other GPUs. */
static void architectures(void **state)
{
    (void)state;
    static const struct {
        const char *capability, *known, *arch;
    } rows[] = {
        {"80", "75,80,90", "sm_80"},   {"86", "75,80,90", "sm_80"},
        {"90", "80,90", "sm_90a"},     {"100", "80,90", "compute_90"},
        {"120", "100,120", "sm_120a"}, {"70", "75,80", NULL},
        {"89", "80,86,87", "sm_86"},   {"103", "90,100,101,120", "sm_100"},
        {"87", "80,86,87", "sm_87"},   {"101", "100,101,120", "sm_101a"},
        {"87", "80,86", "compute_86"}, {"90", "87", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        setenv("FAKE_CUDA_CAPABILITY", rows[i].capability, 1);
        setenv("FAKE_NVRTC_ARCHS", rows[i].known, 1);
        if (rows[i].arch == NULL) {
            assert_open_fails("cuda", TGL_NO_COMPILER, "no longer compiles");
            continue;
        }
        tgl_device *dev = open_device("cuda");
        assert_string_equal(property_of(dev, "compiled for"), rows[i].arch);
        assert_product(dev, "ladder/naive", 3, 4, 5);
        tgl_device_close(dev);
    }
}

static void failures_on_the_way_leave_nothing_behind(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_FAIL", "cuDeviceGetAttribute=1", 1);
    assert_open_fails("cuda", TGL_DRIVER, "asking the driver");
    setenv("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain=2", 1);
    assert_open_fails("cuda", TGL_NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY");
}

static void properties_describe_the_chip(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    assert_string_equal(property_of(dev, "chip"), "Fake GPU 0");
    assert_string_equal(property_of(dev, "compute capability"), "9.0");
    assert_string_equal(property_of(dev, "SMs"), "4");
    /* 2 x 1 GHz x 128 lanes x 4 */
    assert_non_null(strstr(property_of(dev, "FP32 peak"), "1.0 TFLOP/s"));
    /* 2 x 1 GHz x 256 bits */
    assert_non_null(strstr(property_of(dev, "memory bandwidth"), "64 GB/s"));
    assert_string_equal(property_of(dev, "driver"), "CUDA 13.0");
    assert_string_equal(property_of(dev, "NVRTC"), "13.0");
    assert_string_equal(property_of(dev, "cache"), cache_folder());
    tgl_device_close(dev);
}

static double number_of(const tgl_device *dev, tgl_number number)
{
    double value = -1;
    assert_status(tgl_device_number(dev, number, &value), TGL_OK);
    return value;
}

static void properties_are_numbers_too(void **state)
{
    (void)state;
    double value;
    tgl_device *dev = open_device("cuda");
    assert_true(number_of(dev, TGL_NUMBER_PROCESSORS) == 4);
    assert_true(number_of(dev, TGL_NUMBER_CLOCK_HZ) == 1e9);
    assert_true(number_of(dev, TGL_NUMBER_MEMORY_BYTES) == 1 << 28);
    assert_true(number_of(dev, TGL_NUMBER_MEMORY_BYTES_PER_S) == 2e9 * 256 / 8);
    assert_true(number_of(dev, TGL_NUMBER_L1_BYTES) == 1e6);
    assert_true(number_of(dev, TGL_NUMBER_L2_BYTES) == 1e6);
    assert_true(number_of(dev, TGL_NUMBER_CAPABILITY) == 90);
    assert_true(number_of(dev, TGL_NUMBER_FP32_LANES) == 128);
    assert_true(number_of(dev, TGL_NUMBER_SHARED_BLOCK_BYTES) == 1e6);
    assert_status(tgl_device_number(dev, TGL_NUMBER_L3_BYTES, &value), TGL_UNSUPPORTED);
    assert_status(tgl_device_number(dev, TGL_NUMBER_THREADS, &value), TGL_UNSUPPORTED);
    tgl_device_close(dev);
}

/* Versions are compared as numbers, in the names of files and folders. */
static void the_highest_version_comes_first(void **state)
{
    (void)state;
    static const char *const orders[][2] = {{"libnvrtc.so.9", "libnvrtc.so.12"},
                                            {"libnvrtc.so.12.9.1", "libnvrtc.so.12.10.0"}};
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        char command[4096], folder[] = "/tmp/tegula-test-XXXXXX";
        assert_non_null(mkdtemp(folder));
        snprintf(command, sizeof command, "ln -s %s %s/%s && ln -s %s %s/%s", FAKE_LIBNVRTC, folder,
                 orders[i][0], FAKE_LIBNVRTC_REBUILT, folder, orders[i][1]);
        assert_int_equal(system(command), 0);
        setenv("TEGULA_NVRTC", folder, 1);
        tgl_nvrtc nvrtc;
        assert_status(tgl_nvrtc_open(&nvrtc), TGL_OK);
        assert_int_equal(nvrtc.build_id_size, 5);
        assert_memory_equal(nvrtc.build_id, "teglb", 5);
        tgl_nvrtc_close(&nvrtc);
        snprintf(command, sizeof command, "rm -r %s", folder);
        assert_int_equal(system(command), 0);
    }
}

/* ---- The caller's context -------------------------------------------------------------------- */

/* Makes the primary context of a device current; pop_context() reverts it. */
static CUcontext push_context(int device)
{
    CUresult (*retain)(CUcontext *, CUdevice), (*push)(CUcontext);
    CUcontext context;
    *(void **)&retain = fake_function("cuDevicePrimaryCtxRetain");
    *(void **)&push = fake_function("cuCtxPushCurrent_v2");
    assert_int_equal(retain(&context, device), CUDA_SUCCESS);
    assert_int_equal(push(context), CUDA_SUCCESS);
    return context;
}

static void pop_context(int device)
{
    CUresult (*pop)(CUcontext *), (*release)(CUdevice);
    CUcontext context;
    *(void **)&pop = fake_function("cuCtxPopCurrent_v2");
    *(void **)&release = fake_function("cuDevicePrimaryCtxRelease_v2");
    assert_int_equal(pop(&context), CUDA_SUCCESS);
    assert_int_equal(release(device), CUDA_SUCCESS);
}

static tgl_status open_current(const char *name, tgl_device **dev)
{
    const tgl_device_options options = {.size = sizeof options, .current_context = 1};
    return tgl_device_open(name, &options, dev);
}

/* The device neither creates nor destroys a context. */
static void the_current_context_is_used(void **state)
{
    (void)state;
    static const char *const names[] = {"cuda", "cuda:1"};
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    tgl_device *dev;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        push_context(1);
        const int before = live_objects();
        setenv("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain=1", 1);
        assert_status(open_current(names[i], &dev), TGL_OK);
        unsetenv("FAKE_CUDA_FAIL");
        assert_string_equal(tgl_device_name(dev), "cuda:1");
        assert_string_equal(property_of(dev, "chip"), "Fake GPU 1");
        assert_product(dev, NULL, 4, 5, 6);
        tgl_device_close(dev);
        assert_int_equal(live_objects(), before);
        pop_context(1);
    }
}

static void a_current_context_must_fit(void **state)
{
    (void)state;
    tgl_device *dev;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    assert_status(open_current("cuda", &dev), TGL_BAD_ARGUMENT);
    assert_null(dev);
    assert_last_error("no CUDA context is current");
    push_context(1);
    assert_status(open_current("cuda:0", &dev), TGL_BAD_ARGUMENT);
    assert_last_error("belongs to cuda:1, not to cuda:0");
    pop_context(1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(auto_prefers_cuda),
        TEST(without_a_driver),
        TEST(with_a_library_that_is_no_driver),
        TEST(without_a_device),
        TEST(devices_by_number),
        TEST(without_a_compiler),
        TEST(the_compiler_s_folder_serves),
        TEST(toolkits_and_wheels_are_searched),
        TEST(architectures),
        TEST(failures_on_the_way_leave_nothing_behind),
        TEST(properties_describe_the_chip),
        TEST(properties_are_numbers_too),
        TEST(the_highest_version_comes_first),
        TEST(the_current_context_is_used),
        TEST(a_current_context_must_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
