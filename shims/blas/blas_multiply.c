/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a product with legal arguments. A large product runs on the GPU, if the user requests that;
 * other products are computed by tgl_sgemm() and the like. These functions fail if there is no
 * memory or a matrix is not aligned. Then the next BLAS computes the product: the one that the
 * program would use without this library. If there is none, aligned copies of the matrices are
 * multiplied, or a plain loop runs.
 */
#include "blas_shim.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* ---- Arguments ------------------------------------------------------------------------------- */

tgl_transpose blas_transpose_of_letter(tgl_type type, char letter)
{
    if (blas_is_complex(type) && (letter == 'R' || letter == 'r')) return TGL_CONJ_NO_TRANS;
    return letter == 'N' || letter == 'n'   ? TGL_NO_TRANS
           : letter == 'T' || letter == 't' ? TGL_TRANS
           : letter == 'C' || letter == 'c' ? TGL_CONJ_TRANS
                                            : 0;
}

tgl_transpose blas_transpose_of_cblas(tgl_type type, int value)
{
    if (blas_is_complex(type) && value == TGL_CONJ_NO_TRANS) return TGL_CONJ_NO_TRANS;
    const bool is_legal = value == TGL_NO_TRANS || value == TGL_TRANS || value == TGL_CONJ_TRANS;
    return is_legal ? (tgl_transpose)value : 0;
}

char blas_letter_of(tgl_transpose trans)
{
    return trans == TGL_NO_TRANS     ? 'N'
           : trans == TGL_TRANS      ? 'T'
           : trans == TGL_CONJ_TRANS ? 'C'
                                     : 'R';
}

/* ---- The next BLAS --------------------------------------------------------------------------- */

/* Defines call_FUNCTION(), which calls the Fortran function xGEMM at `address`. T: the type of the
 * elements or, if they are complex, of their parts; I: the integer type. The last two arguments are
 * the lengths of the strings, as Fortran compilers pass them. */
#define CALL_OF(function, T, I)                                                                    \
    static void call_##function(void *address, const blas_gemm *g)                                 \
    {                                                                                              \
        typedef void gemm(const char *, const char *, const I *, const I *, const I *, const T *,  \
                          const T *, const I *, const T *, const I *, const T *, T *, const I *,   \
                          size_t, size_t);                                                         \
        const char trans_a = blas_letter_of(g->trans_a), trans_b = blas_letter_of(g->trans_b);     \
        const I m = (I)g->m, n = (I)g->n, k = (I)g->k;                                             \
        const I lda = (I)g->lda, ldb = (I)g->ldb, ldc = (I)g->ldc;                                 \
        const T alpha[] = {(T)g->alpha, (T)g->alpha_imag};                                         \
        const T beta[] = {(T)g->beta, (T)g->beta_imag};                                            \
        ((gemm *)address)(&trans_a, &trans_b, &m, &n, &k, alpha, g->A, &lda, g->B, &ldb, beta,     \
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
    {"sgemm_", TGL_F32, false, call_sgemm},
    {"scipy_sgemm_", TGL_F32, false, call_sgemm},
    {"sgemm_64_", TGL_F32, true, call_sgemm_64},
    {"scipy_sgemm_64_", TGL_F32, true, call_sgemm_64},
    {"dgemm_", TGL_F64, false, call_dgemm},
    {"scipy_dgemm_", TGL_F64, false, call_dgemm},
    {"dgemm_64_", TGL_F64, true, call_dgemm_64},
    {"scipy_dgemm_64_", TGL_F64, true, call_dgemm_64},
    {"cgemm_", TGL_C64, false, call_sgemm},
    {"scipy_cgemm_", TGL_C64, false, call_sgemm},
    {"cgemm_64_", TGL_C64, true, call_sgemm_64},
    {"scipy_cgemm_64_", TGL_C64, true, call_sgemm_64},
    {"zgemm_", TGL_C128, false, call_dgemm},
    {"scipy_zgemm_", TGL_C128, false, call_dgemm},
    {"zgemm_64_", TGL_C128, true, call_dgemm_64},
    {"scipy_zgemm_64_", TGL_C128, true, call_dgemm_64},
};

static bool fits_32_bits(const blas_gemm *g)
{
    const int64_t values[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
    for (size_t i = 0; i < BLAS_COUNT_OF(values); i++)
        if (values[i] > INT32_MAX) return false;
    return true;
}

/* Calls the BLAS that follows this library in the search order of the loader (RTLD_NEXT). Returns
 * false if there is none, or if it has only 32-bit integers and a size needs more. */
static bool multiply_by_next(const blas_gemm *g)
{
    for (size_t i = 0; i < BLAS_COUNT_OF(functions); i++) {
        if (functions[i].type != g->type || (!functions[i].is_64 && !fits_32_bits(g))) continue;
        void *address = dlsym(RTLD_NEXT, functions[i].name);
        if (address == NULL) continue;
        functions[i].call(address, g);
        return true;
    }
    return false;
}

/* ---- The loop -------------------------------------------------------------------------------- */

/* Loads the real part (part = 0) or the imaginary part (part = 1) of element `index` of a matrix.
 * Uses memcpy(), because the matrix may be unaligned. */
static double load(const blas_gemm *g, const void *matrix, int64_t index, int part)
{
    const size_t size = tgl_type_size(g->type);
    const bool is_single = blas_is_single(g->type);
    const size_t number = is_single ? sizeof(float) : sizeof(double);
    float single;
    double value;
    memcpy(is_single ? (void *)&single : &value,
           (const char *)matrix + index * (int64_t)size + (size_t)part * number, number);
    return is_single ? single : value;
}

static void store(const blas_gemm *g, int64_t index, int part, double value)
{
    const size_t size = tgl_type_size(g->type);
    const bool is_single = blas_is_single(g->type);
    const size_t number = is_single ? sizeof(float) : sizeof(double);
    const float single = (float)value;
    memcpy((char *)g->C + index * (int64_t)size + (size_t)part * number,
           is_single ? (const void *)&single : &value, number);
}

/* A real or complex number. For real types im has no influence on the result. */
typedef struct complex_number {
    double re, im;
} complex_number;

static complex_number load_element(const blas_gemm *g, const void *matrix, int64_t index,
                                   tgl_transpose trans)
{
    const bool is_conjugated = trans == TGL_CONJ_TRANS || trans == TGL_CONJ_NO_TRANS;
    complex_number z = {load(g, matrix, index, 0), 0};
    if (blas_is_complex(g->type)) z.im = load(g, matrix, index, 1) * (is_conjugated ? -1 : 1);
    return z;
}

/* sum += x*y. */
static void add_product(bool is_complex, complex_number *sum, complex_number x, complex_number y)
{
    sum->re += x.re * y.re;
    if (!is_complex) return;
    sum->re -= x.im * y.im;
    sum->im += x.re * y.im + x.im * y.re;
}

/* sum += (re, im)*x. */
static void add_scaled(complex_number *sum, double re, double im, complex_number x)
{
    sum->re += re * x.re;
    sum->im += re * x.im;
    if (im == 0) return;
    sum->re -= im * x.im;
    sum->im += im * x.re;
}

static void multiply_by_loop(const blas_gemm *g)
{
    const bool trans_a = blas_is_transposed(g->trans_a), trans_b = blas_is_transposed(g->trans_b);
    const bool is_complex = blas_is_complex(g->type);
    const int64_t a_row = trans_a ? g->lda : 1, a_column = trans_a ? 1 : g->lda;
    const int64_t b_row = trans_b ? g->ldb : 1, b_column = trans_b ? 1 : g->ldb;
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t i = 0; i < g->m; i++) {
            complex_number sum = {0, 0}, result = {0, 0};
            for (int64_t l = 0; !blas_has_no_alpha(g) && l < g->k; l++)
                add_product(is_complex, &sum,
                            load_element(g, g->A, i * a_row + l * a_column, g->trans_a),
                            load_element(g, g->B, l * b_row + j * b_column, g->trans_b));
            const int64_t at = i + j * g->ldc;
            if (!blas_has_no_alpha(g) && g->k > 0)
                add_scaled(&result, g->alpha, g->alpha_imag, sum);
            if (blas_has_beta(g))
                add_scaled(&result, g->beta, g->beta_imag, load_element(g, g->C, at, TGL_NO_TRANS));
            store(g, at, 0, result.re);
            if (is_complex) store(g, at, 1, result.im);
        }
}

/* ---- The product ----------------------------------------------------------------------------- */

/* Whether C stays as it is. The reference BLAS then returns before it accesses a matrix. */
static bool is_nothing_to_do(const blas_gemm *g)
{
    return g->m == 0 || g->n == 0 ||
           ((blas_has_no_alpha(g) || g->k == 0) && g->beta == 1 && g->beta_imag == 0);
}

static tgl_status multiply_by_tegula(tgl_device *dev, const blas_gemm *g)
{
    if (dev == NULL) return TGL_NO_DEVICE;
    if (!blas_is_complex(g->type)) return blas_multiply_real(dev, g);
    const float single_alpha[] = {(float)g->alpha, (float)g->alpha_imag};
    const float single_beta[] = {(float)g->beta, (float)g->beta_imag};
    const double alpha[] = {g->alpha, g->alpha_imag}, beta[] = {g->beta, g->beta_imag};
    if (g->type == TGL_C64)
        return tgl_cgemm(dev, TGL_COL_MAJOR, g->trans_a, g->trans_b, g->m, g->n, g->k, single_alpha,
                         g->A, g->lda, g->B, g->ldb, single_beta, g->C, g->ldc, NULL);
    return tgl_zgemm(dev, TGL_COL_MAJOR, g->trans_a, g->trans_b, g->m, g->n, g->k, alpha, g->A,
                     g->lda, g->B, g->ldb, beta, g->C, g->ldc, NULL);
}

/* Computes a product with copies of its unaligned matrices. Returns false, with C unchanged, if all
 * matrices are aligned or there is no memory for the copies. Not inlined, so that other products
 * reserve no stack for `aligned`. */
static __attribute__((noinline)) bool multiply_unaligned(const blas_gemm *g, blas_server *server)
{
    blas_gemm aligned;
    blas_copies copies;
    const bool is_done = blas_align(g, &aligned, &copies);
    if (is_done) *server = blas_multiply(&aligned);
    blas_free_copies(g, &copies, is_done);
    return is_done;
}

blas_server blas_multiply(const blas_gemm *g)
{
    tgl_device *dev = blas_device();
    if (is_nothing_to_do(g)) return BLAS_SERVER_NONE;
    if (blas_wants_gpu(g) && blas_multiply_by_gpu(g)) return BLAS_SERVER_GPU;
    if (multiply_by_tegula(dev, g) == TGL_OK) return BLAS_SERVER_TEGULA;
    if (multiply_by_next(g)) return BLAS_SERVER_NEXT;
    blas_server server;
    if (multiply_unaligned(g, &server)) return server;
    multiply_by_loop(g);
    return BLAS_SERVER_LOOP;
}
