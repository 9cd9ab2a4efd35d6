/* SPDX-License-Identifier: Apache-2.0
 *
 * An open CUDA device, and what the files of this backend share.
 *
 * Everything here is fixed once the device is open, but the modules, the arenas (each under locks
 * of their own) and `is_lost`. Many threads may work on one device.
 *
 * Stream captures. While any thread captures a stream in the global mode, calls of other threads
 * that allocate, free, wait or unload fail and end that capture, unless they are made in the
 * relaxed mode (cuThreadExchangeStreamCaptureMode). cuCtxSynchronize() ends the capture even then;
 * so does a call on the default stream if the captured stream is a blocking one. The library
 * therefore makes all such calls in the relaxed mode, does not use the default stream by itself,
 * and waits for the device with tgl_cuda_wait_for_work().
 */
#ifndef TGL_CUDA_STATE_H
#define TGL_CUDA_STATE_H

#include "api/backend.h"
#include "base/disk_cache.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "plan/chips.h"
#include "plan/kernel_source.h"

/* What the driver says about the GPU. */
typedef struct cuda_facts {
    char name[128];
    int capability; /* 90 for 9.0 */
    int sms;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    int l2_bytes, shared_bytes_per_sm, shared_bytes_per_block, registers_per_sm, threads_per_sm;
    size_t memory_bytes;
    int driver_version; /* 1000*major + 10*minor of the newest CUDA that it serves */
} cuda_facts;

/* A compiled kernel in the device's memory. */
typedef struct tgl_module {
    struct tgl_module *next; /* in its bucket */
    tgl_kernel *kernel;      /* a copy */
    int users;               /* plans and threads that hold it */
    uint64_t latest_use;     /* of the table's clock */
    bool is_ready;           /* false: a thread is loading it, and nothing below counts */
    CUmodule module;
    CUfunction function;
    int registers, shared_bytes, local_bytes; /* static shared memory */
    int dynamic_shared;                       /* bytes that launches may ask for; 0: the usual */
    bool from_cache;                          /* the disk cache had it */
    double seconds;                           /* to compile and load it */
} tgl_module;

typedef struct tgl_property {
    const char *key;
    char value[160];
} tgl_property;

enum { TGL_CUDA_PROPERTIES = 24 };

typedef struct tgl_cuda {
    tgl_driver driver;
    tgl_nvrtc nvrtc;
    tgl_cache *cache;
    CUdevice device;
    CUcontext
        context; /* the primary one, which cudart and other libraries use too, or the caller's */
    bool owns_context; /* it is the primary one, which the device has retained */
    cuda_facts facts;
    tgl_chip chip;            /* the same, as the planner wants it */
    bool has_extended_launch; /* clusters, and launches that overlap, also in graphs */
    bool has_async_alloc;     /* cuMemAllocAsync() */
    tgl_arch arch;
    atomic_bool is_lost;

    struct tgl_modules *modules;
    struct tgl_arenas *arenas;

    tgl_property properties[TGL_CUDA_PROPERTIES];
    int property_count;
} tgl_cuda;

/* ---- cuda_context.c -------------------------------------------------------------------------- */

/* Makes the device's context current if it is not. Each success is followed by one
 * tgl_cuda_leave(), which leaves the caller's context and capture mode as they were. Fails on a
 * lost device. tgl_cuda_enter_relaxed() sets the relaxed capture mode as well. */
typedef struct tgl_cuda_scope {
    const tgl_driver *driver;
    bool is_pushed;
    bool is_relaxed;
    int capture_mode; /* the caller's */
} tgl_cuda_scope;
tgl_status tgl_cuda_enter(tgl_device *dev, tgl_cuda_scope *scope);
tgl_status tgl_cuda_enter_relaxed(tgl_device *dev, tgl_cuda_scope *scope);
void tgl_cuda_leave(tgl_cuda_scope *scope);

/* Sets the calling thread's relaxed capture mode and returns the mode before, for restore. */
int tgl_cuda_relax_capture(const tgl_driver *driver);
void tgl_cuda_restore_capture(const tgl_driver *driver, int mode);

/* The status of a driver call, with its sentence. `what`: the attempt, as in "launching
 * ladder/naive". An error after which the context cannot be used marks the device lost. */
tgl_status tgl_cuda_check(tgl_device *dev, CUresult result, const char *what);

/* Waits for all work of the context, without ending captures that are under way. The context is
 * current. */
CUresult tgl_cuda_wait_for_work(const tgl_driver *driver);

/* *captured: whether what the stream is given becomes part of a graph. Fails for the default stream
 * while it must not be used, as a blocking stream is being captured. */
tgl_status tgl_cuda_is_captured(tgl_device *dev, CUstream stream, bool *captured);

/* ---- cuda_chip.c ----------------------------------------------------------------------------- */

tgl_status tgl_cuda_read_facts(tgl_device *dev);

/* What launches may ask for, and with it the planner's chip: by the driver, and by what is compiled
 * for, since code for older chips has neither clusters nor launches that overlap. */
void tgl_cuda_make_chip(tgl_cuda *cuda);
void tgl_cuda_list_properties(tgl_cuda *cuda);
double tgl_cuda_number(const tgl_device *dev, tgl_number number);

/* ---- cuda_modules.c -------------------------------------------------------------------------- */

/* NULL: no memory. */
struct tgl_modules *tgl_modules_create(void);

/* Unloads all; no work is under way. NULL is destroyed silently. */
void tgl_modules_destroy(tgl_cuda *cuda);

/* The kernel, compiled and loaded, from memory, disk or the compiler, for launches with this much
 * dynamic shared memory. The caller gives it back with tgl_cuda_release(). The context is current,
 * the capture mode relaxed. TGL_COMPILE, TGL_NO_MEMORY, TGL_DRIVER, TGL_UNSUPPORTED. */
tgl_status tgl_cuda_load(tgl_device *dev, const tgl_kernel *kernel, int dynamic_shared,
                         const tgl_module **module);
void tgl_cuda_release(tgl_device *dev, const tgl_module *module);

/* Unloads all modules that no plan uses. The context is current, the capture mode relaxed. */
void tgl_cuda_unload_unused(tgl_device *dev);

/* ---- cuda_execute.c -------------------------------------------------------------------------- */

tgl_status tgl_cuda_prepare(tgl_plan *plan, const char *kernel);
void tgl_cuda_unprepare(tgl_plan *plan);
tgl_status tgl_cuda_run(const tgl_plan *plan, const tgl_run *run, void *stream);
void tgl_cuda_explain(const tgl_plan *plan, tgl_text *out);

/* ---- cuda_measure.c -------------------------------------------------------------------------- */

tgl_status tgl_cuda_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

#endif
