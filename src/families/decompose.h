/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-pass gemm/decompose.cu. For an FP32 operand it writes two words of f16 for each element,
 * the exponents by which lines are scaled, and a table of panels. A line is a row of op(A) or a
 * column of op(B). A panel lists those elements of 64 lines that two words cannot represent
 * (kernels/lib/decompose_args.h).
 */
#ifndef TGL_DECOMPOSE_H
#define TGL_DECOMPOSE_H

#include "plan/family.h"

/* op(A) or op(B) as words of f16 (hi, lo). Its lines are rows of op(A) or columns of op(B). */
typedef struct tgl_decompose {
    tgl_operand operand;   /* TGL_AT_A or TGL_AT_B */
    bool transposes;       /* lines are columns of the stored matrix */
    int pairs;             /* pairs_b of tgl_shape; 0 for A */
    int64_t offset;        /* elements from the operand's beginning to the part that is converted */
    int64_t lines, length; /* lines of one matrix; elements of a line */
    int64_t ld, stride;    /* strides of the operand, in elements */
    int64_t count;         /* matrices of the batch; 1 if all problems share one matrix */
    int64_t counters;      /* byte offset of its counters in the counters of the launch list */
    /* Where the results are. is_kept: in the memory of the prepared operand (TGL_VALUE_KEPT); else
     * in the scratch, from byte offset `at` on. */
    bool is_kept;
    int64_t at;
    /* Set by tgl_decompose_place(): the offsets of words, panels and exponents in the results, and
     * the bytes of the results. The exponents follow the panels without a gap. */
    int64_t words, panels, exponents, bytes;
} tgl_decompose;

/* Elements from one line of words to the next. */
int64_t tgl_decompose_pitch(const tgl_decompose *d);

/* Sets the members words, panels, exponents and bytes. */
void tgl_decompose_place(tgl_decompose *d);

/* Bytes of counters. They are zero before and after a launch. */
int64_t tgl_decompose_counter_bytes(const tgl_decompose *d);

/* Adds a patch: a run sets the pointer at offset `at` of the arguments to `offset` bytes behind the
 * beginning of the operand's results. */
void tgl_decompose_patch(const tgl_decompose *d, size_t at, int64_t offset,
                         tgl_list_builder *builder);

/* Values of `which`: the operands that a pre-pass reads. */
enum { TGL_DECOMPOSE_A = 1, TGL_DECOMPOSE_B = 2, TGL_DECOMPOSE_BOTH = 3 };

/* Predicted seconds of the pre-pass of these operands, with its launch. */
double tgl_decompose_seconds(const tgl_chip *chip, const tgl_decompose both[2], int which);

/* Returns NULL, or why the pre-pass cannot be launched. Static text. */
const char *tgl_decompose_fault(const tgl_chip *chip, const tgl_decompose both[2]);

/* Adds the step with the pre-pass of these operands. A run without a product skips it. A run that
 * still has an operand's results from an earlier run leaves out that operand. */
void tgl_decompose_add_step(const tgl_partition *of, const tgl_decompose both[2], int which,
                            tgl_list_builder *builder);

#endif
