/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalised problem: what remains of a tgl_problem once every argument has been checked.
 * Argument errors are born in problem.c, and those of epilogues in epilogue.c.
 */
#ifndef TGL_PROBLEM_H
#define TGL_PROBLEM_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* What is done to an element of C before it is stored, as tgl_epilogue says it. */
typedef struct tgl_gemm_epilogue {
    tgl_bias bias; /* by row or column of the normalised C */
    tgl_activation activation;
    bool residual;
    int64_t ld_residual, stride_bias, stride_residual;
    const char *expression; /* NULL, or the source that kernels/lib/epilogue.h includes */
} tgl_gemm_epilogue;

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
    bool pointers;     /* the batch is one of pointers; strides are 0 */
    int64_t alignment; /* bytes that those of A and B are promised to be a multiple of */
    tgl_gemm_epilogue epilogue;
} tgl_gemm_shape;

/* What one run of a plan is given, in the terms of the normalised shape. */
typedef struct tgl_run {
    double alpha, beta; /* already rounded to C's type; alpha is 0 if k is */
    const void *A, *B;  /* NULL if alpha is 0, whatever the caller gave */
    void *C;
    const void *const *A_array, *const *B_array; /* instead of A, B and C where shape->pointers */
    void *const *C_array;
    const void *bias, *residual; /* NULL where the epilogue has none */
} tgl_run;

static inline bool tgl_epilogue_is_none(const tgl_gemm_epilogue *e)
{
    return e->bias == TGL_BIAS_NONE && e->activation == TGL_ACTIVATION_NONE && !e->residual &&
           e->expression == NULL;
}

/* Checks `problem`, in the order of its members, and normalises it to *shape. On failure writes the
 * sentence to message. zero_is_tight: a leading dimension of 0 stands for the least that is legal.
 */
tgl_status tgl_shape_make(const tgl_problem *problem, bool zero_is_tight, tgl_gemm_shape *shape,
                          char *message, size_t message_size);

/* True if C has no elements, so that nothing is to be done whatever the pointers. */
bool tgl_shape_is_empty(const tgl_gemm_shape *shape);

/* epilogue.c: checks the epilogue (NULL: none) for a shape that is otherwise complete, and
 * normalises it to shape->epilogue. *source: the expression as a header, which shape points to and
 * the caller frees; NULL if there is none. */
tgl_status tgl_epilogue_make(const tgl_epilogue *epilogue, tgl_gemm_shape *shape, char **source,
                             char *message, size_t message_size);

/* The epilogue of a shape as a formula, with rows and columns as the caller sees them; empty if
 * there is none. Returns text. */
const char *tgl_epilogue_describe(const tgl_gemm_shape *shape, char *text, size_t size);

/* Checks pointers and scalars of one run against the shape and puts them in its terms. */
tgl_status tgl_run_make(const tgl_gemm_shape *shape, double alpha, double beta,
                        const tgl_operands *operands, tgl_run *run, char *message,
                        size_t message_size);

/* Checks each pointer of the arrays of a run, for devices whose arrays the host can read. */
tgl_status tgl_run_check_pointers(const tgl_gemm_shape *shape, const tgl_run *run, char *message,
                                  size_t message_size);

#endif
