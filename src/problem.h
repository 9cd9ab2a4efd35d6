/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalised problem: what remains of a tgl_problem once every argument has been checked.
 * Argument errors are born in problem.c and nowhere else.
 */
#ifndef TGL_PROBLEM_H
#define TGL_PROBLEM_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* C := alpha*op(A)*op(B) + beta*C with everything row-major. A column-major product is the
 * row-major product of the transposed matrices, C^T = op(B)^T op(A)^T, so it is stored with A and
 * B, m and n exchanged and `swapped` set; the pointers follow in tgl_run_make().
 *
 *   op(A)(i, p) = A[i*lda + p], or A[p*lda + i] if trans_a      op(A): m x k
 *   op(B)(p, j) = B[p*ldb + j], or B[j*ldb + p] if trans_b      op(B): k x n
 *   C(i, j)     = C[i*ldc + j]                                  C:     m x n
 */
typedef struct tgl_gemm_shape {
    int64_t m, n, k;
    bool swapped, trans_a, trans_b;
    tgl_type type_a, type_b, type_c;
    tgl_compute compute;
    int64_t lda, ldb, ldc;
    int64_t batch, stride_a, stride_b, stride_c;
} tgl_gemm_shape;

/* What one run of a plan is given, in the terms of the normalised shape. */
typedef struct tgl_run {
    double alpha, beta; /* already rounded to C's type; alpha is 0 if k is */
    const void *A, *B;  /* may be NULL if alpha is 0 */
    void *C;
} tgl_run;

/* Checks `problem`, in the order of its members, and normalises it to *shape. On failure writes the
 * sentence to message. zero_is_tight: a leading dimension of 0 stands for the least that is legal.
 */
tgl_status tgl_shape_make(const tgl_problem *problem, bool zero_is_tight, tgl_gemm_shape *shape,
                          char *message, size_t message_size);

/* True if C has no elements, so that nothing is to be done whatever the pointers. */
bool tgl_shape_is_empty(const tgl_gemm_shape *shape);

/* Checks pointers and scalars of one run against the shape and puts them in its terms. */
tgl_status tgl_run_make(const tgl_gemm_shape *shape, double alpha, const void *A, const void *B,
                        double beta, void *C, tgl_run *run, char *message, size_t message_size);

#endif
