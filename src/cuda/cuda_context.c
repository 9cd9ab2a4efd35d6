/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts driver errors to statuses, enters and leaves the device's context, and deals with stream
 * captures.
 */
#include "cuda/cuda_state.h"

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Whether all further calls in the context fail after this error. */
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
        return tgl_fail(TGL_DEVICE_LOST,
                        "%s: %s (%s); a kernel faulted, and %s can now only be closed", what, text,
                        name, dev->name);
    }
    return tgl_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? TGL_NO_MEMORY : TGL_DRIVER, "%s: %s (%s)",
                    what, text, name);
}

/* ---- Contexts and captures ------------------------------------------------------------------- */

tgl_status tgl_cuda_enter(tgl_device *dev, tgl_cuda_scope *scope)
{
    const tgl_cuda *cuda = dev->state;
    *scope = (tgl_cuda_scope){.driver = &cuda->driver};
    if (atomic_load_explicit(&cuda->is_lost, memory_order_relaxed))
        return tgl_fail(TGL_DEVICE_LOST, "%s: a kernel faulted before; close the device",
                        dev->name);
    CUcontext current = NULL;
    if (cuda->driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == cuda->context)
        return TGL_OK;
    TGL_TRY(tgl_cuda_check(dev, cuda->driver.cuCtxPushCurrent(cuda->context),
                           "making the device's context current"));
    scope->is_pushed = true;
    return TGL_OK;
}

tgl_status tgl_cuda_enter_relaxed(tgl_device *dev, tgl_cuda_scope *scope)
{
    TGL_TRY(tgl_cuda_enter(dev, scope));
    scope->capture_mode = tgl_cuda_relax_capture(scope->driver);
    scope->is_relaxed = true;
    return TGL_OK;
}

void tgl_cuda_leave(tgl_cuda_scope *scope)
{
    CUcontext ours;
    if (scope->is_relaxed) tgl_cuda_restore_capture(scope->driver, scope->capture_mode);
    if (scope->is_pushed) scope->driver->cuCtxPopCurrent(&ours);
}

int tgl_cuda_relax_capture(const tgl_driver *driver)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    driver->cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

void tgl_cuda_restore_capture(const tgl_driver *driver, int mode)
{
    driver->cuThreadExchangeStreamCaptureMode(&mode);
}

/* Allocates and frees a little memory, because cuMemFree() of memory from cuMemAlloc() waits for
 * all streams of the context (CUDA C++ programming guide, "Stream Ordered Memory Allocator"). On an
 * H200 with driver 580 it waits whatever the size of the memory. Unlike cuCtxSynchronize(),
 * cuMemFree() does not invalidate a capture in another thread. */
CUresult tgl_cuda_wait_for_work(const tgl_driver *driver)
{
    CUdeviceptr memory;
    const int mode = tgl_cuda_relax_capture(driver);
    CUresult result = driver->cuMemAlloc(&memory, 1);
    if (result == CUDA_SUCCESS) result = driver->cuMemFree(memory);
    tgl_cuda_restore_capture(driver, mode);
    return result;
}

tgl_status tgl_cuda_is_captured(tgl_device *dev, CUstream stream, bool *captured)
{
    const tgl_driver *driver = &((tgl_cuda *)dev->state)->driver;
    int status = 0;
    CUresult result = driver->cuStreamIsCapturing(stream, &status);
    *captured = status != 0;
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return tgl_fail(TGL_UNSUPPORTED,
                        "the default stream cannot be used while a stream that waits for it is "
                        "being captured");
    return tgl_cuda_check(dev, result, "asking whether the stream is being captured");
}
