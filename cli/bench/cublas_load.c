/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds cuBLAS and cuBLASLt with dlopen, and opens them on the device of a CUDA context.
 */
#include "cublas_load.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENTRY(member, name)                                                                        \
    {                                                                                              \
        offsetof(cublas_functions, member), name                                                   \
    }

typedef struct entry {
    size_t offset;
    const char *name;
} entry;

/* The functions of libcublas and libcublasLt. dlsym() finds both in the handle of libcublas,
 * because libcublas depends on libcublasLt. */
static const entry cublas_entries[] = {
    ENTRY(cublasCreate, "cublasCreate_v2"),
    ENTRY(cublasDestroy, "cublasDestroy_v2"),
    ENTRY(cublasGetVersion, "cublasGetVersion_v2"),
    ENTRY(cublasSgemm, "cublasSgemm_v2"),
    ENTRY(cublasDgemm, "cublasDgemm_v2"),
    ENTRY(cublasCgemm, "cublasCgemm_v2"),
    ENTRY(cublasZgemm, "cublasZgemm_v2"),
    ENTRY(cublasGemmEx, "cublasGemmEx"),
    ENTRY(cublasGemmStridedBatchedEx, "cublasGemmStridedBatchedEx"),
    ENTRY(cublasLtCreate, "cublasLtCreate"),
    ENTRY(cublasLtDestroy, "cublasLtDestroy"),
    ENTRY(cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate"),
    ENTRY(cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy"),
    ENTRY(cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute"),
    ENTRY(cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate"),
    ENTRY(cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy"),
    ENTRY(cublasLtMatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute"),
    ENTRY(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate"),
    ENTRY(cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy"),
    ENTRY(cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute"),
    ENTRY(cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic"),
    ENTRY(cublasLtMatmul, "cublasLtMatmul"),
};

static const entry driver_entries[] = {
    ENTRY(cuDeviceGet, "cuDeviceGet"),
    ENTRY(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"),
    ENTRY(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2"),
    ENTRY(cuCtxPushCurrent, "cuCtxPushCurrent_v2"),
    ENTRY(cuCtxPopCurrent, "cuCtxPopCurrent_v2"),
};

/* ---- Finding --------------------------------------------------------------------------------- */

static void *load_library(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Loads the libcublas whose path comes last in alphabetical order, and so usually the one with the
 * highest version, in the folders that match the glob pattern base/folder. NULL: there is none. */
static void *load_pattern(const char *base, const char *folder)
{
    char pattern[PATH_MAX];
    glob_t found;
    void *library = NULL;
    const int length = snprintf(pattern, sizeof pattern, "%s%s/libcublas.so*", base, folder);
    if (length >= (int)sizeof pattern || glob(pattern, 0, NULL, &found) != 0) return NULL;
    for (size_t i = found.gl_pathc; i > 0 && library == NULL; i--)
        library = load_library(found.gl_pathv[i - 1]);
    globfree(&found);
    return library;
}

/* Folders of CUDA toolkits and Python wheels. Columns: the environment variable that holds the
 * beginning of the path (NULL: none); the rest of the path. */
static const struct {
    const char *variable, *folder;
} places[] = {
    {"CUDA_HOME", "/lib64"},
    {"CUDA_PATH", "/lib64"},
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, "/usr/local/cuda-*/lib64"},
    {NULL, "/opt/cuda/lib64"},
    {"CONDA_PREFIX", "/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/cu*/lib"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/cu*/lib"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/cu*/lib"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/cu*/lib"},
};

static void *load_anywhere(void)
{
    static const char *const names[] = {"libcublas.so", "libcublas.so.13", "libcublas.so.12",
                                        "libcublas.so.11"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && library == NULL; i++)
        library = load_library(names[i]);
    for (size_t i = 0; i < sizeof places / sizeof places[0] && library == NULL; i++) {
        const char *base = places[i].variable != NULL ? getenv(places[i].variable) : "";
        if (base != NULL) library = load_pattern(base, places[i].folder);
    }
    return library;
}

static void *load_cublas(char *message, size_t message_size)
{
    const char *own = getenv("TEGULA_CUBLAS");
    if (own != NULL && own[0] == '\0') own = NULL;
    struct stat info;
    /* These variables change cuBLAS's arithmetic. NVIDIA_TF32_OVERRIDE is removed, not set to 0,
     * because 0 would disable TF32 also where a product requests it. Without the variable, f32
     * products that do not request TF32 are computed in FP32. */
    unsetenv("NVIDIA_TF32_OVERRIDE");
    setenv("CUBLAS_EMULATE_SINGLE_PRECISION", "0", 1);
    if (own == NULL) {
        void *library = load_anywhere();
        if (library == NULL)
            snprintf(message, message_size,
                     "cuBLAS was not found: install the CUDA toolkit, or name libcublas.so in "
                     "TEGULA_CUBLAS");
        return library;
    }
    const bool is_folder = stat(own, &info) == 0 && S_ISDIR(info.st_mode);
    void *library = is_folder ? load_pattern(own, "") : load_library(own);
    if (library == NULL)
        snprintf(message, message_size, "TEGULA_CUBLAS is \"%s\", which has no cuBLAS", own);
    return library;
}

static bool find_functions(cublas_functions *call, void *library, const entry *entries,
                           size_t count, char *message, size_t message_size)
{
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, entries[i].name);
        if (address == NULL) {
            snprintf(message, message_size, "the library has no %s", entries[i].name);
            return false;
        }
        memcpy((char *)call + entries[i].offset, &address, sizeof address);
    }
    return true;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Makes the device's primary context current on this thread: cuBLAS uses the current context, and
 * Tegula's memory belongs to the primary one. False: failed, and message says why. */
static bool enter_context(cublas *c, char *message, size_t message_size)
{
    const char *path = getenv("TEGULA_LIBCUDA"), *colon = strchr(tgl_device_name(c->dev), ':');
    void *driver = load_library(path != NULL && path[0] != '\0' ? path : "libcuda.so.1");
    if (driver == NULL) {
        snprintf(message, message_size, "libcuda.so.1 was not found");
        return false;
    }
    if (!find_functions(&c->call, driver, driver_entries,
                        sizeof driver_entries / sizeof driver_entries[0], message, message_size))
        return false;
    void *context;
    int error = c->call.cuDeviceGet(&c->device, colon != NULL ? atoi(colon + 1) : 0);
    if (error == 0) error = c->call.cuDevicePrimaryCtxRetain(&context, c->device);
    if (error == 0) {
        error = c->call.cuCtxPushCurrent(context);
        if (error == 0)
            c->context = context;
        else
            c->call.cuDevicePrimaryCtxRelease(c->device);
    }
    if (error != 0) snprintf(message, message_size, "the driver refused its context: %d", error);
    return error == 0;
}

static bool create_handles(cublas *c, char *message, size_t message_size)
{
    int version = 0;
    cublasStatus_t status = c->call.cublasCreate(&c->handle);
    if (status == 0) status = c->call.cublasLtCreate(&c->light);
    if (status == 0) status = c->call.cublasGetVersion(c->handle, &version);
    if (status != 0) {
        snprintf(message, message_size, "cuBLAS does not start: cublasStatus_t %d", status);
        return false;
    }
    snprintf(c->version, sizeof c->version, "%d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    return true;
}

cublas *cublas_open(tgl_device *dev, char *message, size_t message_size)
{
    void *library = load_cublas(message, message_size);
    if (library == NULL) return NULL;
    cublas *c = calloc(1, sizeof *c);
    if (c == NULL) {
        snprintf(message, message_size, "no memory");
        return NULL;
    }
    c->dev = dev;
    if (find_functions(&c->call, library, cublas_entries,
                       sizeof cublas_entries / sizeof cublas_entries[0], message, message_size) &&
        enter_context(c, message, message_size) && create_handles(c, message, message_size))
        return c;
    cublas_close(c);
    return NULL;
}

void cublas_close(cublas *c)
{
    if (c == NULL) return;
    if (c->light != NULL) c->call.cublasLtDestroy(c->light);
    if (c->handle != NULL) c->call.cublasDestroy(c->handle);
    if (c->context != NULL) {
        void *context;
        c->call.cuCtxPopCurrent(&context);
        c->call.cuDevicePrimaryCtxRelease(c->device);
    }
    free(c);
}

const char *cublas_version(const cublas *c)
{
    return c->version;
}
