/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cuda.so (see fake_cuda.h): devices, contexts, memory, modules and events.
 */
#include "fake_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STACK_MAX = 16, OBJECTS_MAX = 4096 };

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct CUctx_st fake_contexts[DEVICES_MAX];
static int retained; /* number of times that contexts are retained, over all contexts */
static atomic_int misuses, modules;
static _Atomic uint64_t work;
static struct {
    CUcontext context;
    void *memory; /* from malloc(); NULL: the row is free */
    bool is_block;
} objects[OBJECTS_MAX];
static int objects_end; /* no object at this index or later has been used */
static __thread CUcontext stack[STACK_MAX];
static __thread int depth;

long fake_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? atol(text) : otherwise;
}

CUcontext fake_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

uint64_t fake_next_work(void)
{
    return ++work;
}

/* Atomic, because another thread may store a larger value at the same time. */
void fake_raise(_Atomic uint64_t *to, uint64_t value)
{
    uint64_t before = *to;
    while (before < value && !atomic_compare_exchange_weak(to, &before, value))
        ;
}

void fake_misuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("misuse of CUDA: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    misuses++;
}

static void *keep_as(void *memory, bool is_block)
{
    pthread_mutex_lock(&fake_lock);
    int i = 0;
    while (objects[i].memory != NULL)
        i++; /* no test needs OBJECTS_MAX objects, unless the library has a leak */
    if (objects_end <= i) objects_end = i + 1;
    objects[i].context = fake_current();
    objects[i].memory = memory;
    objects[i].is_block = is_block;
    pthread_mutex_unlock(&fake_lock);
    return memory;
}

void *fake_keep(void *memory)
{
    return keep_as(memory, false);
}

void fake_drop(void *memory)
{
    pthread_mutex_lock(&fake_lock);
    for (int i = 0; i < objects_end; i++)
        if (objects[i].memory == memory) objects[i].memory = NULL;
    pthread_mutex_unlock(&fake_lock);
    free(memory);
}

block *fake_block_of(const void *address)
{
    for (int i = 0; i < objects_end; i++) {
        block *it = objects[i].memory;
        const char *first = (const char *)it + BLOCK_ROOM, *at = address;
        if (it != NULL && objects[i].is_block && at >= first && at < first + it->bytes) return it;
    }
    return NULL;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Whether this call is one of the first `spared` calls since FAKE_CUDA_FAIL was set. */
static bool is_spared(const char *list, int spared)
{
    static char latest[200];
    static int calls;
    pthread_mutex_lock(&fake_lock);
    if (strcmp(latest, list) != 0) {
        snprintf(latest, sizeof latest, "%s", list);
        calls = 0;
    }
    const bool result = calls < spared;
    if (result) calls++;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

CUresult fake_told(const char *function)
{
    const char *all = getenv("FAKE_CUDA_FAIL"), *list = all;
    const size_t length = strlen(function);
    while (list != NULL && *list != '\0') {
        if (strncmp(list, function, length) == 0 && list[length] == '=') {
            char *end;
            const CUresult result = (CUresult)strtol(list + length + 1, &end, 10);
            if (*end == '@' && fake_current() != &fake_contexts[atoi(end + 1)]) return CUDA_SUCCESS;
            return *end == ':' && is_spared(all, atoi(end + 1)) ? CUDA_SUCCESS : result;
        }
        list = strchr(list, ',');
        if (list != NULL) list++;
    }
    return CUDA_SUCCESS;
}

CUresult fake_begin(const char *function)
{
    CUcontext context = fake_current();
    CUresult result = fake_told(function);
    if (context == NULL) return INVALID_CONTEXT;
    if (fake_is_in_destructor()) fake_misuse("%s in the destructor of a user object", function);
    pthread_mutex_lock(&fake_lock);
    const bool sticks = result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_FAILED;
    if (context->fault == CUDA_SUCCESS && sticks) context->fault = result;
    if (context->fault != CUDA_SUCCESS) result = context->fault;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

FAKE_CUDA_API CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == NO_DEVICE                  ? "CUDA_ERROR_NO_DEVICE"
                                                  : NULL;
    return *name != NULL ? CUDA_SUCCESS : INVALID_VALUE;
}

FAKE_CUDA_API CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : NULL;
    return *text != NULL ? CUDA_SUCCESS : INVALID_VALUE;
}

/* ---- Devices --------------------------------------------------------------------------------- */

FAKE_CUDA_API CUresult cuInit(unsigned flags)
{
    TOLD();
    return flags == 0 ? CUDA_SUCCESS : INVALID_VALUE;
}

FAKE_CUDA_API CUresult cuDriverGetVersion(int *version)
{
    *version = (int)fake_setting("FAKE_CUDA_VERSION", 13000);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuDeviceGetCount(int *number)
{
    *number = (int)fake_setting("FAKE_CUDA_DEVICES", 1);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (ordinal < 0 || ordinal >= fake_setting("FAKE_CUDA_DEVICES", 1)) return INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    const char *chosen = getenv("FAKE_CUDA_NAME");
    if (chosen != NULL)
        snprintf(name, (size_t)size, "%s", chosen);
    else
        snprintf(name, (size_t)size, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)fake_setting("FAKE_CUDA_MEMORY", 1 << 28);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    const int capability = (int)fake_setting("FAKE_CUDA_CAPABILITY", 90);
    (void)device;
    TOLD();
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = capability / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = capability % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 4;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = 2048;
        break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *value = 256;
        break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        *value = (int)fake_setting("FAKE_CUDA_POOLS", 1);
        break;
    default:
        *value = 1000000;
    }
    return CUDA_SUCCESS;
}

/* ---- Contexts -------------------------------------------------------------------------------- */

FAKE_CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    TOLD();
    pthread_mutex_lock(&fake_lock);
    fake_contexts[device].users++;
    retained++;
    pthread_mutex_unlock(&fake_lock);
    *context = &fake_contexts[device];
    return CUDA_SUCCESS;
}

/* Destroys everything in a context. The caller holds the lock. */
static void empty_context(CUcontext context)
{
    for (int i = 0; i < objects_end; i++)
        if (objects[i].memory != NULL && objects[i].context == context) {
            if (objects[i].is_block) fake_lose(objects[i].memory);
            free(objects[i].memory);
            objects[i].memory = NULL;
        }
    context->fault = CUDA_SUCCESS;
    context->used = 0;
    context->id = 0;
}

/* Releases a context. The last release destroys everything in it if the context is faulty. */
FAKE_CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUcontext context = &fake_contexts[device];
    pthread_mutex_lock(&fake_lock);
    retained--;
    if (--context->users == 0 && context->fault != CUDA_SUCCESS) empty_context(context);
    pthread_mutex_unlock(&fake_lock);
    return CUDA_SUCCESS;
}

/* Destroys everything in a context. The context itself stays retained: it is made again at the same
 * address, with another id. */
FAKE_CUDA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    pthread_mutex_lock(&fake_lock);
    empty_context(&fake_contexts[device]);
    pthread_mutex_unlock(&fake_lock);
    return CUDA_SUCCESS;
}

#ifndef FAKE_CUDA_OLD
FAKE_CUDA_API CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    static uint64_t ids;
    if (context == NULL) context = fake_current();
    if (context == NULL) return INVALID_CONTEXT;
    pthread_mutex_lock(&fake_lock);
    if (context->id == 0) context->id = ++ids;
    *id = context->id;
    pthread_mutex_unlock(&fake_lock);
    return CUDA_SUCCESS;
}
#endif

FAKE_CUDA_API CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = fake_current();
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuCtxGetDevice(CUdevice *device)
{
    if (fake_current() == NULL) return INVALID_CONTEXT;
    *device = (CUdevice)(fake_current() - fake_contexts);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    TOLD();
    if (depth == STACK_MAX) return INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (depth == 0) return INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

/* Records that all work so far is complete. */
static void wait_for_all(void)
{
    fake_raise(&fake_current()->waited, work);
    fake_host_waits_for_all();
}

FAKE_CUDA_API CUresult cuCtxSynchronize(void)
{
    BEGIN();
    CUresult result = fake_unsafe(__func__, true);
    if (result == CUDA_SUCCESS) wait_for_all();
    return result;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Allocates device memory. NULL: the device's memory is exhausted. */
static block *allocate(size_t bytes)
{
    CUcontext context = fake_current();
    pthread_mutex_lock(&fake_lock);
    const bool fits = bytes <= (size_t)fake_setting("FAKE_CUDA_MEMORY", 1 << 28) - context->used;
    if (fits) context->used += bytes;
    pthread_mutex_unlock(&fake_lock);
    block *it = fits ? aligned_alloc(256, BLOCK_ROOM + (bytes + 255) / 256 * 256) : NULL;
    if (it == NULL) return NULL;
    memset((char *)it + BLOCK_ROOM, 0xa5, bytes);
    *it = (block){.context = context, .bytes = bytes};
    return it;
}

static void release(block *it)
{
    fake_forget(it);
    pthread_mutex_lock(&fake_lock);
    it->context->used -= it->bytes;
    pthread_mutex_unlock(&fake_lock);
    fake_drop(it);
}

FAKE_CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes)
{
    BEGIN();
    UNSAFE();
    fake_run_destructors();
    block *it = allocate(bytes);
    if (it == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = (char *)keep_as(it, true) + BLOCK_ROOM;
    return CUDA_SUCCESS;
}

/* Frees memory. First waits for all work if the memory is from cuMemAlloc(); does not wait if it is
 * from cuMemAllocAsync(). */
FAKE_CUDA_API CUresult cuMemFree_v2(CUdeviceptr memory)
{
    BEGIN();
    UNSAFE();
    if (memory == NULL) return CUDA_SUCCESS;
    block *it = (block *)((char *)memory - BLOCK_ROOM);
    if (it->stream == NULL)
        wait_for_all();
    else if (it->latest_work > it->context->waited && it->latest_work > it->stream->waited)
        fake_misuse("memory of stream %d is freed while the stream may use it", (int)it->stream_id);
    release(it);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemAllocAsync(CUdeviceptr *memory, size_t bytes, CUstream stream)
{
    CUgraph graph;
    BEGIN();
    if (fake_setting("FAKE_CUDA_POOLS", 1) == 0) return INVALID_VALUE;
    CUstream at = fake_stream(stream);
    if (at != NULL && at->capture == 0) UNSAFE();
    CUresult result = fake_give_work(__func__, &stream, &graph);
    if (result != CUDA_SUCCESS) return result;
    block *it = allocate(bytes);
    if (it == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    it->stream = stream;
    it->stream_id = stream->id;
    it->latest_work = stream->latest_work;
    it->is_of_graph = graph != NULL;
    *memory = (char *)keep_as(it, true) + BLOCK_ROOM;
    if (graph != NULL)
        fake_add_node(graph, &(fake_node){.kind = NODE_ALLOC, .memory = *memory, .bytes = bytes});
    return CUDA_SUCCESS;
}

/* Frees memory in stream order. Memory that a graph allocates exists until the graph is destroyed.
 */
FAKE_CUDA_API CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream)
{
    CUgraph graph;
    BEGIN();
    CUstream at = fake_stream(stream);
    if (at != NULL && at->capture == 0) UNSAFE();
    CUresult result = fake_give_work(__func__, &stream, &graph);
    if (result != CUDA_SUCCESS) return result;
    block *it = (block *)((char *)memory - BLOCK_ROOM);
    if (it->is_of_graph != (graph != NULL) || it->stream_id != stream->id)
        fake_misuse("memory of stream %d is freed on stream %d", (int)it->stream_id,
                    (int)stream->id);
    if (graph != NULL)
        fake_add_node(graph, &(fake_node){.kind = NODE_FREE, .memory = memory});
    else
        release(it);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    BEGIN();
    *total = (size_t)fake_setting("FAKE_CUDA_MEMORY", 1 << 28);
    CUcontext context = fake_current();
    pthread_mutex_lock(&fake_lock);
    *free_bytes = *total - context->used;
    pthread_mutex_unlock(&fake_lock);
    return CUDA_SUCCESS;
}

/* Allocates pinned host memory, which does not count as device memory. */
FAKE_CUDA_API CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    BEGIN();
    UNSAFE();
    block *it = flags == 0 ? aligned_alloc(256, BLOCK_ROOM + (bytes + 255) / 256 * 256) : NULL;
    if (it == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    memset((char *)it + BLOCK_ROOM, 0xa5, bytes);
    *it = (block){.context = fake_current(), .bytes = bytes, .is_pinned = true};
    *memory = (char *)keep_as(it, true) + BLOCK_ROOM;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemFreeHost(void *memory)
{
    BEGIN();
    UNSAFE();
    block *it = (block *)((char *)memory - BLOCK_ROOM);
    if (!it->is_pinned) return INVALID_VALUE;
    fake_forget(it);
    fake_drop(it);
    return CUDA_SUCCESS;
}

static _Atomic long uploaded, downloaded;

/* Copies memory in a stream. Captures of copies are not supported, because no test needs them. */
static CUresult copy(const char *function, void *dst, const void *src, size_t bytes,
                     CUstream stream)
{
    CUgraph graph;
    CUresult result = fake_give_work(function, &stream, &graph);
    if (result != CUDA_SUCCESS) return result;
    if (graph != NULL) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fake_access(dst, bytes, true, stream);
    fake_access(src, bytes, false, stream);
    fake_copy(dst, src, bytes, stream);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes,
                                            CUstream stream)
{
    BEGIN();
    uploaded += (long)bytes;
    return copy(__func__, dst, src, bytes, stream);
}

FAKE_CUDA_API CUresult cuMemcpyDtoHAsync_v2(void *dst, const void *src, size_t bytes,
                                            CUstream stream)
{
    BEGIN();
    downloaded += (long)bytes;
    return copy(__func__, dst, src, bytes, stream);
}

FAKE_CUDA_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes,
                                            CUstream stream)
{
    BEGIN();
    return copy(__func__, dst, src, bytes, stream);
}

FAKE_CUDA_API CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t bytes,
                                       CUstream stream)
{
    CUgraph graph;
    BEGIN();
    CUresult result = fake_give_work(__func__, &stream, &graph);
    if (result != CUDA_SUCCESS) return result;
    const fake_node node = {.kind = NODE_SET, .memory = dst, .value = value, .bytes = bytes};
    if (graph == NULL) {
        fake_access(dst, bytes, true, stream);
        return fake_execute(&node, stream);
    }
    fake_add_node(graph, &node);
    return CUDA_SUCCESS;
}

/* ---- Modules: their images are made by fake_nvrtc.c ------------------------------------------ */

/* Whether the device can run code for this architecture: compute_XY, sm_XY or sm_XYa. */
static bool runs(const char *arch)
{
    const int mine = (int)fake_setting("FAKE_CUDA_CAPABILITY", 90);
    if (strncmp(arch, "compute_", 8) == 0) return atoi(arch + 8) <= mine;
    const int its = atoi(arch + 3);
    const bool is_exact = arch[strlen(arch) - 1] == 'a';
    return is_exact ? its == mine : its / 10 == mine / 10 && its <= mine;
}

/* Reads the architecture, the symbol and the macros of an image. */
static bool read_image(const char *image, char arch[32], CUfunction function)
{
    int at = 0, length = 0;
    if (sscanf(image, "fake cubin %31s %63s%n", arch, function->symbol, &at) != 2) return false;
    for (int i = 0; i < FAKE_MACROS; i++, at += length)
        if (sscanf(image + at, "%d%n", &function->macros[i], &length) != 1) return false;
    return true;
}

FAKE_CUDA_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    char arch[32];
    struct CUfunc_st function = {.macros = {0}};
    BEGIN();
    if (!read_image(image, arch, &function)) return CUDA_ERROR_INVALID_IMAGE;
    if (!runs(arch)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *module = fake_keep(calloc(1, sizeof **module));
    (*module)->context = fake_current();
    (*module)->function = function;
    (*module)->function.module = *module;
    modules++;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuModuleUnload(CUmodule module)
{
    BEGIN();
    UNSAFE();
    if (module->latest_work > module->context->waited)
        fake_misuse("the module of %s is unloaded while it may run", module->function.symbol);
    modules--;
    fake_drop(module);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    BEGIN();
    *function = &module->function;
    return strcmp(name, module->function.symbol) == 0 ? CUDA_SUCCESS : NOT_FOUND;
}

FAKE_CUDA_API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    (void)function;
    BEGIN();
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 40 : 0;
    if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
        *value = fake_setting("FAKE_CUDA_SHARED", 0);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    BEGIN();
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        function->dynamic_shared = value;
    return CUDA_SUCCESS;
}

/* ---- Events: any two are at least a millisecond apart ---------------------------------------- */

FAKE_CUDA_API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    BEGIN();
    *event = fake_keep(calloc(1, sizeof **event));
    (*event)->context = fake_current();
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuEventDestroy_v2(CUevent event)
{
    BEGIN();
    fake_drop(event);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuEventRecord(CUevent event, CUstream stream)
{
    CUgraph graph;
    BEGIN();
    if (event->context != fake_current()) return INVALID_HANDLE;
    CUresult result = fake_give_work(__func__, &stream, &graph);
    if (result != CUDA_SUCCESS) return result;
    event->is_recorded = true;
    event->is_captured = graph != NULL;
    event->graph = graph;
    event->capture_id = stream->capture_id;
    fake_order_record(event, stream);
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    event->device_ns = fake_device_ns;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuEventSynchronize(CUevent event)
{
    BEGIN();
    UNSAFE();
    fake_host_waits_for_event(event);
    return CUDA_SUCCESS;
}

/* All work is complete at once, unless FAKE_CUDA_FAIL is cuEventQuery=600 (CUDA_ERROR_NOT_READY).
 */
FAKE_CUDA_API CUresult cuEventQuery(CUevent event)
{
    BEGIN();
    UNSAFE();
    return event->is_captured ? CAPTURED_EVENT : CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    BEGIN();
    const double passed = 1e3 * (double)(end->time.tv_sec - start->time.tv_sec) +
                          1e-6 * (double)(end->time.tv_nsec - start->time.tv_nsec);
    *milliseconds = passed > 1 ? (float)passed : 1;
    if (fake_setting("FAKE_CUDA_US", 0) > 0)
        *milliseconds = 1e-6f * (float)(end->device_ns - start->device_ns);
    return start->is_recorded && end->is_recorded ? CUDA_SUCCESS : INVALID_HANDLE;
}

/* ---- For the tests --------------------------------------------------------------------------- */

fake_number_function fake_cuda_live, fake_cuda_depth, fake_cuda_modules, fake_cuda_misuses,
    fake_cuda_uploaded, fake_cuda_downloaded;

FAKE_CUDA_API int fake_cuda_live(void)
{
    pthread_mutex_lock(&fake_lock);
    int result = retained;
    for (int i = 0; i < objects_end; i++)
        result += objects[i].memory != NULL;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

FAKE_CUDA_API int fake_cuda_depth(void)
{
    return depth;
}

FAKE_CUDA_API int fake_cuda_modules(void)
{
    return modules;
}

FAKE_CUDA_API int fake_cuda_misuses(void)
{
    return atomic_exchange(&misuses, 0);
}

FAKE_CUDA_API int fake_cuda_uploaded(void)
{
    return (int)uploaded;
}

FAKE_CUDA_API int fake_cuda_downloaded(void)
{
    return (int)downloaded;
}
