/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cublas.so: replaces cuBLAS and cuBLASLt (TEGULA_CUBLAS) for the program. It is used with
 * libfake_cuda.so, whose device memory is host memory. It implements what the tests of the program
 * need: the types f32, f64, f16, bf16, c64 and c128, without transposes; batches only in the Ex
 * functions and cuBLASLt.
 *
 * Environment variables select failures:
 *   FAKE_CUBLAS_FAIL   the name of a function that fails
 *   FAKE_CUBLAS_WRONG  a fault of products: "by one" (all elements are 1 too large), "nothing" (C
 *                      is not written), or "nan" (the last element is NaN)
 */
#include "elements.h"
#include "fake_cuda.h"

#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_INITIALIZED = 1, INTERNAL_ERROR = 14, NOT_SUPPORTED = 15 };

/* A matrix in column-major order, or a batch of them; type: cudaDataType_t. */
typedef struct layout {
    int type;
    int64_t rows, cols, ld, stride;
    int32_t batch;
} layout;

typedef struct result {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} result;

static int fails(const char *function)
{
    const char *told = getenv("FAKE_CUBLAS_FAIL");
    return told != NULL && strcmp(told, function) == 0;
}

/* Like the real library, this one needs a context. */
static int has_context(void)
{
    const char *path = getenv("TEGULA_LIBCUDA");
    void *driver = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW), *context = NULL;
    if (driver == NULL) return 0;
    int (*get)(void **) = (int (*)(void **))dlsym(driver, "cuCtxGetCurrent");
    return get != NULL && get(&context) == 0 && context != NULL;
}

/* The tgl_type of a cudaDataType_t; 0: this library does not support it. */
static tgl_type type_of(int data_type)
{
    return data_type == 0    ? TGL_F32
           : data_type == 1  ? TGL_F64
           : data_type == 2  ? TGL_F16
           : data_type == 4  ? TGL_C64
           : data_type == 5  ? TGL_C128
           : data_type == 14 ? TGL_BF16
                             : (tgl_type)0;
}

/* x or, with TF32, x rounded to 10 bits of fraction. */
static double rounded(double x, int is_tf32)
{
    return is_tf32 && x != 0 ? ldexp(nearbyint(ldexp(x, 10 - ilogb(x))), ilogb(x) - 10) : x;
}

static double complex get(tgl_type type, const void *x, int64_t at, int is_tf32)
{
    const int parts = element_parts(type);
    double complex value = rounded(element_get(type, x, parts * at), is_tf32);
    /* clang 14 has no CMPLX(). */
    if (parts == 2) ((double *)&value)[1] = rounded(element_get(type, x, 2 * at + 1), is_tf32);
    return value;
}

static void set(tgl_type type, void *x, int64_t at, double complex value)
{
    const int parts = element_parts(type);
    element_set(type, x, parts * at, creal(value));
    if (parts == 2) element_set(type, x, 2 * at + 1, cimag(value));
}

static int is_wrong(const char *how)
{
    const char *told = getenv("FAKE_CUBLAS_WRONG");
    return told != NULL && strcmp(told, how) == 0;
}

/* C := A*B for each product of the batch. */
static int multiply(const layout *a, const void *A, const layout *b, const void *B, const layout *c,
                    void *C, int compute)
{
    const tgl_type type_a = type_of(a->type), type_b = type_of(b->type), type_c = type_of(c->type);
    const int is_tf32 = compute == 77, is_f64 = type_a == TGL_F64 || type_a == TGL_C128;
    const int is_f32 = type_a == TGL_F32 || type_a == TGL_C64;
    if (type_a == 0 || type_b != type_a || type_c == 0) return NOT_SUPPORTED;
    if (is_f64 ? compute != 70 : compute != 68 && !(is_tf32 && is_f32)) return NOT_SUPPORTED;
    if (is_wrong("nothing")) return 0;
    const int by_one = is_wrong("by one");
    for (int64_t batch = 0; batch < c->batch; batch++)
        for (int64_t j = 0; j < c->cols; j++)
            for (int64_t i = 0; i < c->rows; i++) {
                double complex sum = by_one;
                for (int64_t p = 0; p < a->cols; p++)
                    sum += get(type_a, A, batch * a->stride + i + p * a->ld, is_tf32) *
                           get(type_b, B, batch * b->stride + p + j * b->ld, is_tf32);
                set(type_c, C, batch * c->stride + i + j * c->ld, sum);
            }
    if (is_wrong("nan")) element_set(type_c, C, c->rows - 1 + (c->cols - 1) * c->ld, NAN);
    return 0;
}

/* Whether the scalar, which is of the accumulation type, has this value. */
static int is_scalar(const void *scalar, int compute, double value)
{
    return compute == 70 ? *(const double *)scalar == value
                         : *(const float *)scalar == (float)value;
}

/* ---- cuBLAS ---------------------------------------------------------------------------------- */

FAKE_CUDA_API int cublasCreate_v2(void **handle)
{
    if (!has_context() || fails("cublasCreate")) return NOT_INITIALIZED;
    *handle = malloc(1);
    return 0;
}

FAKE_CUDA_API int cublasDestroy_v2(void *handle)
{
    free(handle);
    return 0;
}

FAKE_CUDA_API int cublasGetVersion_v2(void *handle, int *version)
{
    (void)handle;
    *version = 130203;
    return 0;
}

FAKE_CUDA_API int cublasGemmStridedBatchedEx(void *handle, int transa, int transb, int m, int n,
                                             int k, const void *alpha, const void *A, int type_a,
                                             int lda, long long stride_a, const void *B, int type_b,
                                             int ldb, long long stride_b, const void *beta, void *C,
                                             int type_c, int ldc, long long stride_c, int batch,
                                             int compute, int algo)
{
    const layout a = {type_a, m, k, lda, stride_a, batch}, b = {type_b, k, n, ldb, stride_b, batch};
    const layout c = {type_c, m, n, ldc, stride_c, batch};
    (void)handle;
    if (!has_context() || fails("cublasGemmEx")) return INTERNAL_ERROR;
    if (transa != 0 || transb != 0 || algo != -1 || !is_scalar(alpha, compute, 1) ||
        !is_scalar(beta, compute, 0))
        return NOT_SUPPORTED;
    return multiply(&a, A, &b, B, &c, C, compute);
}

FAKE_CUDA_API int cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k,
                               const void *alpha, const void *A, int type_a, int lda, const void *B,
                               int type_b, int ldb, const void *beta, void *C, int type_c, int ldc,
                               int compute, int algo)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, type_a, lda, 0, B,
                                      type_b, ldb, 0, beta, C, type_c, ldc, 0, 1, compute, algo);
}

#define TYPED_GEMM(function, type, compute)                                                        \
    FAKE_CUDA_API int function(void *handle, int transa, int transb, int m, int n, int k,          \
                               const void *alpha, const void *A, int lda, const void *B, int ldb,  \
                               const void *beta, void *C, int ldc)                                 \
    {                                                                                              \
        if (fails(#function)) return INTERNAL_ERROR;                                               \
        return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, type, lda, B, type, ldb,    \
                            beta, C, type, ldc, compute, -1);                                      \
    }
TYPED_GEMM(cublasSgemm_v2, 0, 68)
TYPED_GEMM(cublasDgemm_v2, 1, 70)
TYPED_GEMM(cublasCgemm_v2, 4, 68)
TYPED_GEMM(cublasZgemm_v2, 5, 70)

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

static int make(void **object, const char *function)
{
    if (fails(function)) return INTERNAL_ERROR;
    *object = malloc(1);
    return 0;
}

static int drop(void *object)
{
    free(object);
    return 0;
}

FAKE_CUDA_API int cublasLtCreate(void **handle)
{
    return make(handle, "cublasLtCreate");
}

FAKE_CUDA_API int cublasLtDestroy(void *handle)
{
    return drop(handle);
}

/* Makes a descriptor, which contains only the compute type. */
FAKE_CUDA_API int cublasLtMatmulDescCreate(void **desc, int compute, int scale)
{
    if (fails("cublasLtMatmulDescCreate")) return INTERNAL_ERROR;
    if ((scale != 0 && scale != 1 && scale != 4 && scale != 5) || scale % 2 != (compute == 70))
        return NOT_SUPPORTED;
    int *kept = malloc(sizeof *kept);
    if (kept == NULL) return INTERNAL_ERROR;
    *kept = compute;
    *desc = kept;
    return 0;
}

FAKE_CUDA_API int cublasLtMatmulDescDestroy(void *desc)
{
    return drop(desc);
}

FAKE_CUDA_API int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value,
                                                 size_t size)
{
    (void)desc, (void)attribute;
    return size == sizeof(int32_t) && *(const int32_t *)value == 0 ? 0 : NOT_SUPPORTED;
}

FAKE_CUDA_API int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t cols,
                                             int64_t ld)
{
    if (type_of(type) == 0) return NOT_SUPPORTED;
    layout *l = malloc(sizeof *l);
    if (l == NULL) return INTERNAL_ERROR;
    *l = (layout){type, (int64_t)rows, (int64_t)cols, ld, 0, 1};
    *made = l;
    return 0;
}

FAKE_CUDA_API int cublasLtMatrixLayoutDestroy(void *l)
{
    return drop(l);
}

FAKE_CUDA_API int cublasLtMatrixLayoutSetAttribute(layout *l, int attribute, const void *value,
                                                   size_t size)
{
    if (attribute == 5 && size == sizeof l->batch)
        l->batch = *(const int32_t *)value;
    else if (attribute == 6 && size == sizeof l->stride)
        l->stride = *(const int64_t *)value;
    else
        return NOT_SUPPORTED;
    return 0;
}

FAKE_CUDA_API int cublasLtMatmulPreferenceCreate(void **preference)
{
    return make(preference, "cublasLtMatmulPreferenceCreate");
}

FAKE_CUDA_API int cublasLtMatmulPreferenceDestroy(void *preference)
{
    return drop(preference);
}

FAKE_CUDA_API int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute,
                                                       const void *value, size_t size)
{
    (void)preference, (void)value;
    return attribute == 1 && size == sizeof(uint64_t) ? 0 : NOT_SUPPORTED;
}

/* Returns three candidates: one that the heuristic marks as bad, one that fails, one that works. */
FAKE_CUDA_API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *A, void *B,
                                                 void *C, void *D, void *preference, int wanted,
                                                 result *results, int *found)
{
    (void)handle, (void)desc, (void)A, (void)B, (void)C, (void)D, (void)preference;
    if (fails("cublasLtMatmulAlgoGetHeuristic")) return INTERNAL_ERROR;
    for (*found = 0; *found < 3 && *found < wanted; ++*found)
        results[*found] =
            (result){.algorithm = {(uint64_t)*found}, .state = *found == 0 ? NOT_SUPPORTED : 0};
    return 0;
}

FAKE_CUDA_API int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *A,
                                 const layout *a, const void *B, const layout *b, const void *beta,
                                 const void *C, const layout *c, void *D, const layout *d,
                                 const uint64_t *algorithm, void *workspace, size_t workspace_size,
                                 void *stream)
{
    (void)handle, (void)workspace, (void)workspace_size, (void)stream, (void)d;
    const int compute = *(const int *)desc;
    if (!has_context() || algorithm[0] != 2 || fails("cublasLtMatmul")) return INTERNAL_ERROR;
    if (!is_scalar(alpha, compute, 1) || !is_scalar(beta, compute, 0) || C != D)
        return NOT_SUPPORTED;
    if (a->rows != c->rows || b->cols != c->cols || a->cols != b->rows) return NOT_SUPPORTED;
    return multiply(a, A, b, B, c, D, compute);
}
