/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands behind the public handles: a device is a backend (one const table of functions) and
 * the backend's own state. Functions that several files share are declared here and in problem.h;
 * they carry the prefix tgl_ like the public ones, but stay hidden in the shared library.
 */
#ifndef TGL_DEVICE_H
#define TGL_DEVICE_H

#include "problem.h"
#include "tegula/tegula.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifdef __GNUC__
#define TGL_PRINTF(index, first) __attribute__((format(printf, index, first)))
#else
#define TGL_PRINTF(index, first)
#endif

/* Forwards a failure to the caller. */
#define TGL_TRY(call)                                                                              \
    do {                                                                                           \
        tgl_status tgl_try_status = (call);                                                        \
        if (tgl_try_status != TGL_OK) return tgl_try_status;                                       \
    } while (0)

/* A backend: what a device can do. `api.c` has checked every argument before it calls one of these.
 * Members that may be NULL say so. */
typedef struct tgl_backend {
    const char *name; /* "cpu"; a device is opened as "NAME" or "NAME:INDEX" */

    /* Sets dev->state and completes dev->name. On failure nothing is left behind and
     * tgl_fail() has been told why. index: what stood behind the colon, or 0. */
    tgl_status (*open)(tgl_device *dev, int index, const tgl_device_options *options);
    void (*close)(tgl_device *dev);

    tgl_status (*alloc)(tgl_device *dev, size_t bytes, void **memory);
    void (*free)(tgl_device *dev, void *memory);
    tgl_status (*upload)(tgl_device *dev, void *dst, const void *src, size_t bytes);
    tgl_status (*download)(tgl_device *dev, void *dst, const void *src, size_t bytes);
    tgl_status (*sync)(tgl_device *dev);

    /* Sets plan->kernel and plan->state for plan->shape (never empty: m, n, batch > 0).
     * options->kernel is one of kernel_name()'s, or NULL. stream: if plan->is_one_shot, that of the
     * run which the plan is made for. Adds to plan->memory. On failure plan->state is left NULL. */
    tgl_status (*prepare)(tgl_plan *plan, const tgl_plan_options *options, void *stream);
    void (*unprepare)(tgl_plan *plan);
    tgl_status (*run)(const tgl_plan *plan, const tgl_run *run, void *stream);
    tgl_status (*counters)(const tgl_plan *plan, tgl_counters *counters); /* NULL: nothing counts */
    size_t (*explain)(const tgl_plan *plan, char *text, size_t size);

    const char *(*kernel_name)(const tgl_device *dev, int index);
    tgl_status (*property)(const tgl_device *dev, int index, const char **key, const char **value);
    tgl_status (*measure)(tgl_device *dev, tgl_ceiling ceiling, double *value);

    /* NULL: the host's clock serves. timer->state belongs to the backend. */
    tgl_status (*timer_create)(tgl_timer *timer);
    void (*timer_destroy)(tgl_timer *timer);
    tgl_status (*timer_start)(tgl_timer *timer, void *stream);
    tgl_status (*timer_stop)(tgl_timer *timer, void *stream, double *seconds);
} tgl_backend;

struct tgl_device {
    const tgl_backend *backend;
    void *state; /* the backend's */
    char name[32];
    struct tgl_plan_cache *plans; /* what tgl_gemm() keeps */

    pthread_mutex_t error_lock;
    char *error; /* the latest sentence of detail, allocated; NULL before the first failure */
};

struct tgl_plan {
    tgl_device *dev;
    tgl_gemm_shape shape; /* normalised: row-major, leading dimensions and strides filled in */
    char *expression;     /* what shape.epilogue points to; NULL: none */
    const char *kernel;   /* its name, static text; "none" for an empty problem */
    void *state;          /* the backend's; NULL for an empty problem */
    size_t memory;        /* bytes of the device that it keeps */
    bool is_one_shot;     /* of tgl_gemm(), which may let go of it after any call */
    atomic_int users;
};

struct tgl_timer {
    tgl_device *dev;
    void *state;    /* the backend's */
    double started; /* the host's clock, in seconds */
};

extern const tgl_backend tgl_cpu_backend, tgl_cuda_backend, tgl_sim_backend;

/* Keeps the sentence of detail for tgl_last_error(), formatted as printf does. */
void tgl_keep_error(tgl_device *dev, const char *format, ...) TGL_PRINTF(2, 3);

/* Keeps the sentence and yields `status`. A macro, so that a reader and an analyser of the caller
 * see which status that is. */
#define tgl_fail(dev, status, ...) (tgl_keep_error((dev), __VA_ARGS__), (status))

/* One more, and one less user of a plan; the last release destroys it. NULL is released silently.
 */
void tgl_plan_retain(tgl_plan *plan);
void tgl_plan_release(tgl_plan *plan);

/* Seconds of a monotonic clock. */
double tgl_clock(void);

#endif
