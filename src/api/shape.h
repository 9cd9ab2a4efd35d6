/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalised problem: what remains of a tgl_problem, its epilogue and its operands once every
 * argument has been checked. Argument errors are born in shape.c (problems), shape_epilogue.c
 * (epilogues) and operands.c (runs), and nowhere else. All functions that return a tgl_status leave
 * the sentence of a failure in base/error.h.
 */
#ifndef TGL_SHAPE_H
#define TGL_SHAPE_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* What is done to an element before it is stored, as tgl_epilogue says it. */
typedef struct tgl_shape_epilogue {
    tgl_bias bias; /* by row or column of the normalised D */
    tgl_activation activation;
    bool residual;
    tgl_type type_bias, type_residual; /* never 0, whether there is a bias or not */
    int64_t ld_residual, stride_bias, stride_residual;
    const char *expression; /* NULL, or the source that kernels/lib/epilogue.h includes */
} tgl_shape_epilogue;

/* D := epilogue(alpha*op(A)*op(B) + beta*C) with everything row-major. A column-major product is
 * the row-major product of the transposed matrices, D^T = op(B)^T op(A)^T, so it is stored with A
 * and B, m and n exchanged and `swapped` set; the pointers follow in tgl_run_make().
 *
 *   op(A)(i, p) = A[i*lda + p], or A[p*lda + i] if trans_a      op(A): m x k
 *   op(B)(p, j) = B[p*ldb + j], or B[j*ldb + p] if trans_b      op(B): k x n
 *   C(i, j)     = C[i*ldc + j], D(i, j) = D[i*ldd + j]          C, D:  m x n
 *
 * Where D is C (in_place), type_d, ldd and stride_d are C's: kernels may use them always. */
typedef struct tgl_shape {
    int64_t m, n, k;
    bool swapped, trans_a, trans_b;
    bool in_place; /* D is C */
    tgl_type type_a, type_b, type_c, type_d, type_accumulate;
    tgl_compute compute;
    bool device_scalars; /* alpha and beta are read from memory of the device */
    int64_t lda, ldb, ldc, ldd;
    int64_t batch, stride_a, stride_b, stride_c, stride_d;
    bool pointers;     /* the batch is one of pointers; strides are 0 */
    int64_t alignment; /* bytes that those of A and B are promised to be a multiple of */
    tgl_scaling scaling_a, scaling_b, scaling_d;
    tgl_type type_scale;
    tgl_shape_epilogue epilogue;
} tgl_shape;

/* The pointers of a run. */
typedef enum tgl_operand {
    TGL_AT_A,
    TGL_AT_B,
    TGL_AT_C,
    TGL_AT_D, /* C itself where in_place */
    TGL_AT_A_ARRAY,
    TGL_AT_B_ARRAY,
    TGL_AT_C_ARRAY,
    TGL_AT_D_ARRAY,
    TGL_AT_BIAS,
    TGL_AT_RESIDUAL,
    TGL_AT_ALPHA, /* device scalars */
    TGL_AT_BETA,
    TGL_AT_SCALE_A,
    TGL_AT_SCALE_B,
    TGL_AT_SCALE_D,
    TGL_OPERANDS
} tgl_operand;

/* What one run of a plan is given, in the terms of the normalised shape. */
typedef struct tgl_run {
    double alpha, beta; /* rounded to the accumulation type; alpha is 0 if k is. With device scalars
                           NaN: not known to the host */
    bool has_product;   /* A and B may be read: alpha is not known to be 0 */
    const void *at[TGL_OPERANDS]; /* NULL where not used: A and B without a product, C with a beta
                                     of 0 and D another matrix, ... */
    void *workspace;              /* the caller's; NULL: the device lends it */
    size_t workspace_bytes;
} tgl_run;

static inline bool tgl_epilogue_is_none(const tgl_shape_epilogue *e)
{
    return e->bias == TGL_BIAS_NONE && e->activation == TGL_ACTIVATION_NONE && !e->residual &&
           e->expression == NULL;
}

/* True if D has no elements, so that nothing is to be done whatever the pointers. */
static inline bool tgl_shape_is_empty(const tgl_shape *shape)
{
    return shape->m == 0 || shape->n == 0 || shape->batch == 0;
}

/* "f32", "f64", "f16", "bf16", "e4m3", "e5m2", "i8", "i32"; "?" for a value outside tgl_type. */
const char *tgl_type_name(tgl_type type);

/* Whether all of A, B, C and D have this type. */
static inline bool tgl_shape_is_all(const tgl_shape *s, tgl_type type)
{
    return s->type_a == type && s->type_b == type && s->type_c == type && s->type_d == type;
}

/* Checks `problem`, in the order of its members, and normalises it to *shape, without an epilogue.
 * zero_is_tight: a leading dimension of 0 stands for the least that is legal. */
tgl_status tgl_shape_make(const tgl_problem *problem, bool zero_is_tight, tgl_shape *shape);

/* Checks the epilogue (NULL: none) for a shape that is otherwise complete, and normalises it to
 * shape->epilogue. *source: the expression as a header, which shape points to and the caller frees;
 * NULL if there is none. */
tgl_status tgl_epilogue_make(const tgl_epilogue *epilogue, tgl_shape *shape, char **source);

/* The epilogue of a shape as a formula, with rows and columns as the caller sees them; empty if
 * there is none. Returns text. */
const char *tgl_epilogue_describe(const tgl_shape *shape, char *text, size_t size);

/* alpha or beta of the host, rounded to the accumulation type. */
double tgl_scalar_round(const tgl_shape *shape, double value);

/* Checks pointers and scalars of one run against the shape and puts them in its terms. */
tgl_status tgl_run_make(const tgl_shape *shape, const tgl_operands *operands, tgl_run *run);

/* Checks each pointer of the arrays of a run, for devices whose arrays the host can read. */
tgl_status tgl_run_check_pointers(const tgl_shape *shape, const tgl_run *run);

/* Reads a struct of the caller's that begins with its size. known: the size of the library's
 * struct; first: its size in version 0.2; name: for the sentence. A smaller one is copied to `copy`
 * (known bytes), and what it lacks is 0; *read is then `copy`, else `given`. TGL_BAD_ARGUMENT:
 * given is NULL, its size is below `first`, or bytes past `known` are not 0. */
tgl_status tgl_struct_read(const void *given, size_t known, size_t first, const char *name,
                           void *copy, const void **read);

/* The size of a struct whose last member is this one. */
#define TGL_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

#endif
