/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalised problem: a tgl_problem and its epilogue after all arguments have been checked.
 * Argument errors are found only in shape.c (problems), shape_epilogue.c (epilogues) and operands.c
 * (runs). All functions that return a tgl_status set the error message (base/error.h) when they
 * fail.
 */
#ifndef TGL_SHAPE_H
#define TGL_SHAPE_H

#include "problem/type_names.h"
#include "tegula/tegula.h"

#include <stdbool.h>

/* The operation on an element of the result before it is stored, as in tgl_epilogue. */
typedef struct tgl_shape_epilogue {
    tgl_bias bias; /* by row or column of the normalised D */
    tgl_activation activation;
    bool residual;
    bool amax;                         /* the run stores the largest magnitude of D */
    tgl_type type_bias, type_residual; /* never 0, even without a bias or residual */
    int64_t ld_residual, stride_bias, stride_residual;
    const char *expression; /* NULL, or the source that kernels/lib/epilogue.h includes */
} tgl_shape_epilogue;

/* D := epilogue(alpha*op(A)*op(B) + beta*C) with everything row-major. A column-major product is
 * the row-major product of the transposed matrices, D^T = op(B)^T op(A)^T: A and B, and m and n,
 * are exchanged and `swapped` is set. tgl_run_make() exchanges the pointers.
 *
 *   op(A)(i, p) = A[i*lda + p], or A[p*lda + i] if trans_a      op(A): m x k
 *   op(B)(p, j) = B[p*ldb + j], or B[j*ldb + p] if trans_b      op(B): k x n
 *   of these elements the conjugates if conj_a, conj_b (complex types only)
 *   C(i, j)     = C[i*ldc + j], D(i, j) = D[i*ldd + j]          C, D:  m x n
 *
 * If D is C (in_place), type_d, ldd and stride_d are those of C. api/plan_cache.c compares all
 * members. */
typedef struct tgl_shape {
    int64_t m, n, k;
    bool swapped, trans_a, trans_b, conj_a, conj_b;
    int pairs_b;   /* not 0: B is a complex matrix, and k and n count its numbers: PAIRS of
                      kernels/lib/complex_pairs.h. Only plan/complex.c makes such shapes */
    bool in_place; /* D is C */
    tgl_type type_a, type_b, type_c, type_d, type_accumulate;
    tgl_compute compute;
    bool device_scalars; /* alpha and beta are read from device memory */
    int64_t lda, ldb, ldc, ldd;
    int64_t batch, stride_a, stride_b, stride_c, stride_d;
    bool pointers;  /* the batch is given by arrays of pointers; strides are 0 */
    bool unaligned; /* true: matrices may begin at any element. false: plans may need matrices that
                       begin at multiples of TGL_MAP_ALIGNMENT bytes, and tgl_plan_run_operands()
                       replaces the plan for other matrices */
    int64_t alignment; /* bytes: the alignment of the pointers to A and B that the caller
                          guarantees; 0: no guarantee */
    tgl_scaling scaling_a, scaling_b;
    tgl_scaling scaling_d; /* LINE: a factor for each row, or if `swapped` each column */
    tgl_type type_scale;
    int64_t ld_scale_a, ld_scale_b; /* of factors of blocks; else 0 */
    tgl_grouping grouping;          /* ROWS, MASKED: of the rows of D, never swapped */
    tgl_group_form group_form;
    tgl_shape_epilogue epilogue;
} tgl_shape;

/* A grouped product as a batch of groups of equal size, for predictions. Others: unchanged. */
tgl_shape tgl_shape_of_even_groups(const tgl_shape *shape);

static inline bool tgl_epilogue_is_none(const tgl_shape_epilogue *e)
{
    return e->bias == TGL_BIAS_NONE && e->activation == TGL_ACTIVATION_NONE && !e->residual &&
           e->expression == NULL && !e->amax;
}

/* True if D has no elements. Then nothing is computed, and pointers are not checked. */
static inline bool tgl_shape_is_empty(const tgl_shape *shape)
{
    return shape->m == 0 || shape->n == 0 || shape->batch == 0;
}

static inline bool tgl_shape_has_scales(const tgl_shape *s)
{
    return s->scaling_a != TGL_SCALING_NONE || s->scaling_b != TGL_SCALING_NONE ||
           s->scaling_d != TGL_SCALING_NONE;
}

/* Whether factors are for blocks: BLOCK or LINE_128. A shape has them for both A and B, or for
 * none. */
static inline bool tgl_scaling_is_blocked(tgl_scaling scaling)
{
    return scaling == TGL_SCALING_BLOCK || scaling == TGL_SCALING_LINE_128;
}

static inline bool tgl_shape_has_blocked_scales(const tgl_shape *s)
{
    return tgl_scaling_is_blocked(s->scaling_a);
}

/* The type of alpha, beta and the epilogue: sums of int32 are scaled in FP32. */
static inline tgl_type tgl_shape_scalar_type(const tgl_shape *s)
{
    return s->type_accumulate == TGL_I32 && tgl_shape_has_scales(s) ? TGL_F32 : s->type_accumulate;
}

/* Whether all of A, B, C and D have this type. */
static inline bool tgl_shape_is_all(const tgl_shape *s, tgl_type type)
{
    return s->type_a == type && s->type_b == type && s->type_c == type && s->type_d == type;
}

/* The number of elements from the first to the last element of a matrix in memory. The matrix has
 * `lines` lines of `length` elements. -1 if the number exceeds int64_t. */
int64_t tgl_extent(int64_t lines, int64_t length, int64_t ld);

/* Whether the bytes of a batch of matrices of this extent fit in int64_t. extent: may be -1. */
bool tgl_is_addressable(int64_t extent, int64_t batch, int64_t stride, tgl_type type);

/* Checks `problem`, in the order of its members, and normalises it to *shape, without an epilogue.
 * zero_is_tight: a leading dimension of 0 means no padding. */
tgl_status tgl_shape_make(const tgl_problem *problem, bool zero_is_tight, tgl_shape *shape);

/* Checks the epilogue (NULL: none) for a shape that is otherwise complete, and normalises it to
 * shape->epilogue. *source: the expression as a header, which shape points to and the caller frees;
 * NULL without an expression. */
tgl_status tgl_epilogue_make(const tgl_epilogue *epilogue, tgl_shape *shape, char **source);

/* The epilogue as a formula, with rows and columns as the caller sees them; empty without an
 * epilogue. Returns text. */
const char *tgl_epilogue_describe(const tgl_shape *shape, char *text, size_t size);

#endif
