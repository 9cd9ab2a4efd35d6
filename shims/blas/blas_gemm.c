/* SPDX-License-Identifier: Apache-2.0
 *
 * SGEMM, DGEMM, CGEMM and ZGEMM: sgemm_(), cblas_sgemm() and so on. CGEMM3M and ZGEMM3M may compute
 * with three real products instead of four; here they are other names of CGEMM and ZGEMM.
 * The functions
 *
 *   - convert the letters of BLAS and the numbers of CBLAS to tgl_transpose;
 *   - convert a row-major CBLAS call to the column-major product of the transposed matrices;
 *   - call xerbla_() or cblas_xerbla() if an argument is illegal, and leave C unchanged.
 */
#include "blas_shim.h"

static int64_t at_least_1(int64_t value)
{
    return value > 1 ? value : 1;
}

int blas_gemm_check(const blas_gemm *g)
{
    const int64_t rows_a = blas_is_transposed(g->trans_a) ? g->k : g->m;
    const int64_t rows_b = blas_is_transposed(g->trans_b) ? g->n : g->k;
    if (g->trans_a == 0) return 1;
    if (g->trans_b == 0) return 2;
    if (g->m < 0) return 3;
    if (g->n < 0) return 4;
    if (g->k < 0) return 5;
    if (g->lda < at_least_1(rows_a)) return 8;
    if (g->ldb < at_least_1(rows_b)) return 10;
    if (g->ldc < at_least_1(g->m)) return 13;
    return 0;
}

/* ---- CBLAS ----------------------------------------------------------------------------------- */

static void exchange(blas_gemm *g)
{
    const blas_gemm row_major = *g;
    g->trans_a = row_major.trans_b, g->trans_b = row_major.trans_a;
    g->m = row_major.n, g->n = row_major.m;
    g->A = row_major.B, g->lda = row_major.ldb;
    g->B = row_major.A, g->ldb = row_major.lda;
}

/* Converts the number of an argument of the column-major call that exchange() makes to its number
 * in the row-major call. */
static int exchanged_argument(int argument)
{
    const bool is_size = argument == 4 || argument == 5; /* m and n */
    const bool is_ld = argument == 9 || argument == 11;  /* lda and ldb */
    return is_size ? 4 + 5 - argument : is_ld ? 9 + 11 - argument : argument;
}

bool blas_gemm_of_cblas(int layout, int trans_a, int trans_b, blas_gemm *g, blas_error *error)
{
    const bool is_row_major = layout == TGL_ROW_MAJOR;
    g->trans_a = blas_transpose_of_cblas(g->type, trans_a);
    g->trans_b = blas_transpose_of_cblas(g->type, trans_b);
    if (!is_row_major && layout != TGL_COL_MAJOR)
        *error = (blas_error){1, 0, "layout", layout};
    else if (g->trans_a == 0)
        *error = (blas_error){2, is_row_major ? 2 : 0, "TransA", trans_a};
    else if (g->trans_b == 0)
        *error = (blas_error){3, is_row_major ? 3 : 0, "TransB", trans_b};
    else {
        if (is_row_major) exchange(g);
        const int argument = blas_gemm_check(g);
        if (argument == 0) return true;
        /* CBLAS functions have the layout as an additional first argument. */
        const int number = argument + 1;
        *error = is_row_major ? (blas_error){exchanged_argument(number), number, NULL, 0}
                              : (blas_error){number, 0, NULL, 0};
    }
    return false;
}

/* ---- Both interfaces ------------------------------------------------------------------------- */

static void fortran_gemm(const char *name, const char *padded_name, bool is_64, const blas_gemm *g)
{
    const int argument = blas_gemm_check(g);
    if (argument != 0)
        blas_report(padded_name, argument, is_64);
    else
        blas_trace_gemm(blas_multiply(g), name, g, 0);
}

static void cblas_gemm(const char *name, bool is_64, int layout, int trans_a, int trans_b,
                       blas_gemm *g)
{
    blas_error error;
    if (blas_gemm_of_cblas(layout, trans_a, trans_b, g, &error))
        blas_trace_gemm(blas_multiply(g), name, g, 0);
    else
        blas_report_cblas(name, &error, is_64);
}

/* ---- Exported functions ---------------------------------------------------------------------- */

/* Defines a Fortran function. Everything is passed by address. Fortran compilers also pass the
 * lengths of the strings, after all other arguments; this function does not read them. T: the
 * element type; I: the integer type. */
#define FORTRAN_GEMM(function, name, padded_name, T, I)                                            \
    BLAS_FUNCTION(function, (const char *trans_a, const char *trans_b, const I *m, const I *n,     \
                             const I *k, const T *alpha, const T *A, const I *lda, const T *B,     \
                             const I *ldb, const T *beta, T *C, const I *ldc))                     \
    {                                                                                              \
        const blas_gemm g = {BLAS_GEMM_ARGUMENTS(T, *), BLAS_SCALARS(T, ),                         \
                             .trans_a = blas_transpose_of_letter(BLAS_TYPE_OF(T), *trans_a),       \
                             .trans_b = blas_transpose_of_letter(BLAS_TYPE_OF(T), *trans_b)};      \
        fortran_gemm(name, padded_name, sizeof(I) == 8, &g);                                       \
    }

/* Defines a CBLAS function. T: the element type; I: the integer type; scalar: the type of the
 * parameters alpha and beta, T or const T *; at: as in BLAS_SCALARS(). */
#define CBLAS_GEMM(function, name, T, I, scalar, at)                                               \
    BLAS_FUNCTION(function, (int layout, int trans_a, int trans_b, I m, I n, I k, scalar alpha,    \
                             const T *A, I lda, const T *B, I ldb, scalar beta, T *C, I ldc))      \
    {                                                                                              \
        blas_gemm g = {BLAS_GEMM_ARGUMENTS(T, ), BLAS_SCALARS(T, at)};                             \
        cblas_gemm(name, sizeof(I) == 8, layout, trans_a, trans_b, &g);                            \
    }

FORTRAN_GEMM(sgemm_, "sgemm", "SGEMM ", float, int32_t)
FORTRAN_GEMM(dgemm_, "dgemm", "DGEMM ", double, int32_t)
FORTRAN_GEMM(sgemm_64_, "sgemm", "SGEMM ", float, int64_t)
FORTRAN_GEMM(dgemm_64_, "dgemm", "DGEMM ", double, int64_t)
BLAS_ALIAS(scipy_sgemm_, sgemm_);
BLAS_ALIAS(scipy_dgemm_, dgemm_);
BLAS_ALIAS(scipy_sgemm_64_, sgemm_64_);
BLAS_ALIAS(scipy_dgemm_64_, dgemm_64_);

CBLAS_GEMM(cblas_sgemm, "cblas_sgemm", float, int32_t, float, &)
CBLAS_GEMM(cblas_dgemm, "cblas_dgemm", double, int32_t, double, &)
CBLAS_GEMM(cblas_sgemm64_, "cblas_sgemm", float, int64_t, float, &)
CBLAS_GEMM(cblas_dgemm64_, "cblas_dgemm", double, int64_t, double, &)
BLAS_ALIAS(cblas_sgemm_64, cblas_sgemm64_);
BLAS_ALIAS(cblas_dgemm_64, cblas_dgemm64_);
BLAS_ALIAS(scipy_cblas_sgemm, cblas_sgemm);
BLAS_ALIAS(scipy_cblas_dgemm, cblas_dgemm);
BLAS_ALIAS(scipy_cblas_sgemm64_, cblas_sgemm64_);
BLAS_ALIAS(scipy_cblas_dgemm64_, cblas_dgemm64_);

FORTRAN_GEMM(cgemm_, "cgemm", "CGEMM ", blas_c64, int32_t)
FORTRAN_GEMM(cgemm_64_, "cgemm", "CGEMM ", blas_c64, int64_t)
FORTRAN_GEMM(zgemm_, "zgemm", "ZGEMM ", blas_c128, int32_t)
FORTRAN_GEMM(zgemm_64_, "zgemm", "ZGEMM ", blas_c128, int64_t)
BLAS_ALIAS(scipy_cgemm_, cgemm_);
BLAS_ALIAS(cgemm3m_, cgemm_);
BLAS_ALIAS(scipy_cgemm3m_, cgemm_);
BLAS_ALIAS(scipy_cgemm_64_, cgemm_64_);
BLAS_ALIAS(cgemm3m_64_, cgemm_64_);
BLAS_ALIAS(scipy_cgemm3m_64_, cgemm_64_);
BLAS_ALIAS(scipy_zgemm_, zgemm_);
BLAS_ALIAS(zgemm3m_, zgemm_);
BLAS_ALIAS(scipy_zgemm3m_, zgemm_);
BLAS_ALIAS(scipy_zgemm_64_, zgemm_64_);
BLAS_ALIAS(zgemm3m_64_, zgemm_64_);
BLAS_ALIAS(scipy_zgemm3m_64_, zgemm_64_);

CBLAS_GEMM(cblas_cgemm, "cblas_cgemm", blas_c64, int32_t, const blas_c64 *, )
CBLAS_GEMM(cblas_cgemm64_, "cblas_cgemm", blas_c64, int64_t, const blas_c64 *, )
CBLAS_GEMM(cblas_zgemm, "cblas_zgemm", blas_c128, int32_t, const blas_c128 *, )
CBLAS_GEMM(cblas_zgemm64_, "cblas_zgemm", blas_c128, int64_t, const blas_c128 *, )
BLAS_ALIAS(cblas_cgemm_64, cblas_cgemm64_);
BLAS_ALIAS(scipy_cblas_cgemm, cblas_cgemm);
BLAS_ALIAS(scipy_cblas_cgemm64_, cblas_cgemm64_);
BLAS_ALIAS(cblas_cgemm3m, cblas_cgemm);
BLAS_ALIAS(cblas_cgemm3m64_, cblas_cgemm64_);
BLAS_ALIAS(cblas_cgemm3m_64, cblas_cgemm64_);
BLAS_ALIAS(scipy_cblas_cgemm3m, cblas_cgemm);
BLAS_ALIAS(scipy_cblas_cgemm3m64_, cblas_cgemm64_);
BLAS_ALIAS(cblas_zgemm_64, cblas_zgemm64_);
BLAS_ALIAS(scipy_cblas_zgemm, cblas_zgemm);
BLAS_ALIAS(scipy_cblas_zgemm64_, cblas_zgemm64_);
BLAS_ALIAS(cblas_zgemm3m, cblas_zgemm);
BLAS_ALIAS(cblas_zgemm3m64_, cblas_zgemm64_);
BLAS_ALIAS(cblas_zgemm3m_64, cblas_zgemm64_);
BLAS_ALIAS(scipy_cblas_zgemm3m, cblas_zgemm);
BLAS_ALIAS(scipy_cblas_zgemm3m64_, cblas_zgemm64_);
