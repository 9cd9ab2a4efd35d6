/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls the exported functions of libtegula_blas.so, which exist for floats and doubles, Fortran
 * and CBLAS, 32-bit and 64-bit integers, all with the same struct of arguments.
 */
#ifndef TGL_BLAS_CALLS_H
#define TGL_BLAS_CALLS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

enum { ROW_MAJOR = 101, COL_MAJOR = 102, NO_TRANS = 111, TRANS = 112, CONJ_TRANS = 113 };

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* An exported function. */
typedef struct blas_name {
    const char *name;
    bool is_cblas, is_64, is_double;
} blas_name;

extern const blas_name gemm_names[18], gemv_names[18], batch_names[10], strided_names[10];

/* The arguments of all routines. For GEMV, B and ldb are x and incx, and C and ldc are y and incy.
 * Fortran functions take only the column-major layout. */
typedef struct blas_call {
    int layout, trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    const void *A, *B;
    void *C;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c, batch; /* only for strided batches */
} blas_call;

/* The arguments of a batch that consists of groups. The arrays A, B and C have an element for each
 * product. */
typedef struct group_call {
    int count;
    int64_t size[4];
    blas_call group[4];
    const void **A, **B;
    void **C;
} group_call;

void call_gemm(const blas_name *f, const blas_call *c);
void call_gemv(const blas_name *f, const blas_call *c);
void call_strided(const blas_name *f, const blas_call *c);
void call_groups(const blas_name *f, const group_call *c);

/* next_random(): uniform in [0, 2^32 - 1]. random_between(): a whole number in [low, high]. */
uint32_t next_random(uint64_t *seed);
int64_t random_between(uint64_t *seed, int64_t low, int64_t high);

/* Read and write an element of an array of float or double. */
double get(const void *memory, bool is_double, int64_t index);
void set(void *memory, bool is_double, int64_t index, double value);

/* A matrix of `count` random elements in -1 .. 1, which the caller frees. */
void *random_elements(uint64_t *seed, bool is_double, int64_t count);

/* Computes C := A*B + beta*C of n x n small whole numbers by sgemm_(). n must be a multiple of 3.
 * Returns whether C is right. Makes no assertion, because it is called in threads and child
 * processes. */
bool multiplies_square(int n, float beta);

#endif
