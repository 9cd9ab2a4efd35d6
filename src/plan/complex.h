/* SPDX-License-Identifier: Apache-2.0
 *
 * Complex products are planned as real ones. A complex matrix is read as a real one, with the real
 * and the imaginary part of an element side by side. A complex product m x n x k is then the real
 * product m x 2n x 2k of A and of B', a real matrix 2k x 2n into which a pre-pass
 * (kernels/gemm/complex.cu) expands B: each element x + iy becomes the 2 x 2 block (x, y; -y, x).
 * The kernel families see the real product only. Their launches get pointers to B' instead of B. A
 * family may read the complex B, or A and B, as they are stored (tgl_family.reads); operands that
 * it reads so are not expanded. B' is at the beginning of the memory in which tgl_operand_prepare()
 * can keep the pre-pass results of B. A transposed A is expanded in another way than B, because the
 * two parts of its elements are side by side along M instead of K.
 *
 * The real product has no epilogue. In the following cases it computes only op(A)*op(B), and a last
 * step (the kernel `combine`) applies alpha, beta*C and the epilogue: alpha or beta has an
 * imaginary part or is in device memory; there is a bias or a residual; or D is another matrix than
 * C and beta is not 0.
 */
#ifndef TGL_COMPLEX_H
#define TGL_COMPLEX_H

#include "plan/chips.h"
#include "plan/launch_list.h"

/* The shape of the real product that computes a complex one. For a real shape, the shape itself. */
tgl_shape tgl_real_shape(const tgl_shape *shape);

/* As tgl_real_shape(), for a family that reads complex operands directly (tgl_family.reads),
 * so that they are not expanded. */
tgl_shape tgl_pairs_shape(const tgl_shape *shape, tgl_direct direct);

/* The predicted seconds of the pre-passes that expand operands; 0 for a real shape. The steps
 * `save` and `combine` are not counted. */
double tgl_complex_seconds(const tgl_chip *chip, const tgl_shape *shape, tgl_direct direct);

/* Bytes of workspace in addition to the workspace of the real product: for the expanded operands, a
 * copy of C, and scalars; 0 for a real shape. direct: the operands that are not expanded. */
int64_t tgl_complex_workspace(const tgl_shape *shape, tgl_direct direct);

/* The bytes of a workspace limit that remain for the real product: `limit` minus
 * tgl_complex_workspace(). TGL_WORKSPACE_DEFAULT if that is the limit, TGL_WORKSPACE_EXCEEDED if
 * the limit is too low. */
int64_t tgl_complex_rest(const tgl_shape *shape, int64_t limit, tgl_direct direct);

/* Adds the pre-passes of a complex product, after which the caller adds the steps of the real
 * product. direct: the operands that are not expanded. has_overlap: the chip has
 * TGL_HAS_OVERLAP. */
void tgl_complex_begin(const tgl_shape *shape, tgl_direct direct, bool has_overlap,
                       tgl_list_builder *builder);

/* Completes the list: makes the steps of the real product read the expanded operands, and adds the
 * last step, which applies complex scalars and the epilogue. */
void tgl_complex_end(const tgl_shape *shape, tgl_direct direct, bool has_overlap,
                     tgl_list_builder *builder);

#endif
