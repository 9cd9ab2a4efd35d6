/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalised problem: a tgl_problem and its epilogue after all arguments have been checked.
 * Argument errors are found in shape.c, scales.c and weights.c (problems), shape_epilogue.c
 * (epilogues), operands.c (runs) and struct_size.c (sizes of structs). All functions that return a
 * tgl_status set the error message (base/error.h) when they fail.
 */
#ifndef TGL_SHAPE_H
#define TGL_SHAPE_H

#include "problem/extent.h"
#include "problem/scales.h"
#include "problem/type_names.h"
#include "problem/weights.h"
#include "tegula/tegula.h"

#include <stdbool.h>

/* The epilogue of a shape: tgl_epilogue, normalised. */
typedef struct tgl_shape_epilogue {
    tgl_bias bias; /* by row or column of the normalised D */
    tgl_activation activation;
    bool residual;
    bool amax;                         /* the run stores the largest magnitude of D */
    tgl_type type_bias, type_residual; /* never 0, even without a bias or residual */
    int64_t ld_residual, stride_bias, stride_residual;
    const char *expression; /* source that kernels/lib/epilogue.h includes; NULL: none */
} tgl_shape_epilogue;

/* A normalised problem: D := epilogue(alpha*op(A)*op(B) + beta*C), row-major. A column-major
 * product becomes the row-major product D^T = op(B)^T * op(A)^T: A and B, and m and n, are
 * exchanged, and `swapped` is set. tgl_run_make() exchanges the pointers.
 *
 *   op(A)(i, p) = A[i*lda + p], or A[p*lda + i] if trans_a      op(A): m x k
 *   op(B)(p, j) = B[p*ldb + j], or B[j*ldb + p] if trans_b      op(B): k x n
 *   C(i, j)     = C[i*ldc + j], D(i, j) = D[i*ldd + j]          C, D:  m x n
 *   conj_a, conj_b: the elements of op(A), op(B) are conjugated (complex types only)
 *
 * If D is C (in_place), type_d, ldd and stride_d are those of C. A new member that depends on the
 * problem must be added to is_same_shape() in api/plan_cache.c. */
typedef struct tgl_shape {
    int64_t m, n, k;
    bool swapped, trans_a, trans_b, conj_a, conj_b;
    int pairs_b;  /* not 0: this is the real product that computes a complex one. k and n count real
                     numbers, and kernels read the complex B directly. The value is the macro PAIRS
                     of kernels/lib/complex_pairs.h. Only plan/complex.c sets it */
    bool pairs_a; /* only with pairs_b: the stored A is complex and transposed, and kernels read
                     it directly (A_PAIRS of kernels/lib/dmma_tiles.h) */
    bool in_place; /* D is C */
    tgl_type type_a, type_b, type_c, type_d, type_accumulate;
    tgl_compute compute;
    bool device_scalars; /* alpha and beta are read from device memory */
    int64_t lda, ldb, ldc, ldd;
    int64_t batch, stride_a, stride_b, stride_c, stride_d;
    bool pointers;     /* the batch is given by arrays of pointers; strides are 0 */
    bool unaligned;    /* true: matrices may begin at any element. false: plans may require that
                          matrices begin at multiples of TGL_MAP_ALIGNMENT bytes; for other matrices
                          tgl_plan_run_operands() uses another plan */
    int64_t alignment; /* alignment in bytes of the pointers to A and B that the caller guarantees;
                          0: none */
    tgl_scaling scaling_a, scaling_b;
    tgl_scaling scaling_d; /* TGL_SCALING_LINE: a factor per row of D, or per column if `swapped` */
    tgl_type type_scale;
    /* Leading dimensions of scale factors per block, in factors; else 0. */
    int64_t ld_scale_a, ld_scale_b;
    tgl_weights weights;   /* with weights, type_a and type_b are both the 16-bit type that is
                              multiplied. In memory, the weights have another type
                              (tgl_shape_stored_type()); their leading dimension and stride count
                              its elements. scaling_* are TGL_SCALING_NONE */
    tgl_grouping grouping; /* TGL_GROUPED_ROWS and TGL_GROUPED_MASKED: groups are rows of D, and
                              `swapped` is false */
    tgl_group_form group_form;
    bool is_bundle; /* the products of a bundle (plan/bundle.h): m, n, k, batch and the leading
                       dimensions are typical values, and each run has the real ones */
    tgl_shape_epilogue epilogue;
} tgl_shape;

/* Which operands a kernel reads as they are stored. A pre-pass, a kernel that runs earlier, expands
 * the others (plan/complex.h, plan/widen.h). */
typedef enum tgl_direct {
    TGL_DIRECT_NONE,
    TGL_DIRECT_PAIRS_B, /* B of a complex product (pairs_b) */
    TGL_DIRECT_PAIRS,   /* A and B of a complex product (pairs_a, pairs_b) */
    TGL_DIRECT_WEIGHTS,
    TGL_DIRECT_COUNT
} tgl_direct;

/* For predictions: a grouped product as a batch of groups of equal size. Other shapes are
 * unchanged. */
tgl_shape tgl_shape_of_even_groups(const tgl_shape *shape);

static inline bool tgl_epilogue_is_none(const tgl_shape_epilogue *e)
{
    return e->bias == TGL_BIAS_NONE && e->activation == TGL_ACTIVATION_NONE && !e->residual &&
           e->expression == NULL && !e->amax;
}

/* Whether D has no elements. Then nothing is computed, and pointers are not checked. */
static inline bool tgl_shape_is_empty(const tgl_shape *shape)
{
    return shape->m == 0 || shape->n == 0 || shape->batch == 0;
}

static inline bool tgl_shape_has_scales(const tgl_shape *s)
{
    return s->scaling_a != TGL_SCALING_NONE || s->scaling_b != TGL_SCALING_NONE ||
           s->scaling_d != TGL_SCALING_NONE;
}

/* Whether A and B have scale factors per block. Either both have them or none. */
static inline bool tgl_shape_has_blocked_scales(const tgl_shape *s)
{
    return tgl_scaling_is_blocked(s->scaling_a);
}

/* The type of alpha, beta and the epilogue's arithmetic: the accumulation type, but F32 for int32
 * sums with scale factors. */
static inline tgl_type tgl_shape_scalar_type(const tgl_shape *s)
{
    return s->type_accumulate == TGL_I32 && tgl_shape_has_scales(s) ? TGL_F32 : s->type_accumulate;
}

static inline bool tgl_shape_has_weights(const tgl_shape *s)
{
    return s->weights.type != 0;
}

/* The type that A (is_a) or B has in memory. */
static inline tgl_type tgl_shape_stored_type(const tgl_shape *s, bool is_a)
{
    if (tgl_shape_has_weights(s) && s->weights.is_a == is_a) return s->weights.type;
    return is_a ? s->type_a : s->type_b;
}

/* Whether A, B, C and D all have this type. */
static inline bool tgl_shape_is_all(const tgl_shape *s, tgl_type type)
{
    return s->type_a == type && s->type_b == type && s->type_c == type && s->type_d == type;
}

/* Checks `problem`, in the order of its members (but scale factors and weights before groups), and
 * normalises it to *shape, without an epilogue. zero_is_tight: a leading dimension of 0 means no
 * padding. */
tgl_status tgl_shape_make(const tgl_problem *problem, bool zero_is_tight, tgl_shape *shape);

/* Checks an epilogue (NULL: none) for an otherwise complete shape, and sets shape->epilogue.
 * *source: the expression as a header, to which shape->epilogue points and which the caller frees;
 * NULL without an expression. */
tgl_status tgl_epilogue_make(const tgl_epilogue *epilogue, tgl_shape *shape, char **source);

/* Writes the epilogue as a formula in the caller's terms of rows and columns; "" without an
 * epilogue. Returns text. */
const char *tgl_epilogue_describe(const tgl_shape *shape, char *text, size_t size);

#endif
