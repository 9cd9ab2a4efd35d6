/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocates the matrices of a problem, of any types and layout, on the host and on the device, and
 * fills A and B with random elements. A set is one copy of A, B and the result in device memory.
 * For timing on a device with memory of its own there are several sets, which together exceed the
 * L2 cache if the memory suffices. Successive calls use different sets, because a kernel that finds
 * its inputs in the cache would look faster than it is with inputs from memory.
 */
#ifndef CLI_TIMED_OPERANDS_H
#define CLI_TIMED_OPERANDS_H

#include "reference.h"
#include "tegula/tegula.h"

#include <stdbool.h>

/* How a matrix of a problem is stored; op(X) has rows x cols elements. */
typedef struct stored_matrix {
    tgl_type type;
    tgl_order order;
    tgl_transpose trans;
    int64_t rows, cols, ld, stride;
    int64_t extent; /* number of elements from the first one of the batch to the last one,
                       inclusive */
} stored_matrix;

stored_matrix stored_a(const tgl_problem *p);
stored_matrix stored_b(const tgl_problem *p);
stored_matrix stored_result(const tgl_problem *p); /* D if it is another matrix than C; else C */

/* The element index of element (i, j) of op(X[b]). */
int64_t stored_place(const stored_matrix *x, int64_t b, int64_t i, int64_t j);

/* Host memory that one problem after another uses for a matrix. It is not freed in between, because
 * the first access to newly allocated memory takes longer than a copy. */
typedef struct kept_matrix {
    void *memory;
    size_t size;
    tgl_type type; /* the type of the random elements at the beginning of `memory` */
    size_t filled; /* the size of these elements in bytes */
} kept_matrix;

typedef struct kept_matrices {
    kept_matrix a, b, c;
} kept_matrices;

void kept_matrices_free(kept_matrices *kept);

typedef struct operands {
    tgl_device *dev;
    tgl_problem problem;
    stored_matrix a, b, result;
    size_t size_a, size_b, size_c; /* size in bytes of a matrix or, for a batch, of all its
                                      matrices */
    void *host_a, *host_b; /* A and B on the host; on a host device `A` and `B` themselves */
    void *host_c;          /* host memory for a result; set only by operands_make_kept() */
    bool is_kept;          /* whether host_a, host_b and host_c belong to a kept_matrices,
                              not to this struct */
    int sets;              /* number of sets on the device; 1 on a host device */
    void *A, *B, *C;       /* the sets, one after another, each aligned to 256 bytes */
    size_t step_a, step_b, step_c;  /* distance in bytes from one set to the next */
    void *bias, *host_bias;         /* the epilogue's bias on device and host, one for all sets;
                                       NULL: none */
    void *residual, *host_residual; /* the epilogue's residuals, one in each set; NULL: none */
    tgl_prepared **prepared[2];     /* A (index 0) and B (1): an array with an element for each set;
                                       NULL: not prepared */
} operands;

/* The operands of one call. C is where the result goes: the matrix D if the problem has one. */
typedef struct operand_set {
    const void *A, *B, *bias, *residual;
    const tgl_prepared *prepared_a, *prepared_b; /* NULL: not prepared */
    void *C;
} operand_set;

/* Allocates A, B and the result, and fills A and B with random elements in (-1, 1). rotate: true:
 * make several sets on a device with memory of its own; false: make one. The caller must release
 * the operands even after a failure. */
tgl_status operands_make(operands *o, tgl_device *dev, const tgl_problem *problem, bool rotate);

/* Like operands_make(), with several sets, for a series of problems. On a device with memory of its
 * own the host copies are in `kept`; the caller must not change A and B there, because the next
 * problem uses the same elements. */
tgl_status operands_make_kept(operands *o, tgl_device *dev, const tgl_problem *problem,
                              kept_matrices *kept);
void operands_release(operands *o);

/* Copies A and B from the host to all sets. On a host device the only set is the host's copy. */
tgl_status operands_upload(const operands *o);

/* Allocates the bias and the residual that the epilogue needs, with random elements. */
tgl_status operands_add_epilogue(operands *o, const tgl_epilogue *epilogue);

/* Prepares A or B of all sets for a plan of the operands' problem. The caller must release the
 * operands before it closes the plan's device. */
tgl_status operands_prepare(operands *o, const tgl_plan *plan, tgl_side side);

/* The set that call number `call` (from 0 on) uses; successive calls use the sets in turn. */
operand_set operands_for(const operands *o, int64_t call);

/* Runs a plan of the operands' problem on one set: result := epilogue(op(A)*op(B)). */
tgl_status operands_run(const operands *o, const tgl_plan *plan, operand_set set);

/* Fills the result of the first set with NaN (integers: with -1). C: host memory of the size of a
 * result, which is filled and then uploaded; on a host device it may be the result itself. */
tgl_status operands_forget_result(const operands *o, void *C);

/* Copies the result of the first set to C, the memory that operands_forget_result() got. */
tgl_status operands_download_result(const operands *o, void *C);

/* The expected value of part `part` (0: real, 1: imaginary) of element (i, j) of result number b of
 * the batch, before an epilogue. */
reference_element operands_expected(const operands *o, int64_t b, int64_t i, int64_t j, int part);

#endif
