/* SPDX-License-Identifier: Apache-2.0
 *
 * The pre-pass gemm/repack.cu: copies of A and B that TMA and wgmma can read. TMA needs strides
 * that are multiples of 16 bytes. wgmma needs K-major operands of TF32 and 8-bit types.
 */
#ifndef TGL_REPACK_H
#define TGL_REPACK_H

#include "plan/family.h"

/* A copy of op(A) or op(B): `lines` lines of `length` contiguous elements. */
typedef struct tgl_repack {
    tgl_operand operand; /* TGL_AT_A or TGL_AT_B */
    tgl_type type;
    bool transposes; /* a line of the copy is a column of the stored matrix */
    bool rounds_to_tf32;
    int64_t offset; /* elements from the operand's beginning to the part that is copied */
    int64_t lines, length;
    int64_t ld, stride; /* strides of the operand, in elements */
    int64_t count;      /* matrices of the batch; 1 if all problems share one matrix */
    int64_t scratch;    /* offset of the copy in the scratch, which the family has reserved */
} tgl_repack;

/* Elements from one line of a copy to the next, and from one matrix to the next. */
int64_t tgl_repack_pitch(const tgl_repack *repack);
int64_t tgl_repack_stride(const tgl_repack *repack);

/* Bytes of the copies of all matrices of the batch. */
int64_t tgl_repack_bytes(const tgl_repack *repack);

/* Predicted seconds of the pre-pass, the launch that makes the copies; 0 if count is 0. */
double tgl_repack_seconds(const tgl_chip *chip, const tgl_repack *repacks, int count);

/* Returns NULL, or why the pre-pass, the launch that makes the copies, is impossible. Static
 * text. */
const char *tgl_repack_fault(const tgl_repack *repacks, int count);

/* Adds the step: one launch for one or two operands. A run without a product skips it. */
void tgl_repack_add_step(const tgl_partition *of, const tgl_repack *repacks, int count,
                         tgl_list_builder *builder);

#endif
