/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one product of any types: makes inputs of a given distribution in buffers that end or begin
 * at inaccessible pages, computes a reference in higher precision, and compares every byte after
 * the run. Used by the tests and by the fuzz target; does not need cmocka. The random numbers and
 * the reference are those of `tegula check` (cli/reference/).
 */
#ifndef TGL_GEMM_CASE_H
#define TGL_GEMM_CASE_H

#include "guarded.h"
#include "random.h"
#include "reference.h"
#include "tegula/tegula.h"

#include <stdbool.h>

/* Computes the expected value of an epilogue's expression. */
typedef long double gemm_expression(long double acc, long double c, long double bias, int64_t row,
                                    int64_t col);

typedef struct gemm_case {
    /* Strided batch. With `pointers`, the run gets arrays of pointers to these matrices in reverse
     * order. */
    tgl_problem problem;
    double alpha, beta;
    double alpha_imag, beta_imag; /* for complex types */
    bool pointers;
    tgl_epilogue epilogue;       /* size 0: none */
    gemm_expression *expression; /* its slope must be at most 2 */
    const char *kernel;          /* a kernel string; NULL: the planner's choice */
    /* A function that computes the product instead of a plan; NULL: a plan computes it. */
    tgl_status (*run)(tgl_device *dev, const tgl_problem *problem, const tgl_operands *operands);
    bool gives_workspace; /* the run gets a workspace from the caller, filled with garbage */
    inputs fill;
    bool at_end; /* true: each buffer ends at an inaccessible page; false: it begins at one */
    uint64_t seed;
} gemm_case;

/* The greatest and the RMS error e (reference.h), and the relative error in the Frobenius norm. */
typedef struct gemm_errors {
    double max, rms, frobenius;
} gemm_errors;

typedef struct gemm_outcome {
    tgl_status status; /* TGL_UNSUPPORTED is no fault: not every kernel supports every problem */
    gemm_errors ours;
    gemm_errors sequential; /* of a loop of fused multiply-adds; only with want_sequential, and
                               not for complex types */
    char fault[1024];       /* the fault and the case; empty: the result is right */
} gemm_outcome;

/* Runs the case on `dev`. want_sequential: also sets outcome->sequential. */
void gemm_case_run(tgl_device *dev, const gemm_case *c, bool want_sequential,
                   gemm_outcome *outcome);

/* Writes the case as one line. */
void gemm_case_describe(const gemm_case *c, char *text, size_t size);

/* ---- Random problems ------------------------------------------------------------------------- */

/* A problem as tgl_problem_init() makes it. */
tgl_problem problem_of(tgl_type type, int64_t m, int64_t n, int64_t k);

/* A problem of m, n and k, transposed as bits 0 and 1 of `variant` say, with padding after each row
 * if bit 2 is set. */
tgl_problem padded_problem(tgl_type type, const int64_t size[3], unsigned variant);

/* A legal problem of up to `largest` in each dimension: any order, transposes, leading dimensions
 * and batch. D is C. */
tgl_problem random_problem(uint64_t *seed, tgl_type type, int64_t largest);

/* Makes D another matrix than C, with random legal leading dimension and stride. The products of a
 * batch may then share C. */
void separate_d(uint64_t *seed, tgl_problem *problem);

/* Draws whether a case has a D other than C, scalars in device memory, and a workspace of the
 * caller. */
void vary_case(uint64_t *seed, gemm_case *c);

#endif
