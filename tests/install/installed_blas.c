/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in the common subset of C and C++ that is linked with libtegula_blas.so before a whole
 * BLAS. It calls each function of tegula_blas.h for real elements, and one function that only the
 * other BLAS has.
 */
#include <stdio.h>
#include <tegula/tegula_blas.h>

#ifdef __cplusplus
extern "C"
#endif
    double
    dasum_(const int *n, const double *x, const int *incx);

/* Checks products of [1 2; 3 4] with itself, [7 10; 15 22], and with (1, 2), (5, 11). T: the
 * element type for the letter x; I: the integer type. */
#define CHECK(x, T, F, C_, I)                                                                      \
    do {                                                                                           \
        const T A[4] = {1, 2, 3, 4}, v[2] = {1, 2}, one = 1, zero = 0;                             \
        const T *many[1] = {A};                                                                    \
        const I two = 2, unit = 1;                                                                 \
        const int no = CblasNoTrans;                                                               \
        T C[5][4] = {{0}}, y[2][2] = {{0}}, *results[1] = {C[3]};                                  \
        /* A in row-major order is its transpose in column-major order. */                         \
        x##gemm##F("N", "N", &two, &two, &two, &one, A, &two, A, &two, &zero, C[0], &two);         \
        x##gemv##F("T", &two, &two, &one, A, &two, v, &unit, &zero, y[0], &unit);                  \
        cblas_##x##gemm##C_(CblasRowMajor, no, no, 2, 2, 2, 1, A, 2, A, 2, 0, C[1], 2);            \
        cblas_##x##gemv##C_(CblasRowMajor, no, 2, 2, 1, A, 2, v, 1, 0, y[1], 1);                   \
        cblas_##x##gemm_batch_strided##C_(CblasRowMajor, no, no, 2, 2, 2, 1, A, 2, 4, A, 2, 4, 0,  \
                                          C[2], 2, 4, 1);                                          \
        cblas_##x##gemm_batch##C_(CblasRowMajor, &no, &no, &two, &two, &two, &one, many, &two,     \
                                  many, &two, &zero, results, &two, 1, &unit);                     \
        for (int i = 0; i < 4; i++)                                                                \
            if (C[i][0] != 7 || C[i][1] != 10 || C[i][2] != 15 || C[i][3] != 22) return 1 + i;     \
        for (int i = 0; i < 2; i++)                                                                \
            if (y[i][0] != 5 || y[i][1] != 11) return 10 + i;                                      \
    } while (0)

int main(void)
{
    const double ones[3] = {1, -1, 1};
    const int three = 3, one = 1;
    CHECK(s, float, _, , int32_t);
    CHECK(d, double, _, , int32_t);
    CHECK(s, float, _64_, _64, int64_t);
    CHECK(d, double, _64_, _64, int64_t);
    if (dasum_(&three, ones, &one) != 3) return 20;
    puts("24 functions of libtegula_blas.so, and one of the BLAS behind");
    return 0;
}
