/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda device with the fake libraries, with and without failures: products, the caller's
 * context, the disk cache, memory, compilers, and kernels that fault.
 */
#include "fake_cuda/setup.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- All is well ----------------------------------------------------------------------------- */

static void every_kernel_multiplies(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    const char *kernel;
    for (int i = 0; (kernel = tgl_kernel_name(dev, i)) != NULL; i++) {
        if (strstr(kernel, "mma_") != NULL || strncmp(kernel, "accurate", 8) == 0)
            continue; /* they do not compute F32 in the default compute mode */
        if (strncmp(kernel, "ladder/f16_", 11) == 0 || strncmp(kernel, "ladder/words_", 13) == 0)
            continue;                                     /* the same */
        if (strncmp(kernel, "dequant", 7) == 0) continue; /* for weights of 8 and 4 bits */
        const bool is_skinny = strncmp(kernel, "skinny", 6) == 0 || strncmp(kernel, "gemv", 4) == 0;
        const bool is_small = strncmp(kernel, "small_batch", 11) == 0;
        assert_product(dev, kernel, is_skinny ? 1 : is_small ? 7 : 33, is_small ? 9 : 65, 17);
    }
    assert_product(dev, NULL, 130, 3, 64);
    tgl_device_close(dev);
}

static void without_a_product_neither_operand_is_read(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    tgl_problem problem = problem_of(TGL_F32, 3, 3, 3); /* of a size that takes scalar copies */
    float C[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    assert_status(tgl_gemm(dev, &problem, 0, NULL, NULL, 2, C, NULL), TGL_OK);
    void *nowhere = (void *)1; /* an invalid address */
    assert_status(tgl_gemm(dev, &problem, 1e-60, nowhere, nowhere, 1, C, NULL), TGL_OK);
    problem.k = 0;
    assert_status(tgl_gemm(dev, &problem, (double)INFINITY, NULL, NULL, 1, C, NULL), TGL_OK);
    assert_status(tgl_gemm(dev, &problem, (double)NAN, NULL, NULL, 0.5, C, NULL), TGL_OK);
    for (int i = 0; i < 9; i++)
        assert_true(C[i] == (float)(i + 1));
    tgl_device_close(dev);
}

static void column_major_is_row_major_exchanged(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    /* (1 2; 3 4) (5; 6) = (17; 39), column-major */
    const float A[4] = {1, 3, 2, 4}, B[2] = {5, 6};
    float C[2] = {0, 0};
    assert_status(tgl_sgemm(dev, TGL_COL_MAJOR, TGL_NO_TRANS, TGL_NO_TRANS, 2, 1, 2, 1, A, 2, B, 2,
                            0, C, 2, NULL),
                  TGL_OK);
    assert_true(C[0] == 17 && C[1] == 39);
    tgl_device_close(dev);
}

static void explain_tells_the_launch(void **state)
{
    (void)state;
    static const char *const words[] = {"ladder/naive", "registers   40",
                                        "occupancy",    "waves",
                                        "FLOP/byte",    "kernels/ladder/01_naive.cu"};
    tgl_device *dev = open_device("cuda");
    const tgl_problem problem = problem_of(TGL_F32, 100, 200, 300);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "ladder/naive"};
    char text[2048], little[10];
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    size_t length = tgl_plan_explain(plan, text, sizeof text);
    assert_int_equal(length, strlen(text));
    for (size_t i = 0; i < COUNT_OF(words); i++)
        assert_non_null(strstr(text, words[i]));
    assert_int_equal(tgl_plan_explain(plan, NULL, 0), length);
    assert_int_equal(tgl_plan_explain(plan, little, sizeof little), length);
    assert_int_equal(strlen(little), sizeof little - 1);
    tgl_plan_destroy(plan);
    tgl_device_close(dev);
}

static void ceilings_are_measured(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    for (int ceiling = TGL_CEILING_FMA_F32; ceiling <= TGL_CEILING_COPY; ceiling++) {
        double value = 0;
        assert_status(tgl_device_measure(dev, (tgl_ceiling)ceiling, &value), TGL_OK);
        assert_true(value > 0);
    }
    tgl_device_close(dev);
}

static void a_timer_that_fails_tells_nothing(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuEventRecord=1", "cuEventSynchronize=1",
                                        "cuEventElapsedTime=1"};
    tgl_device *dev = open_device("cuda");
    tgl_timer *timer;
    double seconds = -1;
    assert_status(tgl_timer_create(dev, &timer), TGL_OK);
    assert_status(tgl_timer_start(timer, NULL), TGL_OK);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        setenv("FAKE_CUDA_FAIL", calls[i], 1);
        assert_status(tgl_timer_stop(timer, NULL, &seconds), TGL_DRIVER);
        assert_true(seconds == -1);
    }
    unsetenv("FAKE_CUDA_FAIL");
    assert_status(tgl_timer_stop(timer, NULL, &seconds), TGL_OK);
    assert_true(seconds > 0);
    tgl_timer_destroy(timer);
    tgl_device_close(dev);
}

/* ---- The caller's context -------------------------------------------------------------------- */

static void use_everything(tgl_device *dev)
{
    double seconds;
    tgl_timer *timer;
    assert_status(tgl_timer_create(dev, &timer), TGL_OK);
    assert_status(tgl_timer_start(timer, NULL), TGL_OK);
    assert_product(dev, NULL, 5, 6, 7);
    assert_status(tgl_device_sync(dev), TGL_OK);
    assert_status(tgl_timer_stop(timer, NULL, &seconds), TGL_OK);
    assert_true(seconds >= 1e-3);
    tgl_timer_destroy(timer);
}

static void the_caller_s_context_stays(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*push)(CUcontext), (*pop)(CUcontext *), (*release)(CUdevice), (*get)(CUcontext *);
    *(void **)&retain = fake_function("cuDevicePrimaryCtxRetain");
    *(void **)&release = fake_function("cuDevicePrimaryCtxRelease_v2");
    *(void **)&push = fake_function("cuCtxPushCurrent_v2");
    *(void **)&pop = fake_function("cuCtxPopCurrent_v2");
    *(void **)&get = fake_function("cuCtxGetCurrent");
    for (int mine = 0; mine < 2; mine++) { /* the device's own context, then another context */
        CUcontext context, now;
        assert_int_equal(retain(&context, mine), CUDA_SUCCESS);
        assert_int_equal(push(context), CUDA_SUCCESS);
        tgl_device *dev = open_device("cuda:0");
        use_everything(dev);
        setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2,cuModuleLoadData=1,cuLaunchKernel=1", 1);
        void *memory;
        assert_status(tgl_alloc(dev, 100, &memory), TGL_NO_MEMORY);
        assert_product_fails(dev, TGL_DRIVER);
        unsetenv("FAKE_CUDA_FAIL");
        assert_int_equal(get(&now), CUDA_SUCCESS);
        assert_ptr_equal(now, context);
        tgl_device_close(dev);
        assert_int_equal(context_depth(), 1);
        pop(&now);
        release(mine);
    }
}

static void *many_products(void *dev)
{
    for (int i = 1; i < 40; i++)
        assert_product(dev, "ladder/naive", i, 40 - i, i);
    return NULL;
}

static void many_threads_share_a_device(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    tgl_device *dev = open_device("cuda");
    const int before = compilations();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_products, dev), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(compilations(), before + 1);
    tgl_device_close(dev);
}

/* ---- Requests that no kernel takes ----------------------------------------------------------- */

static void what_no_kernel_takes(void **state)
{
    (void)state;
    tgl_device *dev = open_device("cuda");
    enum { LARGEST = INT32_MAX - 1024 };
    tgl_problem rows[7];
    tgl_status expected[7] = {TGL_UNSUPPORTED, TGL_UNSUPPORTED,    TGL_UNSUPPORTED, TGL_UNSUPPORTED,
                              TGL_UNSUPPORTED, TGL_GRID_TOO_LARGE, TGL_UNSUPPORTED};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        rows[i] = problem_of(i == 0 ? TGL_F64 : TGL_F32, 2, 2, 2);
    rows[1].trans_a = TGL_TRANS;
    rows[2].batch = 2;
    rows[2].stride_c = 4;
    rows[3].n = LARGEST + 1;
    rows[4].type_d = TGL_F32;
    rows[5].m = LARGEST;
    rows[6].k = rows[6].lda = LARGEST + 1;
    const tgl_plan_options options = {.size = sizeof options, .kernel = "ladder/naive"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        tgl_plan *plan;
        assert_status(tgl_plan_create(dev, &rows[i], &options, &plan), expected[i]);
        assert_null(plan);
        assert_true(tgl_last_error(NULL, 0) > 20);
    }
    tgl_plan *plan;
    const tgl_problem wide = problem_of(TGL_F32, 2, LARGEST, 2);
    assert_status(tgl_plan_create(dev, &wide, &options, &plan), TGL_OK);
    tgl_plan_destroy(plan);
    const tgl_plan_options unknown = {.size = sizeof unknown, .kernel = "ladder/no such"};
    const tgl_problem problem = problem_of(TGL_F32, 2, 2, 2);
    assert_status(tgl_plan_create(dev, &problem, &unknown, &plan), TGL_UNKNOWN_KERNEL);
    tgl_device_close(dev);
}

static void a_chip_too_old_for_a_kernel(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_CAPABILITY", "75", 1);
    tgl_device *dev = open_device("cuda");
    const tgl_problem problem = problem_of(TGL_F32, 2, 2, 2);
    const tgl_plan_options options = {.size = sizeof options, .kernel = "ladder/async_copy"};
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_UNSUPPORTED);
    assert_last_error("needs compute capability 8.0");
    assert_product(dev, "ladder/naive", 3, 4, 5);
    tgl_device_close(dev);
}

/* ---- Memory and compilers that fail ---------------------------------------------------------- */

static void out_of_device_memory(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_MEMORY", "1048576", 1);
    tgl_device *dev = open_device("cuda");
    void *memory, *more;
    assert_status(tgl_alloc(dev, 1 << 19, &memory), TGL_OK);
    assert_int_equal((uintptr_t)memory % 256, 0);
    assert_status(tgl_alloc(dev, 1 << 20, &more), TGL_NO_MEMORY);
    assert_null(more);
    assert_last_error("0 MiB of 1 MiB are free");
    tgl_free(dev, memory);
    assert_product(dev, NULL, 5, 5, 5); /* the product is still computed */
    tgl_device_close(dev);
}

static void a_compile_error_carries_the_log(void **state)
{
    (void)state;
    setenv("FAKE_NVRTC_ERROR", "01_naive.cu(12): error: expected a \";\"", 1);
    tgl_device *dev = open_device("cuda");
    assert_product_fails(dev, TGL_COMPILE);
    assert_last_error("expected a \";\"");
    unsetenv("FAKE_NVRTC_ERROR");
    assert_product(dev, NULL, 2, 2, 2);
    tgl_device_close(dev);
}

static void loading_fails(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuModuleLoadData=1", "cuModuleGetFunction=500",
                                        "cuFuncGetAttribute=1", "cuLaunchKernel=701"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        tgl_device *dev = open_device("cuda");
        setenv("FAKE_CUDA_FAIL", calls[i], 1);
        assert_product_fails(dev, TGL_DRIVER);
        unsetenv("FAKE_CUDA_FAIL");
        tgl_device_close(dev);
    }
}

static void a_driver_older_than_the_compiler_is_named(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_VERSION", "12040", 1);
    setenv("FAKE_CUDA_FAIL", "cuModuleLoadData=200", 1);
    tgl_device *dev = open_device("cuda");
    assert_product_fails(dev, TGL_DRIVER);
    assert_last_error("the driver, for CUDA 12.4");
    tgl_device_close(dev);
}

/* ---- The disk cache -------------------------------------------------------------------------- */

static void multiply_anew(void)
{
    tgl_device *dev = open_device("cuda");
    assert_product(dev, "ladder/naive", 4, 4, 4);
    tgl_device_close(dev);
}

static void a_kernel_is_compiled_once(void **state)
{
    (void)state;
    const int before = compilations();
    multiply_anew();
    multiply_anew();
    assert_int_equal(compilations(), before + 1);
    setenv("FAKE_CUDA_CAPABILITY", "80", 1); /* another chip */
    multiply_anew();
    assert_int_equal(compilations(), before + 2);
}

static void another_chip_s_code_in_the_cache_is_rebuilt(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    setenv("FAKE_NVRTC_OUTPUT", "sm_90a", 1);
    tgl_device *dev = open_device("cuda");
    assert_product_fails(dev, TGL_DRIVER); /* a freshly compiled kernel fails, too */
    tgl_device_close(dev);
    unsetenv("FAKE_NVRTC_OUTPUT");
    const int before = compilations();
    multiply_anew();
    assert_int_equal(compilations(), before + 1);
    multiply_anew();
    assert_int_equal(compilations(), before + 1);
}

/* Opens a device with this NVRTC library and computes a product. */
static void multiply_with(const char *nvrtc)
{
    setenv("TEGULA_NVRTC", nvrtc, 1);
    multiply_anew();
}

/* Another build of the same version may compile other code. */
static void another_build_of_the_compiler_compiles_again(void **state)
{
    (void)state;
    char command[2048], copy[256];
    multiply_with(FAKE_LIBNVRTC);
    multiply_with(FAKE_LIBNVRTC);
    assert_int_equal(cache_entries(), 1);
    multiply_with(FAKE_LIBNVRTC_REBUILT);
    assert_int_equal(cache_entries(), 2);
    /* Without a build id, the modification time of the file is used. */
    multiply_with(FAKE_LIBNVRTC_PLAIN);
    assert_int_equal(cache_entries(), 3);
    snprintf(copy, sizeof copy, "%s/libnvrtc.so.2", cache_folder());
    snprintf(command, sizeof command, "cp %s %s && touch -d 2001-01-01 %s", FAKE_LIBNVRTC_PLAIN,
             copy, copy);
    assert_int_equal(system(command), 0);
    multiply_with(copy);
    assert_int_equal(cache_entries(), 4);
}

static void without_a_cache_it_only_takes_longer(void **state)
{
    (void)state;
    char file[1024];
    snprintf(file, sizeof file, "%s/file", cache_folder());
    fclose(fopen(file, "w"));
    const char *const settings[] = {file, "off", "", "/proc/no such folder"};
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        setenv("TEGULA_CACHE", settings[i], 1);
        const int before = compilations();
        multiply_anew();
        multiply_anew();
        assert_int_equal(compilations(), before + 2);
        tgl_device *dev = open_device("cuda");
        assert_memory_equal(property_of(dev, "cache"), "off (", 5);
        tgl_device_close(dev);
    }
}

/* Both processes compile, since the first has not finished when the second looks for the entry. The
 * entry is valid. */
static void two_processes_compile_at_once(void **state)
{
    (void)state;
    setenv("FAKE_NVRTC_DELAY", "100", 1);
    pid_t children[2];
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            multiply_anew();
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int result = -1;
        waitpid(children[i], &result, 0);
        assert_int_equal(result, 0);
    }
    assert_int_equal(cache_entries(), 1);
    const int before = compilations();
    multiply_anew();
    assert_int_equal(compilations(), before);
}

/* ---- Kernels that fault ---------------------------------------------------------------------- */

/* Fails unless the device, after a fault, can only be closed, and `other` still works. */
static void assert_lost(tgl_device *dev, tgl_device *other)
{
    void *memory;
    double value;
    tgl_timer *timer;
    char text[256];
    assert_product_fails(dev, TGL_DEVICE_LOST);
    assert_last_error("close");
    assert_status(tgl_alloc(dev, 10, &memory), TGL_DEVICE_LOST);
    assert_status(tgl_upload(dev, text, text, 1, NULL), TGL_DEVICE_LOST);
    assert_status(tgl_download(dev, text, text, 1, NULL), TGL_DEVICE_LOST);
    assert_status(tgl_device_sync(dev), TGL_DEVICE_LOST);
    assert_status(tgl_timer_create(dev, &timer), TGL_DEVICE_LOST);
    assert_status(tgl_device_measure(dev, TGL_CEILING_COPY, &value), TGL_DEVICE_LOST);
    assert_product(other, NULL, 3, 3, 3);
}

static void a_fault_loses_the_device(void **state)
{
    (void)state;
    static const char *const faults[] = {"cuLaunchKernel=700", "cuCtxSynchronize=700",
                                         "cuCtxSynchronize=719"};
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    tgl_device *other = open_device("cuda:1");
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        tgl_device *dev = open_device("cuda:0");
        const tgl_problem problem = problem_of(TGL_F32, 1, 1, 0);
        float C = 0;
        tgl_plan *plan;
        tgl_timer *timer;
        assert_status(tgl_timer_create(dev, &timer), TGL_OK);
        assert_status(tgl_plan_create(dev, &problem, NULL, &plan), TGL_OK);
        setenv("FAKE_CUDA_FAIL", faults[i], 1);
        tgl_status status = tgl_plan_run(plan, 1, NULL, NULL, 0, &C, NULL);
        assert_status(status, i == 0 ? TGL_DEVICE_LOST : TGL_OK);
        assert_status(tgl_device_sync(dev), TGL_DEVICE_LOST);
        unsetenv("FAKE_CUDA_FAIL");
        assert_status(tgl_plan_run(plan, 1, NULL, NULL, 0, &C, NULL), TGL_DEVICE_LOST);
        assert_lost(dev, other);
        char text[512];
        assert_true(tgl_plan_explain(plan, text, sizeof text) > 0);
        tgl_plan_destroy(plan);
        tgl_timer_destroy(timer);
        tgl_device_close(dev);

        dev = open_device("cuda:0"); /* a new context */
        assert_product(dev, NULL, 3, 3, 3);
        tgl_device_close(dev);
    }
    tgl_device_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kernel_multiplies),
        TEST(without_a_product_neither_operand_is_read),
        TEST(column_major_is_row_major_exchanged),
        TEST(explain_tells_the_launch),
        TEST(ceilings_are_measured),
        TEST(a_timer_that_fails_tells_nothing),
        TEST(the_caller_s_context_stays),
        TEST(many_threads_share_a_device),
        TEST(what_no_kernel_takes),
        TEST(a_chip_too_old_for_a_kernel),
        TEST(out_of_device_memory),
        TEST(a_compile_error_carries_the_log),
        TEST(loading_fails),
        TEST(a_driver_older_than_the_compiler_is_named),
        TEST(a_kernel_is_compiled_once),
        TEST(another_chip_s_code_in_the_cache_is_rebuilt),
        TEST(another_build_of_the_compiler_compiles_again),
        TEST(without_a_cache_it_only_takes_longer),
        TEST(two_processes_compile_at_once),
        TEST(a_fault_loses_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
