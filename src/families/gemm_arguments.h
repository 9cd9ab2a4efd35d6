/* SPDX-License-Identifier: Apache-2.0
 *
 * The argument bytes of a step (gemm_step.h). Some are known when the plan is made. Patches
 * (launch_list.h) describe the others, which a run fills in.
 */
#ifndef TGL_GEMM_ARGUMENTS_H
#define TGL_GEMM_ARGUMENTS_H

#include "families/gemm_step.h"

/* The offset, in elements, of the first element of A or B that is read to compute `part`, a
 * rectangle of D. */
int64_t tgl_gemm_offset_a(const tgl_shape *shape, const tgl_rectangle *part);
int64_t tgl_gemm_offset_b(const tgl_shape *shape, const tgl_rectangle *part);

/* The types of the kernel's parameters, as in tgl_kernel. */
const char *tgl_gemm_parameters(const tgl_gemm_step *step);

/* The arguments that are known when the plan is made; the others are 0. has_product false: k is
 * 0, and A and B are not read. */
struct tgl_gemm_args tgl_gemm_known_args(const tgl_gemm_step *step, bool has_product);

/* Adds a launch with its arguments and patches. */
void tgl_gemm_add_arguments(const tgl_gemm_step *step, bool has_product,
                            const struct tgl_gemm_args *args, const tgl_launch *launch,
                            tgl_list_builder *builder);

#endif
