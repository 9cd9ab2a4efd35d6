/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-pass gemm/repack.cu: copies of A and B that TMA can read. TMA needs distances of lines
 * that are multiples of 16 bytes, and wgmma TF32 that is K-major.
 */
#ifndef TGL_REPACK_H
#define TGL_REPACK_H

#include "plan/family.h"

/* A copy of op(A) or op(B): `lines` lines of `length` elements that are neighbours in the copy. */
typedef struct tgl_repack {
    tgl_operand operand; /* TGL_AT_A or TGL_AT_B */
    tgl_type type;
    bool transposes; /* lines of the copy are columns in memory */
    bool rounds_to_tf32;
    int64_t offset; /* elements from the operand's beginning to its part that is copied */
    int64_t lines, length;
    int64_t ld, stride; /* of the operand, in elements */
    int64_t count;      /* matrices of the batch; 1 if all problems share one */
    int64_t scratch;    /* bytes: where the copy lies, which the family has reserved */
} tgl_repack;

/* Elements from one line of a copy to the next, and from one matrix to the next. */
int64_t tgl_repack_pitch(const tgl_repack *repack);
int64_t tgl_repack_stride(const tgl_repack *repack);

/* Bytes of all copies. */
int64_t tgl_repack_bytes(const tgl_repack *repack);

/* Seconds that the pre-pass is predicted to take, with its launch. Zero if count is. */
double tgl_repack_seconds(const tgl_chip *chip, const tgl_repack *repacks, int count);

/* NULL, or why the pre-pass cannot be launched. Static text. */
const char *tgl_repack_fault(const tgl_repack *repacks, int count);

/* Adds the step: one launch for one or two operands. Without a product it is left out. */
void tgl_repack_add_step(const tgl_partition *of, const tgl_repack *repacks, int count,
                         tgl_list_builder *builder);

#endif
