/* SPDX-License-Identifier: Apache-2.0
 *
 * One random problem of `tegula check` with its memory, its guards and its reference result. It
 * depends on a seed and a number only, so that it can be reproduced.
 */
#ifndef CLI_CHECK_CASE_H
#define CLI_CHECK_CASE_H

#include "random.h"
#include "reference.h"

/* The index in its buffer of element (i, j) of op(X[b]), or of C[b]: offset + b*batch + i*row +
 * j*column, in elements. */
typedef struct check_view {
    int64_t offset, batch, row, column;
} check_view;

/* A buffer and the matrices in it. */
typedef struct check_buffer {
    check_view view;
    tgl_type type;
    int64_t size;         /* number of elements, guards included */
    unsigned char *image; /* the buffer's contents before the product */
    bool null;            /* the product gets NULL for it: it is not accessed */
} check_buffer;

typedef struct check_case {
    uint64_t seed;
    int64_t number;
    tgl_problem problem;
    inputs inputs;
    bool aligns_denormals; /* the reference follows reference_align_denormals() */
    double alpha, beta, alpha_imag, beta_imag;
    bool no_beta; /* scalars in device memory: the pointer to beta is NULL, which means 0 */
    check_buffer a, b, c;
    check_buffer d;              /* size 0: D is C */
    tgl_epilogue epilogue;       /* size 0: none */
    check_buffer bias, residual; /* size 0: none */
    /* Options of the kernel string, for kernels that have them; 0: not given. strips: if the kernel
     * supports it, launches of their own compute the last rows and columns. */
    int64_t splits, whole, depth, blocks;
    bool strips;
    bool own_workspace; /* the caller provides the workspace, if the plan needs one */
    bool again;         /* the product runs ten times and must give the same bits each time */
    double bound;       /* maximum error that passes */
    reference_element *reference; /* batch x m x n; both parts of complex elements */
} check_case;

/* The size of cases: for the simulator or a sanitizer, for a CPU, for a GPU. */
typedef enum check_scale { SCALE_SMALL, SCALE_MEDIUM, SCALE_LARGE } check_scale;

/* What the cases of a run have in common. */
typedef struct check_drawing {
    uint64_t seed;
    tgl_type type;           /* type of A and B; 0: TGL_F32 or TGL_F64 at random */
    tgl_type type_c, type_d; /* types of C and D; 0: C has that of A and B, D that of C */
    tgl_compute compute;
    bool plain;     /* row-major, not transposed, no batch, D is C, scalars of the host */
    bool epilogues; /* each product has an epilogue */
    bool cuts_sums; /* there may be tensor cores: see error_of_cut_sums(), aligns_denormals */
    check_scale scale;
} check_drawing;

enum { GUARD = 64 }; /* guard elements before the matrices of a buffer, and usually behind them */

/* Makes case `number`. false: no memory. */
bool check_case_make(check_case *c, const check_drawing *from, int64_t number);
void check_case_free(check_case *c);

/* What is wrong with a result, in one line; empty if it is right. */
typedef struct check_verdict {
    char text[256];
} check_verdict;

/* The size of a buffer in bytes. Allocating its image; false: no memory. Number `part` of
 * element (i, j) of matrix b of a buffer, read from the image. */
size_t check_buffer_bytes(const check_buffer *buffer);
bool check_buffer_make_image(check_buffer *buffer);
double check_buffer_get(const check_buffer *buffer, int64_t b, int64_t i, int64_t j, int part);

/* The buffer of the result: the buffer of D if D is another matrix than C, else that of C. */
const check_buffer *check_case_result(const check_case *c);

/* Compares the contents of the result's buffer after the product, `after`, with the reference, and
 * its padding and guards with their initial contents. */
void check_case_compare(const check_case *c, const unsigned char *after, error_summary *errors,
                        check_verdict *verdict);

/* Describes the case in one line: sizes, order, leading dimensions, scalars. */
void check_case_describe(const check_case *c, char *text, size_t size);

#endif
