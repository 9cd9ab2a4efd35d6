/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads libcuda and finds its functions.
 */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY(member, name, optional)                                                              \
    {                                                                                              \
        offsetof(tgl_driver, member), name, optional                                               \
    }

/* Columns: the member of tgl_driver, the name in libcuda, whether it is optional. */
static const struct {
    size_t offset;
    const char *name;
    bool is_optional;
} functions[] = {
    ENTRY(cuInit, "cuInit", false),
    ENTRY(cuDriverGetVersion, "cuDriverGetVersion", false),
    ENTRY(cuGetErrorName, "cuGetErrorName", false),
    ENTRY(cuGetErrorString, "cuGetErrorString", false),
    ENTRY(cuDeviceGetCount, "cuDeviceGetCount", false),
    ENTRY(cuDeviceGet, "cuDeviceGet", false),
    ENTRY(cuDeviceGetName, "cuDeviceGetName", false),
    ENTRY(cuDeviceGetAttribute, "cuDeviceGetAttribute", false),
    ENTRY(cuDeviceTotalMem, "cuDeviceTotalMem_v2", false),
    ENTRY(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", false),
    ENTRY(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", false),
    ENTRY(cuCtxGetCurrent, "cuCtxGetCurrent", false),
    ENTRY(cuCtxPushCurrent, "cuCtxPushCurrent_v2", false),
    ENTRY(cuCtxPopCurrent, "cuCtxPopCurrent_v2", false),
    ENTRY(cuCtxGetDevice, "cuCtxGetDevice", false),
    ENTRY(cuCtxSynchronize, "cuCtxSynchronize", false),
    ENTRY(cuMemAlloc, "cuMemAlloc_v2", false),
    ENTRY(cuMemFree, "cuMemFree_v2", false),
    ENTRY(cuMemGetInfo, "cuMemGetInfo_v2", false),
    ENTRY(cuMemAllocAsync, "cuMemAllocAsync", true),
    ENTRY(cuMemFreeAsync, "cuMemFreeAsync", true),
    ENTRY(cuMemHostAlloc, "cuMemHostAlloc", false),
    ENTRY(cuMemFreeHost, "cuMemFreeHost", false),
    ENTRY(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", false),
    ENTRY(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", false),
    ENTRY(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", false),
    ENTRY(cuMemsetD8Async, "cuMemsetD8Async", false),
    ENTRY(cuModuleLoadData, "cuModuleLoadData", false),
    ENTRY(cuModuleUnload, "cuModuleUnload", false),
    ENTRY(cuModuleGetFunction, "cuModuleGetFunction", false),
    ENTRY(cuFuncGetAttribute, "cuFuncGetAttribute", false),
    ENTRY(cuFuncSetAttribute, "cuFuncSetAttribute", false),
    ENTRY(cuFuncLoad, "cuFuncLoad", true),
    ENTRY(cuFuncGetParamInfo, "cuFuncGetParamInfo", true),
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
          "cuOccupancyMaxActiveBlocksPerMultiprocessor", false),
    ENTRY(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", true),
    ENTRY(cuLaunchKernel, "cuLaunchKernel", false),
    ENTRY(cuLaunchKernelEx, "cuLaunchKernelEx", true),
    ENTRY(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", true),
    ENTRY(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", false),
    ENTRY(cuStreamCreate, "cuStreamCreate", false),
    ENTRY(cuStreamDestroy, "cuStreamDestroy_v2", false),
    ENTRY(cuStreamGetId, "cuStreamGetId", true),
    ENTRY(cuStreamSynchronize, "cuStreamSynchronize", false),
    ENTRY(cuStreamWaitEvent, "cuStreamWaitEvent", false),
    ENTRY(cuStreamIsCapturing, "cuStreamIsCapturing", false),
    ENTRY(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2", true),
    ENTRY(cuUserObjectCreate, "cuUserObjectCreate", true),
    ENTRY(cuUserObjectRelease, "cuUserObjectRelease", true),
    ENTRY(cuGraphRetainUserObject, "cuGraphRetainUserObject", true),
    ENTRY(cuEventCreate, "cuEventCreate", false),
    ENTRY(cuEventDestroy, "cuEventDestroy_v2", false),
    ENTRY(cuEventRecord, "cuEventRecord", false),
    ENTRY(cuEventSynchronize, "cuEventSynchronize", false),
    ENTRY(cuEventQuery, "cuEventQuery", false),
    ENTRY(cuEventElapsedTime, "cuEventElapsedTime", false),
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* Sets the functions of *driver. Returns NULL, or the name of the first required function that is
 * missing. */
static const char *find_functions(tgl_driver *driver)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        void *address = dlsym(driver->handle, functions[i].name);
        if (address == NULL && !functions[i].is_optional) return functions[i].name;
        memcpy((char *)driver + functions[i].offset, &address, sizeof address);
    }
    return NULL;
}

/* Finds the functions of the open library, and initialises the driver. */
static tgl_status start(tgl_driver *driver)
{
    const char *missing = find_functions(driver);
    if (missing != NULL)
        return tgl_fail(TGL_NO_DEVICE,
                        "the NVIDIA driver is too old: it has no %s; install version 450 or later",
                        missing);
    CUresult result = driver->cuInit(0);
    if (result != CUDA_SUCCESS)
        return tgl_fail(TGL_NO_DEVICE, "no CUDA device can be used: %s (%s)",
                        tgl_driver_error_text(driver, result),
                        tgl_driver_error_name(driver, result));
    return TGL_OK;
}

tgl_status tgl_driver_open(tgl_driver *driver)
{
    const char *own = secure_getenv("TEGULA_LIBCUDA");
    if (own != NULL && own[0] == '\0') own = NULL;
    const char *path = own != NULL ? own : "libcuda.so.1";
    /* The library is never unloaded (RTLD_NODELETE), because libcuda starts threads that execute
     * its code. */
    *driver = (tgl_driver){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (driver->handle == NULL && own != NULL)
        return tgl_fail(TGL_NO_DEVICE, "TEGULA_LIBCUDA names no library that can be loaded: %s",
                        dlerror());
    if (driver->handle == NULL)
        return tgl_fail(TGL_NO_DEVICE,
                        "there is no NVIDIA driver: libcuda.so.1 was not found; install the driver "
                        "of your GPU, or use the device \"cpu\" or \"sim\"");
    tgl_status status = start(driver);
    if (status != TGL_OK) tgl_driver_close(driver);
    return status;
}

void tgl_driver_close(tgl_driver *driver)
{
    if (driver->handle != NULL) dlclose(driver->handle);
    driver->handle = NULL;
}

const char *tgl_driver_error_name(const tgl_driver *driver, CUresult error)
{
    const char *name = NULL;
    driver->cuGetErrorName(error, &name);
    return name != NULL ? name : "an error this driver has no name for";
}

const char *tgl_driver_error_text(const tgl_driver *driver, CUresult error)
{
    const char *text = NULL;
    driver->cuGetErrorString(error, &text);
    return text != NULL ? text : "no description";
}
