/* SPDX-License-Identifier: Apache-2.0
 *
 * One product with everything around it: inputs of a given distribution in buffers that end at
 * pages which must not be touched, a reference in higher precision, and a look at every byte
 * afterwards. Used by the tests and by the fuzz target; does not need cmocka.
 */
#ifndef TGL_GEMM_CASE_H
#define TGL_GEMM_CASE_H

#include "tegula/tegula.h"

#include <stdbool.h>

typedef enum inputs {
    UNIFORM_01,   /* (0, 1): every product counts the same way */
    UNIFORM_11,   /* (-1, 1) */
    NORMAL,       /* mean 0, variance 1 */
    WIDE,         /* (U - 0.5) * exp(4 N): exponents far apart */
    CANCELLATION, /* the second half of k all but cancels the first */
    DENORMAL,     /* A holds numbers below the least normal one, B is near 1 */
    NON_FINITE,   /* small integers, now and then a NaN, an infinity or a zero of either sign */
    INPUTS_END
} inputs;

const char *inputs_name(inputs fill);

/* What a tgl_epilogue's expression should give. */
typedef long double gemm_expression(long double acc, long double c, long double bias, int64_t row,
                                    int64_t col);

typedef struct gemm_case {
    /* Strided; with pointers the matrices lie so too, in the other order. It also says whether D is
     * another matrix, where the scalars are, and the compute mode. */
    tgl_problem problem;
    double alpha, beta;
    bool pointers;
    tgl_epilogue epilogue;       /* size 0: none */
    gemm_expression *expression; /* of slope 2 at most */
    const char *kernel;          /* a kernel string; NULL: the planner's choice */
    bool gives_workspace;        /* the run gets a workspace of the caller's, full of garbage */
    inputs fill;
    bool at_end; /* each buffer ends, instead of begins, at a page that must not be touched */
    uint64_t seed;
} gemm_case;

/* Errors of elements in units of u * (|alpha| |A||B| + |beta||C|), u = 2^-24 or 2^-53; and of the
 * whole in the Frobenius norm. */
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

/* Index of element (i, j) of op(X) in the stored matrix X, and the elements that a batch of X
 * spans. op(X) is rows x cols; ld is not 0. */
int64_t stored_index(tgl_order order, tgl_transpose trans, int64_t ld, int64_t i, int64_t j);
int64_t stored_extent(tgl_order order, tgl_transpose trans, int64_t rows, int64_t cols, int64_t ld,
                      int64_t batch, int64_t stride);

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

/* ---- Random numbers -------------------------------------------------------------------------- */

uint64_t random_bits(uint64_t *seed);                          /* SplitMix64 */
int64_t random_int(uint64_t *seed, int64_t low, int64_t high); /* both included */
double random_unit(uint64_t *seed);                            /* (0, 1) */

/* A problem as tgl_problem_init() makes it. */
tgl_problem problem_of(tgl_type type, int64_t m, int64_t n, int64_t k);

/* A legal problem of up to `largest` in each dimension: any order, transposes, leading dimensions
 * and batch. D is C. */
tgl_problem random_problem(uint64_t *seed, tgl_type type, int64_t largest);

/* Has D another matrix, of any leading dimension and stride that are legal for it. C may then be
 * shared by a batch. */
void separate_d(uint64_t *seed, tgl_problem *problem);

/* Draws what a case may have besides its problem: another D, scalars of the device, workspace. */
void vary_case(uint64_t *seed, gemm_case *c);

#endif
