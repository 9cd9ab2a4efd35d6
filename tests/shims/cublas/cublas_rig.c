/* SPDX-License-Identifier: Apache-2.0 */
#include "cublas_rig.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

rig_seen rig;
rig_answers rig_answer = {.device = "cpu"};

static void *cublas, *cublaslt, *driver;
static pthread_mutex_t rig_lock = PTHREAD_MUTEX_INITIALIZER; /* guards rig during calls */

void rig_forget(void)
{
    rig = (rig_seen){.opened = 0};
    rig_answer = (rig_answers){.device = "cpu"};
}

/* ---- Libraries ------------------------------------------------------------------------------- */

/* Loads with RTLD_LOCAL, as Python loads modules, so that the libraries are not in the global
 * scope. */
int rig_load(const char *path_of_lt)
{
    setenv("TEGULA_LIBCUDA", FAKE_LIBCUDA, 1);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    driver = dlopen(FAKE_LIBCUDA, RTLD_NOW | RTLD_LOCAL);
    cublaslt = dlopen(path_of_lt != NULL ? path_of_lt : FAKE_LIBCUBLASLT, RTLD_NOW | RTLD_LOCAL);
    cublas = dlopen(FAKE_LIBCUBLAS, RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL || cublaslt == NULL || cublas == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        /* A real cuBLASLt of this machine may be missing, a library of the tests may not. */
        return path_of_lt != NULL && driver != NULL && cublas != NULL ? 77 : 1;
    }
    rig_use_context(0);
    return 0;
}

static void *function_of(void *library, const char *name)
{
    void *address = dlsym(library, name);
    if (address == NULL) fail_msg("%s is missing", name);
    return address;
}

void *rig_function(const char *name)
{
    return function_of(cublas, name);
}

void *rig_lt_function(const char *name)
{
    return function_of(cublaslt, name);
}

void rig_use_context(int device)
{
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*push)(void *) = (int (*)(void *))dlsym(driver, "cuCtxPushCurrent_v2");
    int (*pop)(void **) = (int (*)(void **))dlsym(driver, "cuCtxPopCurrent_v2");
    void *context;
    while (pop(&context) == 0)
        ;
    if (device >= 0 && (retain(&context, device) != 0 || push(context) != 0)) abort();
}

void rig_reset_device(int device)
{
    int (*reset)(int) = (int (*)(int))function_of(driver, "cuDevicePrimaryCtxReset_v2");
    assert_int_equal(reset(device), 0);
}

cudaStream_t rig_captured_stream(void)
{
    int (*create)(cudaStream_t *, unsigned) =
        (int (*)(cudaStream_t *, unsigned))function_of(driver, "cuStreamCreate");
    int (*begin)(cudaStream_t, int) =
        (int (*)(cudaStream_t, int))function_of(driver, "cuStreamBeginCapture_v2");
    cudaStream_t stream;
    assert_int_equal(create(&stream, 1), 0);
    assert_int_equal(begin(stream, 0), 0);
    return stream;
}

void rig_end_capture(cudaStream_t stream)
{
    int (*end)(cudaStream_t, void **) =
        (int (*)(cudaStream_t, void **))function_of(driver, "cuStreamEndCapture");
    void *graph;
    assert_int_equal(end(stream, &graph), 0);
}

recorded_call rig_take(void)
{
    return ((recorder_take_function *)rig_function("recorder_take"))();
}

recorded_call rig_take_lt(void)
{
    return ((recorder_take_function *)rig_lt_function("recorder_take"))();
}

cublasHandle_t rig_handle(void)
{
    cublasStatus_t (*create)(cublasHandle_t *) =
        (cublasStatus_t(*)(cublasHandle_t *))rig_function("cublasCreate_v2");
    cublasHandle_t handle;
    assert_int_equal(create(&handle), CUBLAS_STATUS_SUCCESS);
    return handle;
}

/* ---- Tegula's functions, which the library calls through these wrappers ---------------------- */

tgl_status __real_tgl_device_open(const char *, const tgl_device_options *, tgl_device **);
tgl_status __wrap_tgl_device_open(const char *, const tgl_device_options *, tgl_device **);
tgl_status __real_tgl_plan_create(tgl_device *, const tgl_problem *, const tgl_plan_options *,
                                  tgl_plan **);
tgl_status __wrap_tgl_plan_create(tgl_device *, const tgl_problem *, const tgl_plan_options *,
                                  tgl_plan **);
void __real_tgl_plan_destroy(tgl_plan *);
void __wrap_tgl_plan_destroy(tgl_plan *);
tgl_status __wrap_tgl_plan_peer(const tgl_plan *, double *);
tgl_status __real_tgl_plan_run_operands(const tgl_plan *, const tgl_operands *, void *);
tgl_status __wrap_tgl_plan_run_operands(const tgl_plan *, const tgl_operands *, void *);

tgl_status __wrap_tgl_device_open(const char *name, const tgl_device_options *options,
                                  tgl_device **dev)
{
    assert_string_equal(name, "cuda");
    assert_non_null(options);
    assert_int_equal(options->current_context, 1);
    rig.opened++;
    if (rig_answer.open != TGL_OK) return rig_answer.open;
    return __real_tgl_device_open(rig_answer.device, NULL, dev);
}

tgl_status __wrap_tgl_plan_create(tgl_device *dev, const tgl_problem *problem,
                                  const tgl_plan_options *options, tgl_plan **plan)
{
    pthread_mutex_lock(&rig_lock);
    rig.created++;
    rig.problem = *problem;
    rig.epilogue = options->epilogue != NULL ? *options->epilogue : (tgl_epilogue){.size = 0};
    rig.workspace_limit = options->workspace_limit;
    rig.effort = options->effort;
    pthread_mutex_unlock(&rig_lock);
    if (rig_answer.create != TGL_OK) return rig_answer.create;
    return __real_tgl_plan_create(dev, problem, options, plan);
}

void __wrap_tgl_plan_destroy(tgl_plan *plan)
{
    pthread_mutex_lock(&rig_lock);
    rig.destroyed++;
    if (plan != NULL && plan == rig.watched) rig.is_watched_gone = true;
    pthread_mutex_unlock(&rig_lock);
    __real_tgl_plan_destroy(plan);
}

tgl_status __wrap_tgl_plan_peer(const tgl_plan *plan, double *ratio)
{
    assert_non_null(plan);
    *ratio = rig_answer.peer;
    return rig_answer.peer > 0 ? TGL_OK : TGL_UNSUPPORTED;
}

static void stay_inside(void)
{
    const int inside = ++rig.inside;
    if (inside > rig.max_inside) rig.max_inside = inside;
    usleep((useconds_t)rig_answer.run_us);
    rig.inside--;
}

tgl_status __wrap_tgl_plan_run_operands(const tgl_plan *plan, const tgl_operands *operands,
                                        void *stream)
{
    if (rig_answer.run_us > 0) stay_inside();
    pthread_mutex_lock(&rig_lock);
    rig.ran++;
    rig.latest = plan;
    rig.operands = *operands;
    rig.stream = stream;
    pthread_mutex_unlock(&rig_lock);
    if (rig_answer.run != TGL_OK) return rig_answer.run;
    return rig_answer.skips_run ? TGL_OK : __real_tgl_plan_run_operands(plan, operands, stream);
}

/* ---- Random numbers -------------------------------------------------------------------------- */

uint32_t rig_random(uint64_t *seed)
{
    *seed ^= *seed >> 12, *seed ^= *seed << 25, *seed ^= *seed >> 27;
    return (uint32_t)(*seed * 0x2545f4914f6cdd1du >> 32);
}

int rig_between(uint64_t *seed, int low, int high)
{
    return low + (int)(rig_random(seed) % (uint32_t)(high - low + 1));
}
