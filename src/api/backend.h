/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands behind the public handles: a device is a backend (one const table of functions) and
 * the backend's own state. Functions that several files share carry the prefix tgl_ like the public
 * ones, but stay hidden in the shared library.
 */
#ifndef TGL_BACKEND_H
#define TGL_BACKEND_H

#include "api/shape.h"
#include "base/error.h"
#include "base/text.h"
#include "plan/planner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What only a backend's run() returns; callers of the library see TGL_NO_MEMORY. */
static const tgl_status TGL_NO_WORKSPACE = (tgl_status)-1;

/* A backend: what a device can do. The files of src/api/ have checked every argument before they
 * call one of these. Members that may be NULL say so. A function that fails has told tgl_fail()
 * why. */
typedef struct tgl_backend {
    const char *name; /* "cpu"; a device is opened as "NAME" or "NAME:INDEX" */

    /* Sets dev->state and completes dev->name. On failure nothing is left behind. index: what stood
     * behind the colon, or 0. */
    tgl_status (*open)(tgl_device *dev, int index, const tgl_device_options *options);
    void (*close)(tgl_device *dev);

    tgl_status (*alloc)(tgl_device *dev, size_t bytes, void **memory);
    void (*free)(tgl_device *dev, void *memory);
    tgl_status (*upload)(tgl_device *dev, void *dst, const void *src, size_t bytes, void *stream);
    tgl_status (*download)(tgl_device *dev, void *dst, const void *src, size_t bytes, void *stream);
    tgl_status (*sync)(tgl_device *dev);

    /* Frees device memory that is kept only to save time. NULL: there is none. */
    void (*trim)(tgl_device *dev);

    /* The chip that launch lists are made for; NULL: the device plans for itself. */
    const tgl_chip *(*chip)(const tgl_device *dev);

    /* Sets plan->state for plan->shape (never empty: m, n, batch > 0). With a chip: compiles and
     * loads all kernels of plan->list. Without: plans, and sets plan->kernel and plan->workspace;
     * kernel is one of kernel_name()'s, or NULL. On failure plan->state is left NULL. */
    tgl_status (*prepare)(tgl_plan *plan, const char *kernel);
    void (*unprepare)(tgl_plan *plan);
    /* TGL_NO_WORKSPACE: there is no memory for the workspace, and nothing was launched. */
    tgl_status (*run)(const tgl_plan *plan, const tgl_run *run, void *stream);
    tgl_status (*counters)(const tgl_plan *plan, tgl_counters *counters); /* NULL: nothing counts */

    /* Without a chip: all of tgl_plan_explain()'s text. With one: what the device adds to it. */
    void (*explain)(const tgl_plan *plan, tgl_text *out);

    /* NULL: the configurations of all families. */
    const char *(*kernel_name)(const tgl_device *dev, int index);
    tgl_status (*property)(const tgl_device *dev, int index, const char **key, const char **value);
    double (*number)(const tgl_device *dev,
                     tgl_number number); /* 0: it has none, or is not known */
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
    bool is_numbered;             /* it was opened by a name with a number, "cuda:0" */
    struct tgl_plan_cache *plans; /* what tgl_gemm() keeps */
};

struct tgl_plan {
    tgl_device *dev;
    tgl_shape shape;  /* normalised: row-major, leading dimensions and strides filled in */
    char *expression; /* what shape.epilogue points to; NULL: none */
    char kernel[TGL_KERNEL_STRING_SIZE]; /* "none" for an empty problem */
    tgl_candidate choice;                /* devices with a chip */
    tgl_launch_list list;                /* likewise */
    void *state;                         /* the backend's; NULL for an empty problem */
    size_t workspace;                    /* bytes that a run needs of the caller or the device */
    atomic_int users;

    /* The same product without workspace, made when a run finds no memory for it. */
    pthread_mutex_t fallback_lock;
    tgl_plan *fallback;
};

struct tgl_timer {
    tgl_device *dev;
    void *state;    /* the backend's */
    double started; /* the host's clock, in seconds */
    bool is_started;
};

extern const tgl_backend tgl_cpu_backend, tgl_cuda_backend, tgl_sim_backend;

/* *out := a plan for a checked shape, which is without an epilogue where options has one. */
tgl_status tgl_plan_make(tgl_device *dev, const tgl_shape *shape, const tgl_plan_options *options,
                         tgl_plan **out);

/* One more, and one less user of a plan; the last release destroys it. NULL is released silently.
 */
void tgl_plan_retain(tgl_plan *plan);
void tgl_plan_release(tgl_plan *plan);

/* A plan of a shape without an epilogue, as the planner chooses it: what tgl_gemm() keeps. */
tgl_status tgl_plan_of_shape(tgl_device *dev, const tgl_shape *shape, tgl_plan **plan);

/* A plan of a launch list that no family made, for tests: takes over what the list holds, also on
 * failure. */
tgl_status tgl_plan_of_list(tgl_device *dev, const tgl_shape *shape, tgl_launch_list *list,
                            tgl_plan **plan);

#endif
