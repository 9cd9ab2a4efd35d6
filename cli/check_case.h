/* SPDX-License-Identifier: Apache-2.0
 *
 * One random problem of `tegula check`: drawn from a seed and a number alone, so that it can be
 * made again, with its memory laid out between guards and its answer computed beside it.
 */
#ifndef CLI_CHECK_CASE_H
#define CLI_CHECK_CASE_H

#include "random.h"
#include "reference.h"

/* Where an element of one matrix of a batch lies in its buffer: offset + b*batch + i*row +
 * j*column, for element (i, j) of op(X), or of C. Elements, not bytes. */
typedef struct check_view {
    int64_t offset, batch, row, column;
} check_view;

/* A buffer and the matrices in it. */
typedef struct check_buffer {
    check_view view;
    int64_t size;         /* elements, guards included */
    unsigned char *image; /* what it holds before the product */
    bool null;            /* the product is given NULL in its place: it must not be touched */
} check_buffer;

typedef struct check_case {
    uint64_t seed;
    int64_t number;
    tgl_problem problem;
    input_kind inputs;
    double alpha, beta;
    bool no_beta; /* device scalars: beta is 0, and its pointer NULL */
    check_buffer a, b, c;
    check_buffer d;               /* size 0: D is C */
    tgl_epilogue epilogue;        /* size 0: none */
    check_buffer bias, residual;  /* size 0: none */
    int64_t splits, whole, depth; /* options of a kernel that is named, where it has them; 0: not */
    int64_t blocks;               /* given */
    bool strips;                  /* likewise: if it can have them beside its tiles */
    bool own_workspace;           /* a plan that needs workspace is given it by the caller */
    bool again;                   /* it is run ten times, which must give the same bits */
    double bound;                 /* the greatest error that passes */
    reference_element *reference; /* batch x m x n */
} check_case;

/* How large a case may be: for the simulator or a sanitizer, for a processor, for a GPU. */
typedef enum check_scale { SCALE_SMALL, SCALE_MEDIUM, SCALE_LARGE } check_scale;

/* What all cases of a run are drawn from. */
typedef struct check_drawing {
    uint64_t seed;
    tgl_type type; /* 0: TGL_F32 or TGL_F64, drawn too */
    tgl_compute compute;
    bool plain;     /* row-major, not transposed, no batch, D is C, scalars of the host */
    bool epilogues; /* each product has one */
    check_scale scale;
} check_drawing;

enum { GUARD = 64 }; /* elements before the matrices of a buffer, and mostly after */

/* Makes case `number`. false: no memory. */
bool check_case_make(check_case *c, const check_drawing *from, int64_t number);
void check_case_free(check_case *c);

/* What is wrong with a result, in one line; empty: nothing. */
typedef struct check_verdict {
    char text[256];
} check_verdict;

/* The buffer that the product is written to: D's where that is another matrix, else C's. */
const check_buffer *check_case_result(const check_case *c);

/* Compares the result's buffer after the product, `after`, with the reference, and its padding and
 * guards with what they were. */
void check_case_compare(const check_case *c, const unsigned char *after, error_summary *errors,
                        check_verdict *verdict);

/* The case in one line: sizes, order, leading dimensions, scalars. */
void check_case_describe(const check_case *c, char *text, size_t size);

#endif
