/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes and keeps devices and plans. Each CUDA context has a device, opened by the first product in
 * it. Each kind of product has a plan, made by the first product of this kind, or the reason why
 * there is none.
 *
 * Plans are never freed: a CUDA graph needs the plan of a captured product until it is destroyed,
 * and this library cannot observe that. The number of plans is limited instead; cuBLAS computes
 * further kinds of products. Reading the tables takes no lock: rows are added and do not change.
 */
#include "cublas_shim.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 64, SLOTS = 1 << 14, PLANS_MAX = SLOTS / 2, KEY_WORDS = 22 };

typedef struct context_device {
    void *context;
    tgl_device *dev;    /* NULL: it cannot be opened */
    atomic_bool is_off; /* a product on it has failed: it is no longer used */
} context_device;

typedef struct plan_key {
    int64_t words[KEY_WORDS];
} plan_key;

/* A plan for one kind of product on one device. Exists until the process ends. */
typedef struct cublas_plan {
    plan_key key;
    context_device *device;
    tgl_plan *plan;   /* NULL: there is none */
    char reason[160]; /* why tgl_plan_create() failed, if plan is NULL */
} cublas_plan;

pthread_mutex_t cublas_plans_lock = PTHREAD_MUTEX_INITIALIZER; /* held while a row is added */
static context_device devices[DEVICES_MAX];
static atomic_int device_count;
static cublas_plan *_Atomic plans[SLOTS]; /* a hash table with linear probing */
static int plan_count;
static atomic_bool is_child; /* this process was forked from one that had opened a device */

void cublas_plans_after_fork(void)
{
    if (atomic_load(&device_count) > 0) atomic_store(&is_child, true);
}

/* The first line of the message of this thread's latest failure. */
static void read_error(char *text, size_t size)
{
    tgl_last_error(text, size);
    text[strcspn(text, "\n")] = '\0';
}

/* ---- Devices --------------------------------------------------------------------------------- */

typedef int get_context(void **context);                          /* cuCtxGetCurrent() */
typedef int get_capture_status(cudaStream_t stream, int *status); /* cuStreamIsCapturing() */

/* The address of a function of the driver, which *address keeps. NULL: the process has not loaded
 * the driver yet. */
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

static bool is_captured(cudaStream_t stream)
{
    static void *_Atomic address;
    get_capture_status *get =
        (get_capture_status *)driver_function("cuStreamIsCapturing", &address);
    int status = 0;
    return get == NULL || get(stream, &status) != 0 || status != 0;
}

static context_device *find_device(const void *context)
{
    const int count = atomic_load_explicit(&device_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (devices[i].context == context) return &devices[i];
    return NULL;
}

/* Opens the device of the current context. The caller holds the lock. */
static context_device *open_device(void *context)
{
    const tgl_device_options options = {.size = sizeof options, .current_context = 1};
    context_device *device = find_device(context); /* another thread may have been faster */
    const int count = atomic_load(&device_count);
    if (device != NULL || count == DEVICES_MAX) return device;
    device = &devices[count];
    device->context = context;
    if (tgl_device_open("cuda", &options, &device->dev) != TGL_OK) {
        char reason[300];
        read_error(reason, sizeof reason);
        fprintf(stderr, "tegula_cublas: %s. cuBLAS computes all products.\n", reason);
    }
    atomic_store_explicit(&device_count, count + 1, memory_order_release);
    return device;
}

/* The device of the calling thread's context. NULL: there is none, and p->reason says why. */
static context_device *current_device(cublas_product *p)
{
    static void *_Atomic address;
    void *context = NULL;
    get_context *get = (get_context *)driver_function("cuCtxGetCurrent", &address);
    if (atomic_load(&is_child)) {
        cublas_refuse(p, "the parent process has used the GPU before fork()");
        return NULL;
    }
    if (get == NULL || get(&context) != 0 || context == NULL) {
        cublas_refuse(p, "no CUDA context is current");
        return NULL;
    }
    context_device *device = find_device(context);
    if (device == NULL) {
        pthread_mutex_lock(&cublas_plans_lock);
        device = open_device(context);
        pthread_mutex_unlock(&cublas_plans_lock);
    }
    if (device != NULL && device->dev != NULL && !atomic_load(&device->is_off)) return device;
    cublas_refuse(p, device == NULL        ? "more CUDA contexts than this library expects"
                     : device->dev == NULL ? "the device does not open"
                                           : "the device has failed");
    return NULL;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Everything that a plan depends on. Expressions are constants: their addresses identify them. */
static plan_key key_of(const context_device *device, const tgl_problem *q, const tgl_epilogue *e,
                       int64_t workspace_limit)
{
    const int64_t types = q->type_a | q->type_b << 8 | q->type_c << 16 | (int64_t)q->type_d << 24;
    const int64_t modes = q->trans_a | q->trans_b << 8 | q->compute << 16 |
                          (int64_t)q->scalars << 24 | (int64_t)q->batching << 32;
    plan_key key = {{device - devices, q->m, q->n, q->k, q->lda, q->ldb, q->ldc, q->ldd, q->batch,
                     q->stride_a, q->stride_b, q->stride_c, q->stride_d, types, modes,
                     workspace_limit}};
    if (e == NULL) return key;
    const int64_t epilogue[] = {
        1, e->bias, e->activation, (intptr_t)e->expression, e->stride_bias, e->type_bias};
    memcpy(&key.words[KEY_WORDS - 6], epilogue, sizeof epilogue);
    return key;
}

/* The multiplier is that of Knuth's multiplicative hashing, 2^64 / golden ratio. */
static size_t slot_of(const plan_key *key)
{
    uint64_t hash = 0;
    for (int i = 0; i < KEY_WORDS; i++) {
        hash = (hash ^ (uint64_t)key->words[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return hash % SLOTS;
}

/* The slot with the plan of this key, or the free slot where it belongs. */
static cublas_plan *_Atomic *find_slot(const plan_key *key)
{
    size_t i = slot_of(key);
    for (;; i = (i + 1) % SLOTS) {
        const cublas_plan *plan = atomic_load_explicit(&plans[i], memory_order_acquire);
        if (plan == NULL || memcmp(&plan->key, key, sizeof *key) == 0) return &plans[i];
    }
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* Makes a plan, or the reason why there is none. NULL: no memory; the next product tries again. */
static cublas_plan *make_plan(context_device *device, const plan_key *key,
                              const tgl_problem *problem, const tgl_plan_options *options)
{
    cublas_plan *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->key = *key;
    made->device = device;
    const tgl_status status = tgl_plan_create(device->dev, problem, options, &made->plan);
    if (status == TGL_OK) return made;
    if (status == TGL_NO_MEMORY) {
        free(made);
        return NULL;
    }
    read_error(made->reason, sizeof made->reason);
    return made;
}

/* Adds a plan that was made without the lock. Returns the plan that is in the table afterwards, or
 * NULL if the table is full. */
static cublas_plan *add_plan(cublas_plan *made)
{
    pthread_mutex_lock(&cublas_plans_lock);
    cublas_plan *_Atomic *slot = find_slot(&made->key);
    cublas_plan *kept = atomic_load(slot);
    if (kept == NULL && plan_count < PLANS_MAX) {
        atomic_store_explicit(slot, made, memory_order_release);
        plan_count++;
        kept = made;
    }
    pthread_mutex_unlock(&cublas_plans_lock);
    if (kept != made) {
        tgl_plan_destroy(made->plan);
        free(made);
    }
    return kept;
}

/* The maximum workspace of a plan: the caller's workspace, or the size that the library may use
 * instead, if that is more. */
static int64_t workspace_limit(const cublas_workspace *space)
{
    const int64_t given = space->memory != NULL ? (int64_t)space->bytes : 0;
    const int64_t own = cublas_get_settings()->own_workspace;
    const int64_t most = given > own ? given : own;
    return !space->is_given ? 0 : most > 0 ? most : -1;
}

/* NULL: there is no plan, and p->reason says why. */
static const cublas_plan *find_plan(cublas_product *p, const tgl_problem *problem,
                                    const tgl_epilogue *epilogue)
{
    context_device *device = current_device(p);
    if (device == NULL) return NULL;
    const tgl_plan_options options = {.size = sizeof options,
                                      .epilogue = epilogue,
                                      .workspace_limit = workspace_limit(&p->workspace)};
    const plan_key key = key_of(device, problem, epilogue, options.workspace_limit);
    cublas_plan *plan = atomic_load_explicit(find_slot(&key), memory_order_acquire);
    if (plan == NULL) {
        plan = make_plan(device, &key, problem, &options);
        if (plan == NULL) {
            cublas_refuse(p, "no memory for a plan");
            return NULL;
        }
        plan = add_plan(plan);
    }
    if (plan != NULL && plan->plan != NULL) return plan;
    if (plan != NULL)
        cublas_refuse(p, "%s", plan->reason);
    else
        cublas_refuse(p, "there are %d plans already", PLANS_MAX);
    return NULL;
}

bool cublas_run(cublas_product *p, const tgl_problem *problem, const tgl_epilogue *epilogue,
                tgl_operands *operands)
{
    const cublas_plan *plan = find_plan(p, problem, epilogue);
    if (plan == NULL) return false;
    if (p->workspace.memory != NULL && tgl_plan_workspace_size(plan->plan) <= p->workspace.bytes) {
        operands->workspace = p->workspace.memory;
        operands->workspace_bytes = p->workspace.bytes;
    }
    tgl_timer *timer = cublas_start_timer(p);
    const tgl_status status = tgl_plan_run_operands(plan->plan, operands, p->stream);
    cublas_stop_timer(timer, p);
    if (status == TGL_OK) {
        cublas_trace_served(p, tgl_plan_kernel(plan->plan));
        return true;
    }
    char reason[160];
    read_error(reason, sizeof reason);
    const bool is_lost = status == TGL_DRIVER || status == TGL_DEVICE_LOST;
    if (is_lost && !atomic_exchange(&plan->device->is_off, true))
        fprintf(stderr, "tegula_cublas: %s. cuBLAS computes all further products.\n", reason);
    return cublas_refuse(p, "%s", reason);
}

/* ---- Times ----------------------------------------------------------------------------------- */

tgl_timer *cublas_start_timer(const cublas_product *p)
{
    tgl_timer *timer;
    if (p == NULL || !cublas_get_settings()->is_timed || cublas_is_inside()) return NULL;
    cublas_product unused = *p; /* receives a reason */
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
