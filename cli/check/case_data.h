/* SPDX-License-Identifier: Apache-2.0
 *
 * One random problem of `tegula check` with its memory, its guards and its reference result:
 * check_draw.c draws it, check_case.c fills its memory. A guard is a range of elements before or
 * after the matrices of a buffer; the product must not access it.
 */
#ifndef CLI_CASE_DATA_H
#define CLI_CASE_DATA_H

#include "check_buffer.h"
#include "random.h"
#include "reference.h"

/* A group of a grouped product: its rows or its part of k. */
typedef struct check_group {
    int64_t first, size;
    double bound; /* maximum error that passes */
} check_group;

typedef struct check_case {
    uint64_t seed;
    int64_t number;
    tgl_problem problem;
    inputs inputs;
    bool aligns_denormals; /* the magnitudes of the reference include reference_align_denormals() */
    double alpha, beta, alpha_imag, beta_imag;
    bool no_beta; /* only with scalars in device memory: the pointer to beta is NULL, which means
                     beta = 0 */
    check_buffer a, b, c;
    check_buffer d;              /* size 0: D is C */
    tgl_epilogue epilogue;       /* size 0: none */
    check_buffer bias, residual; /* size 0: none */
    /* Options of the kernel string, for kernels that have them; 0: not given. splits: number of
     * splits of K; whole: number of tiles that are computed without split-K; depth: K of a split;
     * blocks: maximum number of thread blocks. strips: if the kernel supports it, separate launches
     * compute the last rows and columns beyond the whole tiles. */
    int64_t splits, whole, depth, blocks;
    bool strips;
    bool own_workspace;          /* the caller provides the workspace, if the plan needs one */
    bool prepared_a, prepared_b; /* the product runs once more with these operands prepared */
    bool again;             /* the product runs ten times and must give the same bits each time */
    double bound;           /* maximum error that passes */
    bool cuts_sums;         /* check_drawing.cuts_sums */
    check_group *groups;    /* [problem.batch]; NULL: the product is not grouped */
    int32_t *group_numbers; /* tgl_operands.groups on the host; NULL: not grouped */
    reference_element *reference; /* m x n elements for each D; for complex types two for each, the
                                     real part first */
} check_case;

/* The size of the random problems: small for the simulator or a sanitizer, medium for a CPU, large
 * for a GPU. */
typedef enum check_scale { SCALE_SMALL, SCALE_MEDIUM, SCALE_LARGE } check_scale;

/* The settings that all cases of a run share. */
typedef struct check_drawing {
    uint64_t seed;
    tgl_type type;           /* type of A and B; 0: TGL_F32 or TGL_F64 at random */
    tgl_type type_c, type_d; /* types of C and D; 0: C has that of A and B, D that of C */
    tgl_compute compute;
    bool plain;     /* row-major, not transposed, no batch, D is C, scalars of the host */
    bool epilogues; /* each product has an epilogue */
    bool grouped;   /* each product has groups of rows or along k */
    bool cuts_sums; /* tensor cores may truncate sums (error_of_cut_sums()) and align denormals
                       (aligns_denormals) */
    check_scale scale;
} check_drawing;

enum { GUARD = 64 }; /* guard elements before the matrices of a buffer, and usually behind them */

#endif
