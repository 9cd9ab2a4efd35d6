/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests that link the object files of libtegula_cublas.so. The fake libraries are loaded,
 * and a CUDA context of the fake driver is current. By the linker's option --wrap, the tests record
 * calls of Tegula's public functions and change their results. When the library opens the cuda
 * device, it gets the cpu or sim device, which uses host memory and so computes real results.
 */
#ifndef TGL_CUBLAS_RIG_H
#define TGL_CUBLAS_RIG_H

#include "cublas_names.h"
#include "elements.h"
#include "recorder.h"
#include "shim_child.h"
#include "tegula/tegula.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Loads the libraries and makes a context current. Must be called before the first test.
 * path_of_lt: path of a real cuBLASLt; NULL: the fake one. Returns 0; 77 if the real cuBLASLt is
 * missing; else 1. */
int rig_load(const char *path_of_lt);

/* rig_function(): a function of the fake libcublas. rig_lt_function(): a function of the loaded
 * libcublasLt. */
void *rig_function(const char *name);
void *rig_lt_function(const char *name);

/* Makes the context of device 0 or 1 of the fake driver current. -1: makes none current. */
void rig_use_context(int device);

/* Destroys the primary context of a device and everything in it, as cudaDeviceReset() does. The new
 * context has the same address. */
void rig_reset_device(int device);

/* rig_captured_stream(): a new stream of the current context that is being captured.
 * rig_end_capture(): ends the capture. */
cudaStream_t rig_captured_stream(void);
void rig_end_capture(cudaStream_t stream);

/* The latest call that has reached the fake cuBLAS or cuBLASLt. They then forget it. */
recorded_call rig_take(void);
recorded_call rig_take_lt(void);

/* A new handle of the fake cuBLAS. */
cublasHandle_t rig_handle(void);

/* The calls of Tegula's functions since rig_forget(). */
typedef struct rig_seen {
    int opened, created, destroyed, ran;
    const tgl_plan *latest;        /* the plan that ran last */
    const tgl_plan *watched;       /* a plan that the test sets */
    bool is_watched_gone;          /* whether `watched` was destroyed */
    atomic_int inside, max_inside; /* threads in tgl_plan_run_operands(): now, and at most */
    tgl_problem problem;           /* problem of the latest tgl_plan_create() */
    tgl_epilogue epilogue;         /* its epilogue; size 0: none */
    int64_t workspace_limit;
    tgl_effort effort;
    tgl_operands operands; /* operands of the latest tgl_plan_run_operands() */
    void *stream;
} rig_seen;
extern rig_seen rig;
void rig_forget(void);

/* The results of Tegula's functions. rig_forget() restores the defaults. */
typedef struct rig_answers {
    const char *device;           /* the device that is opened instead of "cuda"; default "cpu" */
    tgl_status open, create, run; /* results of the functions; TGL_OK: the real result */
    bool skips_run;               /* runs do nothing and return TGL_OK */
    double peer;                  /* the result of tgl_plan_peer(); 0: TGL_UNSUPPORTED */
    int run_us;                   /* additional duration of a run in microseconds */
} rig_answers;
extern rig_answers rig_answer;

/* xorshift64* (Vigna 2016). */
uint32_t rig_random(uint64_t *seed);
int rig_between(uint64_t *seed, int low, int high);

#endif
