/* SPDX-License-Identifier: Apache-2.0
 *
 * One product of any types with everything around it: inputs of a given distribution in buffers
 * that end at pages which must not be touched, a reference in higher precision, and a comparison of
 * every byte afterwards. Used by the tests and by the fuzz target; does not need cmocka. The
 * generator and the reference are those of `tegula check` (cli/reference/).
 */
#ifndef TGL_GEMM_CASE_H
#define TGL_GEMM_CASE_H

#include "random.h"
#include "reference.h"
#include "tegula/tegula.h"

#include <stdbool.h>

/* What a tgl_epilogue's expression should give. */
typedef long double gemm_expression(long double acc, long double c, long double bias, int64_t row,
                                    int64_t col);

typedef struct gemm_case {
    /* Strided; with pointers the matrices lie so too, in the other order. It also says whether D is
     * another matrix, where the scalars are, and the compute mode. */
    tgl_problem problem;
    double alpha, beta;
    double alpha_imag, beta_imag; /* of complex types */
    bool pointers;
    tgl_epilogue epilogue;       /* size 0: none */
    gemm_expression *expression; /* of slope 2 at most */
    const char *kernel;          /* a kernel string; NULL: the planner's choice */
    /* Computes the product instead of a plan; NULL: a plan. */
    tgl_status (*run)(tgl_device *dev, const tgl_problem *problem, const tgl_operands *operands);
    bool gives_workspace; /* the run gets a workspace of the caller's, full of garbage */
    inputs fill;
    bool at_end; /* each buffer ends, instead of begins, at a page that must not be touched */
    uint64_t seed;
} gemm_case;

/* Errors in the units of reference.h, and of the whole result in the Frobenius norm. */
typedef struct gemm_errors {
    double max, rms, frobenius;
} gemm_errors;

typedef struct gemm_outcome {
    tgl_status status; /* TGL_UNSUPPORTED is no fault: not every kernel takes every problem */
    gemm_errors ours;
    gemm_errors sequential; /* of one fused multiply-add after the other; if asked for */
    char fault[1024];       /* what went wrong, with the case; empty if nothing did */
} gemm_outcome;

/* Runs the case on `dev`. want_sequential: fill outcome->sequential too. */
void gemm_case_run(tgl_device *dev, const gemm_case *c, bool want_sequential,
                   gemm_outcome *outcome);

/* Writes the case as one line. */
void gemm_case_describe(const gemm_case *c, char *text, size_t size);

/* ---- Memory between pages that must not be touched ------------------------------------------- */

typedef struct guarded {
    unsigned char *map; /* a forbidden page, the room, a forbidden page */
    size_t map_size;
    unsigned char *bytes; /* at one end of the room */
    size_t size;
} guarded;

/* False: no memory. */
bool guarded_create(guarded *g, size_t size, bool at_end);
void guarded_destroy(guarded *g);
void guarded_forbid_writes(guarded *g);
bool guarded_is_intact(const guarded *g); /* nothing in the room but outside `bytes` has changed */

/* ---- Random problems ------------------------------------------------------------------------- */

/* A problem as tgl_problem_init() makes it. */
tgl_problem problem_of(tgl_type type, int64_t m, int64_t n, int64_t k);

/* A problem of m, n and k, transposed as bits 0 and 1 of `variant` say, with padding after each row
 * if bit 2 is set. */
tgl_problem padded_problem(tgl_type type, const int64_t size[3], unsigned variant);

/* A legal problem of up to `largest` in each dimension: any order, transposes, leading dimensions
 * and batch. D is C. */
tgl_problem random_problem(uint64_t *seed, tgl_type type, int64_t largest);

/* Has D another matrix, of any leading dimension and stride that are legal for it. C may then be
 * shared by a batch. */
void separate_d(uint64_t *seed, tgl_problem *problem);

/* Draws what a case may have besides its problem: another D, scalars of the device, workspace. */
void vary_case(uint64_t *seed, gemm_case *c);

#endif
