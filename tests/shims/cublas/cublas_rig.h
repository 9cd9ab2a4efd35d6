/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of libtegula_cublas.so share that link its object files: the fake libraries are
 * loaded, a CUDA context of the fake driver is current, and calls of Tegula's public functions are
 * seen and changed by the linker's --wrap. The library opens the cuda device; here it gets the cpu
 * or the sim device instead, whose memory is the host's, so that it computes real results.
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

/* Loads the libraries and makes a context current. Before the first test; returns 77 if a library
 * is not there. path_of_lt: of cuBLASLt; NULL: the fake one. */
int rig_load(const char *path_of_lt);

/* A function of the fake libcublas, and of the libcublasLt that was loaded. */
void *rig_function(const char *name);
void *rig_lt_function(const char *name);

/* Makes a context of the fake driver current: of device 0 or 1. -1: none is current. */
void rig_use_context(int device);

/* Destroys the primary context of a device and everything in it, as cudaDeviceReset() does: the new
 * one has the same address. */
void rig_reset_device(int device);

/* A stream of the current context that is being captured; and the end of its capture. */
cudaStream_t rig_captured_stream(void);
void rig_end_capture(cudaStream_t stream);

/* The latest call that reached cuBLAS or cuBLASLt; forgets it. */
recorded_call rig_take(void);
recorded_call rig_take_lt(void);

/* A new handle of the fake cuBLAS. */
cublasHandle_t rig_handle(void);

/* What the library has asked of Tegula since rig_forget(). */
typedef struct rig_seen {
    int opened, created, destroyed, ran;
    const tgl_plan *latest;         /* that was run */
    const tgl_plan *watched;        /* set by the test; */
    bool is_watched_gone;           /* it was destroyed */
    atomic_int inside, most_inside; /* threads in tgl_plan_run_operands(): now, and at most */
    tgl_problem problem;            /* of the latest tgl_plan_create() */
    tgl_epilogue epilogue;          /* its size is 0: none */
    int64_t workspace_limit;
    tgl_effort effort;
    tgl_operands operands; /* of the latest tgl_plan_run_operands() */
    void *stream;
} rig_seen;
extern rig_seen rig;
void rig_forget(void);

/* How Tegula answers; rig_forget() restores it. */
typedef struct rig_answers {
    const char *device;           /* opened instead of "cuda"; "cpu" */
    tgl_status open, create, run; /* TGL_OK: the real result */
    bool skips_run;               /* a run does nothing and returns TGL_OK */
    double peer;                  /* the result of tgl_plan_peer(); 0: TGL_UNSUPPORTED */
    int run_us;                   /* microseconds that a run takes longer */
} rig_answers;
extern rig_answers rig_answer;

/* xorshift64* (Vigna 2016). */
uint32_t rig_random(uint64_t *seed);
int rig_between(uint64_t *seed, int low, int high);

#endif
