/* SPDX-License-Identifier: Apache-2.0
 *
 * An open CUDA device, and the declarations that the files of this backend share.
 *
 * Several threads may use a device. Once it is open, all members are constant except `is_lost` and
 * those with their own locks: the modules (cuda_modules.c), the arenas (arena.h), the memories of
 * graphs (graph_memory.h), and the staging buffers (staging.h).
 *
 * Stream captures. While any thread captures a stream in global mode, other threads may allocate,
 * free, wait or unload only in relaxed mode (cuThreadExchangeStreamCaptureMode). Otherwise such
 * calls fail and invalidate the capture. cuCtxSynchronize() invalidates the capture even in relaxed
 * mode. A call on the default stream invalidates the capture, too, if the captured stream is a
 * blocking stream. The library therefore makes all such calls in relaxed mode and does not use the
 * default stream itself. It waits for the device with tgl_cuda_wait_for_work(), except in
 * tgl_device_sync(), and in tgl_device_close() if memory is exhausted.
 */
#ifndef TGL_CUDA_STATE_H
#define TGL_CUDA_STATE_H

#include "backend/backend.h"
#include "base/disk_cache.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "plan/chips.h"
#include "plan/kernel_source.h"
#include "plan/launch_list.h"

#include <pthread.h>

/* Properties of the GPU from the driver. */
typedef struct cuda_facts {
    char name[128];
    int capability; /* 90 for 9.0 */
    int sms;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    int l2_bytes, shared_bytes_per_sm, shared_bytes_per_block, registers_per_sm, threads_per_sm;
    size_t memory_bytes;
    int driver_version; /* newest CUDA version that the driver supports: 1000*major + 10*minor */
} cuda_facts;

/* A compiled kernel loaded on the device. */
typedef struct tgl_module {
    struct tgl_module *next; /* next module of the hash bucket */
    tgl_kernel *kernel;      /* the module's copy of the kernel's description */
    int users;               /* plans and threads that hold a reference */
    uint64_t latest_use;     /* value of tgl_modules.clock (cuda_modules.c) at the latest use */
    bool is_ready; /* false: a thread is still loading the module, and the members below are
                      undefined */
    CUmodule module;
    CUfunction function;
    int registers, shared_bytes, local_bytes; /* registers per thread; static shared memory per
                                                 block; local memory per thread */
    int dynamic_shared; /* bytes that launches may use; 0: the driver's default limit */
    const char *origin; /* how the kernel was obtained, such as "by NVRTC"; static text */
    double seconds;     /* time to compile and load it */
} tgl_module;

typedef struct tgl_property {
    const char *key;
    char value[160];
} tgl_property;

enum { TGL_CUDA_PROPERTIES = 24 };

typedef struct tgl_cuda {
    tgl_driver driver;
    tgl_nvrtc nvrtc;        /* handle NULL: only kernels of the archive run, because no NVRTC was
                               found (version 0), or because it does not compile for this GPU */
    char why_no_nvrtc[256]; /* with handle NULL: the error message */
    tgl_cache *cache;
    struct tgl_archive *archive;
    CUdevice device;
    CUcontext context; /* the primary context, which cudart and other libraries use, too; or the
                          caller's context */
    bool owns_context; /* the device has retained the primary context, and releases it */
    cuda_facts facts;
    tgl_chip chip;            /* the GPU's properties in the form that the planner uses */
    bool has_extended_launch; /* launches with clusters or programmatic dependent launch are
                                 possible, also in graphs */
    bool has_async_alloc;     /* cuMemAllocAsync() can be used */
    tgl_arch arch;
    atomic_bool is_lost;

    struct tgl_modules *modules;
    struct tgl_arenas *arenas;
    struct tgl_graph_memories *graph_memories;
    struct tgl_staging *staging; /* for products of matrices in host memory */

    tgl_property properties[TGL_CUDA_PROPERTIES];
    int property_count;
} tgl_cuda;

/* ---- cuda_context.c -------------------------------------------------------------------------- */

/* Makes the device's context current. Fails on a lost device. After each success, the caller must
 * call tgl_cuda_leave(), which restores the caller's context and capture mode.
 * tgl_cuda_enter_relaxed() also sets the relaxed capture mode. */
typedef struct tgl_cuda_scope {
    const tgl_driver *driver;
    bool is_pushed;
    bool is_relaxed;
    int capture_mode; /* capture mode of the caller */
} tgl_cuda_scope;
tgl_status tgl_cuda_enter(tgl_device *dev, tgl_cuda_scope *scope);
tgl_status tgl_cuda_enter_relaxed(tgl_device *dev, tgl_cuda_scope *scope);
void tgl_cuda_leave(tgl_cuda_scope *scope);

/* Sets the calling thread's capture mode to relaxed and returns the previous mode. */
int tgl_cuda_relax_capture(const tgl_driver *driver);
void tgl_cuda_restore_capture(const tgl_driver *driver, int mode);

/* Converts a driver error to a status and sets the error message. what: the action that failed,
 * such as "launching ladder/naive". If the context cannot be used after the error, marks the device
 * as lost. */
tgl_status tgl_cuda_check(tgl_device *dev, CUresult result, const char *what);

/* Waits for all work of the context, without invalidating stream captures. Must be called in the
 * device's context. */
CUresult tgl_cuda_wait_for_work(const tgl_driver *driver);

/* *captured := whether work in the stream becomes part of a graph. Fails for the default stream if
 * a blocking stream is being captured. */
tgl_status tgl_cuda_is_captured(tgl_device *dev, CUstream stream, bool *captured);

/* ---- cuda_chip.c ----------------------------------------------------------------------------- */

tgl_status tgl_cuda_read_facts(tgl_device *dev);

/* Sets cuda->chip and cuda->has_extended_launch. The features of the chip depend on the driver and
 * on the architecture of the compiled code: code for older chips has neither clusters nor
 * overlapping launches. */
void tgl_cuda_make_chip(tgl_cuda *cuda);
void tgl_cuda_list_properties(tgl_cuda *cuda);
double tgl_cuda_number(const tgl_device *dev, tgl_number number);

/* ---- cuda_modules.c -------------------------------------------------------------------------- */

/* Creates an empty table of modules. NULL: out of memory. */
struct tgl_modules *tgl_modules_create(void);

/* Unloads all modules. No work that uses them may be running. cuda->modules may be NULL. */
void tgl_modules_destroy(tgl_cuda *cuda);

/* Gets a kernel from the table of loaded modules, the archive, the disk cache or the compiler, and
 * loads it for launches with `dynamic_shared` bytes of dynamic shared memory per block. When the
 * kernel is no longer needed, call tgl_cuda_release(). Must be called in the device's context and
 * in relaxed capture mode. Errors: TGL_COMPILE, TGL_NO_COMPILER, TGL_NO_MEMORY, TGL_DRIVER,
 * TGL_UNSUPPORTED. */
tgl_status tgl_cuda_load(tgl_device *dev, const tgl_kernel *kernel, int dynamic_shared,
                         const tgl_module **module);
void tgl_cuda_release(tgl_device *dev, const tgl_module *module);

/* Whether a kernel is loaded or being loaded, or is in the archive or in the disk cache. */
bool tgl_cuda_is_compiled(tgl_device *dev, const tgl_kernel *kernel);

/* Unloads all modules without users. Must be called in the device's context and in relaxed capture
 * mode. */
void tgl_cuda_unload_unused(tgl_device *dev);

/* ---- load_ahead.c ---------------------------------------------------------------------------- */

/* Compiles the kernels that a list launches when all operands are aligned, on several threads. Does
 * nothing if fewer than two of the kernels need compiling. Reports no failures: if a kernel cannot
 * be compiled, its load fails later. */
void tgl_cuda_load_ahead(tgl_device *dev, const tgl_launch_list *list);

/* The same for `count` lists, also if only one kernel needs compiling. */
void tgl_cuda_load_lists(tgl_device *dev, const tgl_launch_list *lists, int count);

/* ---- cuda_execute.c -------------------------------------------------------------------------- */

tgl_status tgl_cuda_prepare(tgl_plan *plan, const char *kernel);
void tgl_cuda_unprepare(tgl_plan *plan);
tgl_status tgl_cuda_run(const tgl_plan *plan, const tgl_run *run, void *stream);
void tgl_cuda_explain(const tgl_plan *plan, tgl_text *out);

/* ---- cuda_host_product.c --------------------------------------------------------------------- */

tgl_status tgl_cuda_run_host(tgl_device *dev, struct tgl_host_product *product);

/* ---- cuda_measure.c -------------------------------------------------------------------------- */

tgl_status tgl_cuda_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

/* ---- cuda_trial.c ---------------------------------------------------------------------------- */

extern const tgl_trials tgl_cuda_trials;

#endif
