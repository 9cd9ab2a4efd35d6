/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend: opens and closes devices, allocates and copies memory, and times with events.
 */
#include "cuda/arena.h"
#include "cuda/cuda_state.h"
#include "cuda/graph_memory.h"
#include "cuda/kernel_archive.h"
#include "cuda/staging.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Open and close -------------------------------------------------------------------------- */

/* Finds the GPU with number `index`. */
static tgl_status find_device(tgl_device *dev, int index)
{
    tgl_cuda *cuda = dev->state;
    int count = 0;
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuDeviceGetCount(&count), "counting CUDA devices"));
    if (index >= count)
        return tgl_fail(TGL_NO_DEVICE, "there is no cuda:%d; this machine has %d CUDA device%s",
                        index, count, count == 1 ? "" : "s");
    return tgl_cuda_check(dev, cuda->driver.cuDeviceGet(&cuda->device, index),
                          "opening the CUDA device");
}

/* Uses the calling thread's context and the GPU of that context, and sets *index to the GPU's
 * number. If the caller gave a number in *index, it must be the number of that GPU. */
static tgl_status use_current_context(tgl_device *dev, int *index)
{
    tgl_cuda *cuda = dev->state;
    const int given = *index;
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuCtxGetCurrent(&cuda->context),
                           "asking for the current context"));
    if (cuda->context == NULL)
        return tgl_fail(TGL_BAD_ARGUMENT,
                        "options.current_context is 1, but no CUDA context is current in this "
                        "thread");
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuCtxGetDevice(&cuda->device),
                           "asking for the device of the current context"));
    CUdevice device;
    for (*index = 0;; ++*index) {
        TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuDeviceGet(&device, *index),
                               "finding the device of the current context"));
        if (device == cuda->device) break;
    }
    if (!dev->is_numbered || given == *index) return TGL_OK;
    return tgl_fail(TGL_BAD_ARGUMENT,
                    "options.current_context is 1, but the current context belongs to cuda:%d, not "
                    "to cuda:%d",
                    *index, given);
}

/* Opens NVRTC and the archive of kernels, and chooses the architecture of the code. Fails only if
 * there is neither a usable NVRTC nor an archive with kernels. */
static tgl_status find_code(tgl_cuda *cuda)
{
    const int capability = cuda->facts.capability, driver = cuda->facts.driver_version;
    tgl_status found = tgl_nvrtc_open(&cuda->nvrtc);
    if (found == TGL_OK) found = tgl_nvrtc_choose_arch(&cuda->nvrtc, capability, &cuda->arch);
    if (found != TGL_OK) {
        snprintf(cuda->why_no_nvrtc, sizeof cuda->why_no_nvrtc, "%s", tgl_error());
        tgl_nvrtc_close(&cuda->nvrtc);
        cuda->arch = tgl_nvrtc_arch_name(NULL, capability);
    }
    cuda->archive = tgl_archive_open(cuda->arch.name, driver);
    return tgl_archive_count(cuda->archive) > 0 ? TGL_OK : found;
}

/* Opens the driver and the context, and creates all parts of the device. After a failure, release()
 * frees what has been opened. */
static tgl_status open_all(tgl_device *dev, int index, bool uses_current)
{
    tgl_cuda *cuda = dev->state;
    TGL_TRY(tgl_driver_open(&cuda->driver));
    if (uses_current)
        TGL_TRY(use_current_context(dev, &index));
    else
        TGL_TRY(find_device(dev, index));
    snprintf(dev->name, sizeof dev->name, "cuda:%d", index);
    TGL_TRY(tgl_cuda_read_facts(dev));
    TGL_TRY(find_code(cuda));
    tgl_cuda_make_chip(cuda);
    cuda->cache = tgl_cache_open();
    tgl_cuda_list_properties(cuda);
    cuda->modules = tgl_modules_create();
    cuda->arenas = tgl_arenas_create(cuda);
    cuda->graph_memories = tgl_graph_memories_create(cuda);
    cuda->staging = tgl_staging_create();
    if (cuda->modules == NULL || cuda->arenas == NULL || cuda->graph_memories == NULL ||
        cuda->staging == NULL)
        return tgl_fail(TGL_NO_MEMORY, "no memory for a device");
    if (uses_current) return TGL_OK;
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device),
                           "creating the device's context"));
    cuda->owns_context = true;
    return TGL_OK;
}

/* Frees all parts of the device. No work may be running. */
static void release(tgl_cuda *cuda)
{
    tgl_modules_destroy(cuda);
    tgl_arenas_destroy(cuda);
    tgl_graph_memories_destroy(cuda);
    tgl_staging_destroy(cuda);
    if (cuda->owns_context) cuda->driver.cuDevicePrimaryCtxRelease(cuda->device);
    tgl_cache_close(cuda->cache);
    tgl_archive_close(cuda->archive);
    tgl_nvrtc_close(&cuda->nvrtc);
    tgl_driver_close(&cuda->driver);
    free(cuda);
}

static tgl_status cuda_open(tgl_device *dev, int index, const tgl_device_options *options)
{
    tgl_cuda *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a device");
    atomic_init(&cuda->is_lost, false);
    dev->state = cuda;
    tgl_status status = open_all(dev, index, options->current_context != 0);
    if (status == TGL_OK) return TGL_OK;
    release(cuda);
    dev->state = NULL;
    return status;
}

/* Waits for running kernels, because their code and workspace are freed next. In a lost context all
 * calls fail. Destroying the context then frees everything. */
static void cuda_close(tgl_device *dev)
{
    tgl_cuda *cuda = dev->state;
    tgl_cuda_scope scope;
    const bool is_entered = tgl_cuda_enter_relaxed(dev, &scope) == TGL_OK;
    if (is_entered) {
        CUresult result = tgl_cuda_wait_for_work(&cuda->driver);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) result = cuda->driver.cuCtxSynchronize();
        tgl_cuda_check(dev, result, "closing the device");
    }
    tgl_modules_destroy(cuda);
    tgl_arenas_destroy(cuda);
    tgl_graph_memories_destroy(cuda);
    tgl_staging_destroy(cuda);
    if (is_entered) tgl_cuda_leave(&scope);
    release(cuda);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void trim(tgl_device *dev)
{
    tgl_cuda_unload_unused(dev);
    tgl_arenas_trim(dev->state);
    tgl_graph_memories_trim(dev->state);
    tgl_staging_trim(dev->state);
}

/* Allocates memory. If memory is exhausted, frees the modules, workspaces and tiles (staging.h)
 * that are not in use, and tries again. */
static tgl_status cuda_alloc(tgl_device *dev, size_t bytes, void **memory)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    CUdeviceptr address = NULL;
    TGL_TRY(tgl_cuda_enter_relaxed(dev, &scope));
    CUresult result = driver->cuMemAlloc(&address, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        trim(dev);
        result = driver->cuMemAlloc(&address, bytes);
    }
    size_t free_bytes = 0, total = 0;
    if (result == CUDA_ERROR_OUT_OF_MEMORY) driver->cuMemGetInfo(&free_bytes, &total);
    tgl_cuda_leave(&scope);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return tgl_fail(TGL_NO_MEMORY, "%s has no room for %zu bytes: %zu MiB of %zu MiB are free",
                        dev->name, bytes, free_bytes >> 20, total >> 20);
    TGL_TRY(tgl_cuda_check(dev, result, "allocating memory"));
    *memory = address;
    return TGL_OK;
}

static void cuda_free(tgl_device *dev, void *memory)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    /* If the context is lost, its memory is gone, too. */
    if (tgl_cuda_enter_relaxed(dev, &scope) != TGL_OK) return;
    tgl_cuda_check(dev, driver->cuMemFree(memory), "freeing memory");
    tgl_cuda_leave(&scope);
}

/* Returns an error if the stream is being captured: the graph would access the host memory at each
 * launch, when the caller may have freed it. */
static tgl_status check_copy(tgl_device *dev, CUstream stream)
{
    bool captured;
    TGL_TRY(tgl_cuda_is_captured(dev, stream, &captured));
    if (!captured) return TGL_OK;
    return tgl_fail(TGL_UNSUPPORTED,
                    "the stream is being captured, and a graph cannot copy to or from memory of "
                    "the host that may be gone");
}

/* Copies between host and device memory. is_upload: dst is device memory; otherwise src is device
 * memory. */
static tgl_status copy(tgl_device *dev, void *dst, const void *src, size_t bytes, bool is_upload,
                       CUstream stream)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter_relaxed(dev, &scope));
    tgl_status status = check_copy(dev, stream);
    if (status == TGL_OK) {
        CUresult result = is_upload ? driver->cuMemcpyHtoDAsync(dst, src, bytes, stream)
                                    : driver->cuMemcpyDtoHAsync(dst, src, bytes, stream);
        if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(stream);
        status = tgl_cuda_check(dev, result,
                                is_upload ? "copying to the device" : "copying from the device");
    }
    tgl_cuda_leave(&scope);
    return status;
}

static tgl_status cuda_upload(tgl_device *dev, void *dst, const void *src, size_t bytes,
                              void *stream)
{
    return copy(dev, dst, src, bytes, true, stream);
}

static tgl_status cuda_download(tgl_device *dev, void *dst, const void *src, size_t bytes,
                                void *stream)
{
    return copy(dev, dst, src, bytes, false, stream);
}

static tgl_status cuda_sync(tgl_device *dev)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter_relaxed(dev, &scope));
    tgl_status status = tgl_cuda_check(dev, driver->cuCtxSynchronize(), "waiting for the device");
    tgl_cuda_leave(&scope);
    return status;
}

static void cuda_trim(tgl_device *dev)
{
    tgl_cuda_scope scope;
    if (tgl_cuda_enter_relaxed(dev, &scope) != TGL_OK) return;
    trim(dev);
    tgl_cuda_leave(&scope);
}

/* ---- Names and properties -------------------------------------------------------------------- */

static const tgl_chip *cuda_chip(const tgl_device *dev)
{
    return &((const tgl_cuda *)dev->state)->chip;
}

static int cuda_property(const tgl_device *dev, int index, const char **key, const char **value)
{
    const tgl_cuda *cuda = dev->state;
    if (index >= cuda->property_count) return cuda->property_count;
    *key = cuda->properties[index].key;
    *value = cuda->properties[index].value;
    return cuda->property_count;
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
    if (events == NULL) return tgl_fail(TGL_NO_MEMORY, "no memory for a timer");
    tgl_status status = tgl_cuda_enter_relaxed(dev, &scope);
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
    if (tgl_cuda_enter_relaxed(timer->dev, &scope) == TGL_OK) {
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
    TGL_TRY(tgl_cuda_enter_relaxed(timer->dev, &scope));
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
    TGL_TRY(tgl_cuda_enter_relaxed(timer->dev, &scope));
    CUresult result = driver->cuEventRecord(events->stop, stream);
    if (result == CUDA_SUCCESS) result = driver->cuEventSynchronize(events->stop);
    if (result == CUDA_SUCCESS)
        result = driver->cuEventElapsedTime(&milliseconds, events->start, events->stop);
    tgl_status status = tgl_cuda_check(timer->dev, result, "timing");
    tgl_cuda_leave(&scope);
    if (status == TGL_OK) *seconds = 1e-3 * (double)milliseconds;
    return status;
}

static tgl_status cuda_timer_passed(const tgl_timer *timer, int *passed)
{
    const tgl_driver *driver = &((tgl_cuda *)timer->dev->state)->driver;
    const event_pair *events = timer->state;
    tgl_cuda_scope scope;
    TGL_TRY(tgl_cuda_enter_relaxed(timer->dev, &scope));
    const CUresult result = driver->cuEventQuery(events->start);
    tgl_status status = TGL_OK;
    *passed = result != CUDA_ERROR_NOT_READY;
    if (*passed) status = tgl_cuda_check(timer->dev, result, "asking for the end of work");
    tgl_cuda_leave(&scope);
    return status;
}

const tgl_backend tgl_cuda_backend = {
    .name = "cuda",
    .stack = 256 << 10, /* bytes of stack for opening and planning; a guess, because the driver and
                           NVRTC do not document what they need */
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .sync = cuda_sync,
    .trim = cuda_trim,
    .chip = cuda_chip,
    .prepare = tgl_cuda_prepare,
    .unprepare = tgl_cuda_unprepare,
    .run = tgl_cuda_run,
    .run_host = tgl_cuda_run_host,
    .explain = tgl_cuda_explain,
    .property = cuda_property,
    .number = tgl_cuda_number,
    .measure = tgl_cuda_measure,
    .trials = &tgl_cuda_trials,
    .timer_create = cuda_timer_create,
    .timer_destroy = cuda_timer_destroy,
    .timer_start = cuda_timer_start,
    .timer_stop = cuda_timer_stop,
    .timer_passed = cuda_timer_passed,
};
