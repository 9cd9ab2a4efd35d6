/* SPDX-License-Identifier: Apache-2.0
 *
 * The structs behind the public handles. A device consists of a backend (one const table of
 * functions) and the backend's state. Two kinds of backends differ in who plans: cuda and sim have
 * a chip (plan/chips.h), for which src/plan/ makes the launch list of a product; the cpu backend
 * has no chip and plans by itself. Functions that several files share have the prefix tgl_ like the
 * public ones, but are hidden in the shared library.
 */
#ifndef TGL_BACKEND_H
#define TGL_BACKEND_H

#include "base/error.h"
#include "base/text.h"
#include "plan/kernel_string.h"
#include "problem/run.h"
#include "problem/small_product.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* An internal status, which only a backend's run() returns. src/api/ then runs a plan without
 * workspace, or returns TGL_NO_MEMORY. */
static const tgl_status TGL_NO_WORKSPACE = (tgl_status)-1;

struct tgl_host_product;

enum { TGL_NAME_SIZE = 160 };

/* The functions of a backend that measure plans. A trial has what one measurement needs: its own
 * matrices for one product, with random elements, and (cuda) its own stream. It uses no memory of
 * the caller. */
typedef struct tgl_trial tgl_trial;
typedef struct tgl_trials {
    /* Describes the device for the file of measured times (plan/wisdom.h). chip: the hardware and,
     * for cpu, the tier. driver: the versions of the compiler and the driver; cpu: "none". */
    void (*describe)(const tgl_device *dev, char chip[TGL_NAME_SIZE], char driver[TGL_NAME_SIZE]);

    /* Whether the calling thread must not measure now, because `stream`, or a stream that the
     * default stream waits for, is being captured into a graph. */
    bool (*is_captured)(tgl_device *dev, void *stream);

    /* Whether a run of the list with aligned operands needs no compilation: each of its kernels is
     * already loaded, or is in the archive of compiled kernels or in the disk cache. NULL without a
     * chip. */
    bool (*is_compiled)(tgl_device *dev, const tgl_launch_list *list);

    /* Compiles the kernels of several launch lists at the same time, and waits for all of them.
     * Failures are not reported. NULL without a chip. */
    void (*load_lists)(tgl_device *dev, const tgl_launch_list *lists, int count);

    /* Makes a trial. TGL_NO_MEMORY: no memory, or the matrices would take more than the backend
     * permits (cuda: a quarter of the free memory; cpu: is_small() in cpu_trial.c). */
    tgl_status (*open)(tgl_device *dev, const tgl_shape *shape, tgl_trial **trial);
    void (*close)(tgl_trial *trial);

    /* Runs a plan `runs` times and waits. *seconds := the total time on the device. */
    tgl_status (*time)(tgl_trial *trial, const tgl_plan *plan, int runs, double *seconds);
} tgl_trials;

/* A setting: one way for a device without a chip to compute a product. kernel: the kernel string
 * that selects it. source: a hash of the backend's tables that its speed depends on; a measurement
 * with another hash is out of date. */
typedef struct tgl_setting {
    char kernel[TGL_KERNEL_STRING_SIZE];
    char source[TGL_SOURCE_SIZE];
} tgl_setting;

enum { TGL_SETTINGS_MAX = 32 };

typedef struct tgl_settings {
    /* Lists the settings that are worth measuring; the first one is the planner's own choice, a
     * kernel string without options. Returns their number. */
    int (*list)(const tgl_device *dev, tgl_setting list[TGL_SETTINGS_MAX]);

    /* Whether two plans of one product compute it in the same way. */
    bool (*is_same)(const tgl_plan *x, const tgl_plan *y);
} tgl_settings;

/* The setting for products that were not measured themselves. */
typedef struct tgl_usual_setting {
    char kernel[TGL_KERNEL_STRING_SIZE]; /* "": the planner's own choice */
    double gain;                         /* speed with this setting, divided by that of the
                                            planner's choice */
    int products;                        /* number of products that were measured */
} tgl_usual_setting;

/* A backend: the functions of one kind of device. The files of src/api/ have checked every argument
 * before they call one of these. Members that may be NULL say so. A function that fails has set the
 * error message with tgl_fail(). */
typedef struct tgl_backend {
    const char *name; /* name of the device, such as "cpu"; opened as "NAME" or "NAME:INDEX" */
    size_t stack;     /* bytes of stack that open() and prepare() need; 0: only a few KB */

    /* Opens a device: sets dev->state, and adds the device's number to dev->name (cuda). On failure
     * everything is released. index: the number behind the colon of the device's name, or 0. */
    tgl_status (*open)(tgl_device *dev, int index, const tgl_device_options *options);
    void (*close)(tgl_device *dev);

    tgl_status (*alloc)(tgl_device *dev, size_t bytes, void **memory);
    void (*free)(tgl_device *dev, void *memory);
    tgl_status (*upload)(tgl_device *dev, void *dst, const void *src, size_t bytes, void *stream);
    tgl_status (*download)(tgl_device *dev, void *dst, const void *src, size_t bytes, void *stream);
    tgl_status (*sync)(tgl_device *dev);

    /* Sets the maximum number of threads of later products; 0: as when opened. NULL: not
     * supported. */
    void (*set_threads)(tgl_device *dev, int threads);

    /* Frees device memory that is kept only for speed. NULL: there is none. */
    void (*trim)(tgl_device *dev);

    /* The chip for which the planner makes launch lists. NULL: the device has its own planner. */
    const tgl_chip *(*chip)(const tgl_device *dev);

    /* Sets plan->state for plan->shape, which is not empty. With a chip: compiles and loads all
     * kernels of plan->list. Without a chip: plans, and sets plan->kernel. kernel: a kernel string
     * of the caller or a setting, beginning with a name from kernel_name(); or NULL. On failure
     * plan->state stays NULL. */
    tgl_status (*prepare)(tgl_plan *plan, const char *kernel);
    void (*unprepare)(tgl_plan *plan);
    /* Runs a plan. TGL_NO_WORKSPACE: no memory for the workspace, and nothing was launched. */
    tgl_status (*run)(const tgl_plan *plan, const tgl_run *run, void *stream);
    /* Computes a product of matrices in host memory (host_product.h) and waits for it. NULL: run()
     * takes host memory. */
    tgl_status (*run_host)(tgl_device *dev, struct tgl_host_product *product);
    /* Computes a product without a plan, if it is so small that finding a plan would take longer.
     * False: nothing was computed. NULL: not supported. */
    bool (*run_small)(const tgl_device *dev, const tgl_small_product *product);
    /* NULL: the device does not count memory accesses. */
    tgl_status (*counters)(const tgl_plan *plan, tgl_counters *counters);

    /* Writes text of tgl_plan_explain(). Without a chip it writes the whole text; with a chip only
     * the part about the device. */
    void (*explain)(const tgl_plan *plan, tgl_text *out);

    /* Writes the text of tgl_plan_trace(), which is empty before the first run. NULL: not
     * supported. */
    void (*trace)(const tgl_plan *plan, tgl_text *out);

    /* Returns the name of kernel `index`; NULL beyond the last one. A backend with a chip sets this
     * member to NULL: its kernels are the configurations of all kernel families (plan/family.h). */
    const char *(*kernel_name)(const tgl_device *dev, int index);
    /* Returns the number of properties. If index is below it, sets *key and *value. */
    int (*property)(const tgl_device *dev, int index, const char **key, const char **value);
    double (*number)(const tgl_device *dev,
                     tgl_number number); /* 0: unknown, or the device has no such number */
    tgl_status (*measure)(tgl_device *dev, tgl_ceiling ceiling, double *value);

    /* Functions that measure plans (plan/wisdom.h). NULL: plans of this device are not measured. */
    const tgl_trials *trials;
    const tgl_settings *settings; /* NULL: the device has a chip or no trials */

    /* Timers on the device's clock; the backend owns timer->state. NULL: the host's clock is
     * used. */
    tgl_status (*timer_create)(tgl_timer *timer);
    void (*timer_destroy)(tgl_timer *timer);
    tgl_status (*timer_start)(tgl_timer *timer, void *stream);
    tgl_status (*timer_stop)(tgl_timer *timer, void *stream, double *seconds);
    tgl_status (*timer_passed)(const tgl_timer *timer, int *passed);
} tgl_backend;

struct tgl_device {
    const tgl_backend *backend;
    void *state; /* of the backend */
    char name[32];
    bool is_numbered;        /* the caller opened it by a name with a number, such as "cuda:0" */
    tgl_compute f32_compute; /* the meaning of TGL_COMPUTE_DEFAULT for products of F32 */
    struct tgl_plan_cache *plans; /* plans cached by shape, such as those of tgl_gemm() */
    tgl_wisdom *wisdom;           /* measured times; NULL: plans are not measured */
    pthread_mutex_t measuring;    /* held while plans are measured; initialised if wisdom is not
                                     NULL */
    tgl_effort effort;            /* from TEGULA_EFFORT; never TGL_EFFORT_DEFAULT */
    double measure_seconds;       /* from TEGULA_EFFORT: limit of the time that a plan may spend on
                                     measurements, in seconds */
    tgl_usual_setting *usual;     /* array indexed by the type of A (api/settings.h); NULL: products
                                     that were not measured use the planner's choice */
};

/* A plan. Runs do not change it, so that several threads can run the same plan at the same time. */
struct tgl_plan {
    tgl_device *dev;
    tgl_shape shape;  /* normalised: row-major, with all leading dimensions and strides */
    char *expression; /* text that shape.epilogue points to; NULL: none */
    char kernel[TGL_KERNEL_STRING_SIZE]; /* name of the kernel; "none" for an empty problem */
    tgl_candidate choice;                /* for devices with a chip */
    tgl_launch_list list;                /* for devices with a chip */
    void *state;                         /* state of the backend; NULL for an empty problem, and
                                            for groups on a device without a chip */
    size_t workspace;                    /* bytes of workspace per run; 0 for devices without a
                                            chip, which keep their own */
    tgl_small_product small; /* the product if run_small() may compute it; else m is 0 */
    atomic_int users;
    struct tgl_plan_variants *variants; /* other plans of the same product (api/handles.h) */
    char *asked;                        /* kernel string that the caller gave; NULL: none */
    int64_t workspace_limit;            /* workspace limit of the caller's options */
    bool is_provisional; /* no kernel was measured for the plan, although the device measures plans
                            of its cache (tgl_plan_find_estimate()) */
};

struct tgl_timer {
    tgl_device *dev;
    void *state;    /* of the backend */
    double started; /* the host's clock, in seconds */
    bool is_started;
};

extern const tgl_backend tgl_cpu_backend, tgl_cuda_backend, tgl_sim_backend;

#endif
