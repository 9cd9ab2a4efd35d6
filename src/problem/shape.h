/* SPDX-License-Identifier: Apache-2.0
 *
 * The normalised problem: a tgl_problem, its epilogue and its operands after all arguments have
 * been checked. Argument errors are found only in shape.c (problems), shape_epilogue.c (epilogues)
 * and operands.c (runs). All functions that return a tgl_status set the error message
 * (base/error.h) when they fail.
 */
#ifndef TGL_SHAPE_H
#define TGL_SHAPE_H

#include "tegula/tegula.h"

#include <stdbool.h>

/* The operation on an element before it is stored, as in tgl_epilogue. */
typedef struct tgl_shape_epilogue {
    tgl_bias bias; /* by row or column of the normalised D */
    tgl_activation activation;
    bool residual;
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
 *   C(i, j)     = C[i*ldc + j], D(i, j) = D[i*ldd + j]          C, D:  m x n
 *
 * If D is C (in_place), type_d, ldd and stride_d are those of C. api/plan_cache.c compares all
 * members. */
typedef struct tgl_shape {
    int64_t m, n, k;
    bool swapped, trans_a, trans_b;
    bool in_place; /* D is C */
    tgl_type type_a, type_b, type_c, type_d, type_accumulate;
    tgl_compute compute;
    bool device_scalars; /* alpha and beta are read from device memory */
    int64_t lda, ldb, ldc, ldd;
    int64_t batch, stride_a, stride_b, stride_c, stride_d;
    bool pointers;     /* the batch is given by arrays of pointers; strides are 0 */
    bool unaligned;    /* matrices may begin at any element. Else plans may need multiples of
                          TGL_MAP_ALIGNMENT bytes; tgl_plan_run_operands() sees to that */
    int64_t alignment; /* of the pointers to A and B, in bytes, as the caller guarantees it */
    tgl_scaling scaling_a, scaling_b, scaling_d;
    tgl_type type_scale;
    tgl_shape_epilogue epilogue;
} tgl_shape;

/* The pointers of a run. */
typedef enum tgl_operand {
    TGL_AT_A,
    TGL_AT_B,
    TGL_AT_C,
    TGL_AT_D, /* C if in_place */
    TGL_AT_A_ARRAY,
    TGL_AT_B_ARRAY,
    TGL_AT_C_ARRAY,
    TGL_AT_D_ARRAY,
    TGL_AT_BIAS,
    TGL_AT_RESIDUAL,
    TGL_AT_ALPHA, /* only with device scalars */
    TGL_AT_BETA,
    TGL_AT_SCALE_A,
    TGL_AT_SCALE_B,
    TGL_AT_SCALE_D,
    TGL_OPERANDS
} tgl_operand;

enum { TGL_KEPT_OPERANDS = 2 }; /* A and B, whose pre-passes tgl_operand_prepare() can run ahead */

/* The operands of one run, in terms of the normalised shape. */
typedef struct tgl_run {
    double alpha, beta; /* rounded to the accumulation type; alpha is 0 if k is 0. NaN with device
                           scalars: the host does not know them */
    bool has_product;   /* A and B may be read: alpha is not known to be 0 */
    const void *at[TGL_OPERANDS]; /* NULL if not used, such as A and B without a product */
    void *workspace;              /* the caller's; NULL: the device provides it */
    size_t workspace_bytes;
    void *kept[TGL_KEPT_OPERANDS]; /* what the pre-pass of TGL_AT_A or TGL_AT_B has made in an
                                      earlier run; NULL: this run makes it */
    bool is_preparation;  /* the run only makes kept[prepares], by the pre-pass of that operand */
    tgl_operand prepares; /* TGL_AT_A or TGL_AT_B */
} tgl_run;

/* A product that a device may compute without a plan: row-major, of f32 or f64 alone, with checked
 * arguments. C := alpha*op(A)*op(B) + beta*C, where op(A) is m x k. */
typedef struct tgl_small_product {
    tgl_type type;
    bool trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    double alpha, beta; /* not rounded to the type, in which alpha is not 0 */
    const void *A, *B;
    void *C;
} tgl_small_product;

static inline bool tgl_epilogue_is_none(const tgl_shape_epilogue *e)
{
    return e->bias == TGL_BIAS_NONE && e->activation == TGL_ACTIVATION_NONE && !e->residual &&
           e->expression == NULL;
}

/* True if D has no elements. Then nothing is computed, and pointers are not checked. */
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
 * zero_is_tight: a leading dimension of 0 means no padding. */
tgl_status tgl_shape_make(const tgl_problem *problem, bool zero_is_tight, tgl_shape *shape);

/* Checks the epilogue (NULL: none) for a shape that is otherwise complete, and normalises it to
 * shape->epilogue. *source: the expression as a header, which shape points to and the caller frees;
 * NULL without an expression. */
tgl_status tgl_epilogue_make(const tgl_epilogue *epilogue, tgl_shape *shape, char **source);

/* The epilogue as a formula, with rows and columns as the caller sees them; empty without an
 * epilogue. Returns text. */
const char *tgl_epilogue_describe(const tgl_shape *shape, char *text, size_t size);

/* Rounds alpha or beta of the host to the accumulation type. */
double tgl_scalar_round(const tgl_shape *shape, double value);

/* Checks pointers and scalars of a run and converts them to the terms of the shape. */
tgl_status tgl_run_make(const tgl_shape *shape, const tgl_operands *operands, tgl_run *run);

/* Checks each pointer in the arrays of a run, for devices whose arrays the host can read. */
tgl_status tgl_run_check_pointers(const tgl_shape *shape, const tgl_run *run);

/* Reads a caller's struct that begins with its size. known: the size of the library's struct;
 * first: its size in version 0.2; name: for the error message. A smaller struct is copied to `copy`
 * (known bytes) and completed with zeros, and *read is then `copy`, else `given`. TGL_BAD_ARGUMENT:
 * given is NULL, its size is below `first`, or bytes past `known` are not 0. */
tgl_status tgl_struct_read(const void *given, size_t known, size_t first, const char *name,
                           void *copy, const void **read);

/* The size of a struct whose last member is this one. */
#define TGL_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

#endif
