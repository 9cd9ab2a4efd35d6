/* SPDX-License-Identifier: Apache-2.0
 *
 * SGEMV, DGEMV, CGEMV and ZGEMV: y := alpha*op(A)*x + beta*y. The call becomes a column-major
 * product with n = 1. The vector x is stored like a row vector whose leading dimension is the
 * increment of x, so the B of the product is the transpose of that row vector. If the increment of
 * y is not 1, the call becomes the product of the transposed matrices,
 *
 *     y^T := alpha * x^T * op(A)^T + beta * y^T
 *
 * with m = 1, and the increment of y as the leading dimension of y^T. Tegula computes products with
 * m = 1 or n = 1 without packing the matrix. If both increments are positive, no vector is copied.
 * If an increment is negative, the first element of its vector is the last one in memory. Then
 * chunks of both vectors, of a fixed size, are copied to the stack.
 */
#include "blas_shim.h"

#include <stddef.h>
#include <string.h>

/* The arguments of xGEMV. */
typedef struct blas_gemv {
    tgl_type type;
    tgl_transpose trans; /* 0: the caller's value is illegal */
    int64_t m, n;
    double alpha, beta;
    const char *A, *x;
    char *y;
    int64_t lda, incx, incy;
    double alpha_imag, beta_imag; /* of complex types; else 0 */
} blas_gemv;

/* The number of the first illegal argument of xGEMV, in the order in which the reference BLAS
 * checks them; 0: all are legal. */
static int check(const blas_gemv *v)
{
    if (v->trans == 0) return 1;
    if (v->m < 0) return 2;
    if (v->n < 0) return 3;
    if (v->lda < (v->m > 1 ? v->m : 1)) return 6;
    if (v->incx == 0) return 8;
    if (v->incy == 0) return 11;
    return 0;
}

/* ---- The product ----------------------------------------------------------------------------- */

/* Returns the operation op' for which op'(X^T) = op(X). */
static tgl_transpose turned(tgl_transpose trans)
{
    return trans == TGL_NO_TRANS     ? TGL_TRANS
           : trans == TGL_TRANS      ? TGL_NO_TRANS
           : trans == TGL_CONJ_TRANS ? TGL_CONJ_NO_TRANS
                                     : TGL_CONJ_TRANS;
}

/* The product y := alpha*op(P)*x + beta*y for a part P of the matrix. op(P) is rows x columns; x
 * and y begin at v->x and v->y. A: address of the first element of P. */
static blas_gemm product_of(const blas_gemv *v, int64_t rows, int64_t columns, const char *A)
{
    if (v->incy == 1)
        return (blas_gemm){.type = v->type,
                           .trans_a = v->trans,
                           .trans_b = TGL_TRANS,
                           .m = rows,
                           .n = 1,
                           .k = columns,
                           .alpha = v->alpha,
                           .beta = v->beta,
                           .A = A,
                           .lda = v->lda,
                           .B = v->x,
                           .ldb = v->incx,
                           .C = v->y,
                           .ldc = rows,
                           .alpha_imag = v->alpha_imag,
                           .beta_imag = v->beta_imag};
    return (blas_gemm){.type = v->type,
                       .trans_a = TGL_NO_TRANS,
                       .trans_b = turned(v->trans),
                       .m = 1,
                       .n = rows,
                       .k = columns,
                       .alpha = v->alpha,
                       .beta = v->beta,
                       .A = v->x,
                       .lda = v->incx,
                       .B = A,
                       .ldb = v->lda,
                       .C = v->y,
                       .ldc = v->incy,
                       .alpha_imag = v->alpha_imag,
                       .beta_imag = v->beta_imag};
}

/* A vector in the caller's memory: element i is at the address first + i*step. */
typedef struct vector {
    char *first;
    ptrdiff_t step;
    size_t element;
} vector;

static vector vector_of(const char *memory, int64_t length, int64_t increment, size_t element)
{
    const ptrdiff_t step = (ptrdiff_t)((size_t)increment * element);
    return (vector){(char *)memory + (step < 0 ? (1 - length) * step : 0), step, element};
}

static void gather(void *to, const vector *from, int64_t begin, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)to + (size_t)i * from->element, from->first + (begin + i) * from->step,
               from->element);
}

static void scatter(const vector *to, const void *from, int64_t begin, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to->first + (begin + i) * to->step, (const char *)from + (size_t)i * to->element,
               to->element);
}

/* Bytes of a chunk. The copies of a chunk of x and of y are on the stack of the caller, which may
 * be small. */
enum { CHUNK_BYTES = 2048 };

static int64_t part_of(int64_t length, int64_t begin, size_t element)
{
    const int64_t chunk = CHUNK_BYTES / (int64_t)element;
    return length - begin < chunk ? length - begin : chunk;
}

/* Computes y[begin] to y[begin + count - 1] with copies of a chunk of y and of each chunk of x.
 * columns: length of x, or 0 if alpha is 0, in which case x is not read. */
static blas_server multiply_chunk(const blas_gemv *v, const vector *x, int64_t columns,
                                  const vector *y, int64_t begin, int64_t count)
{
    double x_copy[CHUNK_BYTES / sizeof(double)], y_copy[CHUNK_BYTES / sizeof(double)];
    const size_t element = tgl_type_size(v->type);
    blas_server server = BLAS_SERVER_NONE;
    blas_gemv part = *v;
    part.x = (const char *)x_copy, part.incx = 1;
    part.y = (char *)y_copy, part.incy = 1;
    if (v->beta != 0 || v->beta_imag != 0) gather(y_copy, y, begin, count);
    int64_t j = 0;
    do {
        const int64_t used = part_of(columns, j, element);
        const bool transposed = blas_is_transposed(v->trans);
        const int64_t corner = transposed ? j + begin * v->lda : begin + j * v->lda;
        gather(x_copy, x, j, used);
        const blas_gemm g = product_of(&part, count, used, v->A + corner * (int64_t)element);
        const blas_server served = blas_multiply(&g);
        if (served > server) server = served;
        part.beta = 1, part.beta_imag = 0;
        j += used;
    } while (j < columns);
    scatter(y, y_copy, begin, count);
    return server;
}

static __attribute__((noinline)) blas_server multiply_copies(const blas_gemv *v, int64_t length_y,
                                                             int64_t length_x)
{
    const size_t element = tgl_type_size(v->type);
    const vector x = vector_of(v->x, length_x, v->incx, element);
    const vector y = vector_of(v->y, length_y, v->incy, element);
    const int64_t columns = v->alpha == 0 && v->alpha_imag == 0 ? 0 : length_x;
    blas_server server = BLAS_SERVER_NONE;
    for (int64_t i = 0; i < length_y; i += part_of(length_y, i, element)) {
        const blas_server served =
            multiply_chunk(v, &x, columns, &y, i, part_of(length_y, i, element));
        if (served > server) server = served;
    }
    return server;
}

static __attribute__((noinline)) blas_server multiply_any(const blas_gemv *v, int64_t length_y,
                                                          int64_t length_x)
{
    const blas_gemm g = product_of(v, length_y, length_x, v->A);
    return blas_multiply(&g);
}

/* Computes a GEMV. Most calls take the inlined path of real types, in which the compiler need not
 * store the members of *v to memory. This saves a tenth of the time of a 2 x 2 matrix. */
static inline blas_server multiply(const blas_gemv *v)
{
    /* As in the reference BLAS, y stays unchanged if A is empty, even if y is not empty and beta is
     * not 1. */
    if (v->m == 0 || v->n == 0) {
        blas_device(); /* the first call reads TEGULA_BLAS_TRACE */
        return BLAS_SERVER_NONE;
    }
    const bool transposed = blas_is_transposed(v->trans);
    const int64_t length_y = transposed ? v->n : v->m, length_x = transposed ? v->m : v->n;
    if (v->incx < 0 || v->incy < 0) return multiply_copies(v, length_y, length_x);
    tgl_device *dev = blas_device();
    if (dev != NULL && !blas_this_process.has_gpu && !blas_is_complex(v->type) && v->alpha != 0) {
        const blas_gemm g = product_of(v, length_y, length_x, v->A);
        if (blas_multiply_real(dev, &g) == TGL_OK) return BLAS_SERVER_TEGULA;
    }
    return multiply_any(v, length_y, length_x);
}

static __attribute__((noinline)) void trace(blas_server server, const char *routine,
                                            const blas_gemv *v)
{
    blas_trace(server, "%s %c m=%lld n=%lld alpha=%g lda=%lld incx=%lld beta=%g incy=%lld", routine,
               blas_letter_of(v->trans), (long long)v->m, (long long)v->n, v->alpha,
               (long long)v->lda, (long long)v->incx, v->beta, (long long)v->incy);
}

/* Inlined into each exported function: a call would store the arguments to memory once more, which
 * takes a sixth of the time of a product of 4 x 4. */
static inline __attribute__((always_inline)) void multiply_and_trace(const char *routine,
                                                                     const blas_gemv *v)
{
    const blas_server server = multiply(v);
    if (blas_is_traced()) trace(server, routine, v);
}

/* ---- Both interfaces ------------------------------------------------------------------------- */

static inline void fortran_gemv(const char *name, const char *padded_name, bool is_64,
                                const blas_gemv *v)
{
    const int argument = check(v);
    if (argument != 0)
        blas_report(padded_name, argument, is_64);
    else
        multiply_and_trace(name, v);
}

/* Converts a CBLAS call to a column-major one. A row-major matrix is the transpose of a
 * column-major matrix. Returns false and sets *error to the first illegal argument. */
static bool turn_column_major(int layout, int trans, blas_gemv *v, blas_error *error)
{
    const bool is_row_major = layout == TGL_ROW_MAJOR;
    v->trans = blas_transpose_of_cblas(v->type, trans);
    if (!is_row_major && layout != TGL_COL_MAJOR) {
        *error = (blas_error){1, 0, "layout", layout};
        return false;
    }
    if (v->trans == 0) {
        *error = (blas_error){2, is_row_major ? 2 : 0, "TransA", trans};
        return false;
    }
    if (is_row_major) {
        const int64_t rows = v->m;
        v->m = v->n, v->n = rows;
        v->trans = turned(v->trans);
    }
    const int argument = check(v);
    if (argument == 0) return true;
    const int number = argument + 1; /* CBLAS has the layout as an additional first argument */
    const bool is_size = is_row_major && (number == 3 || number == 4); /* m and n are exchanged */
    *error = (blas_error){is_size ? 7 - number : number, is_row_major ? number : 0, NULL, 0};
    return false;
}

static void cblas_gemv(const char *name, bool is_64, int layout, int trans, blas_gemv *v)
{
    blas_error error;
    if (turn_column_major(layout, trans, v, &error))
        multiply_and_trace(name, v);
    else
        blas_report_cblas(name, &error, is_64);
}

/* ---- Exported functions ---------------------------------------------------------------------- */

/* Initialises members of a blas_gemv from function arguments of the same names. T: the element
 * type; of: as in BLAS_GEMM_ARGUMENTS(). */
#define GEMV_ARGUMENTS(T, of)                                                                      \
    .type = BLAS_TYPE_OF(T), .m = of m, .n = of n, .A = (const char *)A, .x = (const char *)x,     \
    .y = (char *)y, .lda = of lda, .incx = of incx, .incy = of incy

#define FORTRAN_GEMV(function, name, padded_name, T, I)                                            \
    BLAS_FUNCTION(function,                                                                        \
                  (const char *trans, const I *m, const I *n, const T *alpha, const T *A,          \
                   const I *lda, const T *x, const I *incx, const T *beta, T *y, const I *incy))   \
    {                                                                                              \
        const blas_gemv v = {GEMV_ARGUMENTS(T, *), BLAS_SCALARS(T, ),                              \
                             .trans = blas_transpose_of_letter(BLAS_TYPE_OF(T), *trans)};          \
        fortran_gemv(name, padded_name, sizeof(I) == 8, &v);                                       \
    }

/* T, I, scalar, at: as for CBLAS_GEMM() in blas_gemm.c. */
#define CBLAS_GEMV(function, name, T, I, scalar, at)                                               \
    BLAS_FUNCTION(function, (int layout, int trans, I m, I n, scalar alpha, const T *A, I lda,     \
                             const T *x, I incx, scalar beta, T *y, I incy))                       \
    {                                                                                              \
        blas_gemv v = {GEMV_ARGUMENTS(T, ), BLAS_SCALARS(T, at)};                                  \
        cblas_gemv(name, sizeof(I) == 8, layout, trans, &v);                                       \
    }

FORTRAN_GEMV(sgemv_, "sgemv", "SGEMV ", float, int32_t)
FORTRAN_GEMV(dgemv_, "dgemv", "DGEMV ", double, int32_t)
FORTRAN_GEMV(sgemv_64_, "sgemv", "SGEMV ", float, int64_t)
FORTRAN_GEMV(dgemv_64_, "dgemv", "DGEMV ", double, int64_t)
BLAS_ALIAS(scipy_sgemv_, sgemv_);
BLAS_ALIAS(scipy_dgemv_, dgemv_);
BLAS_ALIAS(scipy_sgemv_64_, sgemv_64_);
BLAS_ALIAS(scipy_dgemv_64_, dgemv_64_);

CBLAS_GEMV(cblas_sgemv, "cblas_sgemv", float, int32_t, float, &)
CBLAS_GEMV(cblas_dgemv, "cblas_dgemv", double, int32_t, double, &)
CBLAS_GEMV(cblas_sgemv64_, "cblas_sgemv", float, int64_t, float, &)
CBLAS_GEMV(cblas_dgemv64_, "cblas_dgemv", double, int64_t, double, &)
BLAS_ALIAS(cblas_sgemv_64, cblas_sgemv64_);
BLAS_ALIAS(cblas_dgemv_64, cblas_dgemv64_);
BLAS_ALIAS(scipy_cblas_sgemv, cblas_sgemv);
BLAS_ALIAS(scipy_cblas_dgemv, cblas_dgemv);
BLAS_ALIAS(scipy_cblas_sgemv64_, cblas_sgemv64_);
BLAS_ALIAS(scipy_cblas_dgemv64_, cblas_dgemv64_);

FORTRAN_GEMV(cgemv_, "cgemv", "CGEMV ", blas_c64, int32_t)
FORTRAN_GEMV(cgemv_64_, "cgemv", "CGEMV ", blas_c64, int64_t)
FORTRAN_GEMV(zgemv_, "zgemv", "ZGEMV ", blas_c128, int32_t)
FORTRAN_GEMV(zgemv_64_, "zgemv", "ZGEMV ", blas_c128, int64_t)
BLAS_ALIAS(scipy_cgemv_, cgemv_);
BLAS_ALIAS(scipy_cgemv_64_, cgemv_64_);
BLAS_ALIAS(scipy_zgemv_, zgemv_);
BLAS_ALIAS(scipy_zgemv_64_, zgemv_64_);

CBLAS_GEMV(cblas_cgemv, "cblas_cgemv", blas_c64, int32_t, const blas_c64 *, )
CBLAS_GEMV(cblas_cgemv64_, "cblas_cgemv", blas_c64, int64_t, const blas_c64 *, )
CBLAS_GEMV(cblas_zgemv, "cblas_zgemv", blas_c128, int32_t, const blas_c128 *, )
CBLAS_GEMV(cblas_zgemv64_, "cblas_zgemv", blas_c128, int64_t, const blas_c128 *, )
BLAS_ALIAS(cblas_cgemv_64, cblas_cgemv64_);
BLAS_ALIAS(scipy_cblas_cgemv, cblas_cgemv);
BLAS_ALIAS(scipy_cblas_cgemv64_, cblas_cgemv64_);
BLAS_ALIAS(cblas_zgemv_64, cblas_zgemv64_);
BLAS_ALIAS(scipy_cblas_zgemv, cblas_zgemv);
BLAS_ALIAS(scipy_cblas_zgemv64_, cblas_zgemv64_);
