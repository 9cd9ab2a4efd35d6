/* SPDX-License-Identifier: Apache-2.0
 *
 * An open CUDA device, and what the files of this backend share.
 *
 * Everything here is fixed once the device is open, but the list of modules (under its lock) and
 * `is_lost`. So many threads may work on one device.
 */
#ifndef TGL_CUDA_STATE_H
#define TGL_CUDA_STATE_H

#include "cache.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "device.h"
#include "plan/chips.h"
#include "plan/registry.h"

/* What the driver says about the chip. */
typedef struct tgl_chip {
    char name[128];
    int capability; /* 90 for 9.0 */
    int multiprocessors;
    int clock_khz, memory_clock_khz, memory_bus_bits;
    int l2_bytes, shared_bytes_per_sm, shared_bytes_per_block, registers_per_sm, threads_per_sm;
    size_t memory_bytes;
    int driver_version;   /* 1000*major + 10*minor of the newest CUDA that it serves */
    tgl_chip_facts facts; /* the same, as the planner wants it */
} tgl_chip;

/* A compiled kernel in the device's memory. It stays until the device is closed. */
typedef struct tgl_module {
    struct tgl_module *next;
    tgl_kernel kernel; /* a copy, with its own */
    char *defines, *expression;
    bool is_ready; /* else a thread is at it, and nothing below counts */
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
    CUcontext context; /* the primary one, which cudart and other libraries use too */
    tgl_chip chip;
    bool has_extended_launch; /* clusters, and launches that overlap, also in graphs */
    tgl_arch arch;
    atomic_bool is_lost;

    pthread_mutex_t module_lock;
    pthread_cond_t module_change; /* one is ready, or has failed */
    tgl_module *modules;

    tgl_property properties[TGL_CUDA_PROPERTIES];
    int property_count;
} tgl_cuda;

/* Makes the device's context current if it is not. Each success is followed by one
 * tgl_cuda_leave(), which leaves the caller's context as it was. Fails on a lost device. */
typedef struct tgl_cuda_scope {
    const tgl_driver *driver;
    bool is_pushed;
} tgl_cuda_scope;
tgl_status tgl_cuda_enter(tgl_device *dev, tgl_cuda_scope *scope);
void tgl_cuda_leave(tgl_cuda_scope *scope);

/* The status of a driver call, with its sentence recorded on the device. `what`: the attempt, as in
 * "launching ladder/naive". An error after which the context cannot be used marks the device lost.
 */
tgl_status tgl_cuda_check(tgl_device *dev, CUresult result, const char *what);

/* chip.c */
tgl_status tgl_cuda_read_chip(tgl_device *dev);
/* What launches may ask for, and with it the planner's facts: by the driver, and by what is
 * compiled for, since code for older chips knows neither clusters nor launches that overlap. */
void tgl_cuda_choose_launches(tgl_cuda *cuda);
void tgl_cuda_list_properties(tgl_cuda *cuda);

/* module.c: the kernel, compiled and loaded, from memory, disk or the compiler. The context is
 * current. TGL_COMPILE, TGL_NO_MEMORY, TGL_DRIVER. */
tgl_status tgl_cuda_load(tgl_device *dev, const tgl_kernel *kernel, const tgl_module **module);
void tgl_cuda_unload_all(tgl_cuda *cuda);

/* plan.c */
tgl_status tgl_cuda_prepare(tgl_plan *plan, const tgl_plan_options *options, void *stream);
void tgl_cuda_unprepare(tgl_plan *plan);
tgl_status tgl_cuda_run(const tgl_plan *plan, const tgl_run *run, void *stream);
size_t tgl_cuda_explain(const tgl_plan *plan, char *text, size_t size);

/* measure.c */
tgl_status tgl_cuda_measure(tgl_device *dev, tgl_ceiling ceiling, double *value);

#endif
