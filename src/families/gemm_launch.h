/* SPDX-License-Identifier: Apache-2.0
 *
 * How the production families write a step of a launch list: all their kernels take a struct
 * tgl_gemm_args, and differ in grids, macros and a few of its members.
 */
#ifndef TGL_GEMM_LAUNCH_H
#define TGL_GEMM_LAUNCH_H

#include "../../kernels/lib/gemm_args.h"
#include "families/cost.h"

/* One step: a part of D by one family. The family fills it in; members that it leaves out are 0. */
typedef struct tgl_gemm_step {
    const tgl_chip *chip;
    const tgl_shape *shape; /* of the whole problem */
    const tgl_rectangle *part;
    bool is_strip, is_last;                       /* as family->launch() has them */
    const char *name;                             /* of the configuration */
    const char *file, *symbol;                    /* of the kernel */
    int local_bytes;                              /* of a thread: see tgl_kernel */
    int threads;                                  /* of a block */
    int dynamic_shared, dynamic_shared_unaligned; /* bytes of a block, of the two kernels below */
    int vec_a, vec_b; /* elements of A and B that the aligned kernel copies at once */
    int64_t blocks;   /* of the grid, in x */
    int64_t tiles;  /* of D, where these are counted in args.tiles_whole: without a product each is
                       computed by one block; 0: the grid is always the same */
    int batch_step; /* problems of the batch in a launch */
    bool loops_over_batch; /* within a block; else the problems are gridDim.z */
    int64_t scratch_bytes, counter_bytes;

    /* What is the family's: raster, tiles_whole, splits, cluster, k_chunk, small_k_major. */
    struct tgl_gemm_args args;

    /* The kernel for the widest copies that sizes and strides allow, if the matrices begin at a
     * multiple of them; and that for matrices that begin anywhere, NULL if the other serves them.
     */
    const tgl_kernel *aligned, *unaligned;
} tgl_gemm_step;

/* For tgl_family.unsupported_reason: FP32 with IEEE arithmetic, extents that kernels can count. */
const char *tgl_gemm_unsupported_reason(const tgl_shape *shape, const tgl_chip *chip);

/* The list fails: a choice that cannot serve is a mistake of the caller's. */
void tgl_gemm_fail(const char *why, tgl_list_builder *builder);

/* Whether there is a kernel for matrices that begin anywhere besides the aligned one: not if that
 * copies single elements, and not for arrays of pointers, whose alignment is promised. */
bool tgl_gemm_has_unaligned(const tgl_shape *shape, int vec_a, int vec_b);

/* Adds macros to the description of the next kernel. */
typedef struct tgl_macro {
    const char *name;
    int value;
} tgl_macro;
void tgl_add_macros(tgl_list_builder *builder, const tgl_macro *macros, size_t count);

/* Adds the macros of epilogue and operands to those of the family since the last kernel, and then
 * the kernel of the step that they describe. */
const tgl_kernel *tgl_gemm_kernel(const tgl_gemm_step *step, tgl_list_builder *builder);

/* Adds the step with its alternatives: without a product; aligned; unaligned. */
void tgl_gemm_add_step(const tgl_gemm_step *step, tgl_list_builder *builder);

/* For tgl_family.explain: how A and B are copied. */
void tgl_gemm_explain_copies(const tgl_shape *shape, int vec_a, int vec_b, tgl_text *out);

#endif
