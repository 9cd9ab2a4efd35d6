/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads libcuda at run time.
 */
#include "gpu_driver.h"

#include "dist_error.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY(member, name)                                                                        \
    {                                                                                              \
        offsetof(gpu_driver, member), name                                                         \
    }

static const library_entry table[] = {
    ENTRY(cuInit, "cuInit"),
    ENTRY(cuGetErrorName, "cuGetErrorName"),
    ENTRY(cuDeviceGet, "cuDeviceGet"),
    ENTRY(cuDeviceGetUuid, "cuDeviceGetUuid"),
    ENTRY(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"),
    ENTRY(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2"),
    ENTRY(cuCtxPushCurrent, "cuCtxPushCurrent_v2"),
    ENTRY(cuCtxPopCurrent, "cuCtxPopCurrent_v2"),
    ENTRY(cuMemAlloc, "cuMemAlloc_v2"),
    ENTRY(cuMemFree, "cuMemFree_v2"),
    ENTRY(cuMemHostAlloc, "cuMemHostAlloc"),
    ENTRY(cuMemFreeHost, "cuMemFreeHost"),
    ENTRY(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2"),
    ENTRY(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2"),
    ENTRY(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2"),
    ENTRY(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2"),
    ENTRY(cuMemsetD32Async, "cuMemsetD32Async"),
    ENTRY(cuStreamCreateWithPriority, "cuStreamCreateWithPriority"),
    ENTRY(cuStreamDestroy, "cuStreamDestroy_v2"),
    ENTRY(cuStreamQuery, "cuStreamQuery"),
    ENTRY(cuStreamIsCapturing, "cuStreamIsCapturing"),
    ENTRY(cuStreamWaitEvent, "cuStreamWaitEvent"),
    ENTRY(cuStreamBatchMemOp, "cuStreamBatchMemOp_v2"), /* exported since CUDA 11.7 */
    ENTRY(cuStreamWriteValue32, "cuStreamWriteValue32_v2"),
    ENTRY(cuEventCreate, "cuEventCreate"),
    ENTRY(cuEventDestroy, "cuEventDestroy_v2"),
    ENTRY(cuEventRecord, "cuEventRecord"),
    ENTRY(cuIpcGetMemHandle, "cuIpcGetMemHandle"),
    ENTRY(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2"),
    ENTRY(cuIpcCloseMemHandle, "cuIpcCloseMemHandle"),
    {0, NULL},
};

const char *library_find(void *library, const library_entry *entries, void *functions)
{
    for (const library_entry *e = entries; e->name != NULL; e++) {
        void *address = dlsym(library, e->name);
        if (address == NULL) return e->name;
        memcpy((char *)functions + e->offset, &address, sizeof address);
    }
    return NULL;
}

/* The library is never closed, because libcuda has started threads that run its code. */
tgl_status gpu_driver_open(gpu_driver *driver)
{
    const char *own = secure_getenv("TEGULA_LIBCUDA");
    void *library = dlopen(own != NULL && own[0] != '\0' ? own : "libcuda.so.1",
                           RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL)
        return dist_fail(TGL_NO_DEVICE, "there is no NVIDIA driver: %s", dlerror());
    const char *missing = library_find(library, table, driver);
    if (missing != NULL)
        return dist_fail(TGL_NO_DEVICE,
                         "the NVIDIA driver is too old: it has no %s; install version 515 or later",
                         missing);
    return gpu_driver_check(driver, driver->cuInit(0), "cuInit()");
}

tgl_status gpu_driver_check(const gpu_driver *driver, CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS) return TGL_OK;
    const char *name = NULL;
    driver->cuGetErrorName(result, &name);
    return dist_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? TGL_NO_MEMORY : TGL_DRIVER,
                     "%s failed: %s", what, name != NULL ? name : "an error without a name");
}
