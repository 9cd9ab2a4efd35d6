/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-pass gemm/decompose.cu: FP32 operands as two words of f16 for each element, and what is
 * known of their lines. kernels/lib/decompose_args.h says what the words are.
 */
#ifndef TGL_DECOMPOSE_H
#define TGL_DECOMPOSE_H

#include "families/family.h"

/* The words of op(A) or op(B): `lines` rows of op(A) or columns of op(B), of `length` elements. */
typedef struct tgl_decompose {
    tgl_operand operand;       /* TGL_AT_A or TGL_AT_B */
    bool transposes;           /* lines are columns in memory */
    int64_t offset;            /* elements from the operand's beginning to its part */
    int64_t lines, length;     /* of a matrix */
    int64_t ld, stride;        /* of the operand, in elements */
    int64_t count;             /* matrices of the batch; 1 if all problems share one */
    int64_t words;             /* bytes: where in the scratch the words lie, */
    int64_t maxima;            /* what the first launch leaves to the second, */
    int64_t panels, exponents; /* and what the second one leaves besides words */
} tgl_decompose;

/* Elements from one line of words to the next. */
int64_t tgl_decompose_pitch(const tgl_decompose *d);

/* Bytes of all words; of all maxima; and of the panels and exponents of both operands, which lie
 * together: panels of the first, panels of the second, exponents of both. */
int64_t tgl_decompose_word_bytes(const tgl_decompose *d);
int64_t tgl_decompose_maxima_bytes(const tgl_decompose *d);
int64_t tgl_decompose_table_bytes(const tgl_decompose both[2]);

/* Sets panels and exponents of both operands, for tables at this place of the scratch. */
void tgl_decompose_place_tables(tgl_decompose both[2], int64_t at);

/* Seconds that the pre-pass is predicted to take, with its launches. */
double tgl_decompose_seconds(const tgl_chip *chip, const tgl_decompose both[2]);

/* NULL, or why the pre-pass cannot be launched. Static text. */
const char *tgl_decompose_fault(const tgl_chip *chip, const tgl_decompose both[2]);

/* Adds both steps. Without a product they are left out. */
void tgl_decompose_add_steps(const tgl_partition *of, const tgl_decompose both[2],
                             tgl_list_builder *builder);

#endif
