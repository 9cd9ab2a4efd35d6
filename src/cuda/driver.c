/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds libcuda and its functions.
 */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY(member, name, optional)                                                              \
    {                                                                                              \
        offsetof(tgl_driver, member), name, optional                                               \
    }

/* Columns: where the address goes, the name in libcuda, whether a driver may be without it. */
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
    ENTRY(cuCtxSynchronize, "cuCtxSynchronize", false),
    ENTRY(cuMemAlloc, "cuMemAlloc_v2", false),
    ENTRY(cuMemFree, "cuMemFree_v2", false),
    ENTRY(cuMemGetInfo, "cuMemGetInfo_v2", false),
    ENTRY(cuMemcpyHtoD, "cuMemcpyHtoD_v2", false),
    ENTRY(cuMemcpyDtoH, "cuMemcpyDtoH_v2", false),
    ENTRY(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", false),
    ENTRY(cuMemsetD8Async, "cuMemsetD8Async", false),
    ENTRY(cuModuleLoadData, "cuModuleLoadData", false),
    ENTRY(cuModuleUnload, "cuModuleUnload", false),
    ENTRY(cuModuleGetFunction, "cuModuleGetFunction", false),
    ENTRY(cuFuncGetAttribute, "cuFuncGetAttribute", false),
    ENTRY(cuFuncSetAttribute, "cuFuncSetAttribute", false),
    ENTRY(cuFuncLoad, "cuFuncLoad", true),
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
          "cuOccupancyMaxActiveBlocksPerMultiprocessor", false),
    ENTRY(cuLaunchKernel, "cuLaunchKernel", false),
    ENTRY(cuLaunchKernelEx, "cuLaunchKernelEx", true),
    ENTRY(cuStreamSynchronize, "cuStreamSynchronize", false),
    ENTRY(cuStreamWaitEvent, "cuStreamWaitEvent", false),
    ENTRY(cuStreamIsCapturing, "cuStreamIsCapturing", false),
    ENTRY(cuEventCreate, "cuEventCreate", false),
    ENTRY(cuEventDestroy, "cuEventDestroy_v2", false),
    ENTRY(cuEventRecord, "cuEventRecord", false),
    ENTRY(cuEventSynchronize, "cuEventSynchronize", false),
    ENTRY(cuEventElapsedTime, "cuEventElapsedTime", false),
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* libcuda starts threads of its own, so it stays in memory once loaded. */
static void *load_library(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* NULL, or the first function that the library lacks. */
static const char *find_functions(tgl_driver *driver)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        void *address = dlsym(driver->handle, functions[i].name);
        if (address == NULL && !functions[i].is_optional) return functions[i].name;
        memcpy((char *)driver + functions[i].offset, &address, sizeof address);
    }
    return NULL;
}

tgl_status tgl_driver_open(tgl_driver *driver, char *message, size_t message_size)
{
    const char *own = secure_getenv("TEGULA_LIBCUDA"), *missing;
    *driver = (tgl_driver){.handle = load_library(own != NULL ? own : "libcuda.so.1")};
    if (driver->handle == NULL) {
        if (own != NULL)
            snprintf(message, message_size, "TEGULA_LIBCUDA: %s", dlerror());
        else
            snprintf(message, message_size,
                     "there is no NVIDIA driver: libcuda.so.1 was not found; install the driver of "
                     "your GPU, or use the device \"cpu\" or \"sim\"");
        return TGL_NO_DEVICE;
    }
    if ((missing = find_functions(driver)) != NULL) {
        snprintf(message, message_size,
                 "the NVIDIA driver is too old: it has no %s; install version 450 or later",
                 missing);
    } else {
        CUresult result = driver->cuInit(0);
        if (result == CUDA_SUCCESS) return TGL_OK;
        snprintf(message, message_size, "no CUDA device can be used: %s (%s)",
                 tgl_driver_error_text(driver, result), tgl_driver_error_name(driver, result));
    }
    tgl_driver_close(driver);
    return TGL_NO_DEVICE;
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
