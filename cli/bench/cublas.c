/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS and cuBLASLt by dlopen.
 *
 * Both take column-major matrices. A row-major matrix is the column-major matrix of its transpose,
 * so C := op(A)*op(B) is computed as C^T := op(B)^T*op(A)^T: A and B, m and n are exchanged, and
 * the transpose flags stay.
 */
#include "cublas.h"
#include "cublas_api.h"
#include "elements.h"
#include "problem_options.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
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

/* libcublas is linked with libcublasLt, whose functions are found through it. */
static const entry cublas_entries[] = {
    ENTRY(cublasCreate, "cublasCreate_v2"),
    ENTRY(cublasDestroy, "cublasDestroy_v2"),
    ENTRY(cublasGetVersion, "cublasGetVersion_v2"),
    ENTRY(cublasSgemm, "cublasSgemm_v2"),
    ENTRY(cublasDgemm, "cublasDgemm_v2"),
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

struct cublas {
    cublas_functions call;
    tgl_device *dev;
    int device;    /* the driver's */
    void *context; /* the device's primary one; NULL: not retained */
    cublasHandle_t handle;
    cublasLtHandle_t light;
    char version[32];
};

struct cublas_product {
    const cublas *lib;
    cublas_way way;
    tgl_problem problem;
    /* The rest is for cuBLASLt. A and B are its first and second matrix: our B and A. */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t A, B, C;
    cublasLtMatmulAlgo_t algo;
    void *workspace;
    size_t workspace_size;
};

const char *cublas_way_name(cublas_way way)
{
    return way == CUBLAS_DEFAULT ? "cublas" : "cublaslt";
}

/* ---- Finding --------------------------------------------------------------------------------- */

static void *load(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* The highest version of the files that match. */
static void *load_pattern(const char *base, const char *folder)
{
    char pattern[PATH_MAX];
    glob_t found;
    void *library = NULL;
    const int length = snprintf(pattern, sizeof pattern, "%s%s/libcublas.so*", base, folder);
    if (length >= (int)sizeof pattern || glob(pattern, 0, NULL, &found) != 0) return NULL;
    for (size_t i = found.gl_pathc; i > 0 && library == NULL; i--)
        library = load(found.gl_pathv[i - 1]);
    globfree(&found);
    return library;
}

/* Where toolkits and Python wheels put it. Columns: an environment variable with the beginning of
 * the path (NULL: none), the folder. */
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
        library = load(names[i]);
    for (size_t i = 0; i < sizeof places / sizeof places[0] && library == NULL; i++) {
        const char *base = places[i].variable != NULL ? getenv(places[i].variable) : "";
        if (base != NULL) library = load_pattern(base, places[i].folder);
    }
    return library;
}

static void *load_cublas(char *message, size_t message_size)
{
    const char *own = getenv("TEGULA_CUBLAS");
    struct stat info;
    /* These variables change cuBLAS's arithmetic. The first is removed rather than set to 0, which
     * would disable TF32 where a product asks for it; without it f32 is computed in FP32. */
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
    void *library = is_folder ? load_pattern(own, "") : load(own);
    if (library == NULL)
        snprintf(message, message_size, "TEGULA_CUBLAS is \"%s\", which has no cuBLAS", own);
    return library;
}

static bool find(cublas_functions *call, void *library, const entry *entries, size_t count,
                 char *message, size_t message_size)
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

/* cuBLAS works in the context that is current: the one that Tegula's memory belongs to. */
static bool enter_context(cublas *c, char *message, size_t message_size)
{
    const char *path = getenv("TEGULA_LIBCUDA"), *colon = strchr(tgl_device_name(c->dev), ':');
    void *driver = load(path != NULL ? path : "libcuda.so.1");
    if (driver == NULL) {
        snprintf(message, message_size, "libcuda.so.1 was not found");
        return false;
    }
    if (!find(&c->call, driver, driver_entries, sizeof driver_entries / sizeof driver_entries[0],
              message, message_size))
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
    if (find(&c->call, library, cublas_entries, sizeof cublas_entries / sizeof cublas_entries[0],
             message, message_size) &&
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

/* ---- Running --------------------------------------------------------------------------------- */

static int operation(tgl_transpose trans)
{
    return trans == TGL_NO_TRANS ? CUBLAS_OP_N : CUBLAS_OP_T;
}

static int64_t ld_a(const tgl_problem *p)
{
    return p->trans_a == TGL_NO_TRANS ? p->k : p->m;
}

static int64_t result_stride(const tgl_problem *p)
{
    return p->type_d != 0 ? p->stride_d : p->stride_c;
}

static int64_t ld_b(const tgl_problem *p)
{
    return p->trans_b == TGL_NO_TRANS ? p->n : p->k;
}

/* cudaDataType_t */
static int data_type(tgl_type type)
{
    switch (type) {
    case TGL_F64:
        return CUDA_R_64F;
    case TGL_F16:
        return CUDA_R_16F;
    case TGL_BF16:
        return CUDA_R_16BF;
    default:
        return CUDA_R_32F;
    }
}

/* cublasComputeType_t */
static int compute_type(const tgl_problem *p)
{
    if (p->type_a == TGL_F64) return CUBLAS_COMPUTE_64F;
    const bool is_tf32 = p->type_a == TGL_F32 && p->compute == TGL_COMPUTE_TF32;
    return is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* 1 or 0 in the accumulation type. */
static const void *scalar(const tgl_problem *p, int value)
{
    static const float f32[] = {0, 1};
    static const double f64[] = {0, 1};
    return p->type_a == TGL_F64 ? (const void *)&f64[value] : (const void *)&f32[value];
}

/* A single product of one type without TF32: the functions that most programs call. */
static cublasStatus_t run_plain(const cublas *c, const tgl_problem *p, operand_set s)
{
    const int trans_a = operation(p->trans_a), trans_b = operation(p->trans_b);
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)ld_a(p), ldb = (int)ld_b(p);
    const void *one = scalar(p, 1), *zero = scalar(p, 0);
    if (p->type_a == TGL_F64)
        return c->call.cublasDgemm(c->handle, trans_b, trans_a, n, m, k, one, s.B, ldb, s.A, lda,
                                   zero, s.C, n);
    return c->call.cublasSgemm(c->handle, trans_b, trans_a, n, m, k, one, s.B, ldb, s.A, lda, zero,
                               s.C, n);
}

static cublasStatus_t run_ex(const cublas *c, const tgl_problem *p, operand_set s)
{
    const int trans_a = operation(p->trans_a), trans_b = operation(p->trans_b);
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)ld_a(p), ldb = (int)ld_b(p);
    const int type_a = data_type(p->type_a), type_b = data_type(p->type_b);
    const int type_c = data_type(problem_result_type(p)), compute = compute_type(p);
    const void *one = scalar(p, 1), *zero = scalar(p, 0);
    if (p->batch == 1)
        return c->call.cublasGemmEx(c->handle, trans_b, trans_a, n, m, k, one, s.B, type_b, ldb,
                                    s.A, type_a, lda, zero, s.C, type_c, n, compute,
                                    CUBLAS_GEMM_DEFAULT);
    return c->call.cublasGemmStridedBatchedEx(c->handle, trans_b, trans_a, n, m, k, one, s.B,
                                              type_b, ldb, p->stride_b, s.A, type_a, lda,
                                              p->stride_a, zero, s.C, type_c, n, result_stride(p),
                                              (int)p->batch, compute, CUBLAS_GEMM_DEFAULT);
}

static bool is_plain(const tgl_problem *p)
{
    return p->batch == 1 && (p->type_a == TGL_F32 || p->type_a == TGL_F64) &&
           problem_result_type(p) == p->type_a && compute_type(p) != CUBLAS_COMPUTE_32F_FAST_TF32;
}

static cublasStatus_t run_light(const cublas_product *x, const cublasLtMatmulAlgo_t *algo,
                                operand_set s)
{
    const cublas *c = x->lib;
    return c->call.cublasLtMatmul(c->light, x->desc, scalar(&x->problem, 1), s.B, x->A, s.A, x->B,
                                  scalar(&x->problem, 0), s.C, x->C, s.C, x->C, algo, x->workspace,
                                  x->workspace_size, NULL);
}

bool cublas_run(const cublas_product *x, operand_set s)
{
    if (x->way == CUBLAS_LT_BEST) return run_light(x, &x->algo, s) == 0;
    return (is_plain(&x->problem) ? run_plain : run_ex)(x->lib, &x->problem, s) == 0;
}

/* ---- Choosing cuBLASLt's algorithm ----------------------------------------------------------- */

enum { CANDIDATES = 16, TRIALS = 5 };
static const size_t workspace_wanted =
    (size_t)32
    << 20; /* NVIDIA's recommendation for Hopper (cuBLAS documentation, cublasSetWorkspace) */

static cublasStatus_t make_layout(const cublas *c, const tgl_problem *p, tgl_type type,
                                  int64_t rows, int64_t cols, int64_t stride,
                                  cublasLtMatrixLayout_t *layout)
{
    const int32_t batch = (int32_t)p->batch;
    cublasStatus_t status = c->call.cublasLtMatrixLayoutCreate(
        layout, data_type(type), (uint64_t)rows, (uint64_t)cols, rows);
    if (status != 0 || batch == 1) return status;
    status = c->call.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                      &batch, sizeof batch);
    if (status != 0) return status;
    return c->call.cublasLtMatrixLayoutSetAttribute(
        *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
}

/* Describes the stored matrices in column-major order, where rows and columns are exchanged. */
static cublasStatus_t describe(cublas_product *x)
{
    const cublas_functions *call = &x->lib->call;
    const tgl_problem *p = &x->problem;
    const int32_t first = operation(p->trans_b), second = operation(p->trans_a);
    cublasStatus_t status = call->cublasLtMatmulDescCreate(
        &x->desc, compute_type(p), p->type_a == TGL_F64 ? CUDA_R_64F : CUDA_R_32F);
    if (status == 0)
        status = call->cublasLtMatmulDescSetAttribute(x->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                                                      sizeof first);
    if (status == 0)
        status = call->cublasLtMatmulDescSetAttribute(x->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                                      sizeof second);
    if (status == 0)
        status =
            make_layout(x->lib, p, p->type_b, ld_b(p), p->k + p->n - ld_b(p), p->stride_b, &x->A);
    if (status == 0)
        status =
            make_layout(x->lib, p, p->type_a, ld_a(p), p->m + p->k - ld_a(p), p->stride_a, &x->B);
    if (status == 0)
        status =
            make_layout(x->lib, p, problem_result_type(p), p->n, p->m, result_stride(p), &x->C);
    return status;
}

/* The mean seconds of a call, after a warm-up call; infinite if one fails. */
static double try_algorithm(const cublas_product *x, const cublasLtMatmulAlgo_t *algo,
                            const operands *o, tgl_timer *timer)
{
    double seconds;
    for (int i = 0; i <= TRIALS; i++) {
        if (i == 1 && tgl_timer_start(timer, NULL) != TGL_OK) return HUGE_VAL;
        if (run_light(x, algo, operands_for(o, i)) != 0) return HUGE_VAL;
    }
    return tgl_timer_stop(timer, NULL, &seconds) == TGL_OK ? seconds / TRIALS : HUGE_VAL;
}

/* false: none works. */
static bool try_all(cublas_product *x, const operands *o,
                    const cublasLtMatmulHeuristicResult_t *results, int count)
{
    tgl_timer *timer;
    if (tgl_timer_create(o->dev, &timer) != TGL_OK) return false;
    double best = HUGE_VAL;
    for (int i = 0; i < count; i++) {
        if (results[i].state != 0) continue;
        const double seconds = try_algorithm(x, &results[i].algo, o, timer);
        if (seconds < best) {
            best = seconds;
            x->algo = results[i].algo;
        }
    }
    tgl_timer_destroy(timer);
    return best < HUGE_VAL;
}

static cublasStatus_t ask_heuristic(const cublas_product *x,
                                    cublasLtMatmulHeuristicResult_t *results, int *count)
{
    const cublas_functions *call = &x->lib->call;
    cublasLtMatmulPreference_t preference;
    cublasStatus_t status = call->cublasLtMatmulPreferenceCreate(&preference);
    if (status != 0) return status;
    status = call->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &x->workspace_size,
        sizeof x->workspace_size);
    if (status == 0)
        status = call->cublasLtMatmulAlgoGetHeuristic(x->lib->light, x->desc, x->A, x->B, x->C,
                                                      x->C, preference, CANDIDATES, results, count);
    call->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

static bool choose_algorithm(cublas_product *x, const operands *o, char *message,
                             size_t message_size)
{
    cublasLtMatmulHeuristicResult_t results[CANDIDATES];
    int count = 0;
    x->workspace_size = workspace_wanted;
    if (tgl_alloc(o->dev, x->workspace_size, &x->workspace) != TGL_OK) x->workspace_size = 0;
    cublasStatus_t status = describe(x);
    if (status == 0) status = ask_heuristic(x, results, &count);
    if (status != 0)
        snprintf(message, message_size, "cuBLASLt does not take it: cublasStatus_t %d", status);
    else if (try_all(x, o, results, count))
        return true;
    else
        snprintf(message, message_size, "none of cuBLASLt's %d algorithms works", count);
    return false;
}

/* ---- Products -------------------------------------------------------------------------------- */

/* Row-major and tight is all that a bench has. */
static const char *unsupported_reason(const tgl_problem *p)
{
    if (p->m > INT_MAX || p->n > INT_MAX || p->k > INT_MAX || p->batch > INT_MAX)
        return "the sizes do not fit its integers";
    if (!element_is_known(p->type_a) || element_is_integer(p->type_a) || p->type_a != p->type_b)
        return "it does not take the types";
    return NULL;
}

cublas_product *cublas_prepare(cublas *c, cublas_way way, const operands *o, char *message,
                               size_t message_size)
{
    const tgl_problem *p = &o->problem;
    const char *reason = unsupported_reason(p);
    if (reason != NULL) {
        snprintf(message, message_size, "%s", reason);
        return NULL;
    }
    cublas_product *x = calloc(1, sizeof *x);
    if (x == NULL) {
        snprintf(message, message_size, "no memory");
        return NULL;
    }
    *x = (cublas_product){.lib = c, .way = way, .problem = *p};
    if (way == CUBLAS_DEFAULT || choose_algorithm(x, o, message, message_size)) return x;
    cublas_release(x);
    return NULL;
}

void cublas_release(cublas_product *x)
{
    if (x == NULL) return;
    const cublas_functions *call = &x->lib->call;
    if (x->C != NULL) call->cublasLtMatrixLayoutDestroy(x->C);
    if (x->B != NULL) call->cublasLtMatrixLayoutDestroy(x->B);
    if (x->A != NULL) call->cublasLtMatrixLayoutDestroy(x->A);
    if (x->desc != NULL) call->cublasLtMatmulDescDestroy(x->desc);
    tgl_free(x->lib->dev, x->workspace);
    free(x);
}
