/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the CUDA driver API that moves data between GPUs. It is declared here, and libcuda is
 * loaded at run time. src/cuda/driver.h does the same for libtegula, which is another library.
 * Types, names and values follow the public documentation of the driver API.
 */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include "tegula/dist.h"

#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef void *CUdeviceptr; /* a 64-bit integer in the documentation */
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUuuid {
    unsigned char bytes[16];
} CUuuid;
typedef struct CUipcMemHandle {
    unsigned char bytes[64];
} CUipcMemHandle;

enum { CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_READY = 600 };
enum { CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_STREAM_WAIT_VALUE_EQ = 1 };
enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };
enum { CU_MEMORYTYPE_DEVICE = 2 };

typedef struct CUmemcpy2D {
    size_t source_x, source_y;
    int source_type;
    const void *source_host;
    const void *source;
    void *source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    int target_type;
    void *target_host;
    void *target;
    void *target_array;
    size_t target_pitch;
    size_t width_bytes, height;
} CUmemcpy2D;

enum { CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1, CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2 };
typedef union CUmemoryOperation {
    struct {
        int kind;
        CUdeviceptr address;
        uint64_t value; /* only the low 32 bits are compared or written */
        unsigned flags;
    };
    uint64_t pad[6];
} CUmemoryOperation;

typedef struct gpu_driver {
    CUresult (*cuInit)(unsigned flags);
    CUresult (*cuGetErrorName)(CUresult error, const char **name);
    CUresult (*cuDeviceGet)(CUdevice *device, int ordinal);
    CUresult (*cuDeviceGetUuid)(CUuuid *uuid, CUdevice device);
    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *context, CUdevice device);
    CUresult (*cuDevicePrimaryCtxRelease)(CUdevice device);
    CUresult (*cuCtxPushCurrent)(CUcontext context);
    CUresult (*cuCtxPopCurrent)(CUcontext *context);
    CUresult (*cuMemAlloc)(CUdeviceptr *memory, size_t bytes);
    CUresult (*cuMemFree)(CUdeviceptr memory);
    CUresult (*cuMemHostAlloc)(void **memory, size_t bytes, unsigned flags);
    CUresult (*cuMemFreeHost)(void *memory);
    CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
    CUresult (*cuMemcpyDtoHAsync)(void *dst, const void *src, size_t bytes, CUstream stream);
    CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
    CUresult (*cuMemcpy2DAsync)(const CUmemcpy2D *copy, CUstream stream);
    CUresult (*cuMemsetD32Async)(CUdeviceptr dst, unsigned value, size_t count, CUstream stream);
    CUresult (*cuStreamCreateWithPriority)(CUstream *stream, unsigned flags, int priority);
    CUresult (*cuStreamDestroy)(CUstream stream);
    CUresult (*cuStreamQuery)(CUstream stream);
    CUresult (*cuStreamIsCapturing)(CUstream stream, int *status);
    CUresult (*cuStreamWaitEvent)(CUstream stream, CUevent event, unsigned flags);
    CUresult (*cuStreamBatchMemOp)(CUstream stream, unsigned count, CUmemoryOperation *operations,
                                   unsigned flags);
    CUresult (*cuStreamWriteValue32)(CUstream stream, CUdeviceptr address, uint32_t value,
                                     unsigned flags);
    CUresult (*cuEventCreate)(CUevent *event, unsigned flags);
    CUresult (*cuEventDestroy)(CUevent event);
    CUresult (*cuEventRecord)(CUevent event, CUstream stream);
    CUresult (*cuIpcGetMemHandle)(CUipcMemHandle *handle, CUdeviceptr memory);
    CUresult (*cuIpcOpenMemHandle)(CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags);
    CUresult (*cuIpcCloseMemHandle)(CUdeviceptr memory);
} gpu_driver;

/* Loads libcuda ($TEGULA_LIBCUDA, else libcuda.so.1) and finds its functions. Returns TGL_OK;
 * TGL_NO_DEVICE; the failure of cuInit(), as gpu_driver_check() converts it. */
tgl_status gpu_driver_open(gpu_driver *driver);

/* Converts a result of the driver to TGL_OK, TGL_NO_MEMORY or TGL_DRIVER. what: the call that gave
 * the result, for the error message. */
tgl_status gpu_driver_check(const gpu_driver *driver, CUresult result, const char *what);

/* An entry of a table of functions: where the address of the function is stored in a struct, and
 * its name in the library. */
typedef struct library_entry {
    size_t offset;
    const char *name;
} library_entry;

/* Looks up the functions of a table, which ends with a NULL name, in a library that dlopen() has
 * opened, and stores their addresses in the struct `functions`. Returns NULL, or the first name
 * that is missing in the library. */
const char *library_find(void *library, const library_entry *entries, void *functions);

#endif
