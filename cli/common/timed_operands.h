/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrices of a problem, of any types and layout: random, on the host and on the device. For
 * timing on a device with memory of its own there are several sets, which exceed the cache, and
 * calls alternate between them: a kernel that finds its inputs in the cache would look faster than
 * it is with inputs from memory.
 */
#ifndef CLI_TIMED_OPERANDS_H
#define CLI_TIMED_OPERANDS_H

#include "reference.h"
#include "tegula/tegula.h"

#include <stdbool.h>

/* The layout of a matrix of a problem: op(X) is rows x cols. */
typedef struct stored_matrix {
    tgl_type type;
    tgl_order order;
    tgl_transpose trans;
    int64_t rows, cols, ld, stride;
    int64_t extent; /* number of elements from the first of the batch to the last */
} stored_matrix;

stored_matrix stored_a(const tgl_problem *p);
stored_matrix stored_b(const tgl_problem *p);
stored_matrix stored_result(const tgl_problem *p); /* D if it is another matrix than C; else C */

/* The index of element (i, j) of op(X[b]). */
int64_t stored_place(const stored_matrix *x, int64_t b, int64_t i, int64_t j);

/* Host memory for one matrix of a series of problems. It is kept, because the first access to new
 * memory takes longer than a copy. */
typedef struct kept_matrix {
    void *memory;
    size_t size;
    tgl_type type; /* type of the random elements at the beginning of `memory` */
    size_t filled; /* number of bytes of these elements */
} kept_matrix;

typedef struct kept_matrices {
    kept_matrix a, b, c;
} kept_matrices;

void kept_matrices_free(kept_matrices *kept);

typedef struct operands {
    tgl_device *dev;
    tgl_problem problem;
    stored_matrix a, b, result;
    size_t size_a, size_b, size_c;  /* bytes of a matrix, or of the batch */
    void *host_a, *host_b;          /* on a device that works on host memory: the same as A and B */
    void *host_c;                   /* memory for a result, only with kept matrices */
    bool is_kept;                   /* host_a, host_b and host_c belong to kept matrices */
    int sets;                       /* number of sets on the device; 1 on host devices */
    void *A, *B, *C;                /* the sets one after another, aligned to 256 bytes */
    size_t step_a, step_b, step_c;  /* bytes from one set to the next */
    void *bias, *host_bias;         /* bias of an epilogue, one for all sets */
    void *residual, *host_residual; /* one residual in each set */
    tgl_prepared **prepared[2]; /* A and B: an array with one element per set; NULL: not prepared */
} operands;

/* One set. C is the result: D if the problem has a separate one. */
typedef struct operand_set {
    const void *A, *B, *bias, *residual;
    const tgl_prepared *prepared_a, *prepared_b; /* NULL: not prepared */
    void *C;
} operand_set;

/* Makes A and B with random elements in (-1,1); the result is not initialised. The operands must be
 * released even after a failure. rotate: false: make a single set. */
tgl_status operands_make(operands *o, tgl_device *dev, const tgl_problem *problem, bool rotate);

/* Like operands_make(), for one of several problems in turn. On a device with memory of its own the
 * matrices on the host are in `kept`; A and B must not be changed, because the next problem uses
 * the same elements. */
tgl_status operands_make_kept(operands *o, tgl_device *dev, const tgl_problem *problem,
                              kept_matrices *kept);
void operands_release(operands *o);

/* Copies A and B from the host to all sets, on a device with memory of its own. */
tgl_status operands_upload(const operands *o);

/* Adds the operands of an epilogue. */
tgl_status operands_add_epilogue(operands *o, const tgl_epilogue *epilogue);

/* Prepares A or B of all sets for a plan of the operands' problem. The operands must be released
 * before the plan's device is closed. */
tgl_status operands_prepare(operands *o, const tgl_plan *plan, tgl_side side);

/* The set for call number `call`, from 0. */
operand_set operands_for(const operands *o, int64_t call);

/* Runs a plan for the operands' problem on one set: result := op(A)*op(B), and its epilogue. */
tgl_status operands_run(const operands *o, const tgl_plan *plan, operand_set set);

/* Fills the result of the first set with NaN. C: host memory of the size of a result, which is
 * filled and uploaded; on a device that works on host memory it may be the result itself. */
tgl_status operands_forget_result(const operands *o, void *C);

/* Copies the result of the first set to C, the memory of operands_forget_result(). */
tgl_status operands_download_result(const operands *o, void *C);

/* One element of the reference result, without an epilogue. */
reference_element operands_expected(const operands *o, int64_t b, int64_t i, int64_t j, int part);

#endif
