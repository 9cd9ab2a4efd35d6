/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes and keeps devices and plans. Each CUDA context has a device, opened by the first product in
 * that context. Each kind of product (its sizes, types and other arguments) has an entry, made by
 * the first product of this kind: a plan, or the reason why there is no plan.
 *
 * Plans are in a set-associative table: a kind maps to one set, and a new plan replaces the least
 * recently used one of its set. A plan that is replaced is destroyed when the last call that runs
 * it has returned. The plan of a product that was captured in a CUDA graph is never destroyed,
 * because the graph needs its kernels and this library cannot observe the end of the graph.
 */
#include "../../cli/common/trace_line.h"
#include "cublas_shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 1 << 10, WAYS = 8, KEY_WORDS = 22 };

/* The device of a CUDA context, in a list. Devices are never freed, because a plan may still refer
 * to them. */
typedef struct context_device {
    struct context_device *next;
    void *context;
    unsigned long long id; /* id of the context: cudaDeviceReset() makes a context with a new id at
                              the same address */
    tgl_device *dev;       /* NULL: it could not be opened */
    atomic_bool is_off;    /* a product failed on it, so that it is no longer used */
} context_device;

typedef struct plan_key {
    int64_t words[KEY_WORDS];
} plan_key;

struct cublas_plan {
    plan_key key;
    context_device *device;
    tgl_plan *plan;   /* NULL: there is none, and `reason` says why */
    char reason[160]; /* if plan is NULL: why there is no plan */
    atomic_bool is_captured;
    /* Protected by the lock: */
    int users;                /* number of users: the table, and each call that uses the plan */
    uint64_t used;            /* value of plan_clock at the last use */
    cublas_plan *next_orphan; /* next in the list `orphans` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the plans; also held while a
                                                            device is added */
static context_device *_Atomic devices;                  /* list of devices, the latest first */
static cublas_plan *plans[SETS][WAYS];
static cublas_plan *orphans; /* captured plans that are no longer in the table; they are never
                                destroyed */
static uint64_t plan_clock;
static atomic_bool is_child; /* this process was forked from one that had opened a device */

void cublas_plans_lock(void)
{
    pthread_mutex_lock(&lock);
}

void cublas_plans_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void cublas_plans_after_fork(void)
{
    if (atomic_load(&devices) != NULL) atomic_store(&is_child, true);
}

/* The first line of the error message of this thread's last failure. */
static void read_error(char *text, size_t size)
{
    tgl_last_error(text, size);
    text[strcspn(text, "\n")] = '\0';
}

/* ---- Devices --------------------------------------------------------------------------------- */

typedef int get_context(void **context);                           /* cuCtxGetCurrent() */
typedef int get_context_id(void *context, unsigned long long *id); /* cuCtxGetId(), CUDA 12.0+ */
typedef int get_capture_status(cudaStream_t stream, int *status);  /* cuStreamIsCapturing() */

/* The address of a function of the CUDA driver, which is kept in *address once it is found. NULL:
 * the process has not loaded the driver yet, or the driver is too old to have the function. */
static void *driver_function(const char *name, void *_Atomic *address)
{
    void *found = atomic_load(address);
    if (found != NULL) return found;
    const char *path = getenv("TEGULA_LIBCUDA");
    void *driver =
        dlopen(path != NULL && path[0] != '\0' ? path : "libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver != NULL) found = dlsym(driver, name);
    atomic_store(address, found);
    return found;
}

static get_context *find_get_context(void)
{
    static void *_Atomic address;
    return (get_context *)driver_function("cuCtxGetCurrent", &address);
}

static bool is_captured(cudaStream_t stream)
{
    static void *_Atomic address;
    get_capture_status *get =
        (get_capture_status *)driver_function("cuStreamIsCapturing", &address);
    int status = 0;
    return get == NULL || get(stream, &status) != 0 || status != 0;
}

/* The unique id of a context. 0: the driver is too old for ids; contexts are then distinguished by
 * their addresses only. */
static unsigned long long id_of(void *context)
{
    static void *_Atomic address;
    get_context_id *get = (get_context_id *)driver_function("cuCtxGetId", &address);
    unsigned long long id = 0;
    return get != NULL && get(context, &id) == 0 ? id : 0;
}

static context_device *find_device(const void *context, unsigned long long id)
{
    context_device *device = atomic_load_explicit(&devices, memory_order_acquire);
    while (device != NULL && (device->context != context || device->id != id))
        device = device->next;
    return device;
}

/* Opens the device of the current context. The caller must hold `lock`. NULL: there is no memory,
 * or the stack of the thread is too small; the next product tries again. */
static context_device *open_device(void *context, unsigned long long id)
{
    const tgl_device_options options = {.size = sizeof options, .current_context = 1};
    context_device *device = find_device(context, id); /* another thread may have been faster */
    if (device != NULL) return device;
    device = calloc(1, sizeof *device);
    if (device == NULL) return NULL;
    device->context = context;
    device->id = id;
    device->next = atomic_load(&devices);
    const tgl_status status = tgl_device_open("cuda", &options, &device->dev);
    if (status == TGL_NO_MEMORY) {
        free(device);
        return NULL;
    }
    if (status != TGL_OK) {
        char reason[300];
        read_error(reason, sizeof reason);
        fprintf(stderr, "tegula_cublas: %s. cuBLAS computes all products.\n", reason);
    }
    atomic_store_explicit(&devices, device, memory_order_release);
    return device;
}

/* Whether a failure concerns the device, not only this kind of product. */
static bool is_of_device(tgl_status status)
{
    return status == TGL_NO_MEMORY || status == TGL_DRIVER || status == TGL_DEVICE_LOST;
}

/* Stops using a device after a failure, and reports this once. */
static void turn_off(context_device *device, const char *reason)
{
    if (!atomic_exchange(&device->is_off, true))
        fprintf(stderr, "tegula_cublas: %s. cuBLAS computes all further products.\n", reason);
}

/* The device of the calling thread's CUDA context. NULL: there is none, and p->reason says why. */
static context_device *current_device(cublas_product *p)
{
    void *context = NULL;
    get_context *get = find_get_context();
    if (atomic_load(&is_child)) {
        cublas_refuse(p, "the parent process has used the GPU before fork()");
        return NULL;
    }
    if (get == NULL || get(&context) != 0 || context == NULL) {
        cublas_refuse(p, "no CUDA context is current");
        return NULL;
    }
    const unsigned long long id = id_of(context);
    context_device *device = find_device(context, id);
    if (device == NULL) {
        pthread_mutex_lock(&lock);
        device = open_device(context, id);
        pthread_mutex_unlock(&lock);
    }
    if (device != NULL && device->dev != NULL && !atomic_load(&device->is_off)) return device;
    cublas_refuse(p, device == NULL        ? "no memory, or too small a stack, for a device"
                     : device->dev == NULL ? "the device does not open"
                                           : "the device has failed");
    return NULL;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The key of a plan: everything that it depends on. Epilogue expressions are constant strings, so
 * that their addresses identify them. ld_scale_* follow from k and scaling_*. */
static plan_key key_of(const context_device *device, const tgl_problem *q,
                       const tgl_plan_options *options, bool needs_proof)
{
    const tgl_epilogue *e = options->epilogue;
    const int64_t types = q->type_a | q->type_b << 8 | q->type_c << 16 | (int64_t)q->type_d << 24 |
                          (int64_t)q->scaling_a << 32 | (int64_t)q->scaling_b << 40 |
                          (int64_t)q->scaling_d << 48 | (int64_t)(e != NULL && e->amax) << 56;
    const int64_t modes = q->trans_a | q->trans_b << 8 | q->compute << 16 |
                          (int64_t)q->scalars << 24 | (int64_t)q->batching << 32 |
                          (int64_t)needs_proof << 40 | (int64_t)options->effort << 48;
    plan_key key = {{(intptr_t)device, q->m, q->n, q->k, q->lda, q->ldb, q->ldc, q->ldd, q->batch,
                     q->stride_a, q->stride_b, q->stride_c, q->stride_d, types, modes,
                     options->workspace_limit}};
    if (e == NULL) return key;
    const int64_t epilogue[] = {
        1, e->bias, e->activation, (intptr_t)e->expression, e->stride_bias, e->type_bias};
    memcpy(&key.words[KEY_WORDS - 6], epilogue, sizeof epilogue);
    return key;
}

/* The multiplier is Knuth's for multiplicative hashing, 2^64 / golden ratio. */
static cublas_plan **set_of(const plan_key *key)
{
    uint64_t hash = 0;
    for (int i = 0; i < KEY_WORDS; i++) {
        hash = (hash ^ (uint64_t)key->words[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return plans[hash % SETS];
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* The plan with this key, with the caller as an additional user; NULL: there is none. The caller
 * must hold `lock`. */
static cublas_plan *find_locked(const plan_key *key)
{
    cublas_plan **set = set_of(key);
    for (int i = 0; i < WAYS; i++) {
        cublas_plan *plan = set[i];
        if (plan == NULL || memcmp(&plan->key, key, sizeof *key) != 0) continue;
        plan->users++;
        plan->used = ++plan_clock;
        return plan;
    }
    return NULL;
}

static cublas_plan *find_plan(const plan_key *key)
{
    pthread_mutex_lock(&lock);
    cublas_plan *plan = find_locked(key);
    pthread_mutex_unlock(&lock);
    return plan;
}

/* The slot of a set for a new plan: a free slot, or the slot of the least recently used plan. The
 * caller must hold `lock`. */
static cublas_plan **place_of(const plan_key *key)
{
    cublas_plan **set = set_of(key), **oldest = set;
    for (int i = 0; i < WAYS; i++) {
        if (set[i] == NULL) return &set[i];
        if (set[i]->used < (*oldest)->used) oldest = &set[i];
    }
    return oldest;
}

/* Whether the plan was measured to be faster than cuBLAS. */
static bool is_proven(const tgl_plan *plan)
{
    double ratio;
    return tgl_plan_peer(plan, &ratio) == TGL_OK && ratio > 1;
}

/* Makes a cublas_plan with one user. It contains a tgl_plan, or the reason why this kind of product
 * has none. NULL: the device has failed and is turned off, or there is no memory; in that case the
 * next product tries again. */
static cublas_plan *make_plan(cublas_product *p, context_device *device, const plan_key *key,
                              const tgl_problem *problem, const tgl_plan_options *options)
{
    cublas_plan *made = calloc(1, sizeof *made);
    if (made == NULL) {
        cublas_refuse(p, "no memory for a plan");
        return NULL;
    }
    made->key = *key;
    made->device = device;
    made->users = 1;
    const tgl_status status = tgl_plan_create(device->dev, problem, options, &made->plan);
    if (status == TGL_OK && (!p->needs_proof || is_proven(made->plan))) return made;
    if (status == TGL_OK) {
        tgl_plan_destroy(made->plan);
        made->plan = NULL;
        snprintf(made->reason, sizeof made->reason, "%s", trace_line_faster);
        return made;
    }
    read_error(made->reason, sizeof made->reason);
    if (!is_of_device(status)) return made;
    if (status != TGL_NO_MEMORY) turn_off(device, made->reason);
    cublas_refuse(p, "%s", status == TGL_NO_MEMORY ? "no memory for a plan" : made->reason);
    free(made);
    return NULL;
}

void cublas_release_plan(cublas_plan *plan)
{
    pthread_mutex_lock(&lock);
    const bool is_last = --plan->users == 0, is_kept = atomic_load(&plan->is_captured);
    if (is_last && is_kept) {
        plan->next_orphan = orphans;
        orphans = plan;
    }
    pthread_mutex_unlock(&lock);
    if (!is_last || is_kept) return;
    tgl_plan_destroy(plan->plan);
    free(plan);
}

/* Adds a plan, which was made without holding the lock, to the table, unless another thread has
 * added an equal one. */
static void add_plan(cublas_plan *made)
{
    pthread_mutex_lock(&lock);
    cublas_plan *same = find_locked(&made->key), **place = place_of(&made->key);
    cublas_plan *replaced = same != NULL ? same : *place;
    if (same == NULL) {
        *place = made;
        made->users++;
        made->used = ++plan_clock;
    }
    pthread_mutex_unlock(&lock);
    if (replaced != NULL) cublas_release_plan(replaced);
}

/* tgl_plan_options.workspace_limit of a plan. If the caller has set a workspace: the larger of its
 * size and the size that this library may allocate in its place; -1: both are 0. Else 0, the
 * planner's default. */
static int64_t workspace_limit(const cublas_workspace *space)
{
    const int64_t given = space->memory != NULL ? (int64_t)space->bytes : 0;
    const int64_t own = cublas_get_settings()->own_workspace;
    const int64_t larger = given > own ? given : own;
    return !space->is_given ? 0 : larger > 0 ? larger : -1;
}

cublas_plan *cublas_find_plan(cublas_product *p, const tgl_problem *problem,
                              const tgl_epilogue *epilogue)
{
    context_device *device = current_device(p);
    if (device == NULL) return NULL;
    tgl_plan_options options = {.size = sizeof options,
                                .epilogue = epilogue,
                                .workspace_limit = workspace_limit(&p->workspace)};
    plan_key key = key_of(device, problem, &options, p->needs_proof);
    cublas_plan *plan = find_plan(&key);
    if (plan == NULL && is_captured(p->stream)) {
        /* During a capture nothing can be measured. The plan gets another key
         * (TGL_EFFORT_ESTIMATE), so that products outside of captures still make a measured one. */
        options.effort = TGL_EFFORT_ESTIMATE;
        key = key_of(device, problem, &options, p->needs_proof);
        plan = find_plan(&key);
    }
    if (plan == NULL) {
        plan = make_plan(p, device, &key, problem, &options);
        if (plan == NULL) return NULL;
        add_plan(plan);
    }
    if (plan->plan != NULL) return plan;
    cublas_refuse(p, "%s", plan->reason);
    cublas_release_plan(plan);
    return NULL;
}

bool cublas_run_plan(cublas_plan *plan, cublas_product *p, tgl_operands *operands)
{
    if (p->workspace.memory != NULL && tgl_plan_workspace_size(plan->plan) <= p->workspace.bytes) {
        operands->workspace = p->workspace.memory;
        operands->workspace_bytes = p->workspace.bytes;
    }
    if (is_captured(p->stream)) atomic_store(&plan->is_captured, true);
    pthread_mutex_t *shared = operands->workspace != NULL ? p->lock : NULL;
    tgl_timer *timer = cublas_start_timer(p);
    if (shared != NULL) pthread_mutex_lock(shared);
    const tgl_status status = tgl_plan_run_operands(plan->plan, operands, p->stream);
    if (shared != NULL) pthread_mutex_unlock(shared);
    cublas_stop_timer(timer, p);
    if (status == TGL_OK) return true;
    char reason[160];
    read_error(reason, sizeof reason);
    if (is_of_device(status) && status != TGL_NO_MEMORY) turn_off(plan->device, reason);
    return cublas_refuse(p, "%s", reason);
}

void cublas_release_workspace(void)
{
    void *context = NULL;
    get_context *get = find_get_context();
    if (atomic_load(&is_child) || get == NULL || get(&context) != 0 || context == NULL) return;
    const context_device *device = find_device(context, id_of(context));
    if (device == NULL || device->dev == NULL || atomic_load(&device->is_off)) return;
    tgl_device_trim(device->dev);
}

const char *cublas_plan_kernel(const cublas_plan *plan)
{
    return tgl_plan_kernel(plan->plan);
}

/* ---- Times ----------------------------------------------------------------------------------- */

tgl_timer *cublas_start_timer(const cublas_product *p)
{
    tgl_timer *timer;
    if (p == NULL || !cublas_get_settings()->is_timed || cublas_is_inside()) return NULL;
    cublas_product unused = *p; /* receives a reason, which is not used */
    context_device *device = current_device(&unused);
    if (device == NULL || is_captured(p->stream)) return NULL;
    if (tgl_timer_create(device->dev, &timer) != TGL_OK) return NULL;
    if (tgl_timer_start(timer, p->stream) == TGL_OK) return timer;
    tgl_timer_destroy(timer);
    return NULL;
}

void cublas_stop_timer(tgl_timer *timer, cublas_product *p)
{
    if (timer == NULL) return;
    if (tgl_timer_stop(timer, p->stream, &p->seconds) != TGL_OK) p->seconds = 0;
    tgl_timer_destroy(timer);
}
