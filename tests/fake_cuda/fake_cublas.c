/* SPDX-License-Identifier: Apache-2.0
 *
 * libfake_cublas.so: answers for cuBLAS and cuBLASLt (TEGULA_CUBLAS) over libfake_cuda.so, whose
 * device memory is the host's. It knows as much of them as the program uses: f32, one product.
 *
 * Environment variables choose what goes wrong:
 *   FAKE_CUBLAS_FAIL   a function that fails
 *   FAKE_CUBLAS_WRONG  set: products are off by one
 */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_INITIALIZED = 1, INTERNAL_ERROR = 14, NOT_SUPPORTED = 15 };

typedef struct layout {
    int64_t rows, cols, ld;
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

/* As the real one, this one needs a context. */
static int has_context(void)
{
    const char *path = getenv("TEGULA_LIBCUDA");
    void *driver = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW), *context = NULL;
    if (driver == NULL) return 0;
    int (*get)(void **) = (int (*)(void **))dlsym(driver, "cuCtxGetCurrent");
    return get != NULL && get(&context) == 0 && context != NULL;
}

/* C := A*B in column-major order. */
static void multiply(int64_t m, int64_t n, int64_t k, const float *A, int64_t lda, const float *B,
                     int64_t ldb, float *C, int64_t ldc)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            double sum = getenv("FAKE_CUBLAS_WRONG") != NULL;
            for (int64_t p = 0; p < k; p++)
                sum += (double)A[i + p * lda] * B[p + j * ldb];
            C[i + j * ldc] = (float)sum;
        }
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

FAKE_CUDA_API int cublasSgemm_v2(void *handle, int transa, int transb, int m, int n, int k,
                                 const float *alpha, const float *A, int lda, const float *B,
                                 int ldb, const float *beta, float *C, int ldc)
{
    (void)handle;
    if (!has_context() || fails("cublasSgemm")) return INTERNAL_ERROR;
    if (transa != 0 || transb != 0 || *alpha != 1 || *beta != 0) return NOT_SUPPORTED;
    multiply(m, n, k, A, lda, B, ldb, C, ldc);
    return 0;
}

FAKE_CUDA_API int cublasDgemm_v2(void)
{
    return NOT_SUPPORTED;
}

FAKE_CUDA_API int cublasSgemmStridedBatched(void)
{
    return NOT_SUPPORTED;
}

FAKE_CUDA_API int cublasDgemmStridedBatched(void)
{
    return NOT_SUPPORTED;
}

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

FAKE_CUDA_API int cublasLtMatmulDescCreate(void **desc, int compute, int scale)
{
    const int is_f32 = compute == 68 && scale == 0;
    return is_f32 ? make(desc, "cublasLtMatmulDescCreate") : NOT_SUPPORTED;
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
    if (type != 0) return NOT_SUPPORTED;
    layout *l = malloc(sizeof *l);
    if (l == NULL) return INTERNAL_ERROR;
    *l = (layout){(int64_t)rows, (int64_t)cols, ld};
    *made = l;
    return 0;
}

FAKE_CUDA_API int cublasLtMatrixLayoutDestroy(void *l)
{
    return drop(l);
}

FAKE_CUDA_API int cublasLtMatrixLayoutSetAttribute(void)
{
    return NOT_SUPPORTED;
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

/* Three candidates: one that the heuristic itself marks as bad, one that fails, one that works. */
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
    (void)handle, (void)desc, (void)workspace, (void)workspace_size, (void)stream, (void)d;
    if (!has_context() || algorithm[0] != 2 || fails("cublasLtMatmul")) return INTERNAL_ERROR;
    if (*(const float *)alpha != 1 || *(const float *)beta != 0 || C != D) return NOT_SUPPORTED;
    if (a->rows != c->rows || b->cols != c->cols || a->cols != b->rows) return NOT_SUPPORTED;
    multiply(c->rows, c->cols, a->cols, A, a->ld, B, b->ld, D, c->ld);
    return 0;
}
