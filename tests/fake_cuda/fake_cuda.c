/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cuda.so: see fake_cuda.h.
 */
#include "fake_cuda.h"
#include "../../kernels/lib/gemm_args.h"
#include "cuda/driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES_MAX = 4, STACK_MAX = 16, OBJECTS_MAX = 1024 };
enum { INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_HANDLE = 400 };
enum { NO_DEVICE = 100, NOT_FOUND = 500 };

struct CUctx_st {
    int users;
    CUresult fault; /* of a kernel; sticks */
    size_t used;
};

struct CUfunc_st {
    CUmodule module;
    atomic_int dynamic_shared; /* that launches may ask for, beside what all may */
    char symbol[64];
    int block_m, block_n; /* of C, that a block computes; 0: the image does not tell */
};

struct CUmod_st {
    CUcontext context;
    struct CUfunc_st function;
};

struct CUevent_st {
    CUcontext context;
    bool is_recorded;
    struct timespec time;
};

/* In front of each allocation, which keeps the alignment of real ones. */
typedef struct header {
    CUcontext context;
    size_t bytes;
    char padding[256 - sizeof(CUcontext) - sizeof(size_t)];
} header;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st contexts[DEVICES_MAX];
static int retained; /* of all contexts together */
static struct {
    CUcontext context;
    void *memory; /* from malloc(); NULL: the row is free */
} objects[OBJECTS_MAX];
static __thread CUcontext stack[STACK_MAX];
static __thread int depth;

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? atol(text) : otherwise;
}

static CUcontext current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

/* Counts a block of host memory as an object of the current context, or no longer. */
static void *keep(void *memory)
{
    pthread_mutex_lock(&lock);
    int i = 0;
    while (objects[i].memory != NULL)
        i++; /* more than OBJECTS_MAX would be a leak to look at anyway */
    objects[i].context = current();
    objects[i].memory = memory;
    pthread_mutex_unlock(&lock);
    return memory;
}

static void drop(void *memory)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i].memory == memory) objects[i].memory = NULL;
    pthread_mutex_unlock(&lock);
    free(memory);
}

/* ---- Results --------------------------------------------------------------------------------- */

/* What FAKE_CUDA_FAIL says about a function; 0: nothing. */
static CUresult told(const char *function)
{
    const char *list = getenv("FAKE_CUDA_FAIL");
    const size_t length = strlen(function);
    while (list != NULL && *list != '\0') {
        if (strncmp(list, function, length) == 0 && list[length] == '=')
            return atoi(list + length + 1);
        list = strchr(list, ',');
        if (list != NULL) list++;
    }
    return CUDA_SUCCESS;
}

/* The result of a call that needs a context, before it has done anything. */
static CUresult begin(const char *function)
{
    CUcontext context = current();
    CUresult result = told(function);
    if (context == NULL) return INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    const bool sticks = result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_FAILED;
    if (context->fault == CUDA_SUCCESS && sticks) context->fault = result;
    if (context->fault != CUDA_SUCCESS) result = context->fault;
    pthread_mutex_unlock(&lock);
    return result;
}

#define BEGIN()                                                                                    \
    do {                                                                                           \
        CUresult begun = begin(__func__);                                                          \
        if (begun != CUDA_SUCCESS) return begun;                                                   \
    } while (0)
#define TOLD()                                                                                     \
    do {                                                                                           \
        CUresult result_told = told(__func__);                                                     \
        if (result_told != CUDA_SUCCESS) return result_told;                                       \
    } while (0)

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
    *version = (int)setting("FAKE_CUDA_VERSION", 13000);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuDeviceGetCount(int *number)
{
    *number = (int)setting("FAKE_CUDA_DEVICES", 1);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (ordinal < 0 || ordinal >= setting("FAKE_CUDA_DEVICES", 1)) return INVALID_DEVICE;
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
    *bytes = (size_t)setting("FAKE_CUDA_MEMORY", 1 << 28);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    const int capability = (int)setting("FAKE_CUDA_CAPABILITY", 90);
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
    default:
        *value = 1000000;
    }
    return CUDA_SUCCESS;
}

/* ---- Contexts -------------------------------------------------------------------------------- */

FAKE_CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    TOLD();
    pthread_mutex_lock(&lock);
    contexts[device].users++;
    retained++;
    pthread_mutex_unlock(&lock);
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

/* The last user takes a faulty context, and all in it, away. */
FAKE_CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUcontext context = &contexts[device];
    pthread_mutex_lock(&lock);
    retained--;
    if (--context->users == 0 && context->fault != CUDA_SUCCESS) {
        for (int i = 0; i < OBJECTS_MAX; i++)
            if (objects[i].memory != NULL && objects[i].context == context) {
                free(objects[i].memory);
                objects[i].memory = NULL;
            }
        *context = (struct CUctx_st){.users = 0};
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current();
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

FAKE_CUDA_API CUresult cuCtxSynchronize(void)
{
    BEGIN();
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    BEGIN();
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream;
    BEGIN();
    return event->context == current() && flags == 0 ? CUDA_SUCCESS : INVALID_HANDLE;
}

FAKE_CUDA_API CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    (void)stream;
    BEGIN();
    *status = (int)setting("FAKE_CUDA_CAPTURES", 0);
    return CUDA_SUCCESS;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

FAKE_CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes)
{
    BEGIN();
    CUcontext context = current();
    pthread_mutex_lock(&lock);
    const bool fits = bytes <= (size_t)setting("FAKE_CUDA_MEMORY", 1 << 28) - context->used;
    if (fits) context->used += bytes;
    pthread_mutex_unlock(&lock);
    header *block = fits ? aligned_alloc(256, sizeof *block + (bytes + 255) / 256 * 256) : NULL;
    if (block == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    block->context = context;
    block->bytes = bytes;
    keep(block);
    *memory = block + 1;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemFree_v2(CUdeviceptr memory)
{
    BEGIN();
    if (memory == NULL) return CUDA_SUCCESS;
    header *block = (header *)memory - 1;
    pthread_mutex_lock(&lock);
    block->context->used -= block->bytes;
    pthread_mutex_unlock(&lock);
    drop(block);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    BEGIN();
    *total = (size_t)setting("FAKE_CUDA_MEMORY", 1 << 28);
    CUcontext context = current();
    pthread_mutex_lock(&lock);
    *free_bytes = *total - context->used;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    BEGIN();
    memcpy(dst, src, bytes);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemcpyDtoH_v2(void *dst, const void *src, size_t bytes)
{
    BEGIN();
    memcpy(dst, src, bytes);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes,
                                            CUstream stream)
{
    (void)stream;
    BEGIN();
    memcpy(dst, src, bytes);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t bytes,
                                       CUstream stream)
{
    (void)stream;
    BEGIN();
    memset(dst, value, bytes);
    return CUDA_SUCCESS;
}

/* ---- Modules: an image is "fake cubin ARCH SYMBOL BM BN" ------------------------------------- */

/* Whether a device runs machine code for sm_XY, or sm_XYa. */
static bool runs(const char *arch)
{
    const int mine = (int)setting("FAKE_CUDA_CAPABILITY", 90);
    if (strncmp(arch, "compute_", 8) == 0) return atoi(arch + 8) <= mine;
    const int its = atoi(arch + 3);
    const bool is_exact = arch[strlen(arch) - 1] == 'a';
    return is_exact ? its == mine : its / 10 == mine / 10 && its <= mine;
}

FAKE_CUDA_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    char arch[32], symbol[64];
    int block_m, block_n;
    BEGIN();
    if (sscanf(image, "fake cubin %31s %63s %d %d", arch, symbol, &block_m, &block_n) != 4)
        return CUDA_ERROR_INVALID_IMAGE;
    if (!runs(arch)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *module = keep(calloc(1, sizeof **module));
    (*module)->context = current();
    (*module)->function.module = *module;
    (*module)->function.block_m = block_m;
    (*module)->function.block_n = block_n;
    snprintf((*module)->function.symbol, sizeof symbol, "%s", symbol);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuModuleUnload(CUmodule module)
{
    BEGIN();
    drop(module);
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
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    BEGIN();
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        function->dynamic_shared = value;
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                                   int threads, size_t shared)
{
    (void)function, (void)shared;
    BEGIN();
    *blocks = 2048 / threads;
    return CUDA_SUCCESS;
}

/* The ladder's kernels, by their common signature. */
static void run_sgemm(void **args)
{
    const int m = *(int *)args[0], n = *(int *)args[1], k = *(int *)args[2];
    const float alpha = *(float *)args[3], beta = *(float *)args[8];
    const float *A = *(const float **)args[4], *B = *(const float **)args[6];
    const long long lda = *(long long *)args[5], ldb = *(long long *)args[7];
    float *C = *(float **)args[9];
    const long long ldc = *(long long *)args[10];
    for (long long i = 0; i < m; i++)
        for (long long j = 0; j < n; j++) {
            float sum = 0, *c = &C[i * ldc + j];
            for (long long p = 0; p < k; p++)
                sum += A[i * lda + p] * B[p * ldb + j];
            *c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;
        }
}

/* The production families, a batch, as the function was compiled: without transposes; of an
 * epilogue a bias by column and a residual. */
static void run_gemm(const struct tgl_gemm_args *args)
{
    for (int b = 0; b < args->batch; b++) {
        const float *A = args->A_array ? args->A_array[b] : args->A + b * args->stride_a;
        const float *B = args->B_array ? args->B_array[b] : args->B + b * args->stride_b;
        float *C = args->C_array ? args->C_array[b] : args->C + b * args->stride_c;
        for (long long i = 0; i < args->m; i++)
            for (long long j = 0; j < args->n; j++) {
                float sum = 0, *c = &C[i * args->ldc + j];
                for (long long p = 0; p < args->k; p++)
                    sum += A[i * args->lda + p] * B[p * args->ldb + j];
                *c = args->beta == 0 ? args->alpha * sum : args->alpha * sum + args->beta * *c;
                if (args->bias) *c += args->bias[b * args->stride_bias + j];
                if (args->residual)
                    *c += args->residual[b * args->stride_residual + i * args->ld_residual + j];
            }
    }
}

static bool is_called(CUfunction function, const char *symbol)
{
    return strcmp(function->symbol, symbol) == 0;
}

/* Whether the grid has the blocks that the kernel expects by its arguments, of gemm/simt.cu also
 * along x: run_gemm() computes the whole batch and all of C, however many there are. */
static bool has_expected_grid(CUfunction function, const fake_cuda_launch *l)
{
    const struct tgl_gemm_args *args = &l->args;
    const int batch = is_called(function, "sgemm_small_batch") ? 1 : args->batch;
    if (l->grid[1] != 1 || l->grid[2] != (unsigned)batch) return false;
    if (!is_called(function, "sgemm_simt")) return true;
    if (function->block_m < 1 || function->block_n < 1 || args->splits < 1) return false;
    const long long tiles_m = (args->m + function->block_m - 1) / function->block_m;
    const long long tiles_n = (args->n + function->block_n - 1) / function->block_n;
    const long long whole = args->tiles_whole, split = tiles_m * tiles_n - whole;
    if (whole < 0 || split < 0 || args->cluster != (int)l->cluster) return false;
    return l->grid[0] == whole + split * args->splits && whole % args->cluster == 0 &&
           (split == 0 || args->splits % args->cluster == 0);
}

/* On this thread, in turn; the latest is launched[latest]. */
static _Thread_local fake_cuda_launch launched[FAKE_CUDA_LAUNCHES];
static _Thread_local int latest;

static CUresult launch(CUfunction function, const fake_cuda_launch *how, const unsigned block[3],
                       void **arguments)
{
    enum { SHARED_FOR_ALL = 48 * 1024 };
    const unsigned *grid = how->grid;
    latest = (latest + 1) % FAKE_CUDA_LAUNCHES;
    fake_cuda_launch *now = &launched[latest];
    *now = *how;
    if (function->module->context != current()) return INVALID_HANDLE;
    if (how->dynamic_shared > SHARED_FOR_ALL && (int)how->dynamic_shared > function->dynamic_shared)
        return INVALID_VALUE;
    if (grid[0] == 0 || grid[1] == 0 || grid[1] > 65535 || grid[2] == 0 || grid[2] > 65535 ||
        block[0] == 0 || block[0] > 1024 || block[1] != 1 || block[2] != 1)
        return INVALID_VALUE;
    if (is_called(function, "sgemm_simt") || is_called(function, "sgemm_skinny") ||
        is_called(function, "sgemm_matvec") || is_called(function, "sgemm_small_batch")) {
        now->args = *(const struct tgl_gemm_args *)arguments[0];
        if (!has_expected_grid(function, now)) return INVALID_VALUE;
        run_gemm(&now->args);
    } else if (strncmp(function->symbol, "sgemm_", 6) == 0) {
        run_sgemm(arguments);
    }
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared, CUstream stream,
                                      void **arguments, void **extra)
{
    const fake_cuda_launch how = {{grid_x, grid_y, grid_z}, shared, 1, 0, {0}};
    const unsigned block[3] = {block_x, block_y, block_z};
    (void)stream;
    BEGIN();
    return extra == NULL ? launch(function, &how, block, arguments) : INVALID_VALUE;
}

/* What is said of cuLaunchKernel() goes for this, too. */
FAKE_CUDA_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                        void **arguments, void **extra)
{
    const unsigned *grid = config->grid;
    fake_cuda_launch how = {{grid[0], grid[1], grid[2]}, config->dynamic_shared, 1, 0, {0}};
    BEGIN();
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const CUlaunchAttribute *attribute = &config->attributes[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            how.cluster = attribute->value.cluster[0];
            if (attribute->value.cluster[1] != 1 || attribute->value.cluster[2] != 1)
                return INVALID_VALUE;
        } else if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            how.overlaps = attribute->value.allows_overlap;
        } else {
            return INVALID_VALUE;
        }
    }
    if (how.cluster == 0 || how.cluster > 8 || grid[0] % how.cluster != 0 || extra != NULL)
        return INVALID_VALUE;
    const CUresult result = begin("cuLaunchKernel");
    return result == CUDA_SUCCESS ? launch(function, &how, config->block, arguments) : result;
}

/* ---- Events: at least a millisecond lies between any two ------------------------------------- */

FAKE_CUDA_API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    BEGIN();
    *event = keep(calloc(1, sizeof **event));
    (*event)->context = current();
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuEventDestroy_v2(CUevent event)
{
    BEGIN();
    drop(event);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    BEGIN();
    if (event->context != current()) return INVALID_HANDLE;
    event->is_recorded = true;
    clock_gettime(CLOCK_MONOTONIC, &event->time);
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    BEGIN();
    return CUDA_SUCCESS;
}

FAKE_CUDA_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    BEGIN();
    const double passed = 1e3 * (double)(end->time.tv_sec - start->time.tv_sec) +
                          1e-6 * (double)(end->time.tv_nsec - start->time.tv_nsec);
    *milliseconds = passed > 1 ? (float)passed : 1;
    return start->is_recorded && end->is_recorded ? CUDA_SUCCESS : INVALID_HANDLE;
}

/* ---- For the tests --------------------------------------------------------------------------- */

fake_cuda_live_function fake_cuda_live;
fake_cuda_depth_function fake_cuda_depth;
fake_cuda_launched_function fake_cuda_launched;

FAKE_CUDA_API int fake_cuda_live(void)
{
    pthread_mutex_lock(&lock);
    int result = retained;
    for (int i = 0; i < OBJECTS_MAX; i++)
        result += objects[i].memory != NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

FAKE_CUDA_API int fake_cuda_depth(void)
{
    return depth;
}

FAKE_CUDA_API fake_cuda_launch fake_cuda_launched(int back)
{
    return launched[(latest + FAKE_CUDA_LAUNCHES - back) % FAKE_CUDA_LAUNCHES];
}
