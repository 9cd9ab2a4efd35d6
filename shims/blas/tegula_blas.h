/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of libtegula_blas.so, for programs that are linked with it (docs/drop-ins.md):
 *
 *     cc program.c $(pkg-config --cflags --libs tegula_blas) -lblas
 *
 * The library has only a part of BLAS, so a complete BLAS with the other functions stands after it
 * in the link order. A program that includes the cblas.h of that BLAS does not need this header,
 * which declares the same functions. If cblas.h is included first, this header declares nothing.
 *
 * The functions are those of BLAS and CBLAS: C := alpha*op(A)*op(B) + beta*C, and y :=
 * alpha*op(A)*x + beta*y. Leading dimensions, strides and increments are in elements. If beta is 0,
 * C and y are not read. The suffix _64 means 64-bit integers. The lengths of Fortran's strings need
 * not be passed. Illegal arguments are reported to xerbla_() or cblas_xerbla() of the process. Any
 * number of threads may call the functions at the same time.
 */
#ifndef TEGULA_BLAS_H
#define TEGULA_BLAS_H
#if !defined(CBLAS_H) && !defined(__CBLAS_H) && !defined(__MKL_CBLAS_H__)

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values of the parameters `layout` and `trans...` of CBLAS functions. */
enum { CblasRowMajor = 101, CblasColMajor = 102 };
enum { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113, CblasConjNoTrans = 114 };

/* Declares the functions of one type. x: s or d. T: float or double. F, C_: suffixes of the Fortran
 * and of the CBLAS names. I: the integer type. */
#define TGL_BLAS_FUNCTIONS(x, T, F, C_, I)                                                         \
    void x##gemm##F(const char *trans_a, const char *trans_b, const I *m, const I *n, const I *k,  \
                    const T *alpha, const T *A, const I *lda, const T *B, const I *ldb,            \
                    const T *beta, T *C, const I *ldc);                                            \
    void x##gemv##F(const char *trans, const I *m, const I *n, const T *alpha, const T *A,         \
                    const I *lda, const T *x_, const I *incx, const T *beta, T *y, const I *incy); \
    void cblas_##x##gemm##C_(int layout, int trans_a, int trans_b, I m, I n, I k, T alpha,         \
                             const T *A, I lda, const T *B, I ldb, T beta, T *C, I ldc);           \
    void cblas_##x##gemv##C_(int layout, int trans, I m, I n, T alpha, const T *A, I lda,          \
                             const T *x_, I incx, T beta, T *y, I incy);                           \
    /* `batch` products, whose matrices lie stride_a, stride_b and stride_c elements apart. */     \
    void cblas_##x##gemm_batch_strided##C_(                                                        \
        int layout, int trans_a, int trans_b, I m, I n, I k, T alpha, const T *A, I lda,           \
        I stride_a, const T *B, I ldb, I stride_b, T beta, T *C, I ldc, I stride_c, I batch);      \
    /* `count` groups of size[i] products with the same arguments. A, B, C: a pointer for each     \
     * product; the other arrays have an element for each group. */                                \
    void cblas_##x##gemm_batch##C_(int layout, const int *trans_a, const int *trans_b, const I *m, \
                                   const I *n, const I *k, const T *alpha, const T **A,            \
                                   const I *lda, const T **B, const I *ldb, const T *beta, T **C,  \
                                   const I *ldc, I count, const I *size);

TGL_BLAS_FUNCTIONS(s, float, _, , int32_t)
TGL_BLAS_FUNCTIONS(d, double, _, , int32_t)
TGL_BLAS_FUNCTIONS(s, float, _64_, _64, int64_t)
TGL_BLAS_FUNCTIONS(d, double, _64_, _64, int64_t)
#undef TGL_BLAS_FUNCTIONS

/* As TGL_BLAS_FUNCTIONS(), for complex elements: two float (x: c) or two double (x: z), the real
 * part first. alpha, beta: address of one element. gemm3m is the same as gemm. */
#define TGL_BLAS_COMPLEX(x, F, C_, I)                                                              \
    void x##gemm##F(const char *trans_a, const char *trans_b, const I *m, const I *n, const I *k,  \
                    const void *alpha, const void *A, const I *lda, const void *B, const I *ldb,   \
                    const void *beta, void *C, const I *ldc);                                      \
    void x##gemm3m##F(const char *trans_a, const char *trans_b, const I *m, const I *n,            \
                      const I *k, const void *alpha, const void *A, const I *lda, const void *B,   \
                      const I *ldb, const void *beta, void *C, const I *ldc);                      \
    void x##gemv##F(const char *trans, const I *m, const I *n, const void *alpha, const void *A,   \
                    const I *lda, const void *x_, const I *incx, const void *beta, void *y,        \
                    const I *incy);                                                                \
    void cblas_##x##gemm##C_(int layout, int trans_a, int trans_b, I m, I n, I k,                  \
                             const void *alpha, const void *A, I lda, const void *B, I ldb,        \
                             const void *beta, void *C, I ldc);                                    \
    void cblas_##x##gemm3m##C_(int layout, int trans_a, int trans_b, I m, I n, I k,                \
                               const void *alpha, const void *A, I lda, const void *B, I ldb,      \
                               const void *beta, void *C, I ldc);                                  \
    void cblas_##x##gemv##C_(int layout, int trans, I m, I n, const void *alpha, const void *A,    \
                             I lda, const void *x_, I incx, const void *beta, void *y, I incy);

TGL_BLAS_COMPLEX(c, _, , int32_t)
TGL_BLAS_COMPLEX(z, _, , int32_t)
TGL_BLAS_COMPLEX(c, _64_, _64, int64_t)
TGL_BLAS_COMPLEX(z, _64_, _64, int64_t)
#undef TGL_BLAS_COMPLEX

#ifdef __cplusplus
}
#endif
#endif
#endif
