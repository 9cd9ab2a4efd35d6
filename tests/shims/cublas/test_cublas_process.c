/* SPDX-License-Identifier: Apache-2.0
 *
 * libtegula_cublas.so itself in a process: with the cuda device over the fake CUDA driver, whose
 * kernels compute. Streams, captured graphs, threads, fork(), and processes without cuBLAS, without
 * a compiler or with mistakes in the environment. Each test runs in a child, where the library has
 * not been used yet.
 */
#include "cublas_abi.h"
#include "recorder.h"
#include "shim_child.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 24, THREADS = 8 };

/* ---- Libraries ------------------------------------------------------------------------------- */

static void *cublas, *driver;

/* Ends the child: makes no assertion, because it is called in threads and children. */
static void *function_of(void *library, const char *name)
{
    void *address = dlsym(library, name);
    if (address == NULL) _exit(2);
    return address;
}

static void push_context(void)
{
    int (*retain)(void **, int) =
        (int (*)(void **, int))function_of(driver, "cuDevicePrimaryCtxRetain");
    int (*push)(void *) = (int (*)(void *))function_of(driver, "cuCtxPushCurrent_v2");
    void *context;
    if (retain(&context, 0) != 0 || push(context) != 0) _exit(3);
}

static void load(const char *path_of_cublas, int mode)
{
    driver = dlopen(FAKE_LIBCUDA, RTLD_NOW | RTLD_LOCAL);
    cublas = dlopen(path_of_cublas, RTLD_NOW | mode);
    if (driver == NULL || cublas == NULL) _exit(4);
    push_context();
}

static void load_all(void)
{
    load(FAKE_LIBCUBLAS, RTLD_LOCAL);
}

static recorded_call take(void)
{
    return ((recorder_take_function *)function_of(cublas, "recorder_take"))();
}

static int number_of(const char *function)
{
    return ((int (*)(void))function_of(driver, function))();
}

/* Makes a handle whose products are computed in IEEE arithmetic, which the fake kernels support. */
static cublasHandle_t make_handle(void)
{
    int (*create)(cublasHandle_t *) =
        (int (*)(cublasHandle_t *))function_of(cublas, "cublasCreate_v2");
    int (*set)(cublasHandle_t, int) =
        (int (*)(cublasHandle_t, int))function_of(cublas, "cublasSetMathMode");
    cublasHandle_t handle;
    if (create(&handle) != 0 || set(handle, CUBLAS_PEDANTIC_MATH) != 0) _exit(5);
    return handle;
}

/* ---- Products -------------------------------------------------------------------------------- */

static const float one = 1, zero = 0;

/* A(i, l) = i + 1, B(l, j) = j + 2 in columns of N, C = -1. */
typedef struct matrices {
    float A[N * N], B[N * N], C[N * N];
} matrices;

static void fill(matrices *x)
{
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            x->A[i + j * N] = (float)(i + 1);
            x->B[i + j * N] = (float)(j + 2);
            x->C[i + j * N] = -1;
        }
}

/* Whether C is A*B with k = N. */
static bool is_product(const matrices *x)
{
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            if (x->C[i + j * N] != (float)(N * (i + 1) * (j + 2))) return false;
    return true;
}

static bool is_untouched(const matrices *x)
{
    for (int i = 0; i < N * N; i++)
        if (x->C[i] != -1) return false;
    return true;
}

static cublasStatus_t multiply(cublasHandle_t handle, matrices *x)
{
    return cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, x->A, N, x->B, N, &zero,
                          x->C, N);
}

static bool multiplies(cublasHandle_t handle)
{
    matrices x;
    fill(&x);
    return multiply(handle, &x) == CUBLAS_STATUS_SUCCESS && is_product(&x) &&
           take().function == NULL;
}

static bool passes_on(cublasHandle_t handle)
{
    matrices x;
    fill(&x);
    if (multiply(handle, &x) != RECORDED || !is_untouched(&x)) return false;
    const recorded_call passed = take();
    return passed.function != NULL && strcmp(passed.function, "cublasSgemm_v2") == 0;
}

/* ---- Children -------------------------------------------------------------------------------- */

static child_fn *tested;

static bool is_right_without_misuse(void)
{
    return tested() && (driver == NULL || number_of("fake_cuda_misuses") == 0);
}

static bool is_right_in_clean_child(child_fn *fn)
{
    tested = fn;
    return is_right_in_child(NULL, NULL, is_right_without_misuse);
}

static const char *clean_output_of(const char *variable, const char *value, child_fn *fn)
{
    tested = fn;
    return output_of(variable, value, is_right_without_misuse);
}

/* ---- A program ------------------------------------------------------------------------------- */

static bool computes(void)
{
    load_all();
    cublasHandle_t handle = make_handle();
    bool is_right = true;
    for (int i = 0; i < 2; i++) /* with a new plan, and with the same */
        is_right = multiplies(handle) && is_right;
    return cublasDestroy_v2(handle) == CUBLAS_STATUS_SUCCESS && is_right;
}

static void test_product(void **state)
{
    (void)state;
    assert_string_equal(clean_output_of(NULL, NULL, computes), "");
    assert_non_null(strstr(clean_output_of("TEGULA_CUBLAS_TRACE", "1", computes),
                           "tegula_cublas: cublasSgemm_v2 NN m=24 n=24 k=24 lda=24 ldb=24 ldc=24 "
                           "batch=1 f32,f32,f32 compute=68 mode=ieee: tegula, "));
    assert_string_equal(clean_output_of("TEGULA_CUBLAS_TRACE", "0", computes), "");
}

/* The library finds cuBLAS by RTLD_NEXT: it has another SONAME and is in the global scope. */
static bool computes_with_next(void)
{
    load(FAKE_LIBCUBLAS_NEXT, RTLD_GLOBAL);
    return multiplies(make_handle());
}

static bool lacks_cublas(void)
{
    matrices x;
    fill(&x);
    const bool is_refused =
        multiply((cublasHandle_t)&x, &x) == CUBLAS_STATUS_NOT_INITIALIZED && is_untouched(&x) &&
        cublasSetStream_v2((cublasHandle_t)&x, NULL) == CUBLAS_STATUS_NOT_INITIALIZED;
    load_all(); /* later than the first call */
    return is_refused && multiplies(make_handle());
}

static void test_finding_cublas(void **state)
{
    (void)state;
    assert_string_equal(clean_output_of(NULL, NULL, computes_with_next), "");
    assert_string_equal(clean_output_of(NULL, NULL, lacks_cublas), "");
    assert_non_null(strstr(clean_output_of("TEGULA_CUBLAS_TRACE", "1", lacks_cublas),
                           "tegula_cublas: the process has no cublasSgemm_v2 of cuBLAS\n"));
}

/* ---- Environment ----------------------------------------------------------------------------- */

static bool leaves_all(void)
{
    load_all();
    cublasHandle_t handle = make_handle();
    bool is_right = true;
    for (int i = 0; i < 2; i++)
        is_right = passes_on(handle) && is_right;
    return is_right;
}

static void test_environment(void **state)
{
    (void)state;
    assert_string_equal(clean_output_of("TEGULA_CUBLAS_SERVE", "none", leaves_all), "");
    assert_string_equal(clean_output_of("TEGULA_CUBLAS_SERVE", "all", computes), "");
    assert_string_equal(clean_output_of("TEGULA_CUBLAS_SERVE", "faster", computes), "");
    assert_string_equal(clean_output_of("TEGULA_CUBLAS_SERVE", "measured", computes), "");
    assert_string_equal(clean_output_of("TEGULA_CUBLAS_SERVE", "", computes), "");
    assert_string_equal(
        clean_output_of("TEGULA_CUBLAS_SERVE", "yes", computes),
        "tegula_cublas: TEGULA_CUBLAS_SERVE is \"yes\"; it must be faster, measured, "
        "all or none. It is taken for faster.\n");
    assert_string_equal(clean_output_of("TEGULA_CUBLAS_SERV", "all", computes),
                        "tegula_cublas: there is no setting TEGULA_CUBLAS_SERV. It is ignored.\n");
    const char *text = clean_output_of("TEGULA_NVRTC", "/nonexistent/libnvrtc.so", leaves_all);
    const char *end = ". cuBLAS computes all products.\n"; /* a message that is printed once */
    assert_true(strncmp(text, "tegula_cublas: ", strlen("tegula_cublas: ")) == 0);
    assert_string_equal(text + strcspn(text, "\n") + 1 - strlen(end), end);
}

/* ---- Streams and graphs ---------------------------------------------------------------------- */

static cudaStream_t make_stream(void)
{
    int (*create)(cudaStream_t *, unsigned) =
        (int (*)(cudaStream_t *, unsigned))function_of(driver, "cuStreamCreate");
    cudaStream_t stream;
    if (create(&stream, 1) != 0) _exit(6);
    return stream;
}

static void destroy_stream(cudaStream_t stream)
{
    int (*destroy)(cudaStream_t) = (int (*)(cudaStream_t))function_of(driver, "cuStreamDestroy_v2");
    if (destroy(stream) != 0) _exit(6);
}

static void begin_capture(cudaStream_t stream)
{
    int (*begin)(cudaStream_t, int) =
        (int (*)(cudaStream_t, int))function_of(driver, "cuStreamBeginCapture_v2");
    if (begin(stream, 0) != 0) _exit(7);
}

static void *end_capture(cudaStream_t stream)
{
    int (*end)(cudaStream_t, void **) =
        (int (*)(cudaStream_t, void **))function_of(driver, "cuStreamEndCapture");
    void *graph;
    if (end(stream, &graph) != 0) _exit(8);
    return graph;
}

static bool launch(void *graph, cudaStream_t stream)
{
    int (*launch_graph)(void *, cudaStream_t) =
        (int (*)(void *, cudaStream_t))function_of(driver, "cuGraphLaunch");
    return launch_graph(graph, stream) == 0;
}

/* The first product of the process opens the device and makes a plan while a stream is captured. */
static bool is_captured(void)
{
    load_all();
    cublasHandle_t handle = make_handle();
    cudaStream_t stream = make_stream();
    matrices x;
    fill(&x);
    cublasSetStream_v2(handle, stream);
    begin_capture(stream);
    const bool is_served = multiply(handle, &x) == CUBLAS_STATUS_SUCCESS;
    void *graph = end_capture(stream);
    return is_served && is_untouched(&x) && launch(graph, stream) && is_product(&x);
}

/* A product with split-K: 32 x 32 of 1s times 2s, with k = 8192. The workspace is the caller's, or
 * none may be used, or the graph allocates it. */
static bool computes_deep(cublasHandle_t handle, cudaStream_t stream)
{
    enum { M = 32, K = 8192 };
    float *A = malloc(2 * M * K * sizeof *A), *B = A + M * K, C[M * M];
    for (int i = 0; i < M * K; i++)
        A[i] = 1, B[i] = 2;
    begin_capture(stream);
    bool is_right = cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, M, K, &one, A, M, B, K,
                                   &zero, C, M) == CUBLAS_STATUS_SUCCESS;
    is_right = launch(end_capture(stream), stream) && is_right;
    for (int i = 0; i < M * M; i++)
        is_right = is_right && C[i] == 2 * K;
    free(A);
    return is_right;
}

/* Gives the handle a workspace of the caller. */
static bool sets_workspace(cublasHandle_t handle, size_t bytes)
{
    int (*allocate)(void **, size_t) =
        (int (*)(void **, size_t))function_of(driver, "cuMemAlloc_v2");
    void *memory;
    return allocate(&memory, bytes) == 0 &&
           cublasSetWorkspace_v2(handle, memory, bytes) == CUBLAS_STATUS_SUCCESS;
}

static bool uses_workspace(void)
{
    load_all();
    cublasHandle_t handle = make_handle();
    cudaStream_t stream = make_stream();
    cublasSetStream_v2(handle, stream);
    if (!computes_deep(handle, stream)) return false;
    if (!sets_workspace(handle, 1 << 22)) return false;
    if (!computes_deep(handle, stream)) return false;
    cublasSetWorkspace_v2(handle, NULL, 0);
    return computes_deep(handle, stream);
}

/* The caller's workspace is too small for split-K. */
static bool has_small_workspace(void)
{
    load_all();
    cublasHandle_t handle = make_handle();
    cudaStream_t stream = make_stream();
    cublasSetStream_v2(handle, stream);
    return sets_workspace(handle, 256) && computes_deep(handle, stream);
}

static size_t free_memory(void)
{
    int (*ask)(size_t *, size_t *) =
        (int (*)(size_t *, size_t *))function_of(driver, "cuMemGetInfo_v2");
    size_t free_bytes, total;
    return ask(&free_bytes, &total) == 0 ? free_bytes : 0;
}

/* A product with split-K leaves an arena, which is freed with the handle. */
static bool gives_memory_back(void)
{
    enum { M = 32, K = 8192 };
    load_all();
    cublasHandle_t handle = make_handle();
    float *A = calloc(2 * M * K, sizeof *A), C[M * M];
    const size_t before = free_memory();
    bool is_right = cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, M, K, &one, A, M, A, K,
                                   &zero, C, M) == CUBLAS_STATUS_SUCCESS;
    is_right = is_right && take().function == NULL && free_memory() < before;
    is_right = is_right && cublasDestroy_v2(NULL) != CUBLAS_STATUS_SUCCESS;
    is_right = is_right && free_memory() < before;
    is_right = is_right && cublasDestroy_v2(handle) == CUBLAS_STATUS_SUCCESS;
    free(A);
    return is_right && free_memory() == before && multiplies(make_handle());
}

/* The memory of this process, in KiB: VmRSS of /proc/self/status. */
static long resident_kib(void)
{
    char line[128];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && kib < 0 && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "VmRSS: %ld", &kib);
    if (file != NULL) fclose(file);
    return kib;
}

typedef struct visit {
    bool has_stream; /* given: it makes a stream and computes with split-K, which takes workspace */
    bool is_right;   /* the result of the visit */
} visit;

/* A thread with a handle of its own. */
static void *come_and_go(void *argument)
{
    enum { M = 32, K = 8192 };
    static float A[2 * M * K]; /* read only */
    visit *it = argument;
    float C[M * M];
    push_context();
    cublasHandle_t handle = make_handle();
    cudaStream_t stream = it->has_stream ? make_stream() : NULL;
    cublasSetStream_v2(handle, stream);
    it->is_right = cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, M, it->has_stream ? K : 4,
                                  &one, A, M, A, K, &zero, C, M) == CUBLAS_STATUS_SUCCESS &&
                   take().function == NULL && cublasDestroy_v2(handle) == CUBLAS_STATUS_SUCCESS;
    if (stream != NULL) destroy_stream(stream);
    return NULL;
}

/* The fake driver has few streams. Tegula may keep 64 MiB more than cuBLAS. */
static bool keeps_no_memory_of_many(void)
{
    enum { MANY = 100000, STREAMS = 60, WARM = 1000, HOST_KIB = 4 << 10, DEVICE_BYTES = 64 << 20 };
    pthread_t thread;
    long resident = 0;
    load_all();
    const size_t before = free_memory();
    for (int i = 0; i < MANY; i++) {
        visit it = {.has_stream = i < STREAMS};
        if (i == WARM) resident = resident_kib();
        if (pthread_create(&thread, NULL, come_and_go, &it) != 0) return false;
        pthread_join(thread, NULL);
        if (!it.is_right || before - free_memory() > DEVICE_BYTES) return false;
    }
    return resident > 0 && resident_kib() - resident <= HOST_KIB;
}

static void test_many_handles(void **state)
{
    (void)state;
    if (!can_fork_threads()) skip();
    assert_string_equal(clean_output_of("FAKE_CUDA_MEMORY", "4000000000", keeps_no_memory_of_many),
                        "");
}

/* Captures 1024 cubed in the default mode, for which 12 MiB of workspace suffice. Returns whether
 * Tegula has computed it in a graph without memory nodes, and sets *taken to the memory that the
 * library has allocated for it. */
static bool captures_cubed(cublasHandle_t handle, cudaStream_t stream, size_t *taken)
{
    enum { M = 1024 };
    int (*set)(cublasHandle_t, int) =
        (int (*)(cublasHandle_t, int))function_of(cublas, "cublasSetMathMode");
    int (*clone)(void **, void *) = (int (*)(void **, void *))function_of(driver, "cuGraphClone");
    int (*nodes)(void *) = (int (*)(void *))function_of(driver, "fake_cuda_memory_nodes");
    float *A = malloc(3 * M * M * sizeof *A);
    void *copy;
    const size_t before = free_memory();
    begin_capture(stream);
    const bool is_served = set(handle, CUBLAS_DEFAULT_MATH) == 0 &&
                           cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, M, M, &one, A, M,
                                          A + M * M, M, &zero, A + 2 * M * M, M) == 0 &&
                           take().function == NULL;
    void *graph = end_capture(stream);
    *taken = before - free_memory();
    free(A);
    return is_served && nodes(graph) == 0 && clone(&copy, graph) == 0;
}

/* A captured product in the caller's workspace, and one whose workspace is too small. */
static bool captures_in_workspace(void)
{
    load_all();
    cublasHandle_t handle = make_handle();
    cudaStream_t stream = make_stream();
    size_t taken;
    cublasSetStream_v2(handle, stream);
    if (!sets_workspace(handle, 32 << 20)) return false;
    if (!captures_cubed(handle, stream, &taken) || taken != 0) return false;
    if (!sets_workspace(handle, 1 << 20)) return false;
    return captures_cubed(handle, stream, &taken) && taken > 8 << 20 && taken < 16 << 20;
}

/* A captured product takes the same kernel as one outside of graphs. */
static void test_workspace_of_graphs(void **state)
{
    (void)state;
    static const char kernel[] = ": tegula, accurate_128x128";
    const char *output = clean_output_of("TEGULA_CUBLAS_TRACE", "1", captures_in_workspace);
    const char *first = strstr(output, kernel);
    assert_non_null(first);
    assert_non_null(strstr(first + 1, kernel));
}

static void test_own_workspace(void **state)
{
    (void)state;
    assert_string_equal(clean_output_of(NULL, NULL, gives_memory_back), "");
    assert_string_equal(clean_output_of(NULL, NULL, has_small_workspace), "");
    assert_string_equal(clean_output_of("TEGULA_CUBLAS_WORKSPACE", "0", has_small_workspace), "");
    assert_non_null(strstr(clean_output_of("TEGULA_CUBLAS_WORKSPACE", "1.5", has_small_workspace),
                           "TEGULA_CUBLAS_WORKSPACE is \"1.5\"; it must be a number of MiB"));
    setenv("TEGULA_CUBLAS_TRACE", "1", 1);
    assert_non_null(strstr(clean_output_of(NULL, NULL, has_small_workspace), ":splits=16"));
    assert_null(
        strstr(clean_output_of("TEGULA_CUBLAS_WORKSPACE", "0", has_small_workspace), ":splits=16"));
    unsetenv("TEGULA_CUBLAS_TRACE");
}

/* The time at the end of the last line of `output`, in us; -1: the line has none. */
static double last_time(const char *output)
{
    const char *comma = strrchr(output, ',');
    double us;
    int end = 0;
    if (comma == NULL || sscanf(comma, ", %lf us\n%n", &us, &end) != 1) return -1;
    return end > 0 && comma[end] == '\0' ? us : -1;
}

/* The fake driver's events are at least 1 ms apart, and more where the machine is slow. A product
 * in a captured stream is not timed. */
static void test_times(void **state)
{
    (void)state;
    const char *output = clean_output_of("TEGULA_CUBLAS_TRACE", "time", computes);
    assert_true(last_time(output) >= 1e3 && last_time(output) < 1e6);
    output = clean_output_of("TEGULA_CUBLAS_TRACE", "time", is_captured);
    assert_non_null(strstr(output, ": tegula, "));
    assert_null(strstr(output, " us\n"));
    setenv("TEGULA_CUBLAS_SERVE", "none", 1); /* products of cuBLAS are timed, too */
    output = output_of("TEGULA_CUBLAS_TRACE", "time", leaves_all);
    assert_non_null(strstr(output, ": cuBLAS, "));
    assert_non_null(strstr(output, " us\n"));
    unsetenv("TEGULA_CUBLAS_SERVE");
}

static void test_graphs(void **state)
{
    (void)state;
    assert_string_equal(clean_output_of(NULL, NULL, is_captured), "");
    assert_string_equal(clean_output_of(NULL, NULL, uses_workspace), "");
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *multiply_often(void *unused)
{
    (void)unused;
    push_context();
    cublasHandle_t handle = make_handle();
    bool is_right = true;
    for (int i = 0; i < 20; i++) {
        cublasSetStream_v2(handle, NULL);
        cublasSetWorkspace_v2(handle, NULL, 0);
        is_right = multiplies(handle) && is_right;
    }
    return cublasDestroy_v2(handle) == CUBLAS_STATUS_SUCCESS && is_right ? NULL : "wrong";
}

static bool multiplies_in_threads(void)
{
    load_all();
    return is_right_in_threads(THREADS, multiply_often);
}

static void test_threads(void **state)
{
    (void)state;
    assert_string_equal(clean_output_of(NULL, NULL, multiplies_in_threads), "");
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static cublasHandle_t inherited;

static bool leaves_inherited(void)
{
    return passes_on(inherited) && cublasSetWorkspace_v2(inherited, NULL, 0) == 0 &&
           passes_on(inherited);
}

static bool forks_after_use(void)
{
    load_all();
    inherited = make_handle();
    return multiplies(inherited) && is_right_in_clean_child(leaves_inherited) &&
           multiplies(inherited);
}

static bool multiplies_inherited(void)
{
    return multiplies(inherited);
}

/* The parent has not used the GPU through this library: the fake driver works in the child. */
static bool forks_before_use(void)
{
    load_all();
    inherited = make_handle();
    cublasSetWorkspace_v2(inherited, NULL, 0);
    return is_right_in_clean_child(multiplies_inherited) && multiplies(inherited);
}

/* A child is forked while other threads compute and change handles. */
static bool forks_meanwhile(void)
{
    pthread_t thread;
    load_all();
    inherited = make_handle();
    bool is_right =
        multiplies(inherited) && pthread_create(&thread, NULL, multiply_often, NULL) == 0;
    for (int i = 0; i < 10; i++)
        is_right = is_right_in_clean_child(leaves_inherited) && is_right;
    void *wrong;
    pthread_join(thread, &wrong);
    return is_right && wrong == NULL;
}

static void test_fork(void **state)
{
    (void)state;
    assert_string_equal(clean_output_of(NULL, NULL, forks_after_use), "");
    assert_string_equal(clean_output_of(NULL, NULL, forks_before_use), "");
    const char *text = clean_output_of("TEGULA_CUBLAS_TRACE", "1", forks_after_use);
    assert_non_null(strstr(text, ": cuBLAS, the parent process has used the GPU before fork()\n"));
    if (can_fork_threads()) assert_string_equal(clean_output_of(NULL, NULL, forks_meanwhile), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_finding_cublas),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_workspace_of_graphs),
        cmocka_unit_test(test_own_workspace),
        cmocka_unit_test(test_many_handles),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork),
    };
    setenv("TEGULA_LIBCUDA", FAKE_LIBCUDA, 1);
    setenv("TEGULA_NVRTC", FAKE_LIBNVRTC, 1);
    setenv("TEGULA_CACHE", "off", 1);
    return cmocka_run_group_tests_name("cuBLAS: process", tests, NULL, NULL);
}
