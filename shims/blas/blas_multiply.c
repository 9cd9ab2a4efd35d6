/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a product with legal arguments: a large product on the GPU, if the user requests that, and
 * other products by tgl_sgemm() or tgl_dgemm(). If these functions fail, because there is no memory
 * or a matrix is not aligned to its element size, calls the function that the program would have
 * called without this library. If there is none, aligned copies of the matrices are multiplied, or
 * a plain loop runs.
 */
#include "blas_shim.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* ---- Arguments ------------------------------------------------------------------------------- */

tgl_transpose blas_transpose_of_letter(char letter)
{
    return letter == 'N' || letter == 'n'   ? TGL_NO_TRANS
           : letter == 'T' || letter == 't' ? TGL_TRANS
           : letter == 'C' || letter == 'c' ? TGL_CONJ_TRANS
                                            : 0;
}

tgl_transpose blas_transpose_of_cblas(int value)
{
    const bool is_legal = value == TGL_NO_TRANS || value == TGL_TRANS || value == TGL_CONJ_TRANS;
    return is_legal ? (tgl_transpose)value : 0;
}

char blas_letter_of(tgl_transpose trans)
{
    return trans == TGL_NO_TRANS ? 'N' : 'T';
}

/* ---- The next BLAS --------------------------------------------------------------------------- */

/* Defines call_FUNCTION(), which calls an xGEMM with elements of type T and integers of type I. The
 * two lengths at the end are those of the strings, as Fortran compilers pass them. */
#define CALL_OF(function, T, I)                                                                    \
    static void call_##function(void *address, const blas_gemm *g)                                 \
    {                                                                                              \
        typedef void gemm(const char *, const char *, const I *, const I *, const I *, const T *,  \
                          const T *, const I *, const T *, const I *, const T *, T *, const I *,   \
                          size_t, size_t);                                                         \
        const char trans_a = blas_letter_of(g->trans_a), trans_b = blas_letter_of(g->trans_b);     \
        const I m = (I)g->m, n = (I)g->n, k = (I)g->k;                                             \
        const I lda = (I)g->lda, ldb = (I)g->ldb, ldc = (I)g->ldc;                                 \
        const T alpha = (T)g->alpha, beta = (T)g->beta;                                            \
        ((gemm *)address)(&trans_a, &trans_b, &m, &n, &k, &alpha, g->A, &lda, g->B, &ldb, &beta,   \
                          g->C, &ldc, 1, 1);                                                       \
    }
CALL_OF(sgemm, float, int32_t)
CALL_OF(dgemm, double, int32_t)
CALL_OF(sgemm_64, float, int64_t)
CALL_OF(dgemm_64, double, int64_t)

static const struct {
    const char *name;
    tgl_type type;
    bool is_64;
    void (*call)(void *address, const blas_gemm *g);
} functions[] = {
    {"sgemm_", TGL_F32, false, call_sgemm},      {"scipy_sgemm_", TGL_F32, false, call_sgemm},
    {"sgemm_64_", TGL_F32, true, call_sgemm_64}, {"scipy_sgemm_64_", TGL_F32, true, call_sgemm_64},
    {"dgemm_", TGL_F64, false, call_dgemm},      {"scipy_dgemm_", TGL_F64, false, call_dgemm},
    {"dgemm_64_", TGL_F64, true, call_dgemm_64}, {"scipy_dgemm_64_", TGL_F64, true, call_dgemm_64},
};

static bool fits_32_bits(const blas_gemm *g)
{
    const int64_t values[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
    for (size_t i = 0; i < COUNT_OF(values); i++)
        if (values[i] > INT32_MAX) return false;
    return true;
}

/* Calls the next BLAS. RTLD_NEXT: the libraries after this one in the search order of the
 * loader. */
static bool multiply_by_next(const blas_gemm *g)
{
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        if (functions[i].type != g->type || (!functions[i].is_64 && !fits_32_bits(g))) continue;
        void *address = dlsym(RTLD_NEXT, functions[i].name);
        if (address == NULL) continue;
        functions[i].call(address, g);
        return true;
    }
    return false;
}

/* ---- The loop -------------------------------------------------------------------------------- */

/* Loads an element. memcpy() is used because a matrix may be unaligned. */
static double load(const blas_gemm *g, const void *matrix, int64_t index)
{
    const size_t size = tgl_type_size(g->type);
    float single;
    double value;
    memcpy(g->type == TGL_F32 ? (void *)&single : &value,
           (const char *)matrix + index * (int64_t)size, size);
    return g->type == TGL_F32 ? single : value;
}

static void store(const blas_gemm *g, int64_t index, double value)
{
    const size_t size = tgl_type_size(g->type);
    const float single = (float)value;
    memcpy((char *)g->C + index * (int64_t)size,
           g->type == TGL_F32 ? (const void *)&single : &value, size);
}

static void multiply_by_loop(const blas_gemm *g)
{
    const bool trans_a = g->trans_a != TGL_NO_TRANS, trans_b = g->trans_b != TGL_NO_TRANS;
    const int64_t a_row = trans_a ? g->lda : 1, a_column = trans_a ? 1 : g->lda;
    const int64_t b_row = trans_b ? g->ldb : 1, b_column = trans_b ? 1 : g->ldb;
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t i = 0; i < g->m; i++) {
            double sum = 0;
            for (int64_t l = 0; g->alpha != 0 && l < g->k; l++)
                sum += load(g, g->A, i * a_row + l * a_column) *
                       load(g, g->B, l * b_row + j * b_column);
            double result = g->alpha != 0 && g->k > 0 ? g->alpha * sum : 0;
            if (g->beta != 0) result += g->beta * load(g, g->C, i + j * g->ldc);
            store(g, i + j * g->ldc, result);
        }
}

/* ---- The product ----------------------------------------------------------------------------- */

/* Whether C does not change. In this case the reference BLAS returns before it accesses a matrix.
 */
static bool is_nothing_to_do(const blas_gemm *g)
{
    return g->m == 0 || g->n == 0 || ((g->alpha == 0 || g->k == 0) && g->beta == 1);
}

static tgl_status multiply_by_tegula(tgl_device *dev, const blas_gemm *g)
{
    if (dev == NULL) return TGL_NO_DEVICE;
    if (g->type == TGL_F32)
        return tgl_sgemm(dev, TGL_COL_MAJOR, g->trans_a, g->trans_b, g->m, g->n, g->k,
                         (float)g->alpha, g->A, g->lda, g->B, g->ldb, (float)g->beta, g->C, g->ldc,
                         NULL);
    return tgl_dgemm(dev, TGL_COL_MAJOR, g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->A,
                     g->lda, g->B, g->ldb, g->beta, g->C, g->ldc, NULL);
}

blas_server blas_multiply(const blas_gemm *g)
{
    tgl_device *dev = blas_device();
    if (is_nothing_to_do(g)) return BLAS_SERVER_NONE;
    if (blas_wants_gpu(g) && blas_multiply_by_gpu(g)) return BLAS_SERVER_GPU;
    if (multiply_by_tegula(dev, g) == TGL_OK) return BLAS_SERVER_TEGULA;
    if (multiply_by_next(g)) return BLAS_SERVER_NEXT;
    blas_server server;
    if (blas_multiply_unaligned(g, &server)) return server;
    multiply_by_loop(g);
    return BLAS_SERVER_LOOP;
}
