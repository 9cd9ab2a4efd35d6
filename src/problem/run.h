/* SPDX-License-Identifier: Apache-2.0
 *
 * The operands of one run: a tgl_operands after all pointers and scalars have been checked.
 */
#ifndef TGL_RUN_H
#define TGL_RUN_H

#include "problem/shape.h"

/* The pointers of a run. */
typedef enum tgl_operand {
    TGL_AT_A,
    TGL_AT_B,
    TGL_AT_C,
    TGL_AT_D, /* equal to the pointer to C if D is C (in_place) */
    TGL_AT_A_ARRAY,
    TGL_AT_B_ARRAY,
    TGL_AT_C_ARRAY,
    TGL_AT_D_ARRAY,
    TGL_AT_BIAS,
    TGL_AT_RESIDUAL,
    TGL_AT_ALPHA, /* alpha and beta in device memory; NULL if the host gives them */
    TGL_AT_BETA,
    TGL_AT_SCALE_A,
    TGL_AT_SCALE_B,
    TGL_AT_SCALE_D,
    TGL_AT_GROUPS,
    TGL_AT_AMAX,  /* written, an F32: the largest magnitude of D before scale_d and rounding */
    TGL_AT_ZEROS, /* zero points of weights. Their factors are TGL_AT_SCALE_A or TGL_AT_SCALE_B */
    TGL_OPERANDS
} tgl_operand;

/* A and B. tgl_operand_prepare() can run their pre-pass, a kernel that converts the operand, in
 * advance. */
enum { TGL_KEPT_OPERANDS = 2 };

struct tgl_bundle_table;

/* The operands of one run, exchanged as the normalised shape requires. */
typedef struct tgl_run {
    double alpha, beta; /* rounded to tgl_shape_scalar_type(); real parts of complex types. alpha is
                           0 if k is 0. NaN if they are in device memory, which the host does
                           not read */
    double alpha_imag, beta_imag; /* imaginary parts, rounded; 0 for real types */
    bool has_product;             /* A and B are read; false: k is 0, or the host knows that alpha
                                     is 0 */
    const void *at[TGL_OPERANDS]; /* pointers, indexed by tgl_operand; NULL if the run does not use
                                     the operand, such as A without a product */
    void *workspace;              /* given by the caller; NULL: the device provides it */
    size_t workspace_bytes;
    void *kept[TGL_KEPT_OPERANDS]; /* results of the pre-passes of A and B from an earlier run;
                                      NULL: this run executes the pre-pass */
    bool is_preparation;           /* the run only executes the pre-pass of one operand and writes
                                      kept[prepares] */
    tgl_operand prepares;          /* TGL_AT_A or TGL_AT_B */
    const struct tgl_bundle_table *bundle; /* the products, if shape.is_bundle; all of at[] are then
                                              NULL */
} tgl_run;

/* Whether beta is not 0, so that the run reads C. Also true if the scalars are in device memory,
 * even without a beta: run->beta is NaN then. */
static inline bool tgl_run_has_beta(const tgl_run *run)
{
    return run->beta != 0 || run->beta_imag != 0; /* true for a NaN beta */
}

/* Sets amax_d to 0 if the run has one. Only for devices that work on host memory: their kernels
 * then raise it to the largest magnitude. */
static inline void tgl_run_clear_amax(const tgl_run *run)
{
    if (run->at[TGL_AT_AMAX] != NULL) *(float *)run->at[TGL_AT_AMAX] = 0;
}

/* The number of scale factors of A, B or D (TGL_AT_SCALE_A, ..._B, ..._D), or of zero points
 * (TGL_AT_ZEROS), from the first to the last one in memory, of all groups together. */
int64_t tgl_scales_count(const tgl_shape *shape, tgl_operand operand);

/* The distance in memory, in factors, from the scale factors of a matrix to those of the next
 * matrix. 0 if all matrices have the same factors (no groups), or the operand is one matrix with
 * the rows of all groups (A and D of ROWS). */
int64_t tgl_scales_stride(const tgl_shape *shape, tgl_operand operand);

/* Whether alpha or beta in memory is 0. type: of tgl_shape_scalar_type(). */
bool tgl_scalar_is_zero(const void *scalar, tgl_type type);

/* Rounds alpha, beta or their imaginary part to tgl_shape_scalar_type(). */
double tgl_scalar_round(const tgl_shape *shape, double value);

/* Checks that a pointer is not NULL and is aligned for elements of this type. Returns `status` if
 * not; the message begins with `name`. */
tgl_status tgl_pointer_check(const char *name, tgl_status status, const void *pointer,
                             tgl_type type);

/* Checks the operands of a run, and converts them to *run for the normalised shape. */
tgl_status tgl_run_make(const tgl_shape *shape, const tgl_operands *operands, tgl_run *run);

/* Checks each pointer in the arrays of a run, on devices whose arrays the host can read. */
tgl_status tgl_run_check_pointers(const tgl_shape *shape, const tgl_run *run);

#endif
