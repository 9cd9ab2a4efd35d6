/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that the tests with the fake libraries share.
 */
#include "setup.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const knobs[] = {
    "TEGULA_ARCHIVE",   "FAKE_CUDA_DEVICES", "FAKE_CUDA_VERSION",  "FAKE_CUDA_CAPABILITY",
    "FAKE_CUDA_MEMORY", "FAKE_CUDA_FAIL",    "FAKE_NVRTC_ARCHS",   "FAKE_NVRTC_OUTPUT",
    "FAKE_NVRTC_ERROR", "FAKE_NVRTC_SPILL",  "FAKE_CUDA_POOLS",    "FAKE_CUDA_NAME",
    "FAKE_NVRTC_DELAY", "FAKE_CUDA_DIRTY",   "FAKE_NVRTC_VERSION", "FAKE_CUDA_SHARED",
    "FAKE_CUDA_US",     "FAKE_CUDA_FAST",    "TEGULA_WISDOM",      "TEGULA_EFFORT",
    "FAKE_CUDA_LATE",   "FAKE_NVRTC_JOINT",  "FAKE_NVRTC_MARK",    "FAKE_CUDA_COLD"};

static const char *driver = FAKE_LIBCUDA; /* the fake driver that the current test uses */

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
    return function_of(driver, name);
}

static int number_of(const char *library, const char *name)
{
    return ((fake_number_function *)function_of(library, name))();
}

int live_objects(void)
{
    return number_of(driver, "fake_cuda_live");
}

int context_depth(void)
{
    return number_of(driver, "fake_cuda_depth");
}

int loaded_modules(void)
{
    return number_of(driver, "fake_cuda_modules");
}

int misuses(void)
{
    return number_of(driver, "fake_cuda_misuses");
}

int encoded_maps(void)
{
    return number_of(driver, "fake_cuda_encoded");
}

int launches_so_far(void)
{
    return number_of(driver, "fake_cuda_launches");
}

int uploaded_bytes(void)
{
    return number_of(driver, "fake_cuda_uploaded");
}

int downloaded_bytes(void)
{
    return number_of(driver, "fake_cuda_downloaded");
}

int compilations(void)
{
    return number_of(FAKE_LIBNVRTC, "fake_nvrtc_count");
}

int compiler_options(void)
{
    return number_of(FAKE_LIBNVRTC, "fake_nvrtc_options");
}

fake_cuda_launch earlier_launch(int back)
{
    return ((fake_cuda_launched_function *)fake_function("fake_cuda_launched"))(back);
}

fake_cuda_launch latest_launch(void)
{
    return earlier_launch(0);
}

/* ---- Around a test --------------------------------------------------------------------------- */

void use_old_driver(const char *version)
{
    driver = FAKE_LIBCUDA_OLD;
    setenv("TEGULA_LIBCUDA", driver, 1);
    setenv("FAKE_CUDA_VERSION", version, 1);
    setenv("FAKE_NVRTC_VERSION", "11080", 1); /* a compiler version that the old driver supports */
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
}

static char folder_of_entries[64];

int fake_setup(void **state)
{
    (void)state;
    char folder[] = "/tmp/tegula-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < COUNT_OF(knobs); i++)
        unsetenv(knobs[i]);
    driver = FAKE_LIBCUDA;
    setenv("TEGULA_LIBCUDA", driver, 1);
    setenv("TEGULA_NVRTC", FAKE_LIBNVRTC, 1);
    setenv("TEGULA_CACHE", folder, 1);
    setenv("FAKE_TEST_FOLDER", folder, 1); /* kept here because a test may change TEGULA_CACHE */
    snprintf(folder_of_entries, sizeof folder_of_entries, "%s/tegula", folder);
    return mkdir(folder_of_entries, 0700);
}

const char *cache_folder(void)
{
    return folder_of_entries;
}

int cache_entries(void)
{
    int entries = 0;
    DIR *folder = opendir(cache_folder());
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        entries += strlen(entry->d_name) == 64; /* named by a SHA-256 */
    closedir(folder);
    return entries;
}

static void remove_folder(const char *path)
{
    char name[512];
    DIR *folder = path != NULL ? opendir(path) : NULL;
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
    remove_folder(getenv("FAKE_TEST_FOLDER"));
    assert_int_equal(live_objects(), 0);
    assert_int_equal(context_depth(), 0);
    assert_int_equal(misuses(), 0);
    return 0;
}

/* ---- Other users of the driver --------------------------------------------------------------- */

static void push(void)
{
    CUresult (*retain)(CUcontext *, CUdevice), (*push_context)(CUcontext);
    CUcontext context;
    *(void **)&retain = fake_function("cuDevicePrimaryCtxRetain");
    *(void **)&push_context = fake_function("cuCtxPushCurrent_v2");
    assert_int_equal(retain(&context, 0), CUDA_SUCCESS);
    assert_int_equal(push_context(context), CUDA_SUCCESS);
}

static void pop(void)
{
    CUresult (*release)(CUdevice), (*pop_context)(CUcontext *);
    CUcontext context;
    *(void **)&release = fake_function("cuDevicePrimaryCtxRelease_v2");
    *(void **)&pop_context = fake_function("cuCtxPopCurrent_v2");
    assert_int_equal(pop_context(&context), CUDA_SUCCESS);
    assert_int_equal(release(0), CUDA_SUCCESS);
}

static void *create(unsigned flags)
{
    CUresult (*function)(CUstream *, unsigned);
    CUstream stream;
    *(void **)&function = fake_function("cuStreamCreate");
    push();
    assert_int_equal(function(&stream, flags), CUDA_SUCCESS);
    pop();
    return stream;
}

void *create_stream(void)
{
    return create(CU_STREAM_NON_BLOCKING);
}

void *create_blocking_stream(void)
{
    return create(0);
}

/* Calls a driver function that takes a stream, in the primary context. */
static CUresult call(const char *name, void *stream)
{
    CUresult (*function)(CUstream);
    *(void **)&function = fake_function(name);
    push();
    const CUresult result = function(stream);
    pop();
    return result;
}

void destroy_stream(void *stream)
{
    assert_int_equal(call("cuStreamDestroy_v2", stream), CUDA_SUCCESS);
}

void begin_capture(void *stream)
{
    CUresult (*begin)(CUstream, int);
    *(void **)&begin = fake_function("cuStreamBeginCapture_v2");
    push();
    assert_int_equal(begin(stream, 0), CUDA_SUCCESS);
    pop();
}

void *end_capture(void *stream)
{
    CUresult (*end)(CUstream, void **);
    void *graph;
    *(void **)&end = fake_function("cuStreamEndCapture");
    push();
    assert_int_equal(end(stream, &graph), CUDA_SUCCESS);
    pop();
    return graph;
}

void fail_capture(void *stream)
{
    CUresult (*end)(CUstream, void **);
    void *graph;
    *(void **)&end = fake_function("cuStreamEndCapture");
    push();
    assert_true(end(stream, &graph) != CUDA_SUCCESS);
    pop();
}

void launch_graph(void *graph, void *stream)
{
    CUresult (*launch)(void *, CUstream);
    *(void **)&launch = fake_function("cuGraphLaunch");
    push();
    assert_int_equal(launch(graph, stream), CUDA_SUCCESS);
    pop();
}

void destroy_graph(void *graph)
{
    assert_int_equal(call("cuGraphDestroy", graph), CUDA_SUCCESS);
}

void *clone_graph(void *graph)
{
    CUresult (*clone)(void **, void *);
    void *made = NULL;
    *(void **)&clone = fake_function("cuGraphClone");
    push();
    clone(&made, graph);
    pop();
    return made;
}

void *instantiate_graph(void *graph)
{
    CUresult (*instantiate)(void **, void *, unsigned long long);
    void *made = NULL;
    *(void **)&instantiate = fake_function("cuGraphInstantiateWithFlags");
    push();
    instantiate(&made, graph, 0);
    pop();
    return made;
}

void *embed_graph(void *graph)
{
    CUresult (*create_graph)(void **, unsigned);
    CUresult (*add)(void **, void *, const void *, size_t, void *);
    void *parent, *node;
    *(void **)&create_graph = fake_function("cuGraphCreate");
    *(void **)&add = fake_function("cuGraphAddChildGraphNode");
    push();
    assert_int_equal(create_graph(&parent, 0), CUDA_SUCCESS);
    const CUresult result = graph == NULL ? CUDA_SUCCESS : add(&node, parent, NULL, 0, graph);
    pop();
    if (result == CUDA_SUCCESS) return parent;
    destroy_graph(parent);
    return NULL;
}

void begin_capture_to(void *graph, void *stream)
{
    CUresult (*begin)(CUstream, void *, const void *, const void *, size_t, int);
    *(void **)&begin = fake_function("cuStreamBeginCaptureToGraph");
    push();
    assert_int_equal(begin(stream, graph, NULL, NULL, 0, 0), CUDA_SUCCESS);
    pop();
}

void wait_for_stream(void *stream, void *other)
{
    CUresult (*create_event)(CUevent *, unsigned), (*record)(CUevent, CUstream);
    CUresult (*wait)(CUstream, CUevent, unsigned), (*destroy_event)(CUevent);
    CUevent event;
    *(void **)&create_event = fake_function("cuEventCreate");
    *(void **)&record = fake_function("cuEventRecord");
    *(void **)&wait = fake_function("cuStreamWaitEvent");
    *(void **)&destroy_event = fake_function("cuEventDestroy_v2");
    push();
    assert_int_equal(create_event(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    assert_int_equal(record(event, other), CUDA_SUCCESS);
    assert_int_equal(wait(stream, event, 0), CUDA_SUCCESS);
    assert_int_equal(destroy_event(event), CUDA_SUCCESS);
    pop();
}

void end_captures(void)
{
    CUresult (*synchronize)(void);
    *(void **)&synchronize = fake_function("cuCtxSynchronize");
    push();
    assert_int_equal(synchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pop();
    assert_int_equal(misuses(), 1);
}

int memory_nodes(void *graph)
{
    int (*count)(void *);
    *(void **)&count = fake_function("fake_cuda_memory_nodes");
    return count(graph);
}

int late_destructors(void)
{
    int (*destroy)(void);
    *(void **)&destroy = fake_function("fake_cuda_run_destructors");
    return destroy();
}

size_t memory_taken(void)
{
    CUresult (*ask)(size_t *, size_t *);
    size_t free_bytes, total;
    *(void **)&ask = fake_function("cuMemGetInfo_v2");
    push();
    assert_int_equal(ask(&free_bytes, &total), CUDA_SUCCESS);
    pop();
    return total - free_bytes;
}

/* ---- The library ----------------------------------------------------------------------------- */

tgl_device *open_device(const char *name)
{
    char message[512];
    tgl_device *dev;
    tgl_status status = tgl_device_open(name, NULL, &dev);
    if (status != TGL_OK) {
        tgl_last_error(message, sizeof message);
        fail_msg("%s: %s", tgl_status_name(status), message);
    }
    return dev;
}

void assert_last_error(const char *words)
{
    char text[2048];
    tgl_last_error(text, sizeof text);
    if (strstr(text, words) == NULL) fail_msg("\"%s\" is not in \"%s\"", words, text);
}

void assert_open_fails(const char *name, tgl_status expected, const char *words)
{
    tgl_device *dev;
    assert_status(tgl_device_open(name, NULL, &dev), expected);
    assert_null(dev);
    assert_last_error(words);
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
    assert_status(tgl_upload(dev, memory, host, count * sizeof *host, NULL), TGL_OK);
    free(host);
    return memory;
}

void assert_product(tgl_device *dev, const char *kernel, int m, int n, int k)
{
    const tgl_problem problem = problem_of(TGL_F32, m, n, k);
    const tgl_plan_options options = {.size = sizeof options, .kernel = kernel};
    const size_t size = (size_t)m * (size_t)n;
    tgl_plan *plan;
    assert_status(tgl_plan_create(dev, &problem, &options, &plan), TGL_OK);
    void *A = filled(dev, (size_t)m * (size_t)k, 1), *B = filled(dev, (size_t)k * (size_t)n, 2);
    void *C = filled(dev, size, -1);
    float *host = malloc(size * sizeof *host);
    assert_non_null(host);
    assert_status(tgl_plan_run(plan, 1, A, B, 0, C, NULL), TGL_OK);
    assert_status(tgl_download(dev, host, C, size * sizeof *host, NULL), TGL_OK);
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
    const tgl_problem problem = problem_of(TGL_F32, 1, 1, 0);
    float C = 0;
    assert_status(tgl_gemm(dev, &problem, 1, NULL, NULL, 0, &C, NULL), expected);
}

tgl_status plan_of_launches(tgl_device *dev, tgl_list_builder *b, tgl_plan **plan)
{
    const tgl_shape shape = {.m = 1,
                             .n = 1,
                             .k = 1,
                             .batch = 1,
                             .in_place = true,
                             .type_a = TGL_F32,
                             .type_b = TGL_F32,
                             .type_c = TGL_F32,
                             .type_d = TGL_F32,
                             .type_accumulate = TGL_F32,
                             .lda = 1,
                             .ldb = 1,
                             .ldc = 1,
                             .ldd = 1};
    assert_status(tgl_list_end(b), TGL_OK);
    return tgl_plan_of_list(dev, &shape, b->list, plan);
}
