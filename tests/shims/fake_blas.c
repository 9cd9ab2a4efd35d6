/* SPDX-License-Identifier: Apache-2.0
 *
 * A BLAS that the tests load after libtegula_blas.so, as a program may. It has only two functions
 * for products, one with 32-bit and one with 64-bit integers. They compute nothing but write their
 * arguments to C. openblas_set_num_threads() stores its argument.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void scipy_sgemm_(const char *trans_a, const char *trans_b, const int32_t *m, const int32_t *n,
                  const int32_t *k, const float *alpha, const float *A, const int32_t *lda,
                  const float *B, const int32_t *ldb, const float *beta, float *C,
                  const int32_t *ldc, size_t length_a, size_t length_b);
void dgemm_64_(const char *trans_a, const char *trans_b, const int64_t *m, const int64_t *n,
               const int64_t *k, const double *alpha, const double *A, const int64_t *lda,
               const double *B, const int64_t *ldb, const double *beta, double *C,
               const int64_t *ldc, size_t length_a, size_t length_b);

/* Writes the arguments to C by memcpy(), because C may be misaligned. T: the element type. */
#define WRITE_ARGUMENTS(T)                                                                         \
    const T values[] = {*trans_a,                                                                  \
                        *trans_b,                                                                  \
                        *m,                                                                        \
                        *n,                                                                        \
                        *k,                                                                        \
                        *alpha,                                                                    \
                        *A,                                                                        \
                        *lda,                                                                      \
                        *B,                                                                        \
                        *ldb,                                                                      \
                        *beta,                                                                     \
                        *ldc,                                                                      \
                        length_a + 10 * length_b};                                                 \
    memcpy(C, values, sizeof values)

void scipy_sgemm_(const char *trans_a, const char *trans_b, const int32_t *m, const int32_t *n,
                  const int32_t *k, const float *alpha, const float *A, const int32_t *lda,
                  const float *B, const int32_t *ldb, const float *beta, float *C,
                  const int32_t *ldc, size_t length_a, size_t length_b)
{
    WRITE_ARGUMENTS(float);
}

void dgemm_64_(const char *trans_a, const char *trans_b, const int64_t *m, const int64_t *n,
               const int64_t *k, const double *alpha, const double *A, const int64_t *lda,
               const double *B, const int64_t *ldb, const double *beta, double *C,
               const int64_t *ldc, size_t length_a, size_t length_b)
{
    WRITE_ARGUMENTS(double);
}

/* The number of threads that was set, if libtegula_blas.so passes this call on to an OpenBLAS after
 * it. */
int fake_threads;
void openblas_set_num_threads(int threads);
void openblas_set_num_threads(int threads)
{
    fake_threads = threads;
}
