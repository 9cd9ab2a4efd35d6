/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the CUDA driver API that the library uses. It is declared here, so that no CUDA
 * header is needed at build time and libcuda is loaded at run time. Types, names and values follow
 * the public documentation of the driver API. The binary interface of some functions has changed
 * since CUDA 3.1. These are looked up by their versioned names (cuMemAlloc is cuMemAlloc_v2), as
 * the CUDA headers do.
 */
#ifndef TGL_CUDA_DRIVER_H
#define TGL_CUDA_DRIVER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef void *CUdeviceptr; /* documented as an integer of the same 64 bits */
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUtensorMap {
    _Alignas(64) unsigned char bytes[128];
} CUtensorMap;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_CONTAINED = 226,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
};

/* CUdevice_attribute */
enum {
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13, /* kHz */
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,       /* kHz */
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37, /* bits */
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115, /* since 11.2 */
};

/* CUfunction_attribute */
enum {
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum { CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 };
enum { CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1 };
enum { CU_GRAPH_USER_OBJECT_MOVE = 1 };

/* Entries of the array `extra` of cuLaunchKernel(), which can pass all arguments as one block of
 * bytes. */
#define CU_LAUNCH_PARAM_END            ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)

/* Tensor maps: CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion */
enum {
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
    CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = 11,
};
enum {
    CU_TENSOR_MAP_SWIZZLE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_32B = 1,
    CU_TENSOR_MAP_SWIZZLE_64B = 2,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
};
enum { CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2 };

/* CUlaunchAttribute and CUlaunchConfig, with only the attributes that the library uses. */
enum {
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};

typedef struct CUlaunchAttribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        unsigned cluster[3];
        int allows_overlap;
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned grid[3], block[3];
    unsigned dynamic_shared;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

typedef struct tgl_driver {
    void *handle;
    CUresult (*cuInit)(unsigned flags);
    CUresult (*cuDriverGetVersion)(int *version); /* 1000*major + 10*minor */
    CUresult (*cuGetErrorName)(CUresult error, const char **name);
    CUresult (*cuGetErrorString)(CUresult error, const char **text);

    CUresult (*cuDeviceGetCount)(int *count);
    CUresult (*cuDeviceGet)(CUdevice *device, int ordinal);
    CUresult (*cuDeviceGetName)(char *name, int size, CUdevice device);
    CUresult (*cuDeviceGetAttribute)(int *value, int attribute, CUdevice device);
    CUresult (*cuDeviceTotalMem)(size_t *bytes, CUdevice device);

    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *context, CUdevice device);
    CUresult (*cuDevicePrimaryCtxRelease)(CUdevice device);
    CUresult (*cuCtxGetCurrent)(CUcontext *context);
    CUresult (*cuCtxPushCurrent)(CUcontext context);
    CUresult (*cuCtxPopCurrent)(CUcontext *context);
    CUresult (*cuCtxGetDevice)(CUdevice *device);
    CUresult (*cuCtxSynchronize)(void);

    CUresult (*cuMemAlloc)(CUdeviceptr *memory, size_t bytes);
    CUresult (*cuMemFree)(CUdeviceptr memory);
    CUresult (*cuMemGetInfo)(size_t *free, size_t *total);
    CUresult (*cuMemAllocAsync)(CUdeviceptr *memory, size_t bytes,
                                CUstream stream);                    /* since 11.2, else NULL */
    CUresult (*cuMemFreeAsync)(CUdeviceptr memory, CUstream stream); /* since 11.2, else NULL */
    CUresult (*cuMemHostAlloc)(void **memory, size_t bytes, unsigned flags); /* pinned */
    CUresult (*cuMemFreeHost)(void *memory);
    CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
    CUresult (*cuMemcpyDtoHAsync)(void *dst, const void *src, size_t bytes, CUstream stream);
    CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
    CUresult (*cuMemsetD8Async)(CUdeviceptr dst, unsigned char value, size_t bytes,
                                CUstream stream);

    CUresult (*cuModuleLoadData)(CUmodule *module, const void *image);
    CUresult (*cuModuleUnload)(CUmodule module);
    CUresult (*cuModuleGetFunction)(CUfunction *function, CUmodule module, const char *name);
    CUresult (*cuFuncGetAttribute)(int *value, int attribute, CUfunction function);
    CUresult (*cuFuncSetAttribute)(CUfunction function, int attribute, int value);
    CUresult (*cuFuncLoad)(CUfunction function); /* since 12.4, else NULL */
    CUresult (*cuFuncGetParamInfo)(CUfunction function, size_t index, size_t *offset,
                                   size_t *size); /* since 12.4, else NULL */
    CUresult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, CUfunction function,
                                                            int threads, size_t dynamic_shared);
    CUresult (*cuOccupancyMaxActiveClusters)(
        int *clusters, CUfunction function,
        const CUlaunchConfig *config); /* since 11.8, else NULL */
    CUresult (*cuLaunchKernel)(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned dynamic_shared, CUstream stream,
                               void **arguments, void **extra);
    CUresult (*cuLaunchKernelEx)(const CUlaunchConfig *config, CUfunction function,
                                 void **arguments, void **extra); /* since 11.8, else NULL */

    CUresult (*cuTensorMapEncodeTiled)(CUtensorMap *map, int type, unsigned rank, void *address,
                                       const uint64_t *size, const uint64_t *stride,
                                       const unsigned *box, const unsigned *element_stride,
                                       int interleave, int swizzle, int promotion,
                                       int out_of_bounds); /* since 12.0, else NULL */

    CUresult (*cuThreadExchangeStreamCaptureMode)(int *mode);
    CUresult (*cuStreamCreate)(CUstream *stream, unsigned flags);
    CUresult (*cuStreamDestroy)(CUstream stream);
    CUresult (*cuStreamGetId)(CUstream stream, uint64_t *id); /* since 12.0, else NULL */
    CUresult (*cuStreamSynchronize)(CUstream stream);
    CUresult (*cuStreamWaitEvent)(CUstream stream, CUevent event, unsigned flags);
    CUresult (*cuStreamIsCapturing)(
        CUstream stream, int *status); /* *status is 0 if the stream is not being captured */
    /* Since 11.3, else NULL. *id is different for each capture. Pointers to results that are not
     * wanted may be NULL. */
    CUresult (*cuStreamGetCaptureInfo)(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                       const void **dependencies, size_t *dependency_count);
    CUresult (*cuUserObjectCreate)(CUuserObject *object, void *data, void (*destroy)(void *),
                                   unsigned references, unsigned flags); /* since 11.3, else NULL */
    CUresult (*cuUserObjectRelease)(CUuserObject object,
                                    unsigned references); /* since 11.3, else NULL */
    CUresult (*cuGraphRetainUserObject)(CUgraph graph, CUuserObject object, unsigned references,
                                        unsigned flags); /* since 11.3, else NULL */
    CUresult (*cuEventCreate)(CUevent *event, unsigned flags);
    CUresult (*cuEventDestroy)(CUevent event);
    CUresult (*cuEventRecord)(CUevent event, CUstream stream);
    CUresult (*cuEventSynchronize)(CUevent event);
    CUresult (*cuEventQuery)(CUevent event);
    CUresult (*cuEventElapsedTime)(float *milliseconds, CUevent start, CUevent end);
} tgl_driver;

/* Loads libcuda ($TEGULA_LIBCUDA, else libcuda.so.1), looks up its functions and calls cuInit().
 * Error: TGL_NO_DEVICE. */
tgl_status tgl_driver_open(tgl_driver *driver);
void tgl_driver_close(tgl_driver *driver);

/* The name of the error, such as "CUDA_ERROR_OUT_OF_MEMORY". Static text. */
const char *tgl_driver_error_name(const tgl_driver *driver, CUresult error);

/* The driver's description of the error. Static text. */
const char *tgl_driver_error_text(const tgl_driver *driver, CUresult error);

#endif
