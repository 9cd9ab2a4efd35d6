/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda backend: open and close, contexts, errors, memory, timers.
 */
#include "cuda/state.h"
#include "plan/gemm.h"

#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_SIZE = 512 };

/* ---- Errors ---------------------------------------------------------------------------------- */

/* After these the context refuses all further work. */
static bool is_fatal(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

tgl_status tgl_cuda_check(tgl_device *dev, CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS) return TGL_OK;
    tgl_cuda *cuda = dev->state;
    const char *name = tgl_driver_error_name(&cuda->driver, result);
    const char *text = tgl_driver_error_text(&cuda->driver, result);
    if (is_fatal(result)) {
        atomic_store(&cuda->is_lost, true);
        return tgl_fail(dev, TGL_DEVICE_LOST,
                        "%s: %s (%s); a kernel faulted, and %s can now only be closed", what, text,
                        name, dev->name);
    }
    return tgl_fail(dev, result == CUDA_ERROR_OUT_OF_MEMORY ? TGL_NO_MEMORY : TGL_DRIVER,
                    "%s: %s (%s)", what, text, name);
}

/* ---- Contexts -------------------------------------------------------------------------------- */

tgl_status tgl_cuda_enter(tgl_device *dev, tgl_cuda_scope *scope)
{
    const tgl_cuda *cuda = dev->state;
    *scope = (tgl_cuda_scope){.driver = &cuda->driver};
    if (atomic_load_explicit(&cuda->is_lost, memory_order_relaxed))
        return tgl_fail(dev, TGL_DEVICE_LOST, "%s: a kernel faulted before; close the device",
                        dev->name);
    CUcontext current = NULL;
    if (cuda->driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == cuda->context)
        return TGL_OK;
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuCtxPushCurrent(cuda->context),
                           "making the device's context current"));
    scope->is_pushed = true;
    return TGL_OK;
}

void tgl_cuda_leave(tgl_cuda_scope *scope)
{
    CUcontext ours;
    if (scope->is_pushed) scope->driver->cuCtxPopCurrent(&ours);
}

/* ---- Open and close -------------------------------------------------------------------------- */

static tgl_status open_driver(tgl_device *dev, int index)
{
    tgl_cuda *cuda = dev->state;
    char message[MESSAGE_SIZE];
    tgl_status status = tgl_driver_open(&cuda->driver, message, sizeof message);
    if (status != TGL_OK) return tgl_fail(dev, status, "%s", message);
    int count = 0;
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuDeviceGetCount(&count), "counting CUDA devices"));
    if (index >= count)
        return tgl_fail(dev, TGL_NO_DEVICE,
                        "there is no cuda:%d; this machine has %d CUDA device%s", index, count,
                        count == 1 ? "" : "s");
    return tgl_cuda_check(dev, cuda->driver.cuDeviceGet(&cuda->device, index),
                          "opening the CUDA device");
}

static tgl_status open_compiler(tgl_device *dev)
{
    tgl_cuda *cuda = dev->state;
    char message[MESSAGE_SIZE];
    tgl_status status = tgl_nvrtc_open(&cuda->nvrtc, message, sizeof message);
    if (status != TGL_OK) return tgl_fail(dev, status, "%s", message);
    if (tgl_nvrtc_choose_arch(&cuda->nvrtc, cuda->chip.capability, &cuda->arch) != TGL_OK)
        return tgl_fail(dev, TGL_NO_COMPILER,
                        "NVRTC %d.%d no longer compiles for compute capability %d.%d; install an "
                        "older one and name it in TEGULA_NVRTC",
                        cuda->nvrtc.version / 1000, cuda->nvrtc.version / 10 % 100,
                        cuda->chip.capability / 10, cuda->chip.capability % 10);
    return TGL_OK;
}

/* Everything in its order; what a failure leaves behind, release() finds. */
static tgl_status open_all(tgl_device *dev, int index)
{
    tgl_cuda *cuda = dev->state;
    TGL_TRY(open_driver(dev, index));
    snprintf(dev->name, sizeof dev->name, "cuda:%d", index);
    TGL_TRY(tgl_cuda_read_chip(dev));
    TGL_TRY(open_compiler(dev));
    tgl_cuda_choose_launches(cuda);
    cuda->cache = tgl_cache_open();
    tgl_cuda_list_properties(cuda);
    CUcontext context;
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuDevicePrimaryCtxRetain(&context, cuda->device),
                           "creating the device's context"));
    cuda->context = context;
    return TGL_OK;
}

static void release(tgl_cuda *cuda)
{
    if (cuda->context != NULL) cuda->driver.cuDevicePrimaryCtxRelease(cuda->device);
    tgl_cache_close(cuda->cache);
    tgl_nvrtc_close(&cuda->nvrtc);
    tgl_driver_close(&cuda->driver);
    pthread_cond_destroy(&cuda->module_change);
    pthread_mutex_destroy(&cuda->module_lock);
    free(cuda);
}

static tgl_status cuda_open(tgl_device *dev, int index, const tgl_device_options *options)
{
    (void)options;
    tgl_cuda *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a device");
    pthread_mutex_init(&cuda->module_lock, NULL);
    pthread_cond_init(&cuda->module_change, NULL);
    atomic_init(&cuda->is_lost, false);
    dev->state = cuda;
    tgl_status status = open_all(dev, index);
    if (status == TGL_OK) return TGL_OK;
    release(cuda);
    dev->state = NULL;
    return status;
}

/* A lost context refuses to unload modules too; releasing it frees them. */
static void cuda_close(tgl_device *dev)
{
    tgl_cuda *cuda = dev->state;
    tgl_cuda_scope scope;
    if (tgl_cuda_enter(dev, &scope) == TGL_OK) {
        tgl_cuda_unload_all(cuda);
        tgl_cuda_leave(&scope);
    } else {
        tgl_cuda_unload_all(cuda);
    }
    release(cuda);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tgl_status cuda_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    CUdeviceptr address = NULL;
    TGL_TRY(tgl_cuda_enter(dev, &scope));
    CUresult result = driver->cuMemAlloc(&address, bytes);
    size_t free_bytes = 0, total = 0;
    if (result == CUDA_ERROR_OUT_OF_MEMORY) driver->cuMemGetInfo(&free_bytes, &total);
    tgl_cuda_leave(&scope);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return tgl_fail(dev, TGL_NO_MEMORY,
                        "%s has no room for %zu bytes: %zu MiB of %zu MiB are free", dev->name,
                        bytes, free_bytes >> 20, total >> 20);
    TGL_TRY(tgl_cuda_check(dev, result, "allocating memory"));
    *memory = address;
    return TGL_OK;
}

static void cuda_free(tgl_device *dev, void *memory)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    if (tgl_cuda_enter(dev, &scope) != TGL_OK) return; /* gone with the context */
    tgl_cuda_check(dev, driver->cuMemFree(memory), "freeing memory");
    tgl_cuda_leave(&scope);
}

/* Pageable memory may still be on its way when cuMemcpyHtoD() returns, hence the last wait. */
static tgl_status upload(tgl_device *dev, const tgl_driver *driver, void *dst, const void *src,
                         size_t bytes)
{
    TGL_TRY(tgl_cuda_check(dev, driver->cuCtxSynchronize(), "waiting for the device"));
    TGL_TRY(tgl_cuda_check(dev, driver->cuMemcpyHtoD(dst, src, bytes), "copying to the device"));
    return tgl_cuda_check(dev, driver->cuStreamSynchronize(NULL), "copying to the device");
}

static tgl_status cuda_upload(tgl_device *dev, void *dst, const void *src, size_t bytes)
{
    const tgl_cuda *cuda = dev->state;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(dev, &scope));
    tgl_status status = upload(dev, &cuda->driver, dst, src, bytes);
    tgl_cuda_leave(&scope);
    return status;
}

static tgl_status cuda_download(tgl_device *dev, void *dst, const void *src, size_t bytes)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(dev, &scope));
    tgl_status status = tgl_cuda_check(dev, driver->cuCtxSynchronize(), "waiting for the device");
    if (status == TGL_OK)
        status =
            tgl_cuda_check(dev, driver->cuMemcpyDtoH(dst, src, bytes), "copying from the device");
    tgl_cuda_leave(&scope);
    return status;
}

static tgl_status cuda_sync(tgl_device *dev)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(dev, &scope));
    tgl_status status = tgl_cuda_check(dev, driver->cuCtxSynchronize(), "waiting for the device");
    tgl_cuda_leave(&scope);
    return status;
}

/* ---- Names and properties -------------------------------------------------------------------- */

static const char *cuda_kernel_name(const tgl_device *dev, int index)
{
    (void)dev;
    return tgl_gpu_kernel_name(index);
}

static tgl_status cuda_property(const tgl_device *dev, int index, const char **key,
                                const char **value)
{
    const tgl_cuda *cuda = dev->state;
    if (index >= cuda->property_count) return TGL_BAD_ARGUMENT;
    *key = cuda->properties[index].key;
    *value = cuda->properties[index].value;
    return TGL_OK;
}

/* ---- Timers ---------------------------------------------------------------------------------- */

typedef struct event_pair {
    CUevent start, stop;
} event_pair;

static tgl_status cuda_timer_create(tgl_timer *timer)
{
    tgl_device *dev = timer->dev;
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    event_pair *events = calloc(1, sizeof *events);
    if (events == NULL) return tgl_fail(dev, TGL_NO_MEMORY, "no memory for a timer");
    tgl_status status = tgl_cuda_enter(dev, &scope);
    if (status == TGL_OK) {
        CUresult result = driver->cuEventCreate(&events->start, CU_EVENT_DEFAULT);
        if (result == CUDA_SUCCESS) {
            result = driver->cuEventCreate(&events->stop, CU_EVENT_DEFAULT);
            if (result != CUDA_SUCCESS) driver->cuEventDestroy(events->start);
        }
        status = tgl_cuda_check(dev, result, "creating a timer");
        tgl_cuda_leave(&scope);
    }
    if (status == TGL_OK)
        timer->state = events;
    else
        free(events);
    return status;
}

static void cuda_timer_destroy(tgl_timer *timer)
{
    const tgl_driver *driver = &((tgl_cuda *)timer->dev->state)->driver;
    event_pair *events = timer->state;
    tgl_cuda_scope scope;
    if (tgl_cuda_enter(timer->dev, &scope) == TGL_OK) {
        driver->cuEventDestroy(events->start);
        driver->cuEventDestroy(events->stop);
        tgl_cuda_leave(&scope);
    }
    free(events);
}

static tgl_status cuda_timer_start(tgl_timer *timer, void *stream)
{
    const tgl_driver *driver = &((tgl_cuda *)timer->dev->state)->driver;
    const event_pair *events = timer->state;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(timer->dev, &scope));
    tgl_status status =
        tgl_cuda_check(timer->dev, driver->cuEventRecord(events->start, stream), "timing");
    tgl_cuda_leave(&scope);
    return status;
}

static tgl_status cuda_timer_stop(tgl_timer *timer, void *stream, double *seconds)
{
    const tgl_driver *driver = &((tgl_cuda *)timer->dev->state)->driver;
    const event_pair *events = timer->state;
    float milliseconds = 0;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter(timer->dev, &scope));
    CUresult result = driver->cuEventRecord(events->stop, stream);
    if (result == CUDA_SUCCESS) result = driver->cuEventSynchronize(events->stop);
    if (result == CUDA_SUCCESS)
        result = driver->cuEventElapsedTime(&milliseconds, events->start, events->stop);
    tgl_status status = tgl_cuda_check(timer->dev, result, "timing");
    tgl_cuda_leave(&scope);
    if (status == TGL_OK) *seconds = 1e-3 * (double)milliseconds;
    return status;
}

const tgl_backend tgl_cuda_backend = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .sync = cuda_sync,
    .prepare = tgl_cuda_prepare,
    .unprepare = tgl_cuda_unprepare,
    .run = tgl_cuda_run,
    .explain = tgl_cuda_explain,
    .kernel_name = cuda_kernel_name,
    .property = cuda_property,
    .measure = tgl_cuda_measure,
    .timer_create = cuda_timer_create,
    .timer_destroy = cuda_timer_destroy,
    .timer_start = cuda_timer_start,
    .timer_stop = cuda_timer_stop,
};
