/* SPDX-License-Identifier: Apache-2.0
 *
 * Complex products are planned as real ones. A complex matrix is read as a real one, with the real
 * and the imaginary part of an element side by side. A complex product m x n x k is then the real
 * product m x 2n x 2k of A and of B', a real matrix 2k x 2n into which a pre-pass
 * (kernels/gemm/complex.cu) expands B. The kernel families see the real product only. Their
 * launches get pointers to B' instead of B. B' is at the beginning of the block of B that
 * tgl_operand_prepare() can keep. A transposed A is expanded, too.
 *
 * The real product has no epilogue. It computes only op(A)*op(B), and a last step the rest, in
 * these cases: alpha or beta has an imaginary part or is in device memory; there is a bias or a
 * residual; or D is another matrix than C and beta is not 0.
 */
#ifndef TGL_COMPLEX_H
#define TGL_COMPLEX_H

#include "plan/launch_list.h"

/* The shape of the real product that computes a complex one. For a real shape, the shape itself. */
tgl_shape tgl_real_shape(const tgl_shape *shape);

/* As tgl_real_shape(), for a family that reads the complex B directly (tgl_family.reads_pairs), so
 * that B is not expanded. */
tgl_shape tgl_pairs_shape(const tgl_shape *shape);

/* Bytes of workspace beside that of the real product: for the expanded operands, a copy of C, and
 * scalars; 0 for a real shape. reads_pairs: B is not expanded. */
int64_t tgl_complex_workspace(const tgl_shape *shape, bool reads_pairs);

/* What a limit of the workspace leaves for the real product: TGL_WORKSPACE_DEFAULT if that is the
 * limit, TGL_WORKSPACE_EXCEEDED if the limit is too low. */
int64_t tgl_complex_rest(const tgl_shape *shape, int64_t limit, bool reads_pairs);

/* Adds the pre-passes of a complex product; the steps of the real product follow. reads_pairs: true
 * if B is not expanded. */
void tgl_complex_begin(const tgl_shape *shape, bool reads_pairs, bool has_overlap,
                       tgl_list_builder *builder);

/* Completes the list: makes the steps of the real product read the expanded operands, and adds the
 * last step, which applies complex scalars and the epilogue. */
void tgl_complex_end(const tgl_shape *shape, bool reads_pairs, bool has_overlap,
                     tgl_list_builder *builder);

#endif
