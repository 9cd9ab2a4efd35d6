/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-pass gemm/decompose.cu: FP32 operands as two words of f16 for each element, and what is
 * known of their lines. kernels/lib/decompose_args.h says what the words are.
 */
#ifndef TGL_DECOMPOSE_H
#define TGL_DECOMPOSE_H

#include "plan/family.h"

/* The words of op(A) or op(B): `lines` rows of op(A) or columns of op(B), of `length` elements. */
typedef struct tgl_decompose {
    tgl_operand operand;   /* TGL_AT_A or TGL_AT_B */
    bool transposes;       /* lines are columns in memory */
    int64_t offset;        /* elements from the operand's beginning to its part */
    int64_t lines, length; /* of a matrix */
    int64_t ld, stride;    /* of the operand, in elements */
    int64_t count;         /* matrices of the batch; 1 if all problems share one */
    int strip;             /* lines of a block if it transposes: 8, 16 or 32; 0: by the length */
    int64_t counters;      /* tgl_decompose_counter_bytes() of the counters, from this byte on */
    bool is_kept; /* the results are the operand's block in the launch list (TGL_VALUE_KEPT), */
    int64_t at;   /* or else in the scratch, from this byte on */
    /* tgl_decompose_place(): where words, panels and exponents are from there, and the bytes of
     * all. Exponents follow the panels at once. */
    int64_t words, panels, exponents, bytes;
} tgl_decompose;

/* Elements from one line of words to the next. */
int64_t tgl_decompose_pitch(const tgl_decompose *d);

/* Lays out the results. */
void tgl_decompose_place(tgl_decompose *d);

/* Bytes of counters. A launch finds them zero and leaves them zero. */
int64_t tgl_decompose_counter_bytes(const tgl_decompose *d);

/* Adds the patch of a pointer to an operand's results, `offset` bytes from their beginning. */
void tgl_decompose_patch(const tgl_decompose *d, size_t at, int64_t offset,
                         tgl_list_builder *builder);

/* Operands of a pre-pass, or both of them. */
enum { TGL_DECOMPOSE_A = 1, TGL_DECOMPOSE_B = 2, TGL_DECOMPOSE_BOTH = 3 };

/* Seconds that the pre-pass of these operands is predicted to take, with its launch. */
double tgl_decompose_seconds(const tgl_chip *chip, const tgl_decompose both[2], int which);

/* NULL, or why the pre-pass cannot be launched. Static text. */
const char *tgl_decompose_fault(const tgl_chip *chip, const tgl_decompose both[2]);

/* Adds the step, for these operands. A run without a product skips them, and leaves out what is
 * kept from an earlier run. */
void tgl_decompose_add_step(const tgl_partition *of, const tgl_decompose both[2], int which,
                            tgl_list_builder *builder);

#endif
