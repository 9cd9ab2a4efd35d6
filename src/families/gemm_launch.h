/* SPDX-License-Identifier: Apache-2.0
 *
 * How the production families write a step of a launch list: all their kernels take a struct
 * tgl_gemm_args, and differ in grids, macros and a few of its members.
 */
#ifndef TGL_GEMM_LAUNCH_H
#define TGL_GEMM_LAUNCH_H

#include "../../kernels/lib/gemm_args.h"
#include "families/cost.h"

/* One step. The family fills it in; members that it leaves out are 0. */
typedef struct tgl_gemm_step {
    const tgl_partition *of;
    const char *name;                             /* of the configuration */
    const char *file, *symbol;                    /* of the kernel */
    unsigned needs;                               /* features of the chip */
    int local_bytes;                              /* of a thread: see tgl_kernel */
    int threads;                                  /* of a block */
    int dynamic_shared, dynamic_shared_unaligned; /* bytes of a block, of the two kernels below */
    int vec_a, vec_b; /* elements of A and B that the aligned kernel copies at once */
    int64_t blocks;   /* of the grid, in x */
    int64_t tiles;  /* of D, where these are counted in args.tiles_whole: without a product each is
                       computed by one block; 0: the grid is always the same */
    int batch_step; /* problems of the batch in a launch */
    bool loops_over_batch; /* within a block; else the problems are gridDim.z */
    bool is_persistent;  /* the grid is `blocks` at most, with or without a product, in clusters of
                            args.cluster; each block takes tiles and problems in turn */
    bool has_whole_grid; /* persistent, but the grid is never smaller */
    int64_t scratch_bytes, counter_bytes;
    /* args.left_tables and right_tables are panels of these operands, which an earlier step has
     * filled; scratch_bytes and counter_bytes are then 0. NULL: they are not. */
    const struct tgl_decompose *tables;

    /* Set by the family: raster, tiles_whole, splits, cluster, k_chunk, small_k_major. */
    struct tgl_gemm_args args;

    /* Of kernels that read A and B by TMA: their tensor maps, which are parameters behind the
     * struct, and that of D if the kernel stores by TMA, too. An operand whose map is based on
     * scratch is repacked: its pointer stays NULL, unless the kernel reads it besides
     * (keeps_operands). */
    const tgl_tensor *maps;
    int map_count; /* 0, 2, or 3 with that of D */
    bool keeps_operands;

    /* The kernel for the widest copies that sizes and strides allow, if the matrices begin at a
     * multiple of them; and that for matrices that begin anywhere, NULL if the other serves them.
     */
    const tgl_kernel *aligned, *unaligned;
} tgl_gemm_step;

/* For tgl_family.unsupported_reason. The first: no scales, extents that kernels can count; all
 * families need that. The second, for the families of CUDA cores: FP32 besides. */
const char *tgl_gemm_unsupported_reason(const tgl_shape *shape);
const char *tgl_gemm_unsupported_unless_f32(const tgl_shape *shape, const tgl_chip *chip);

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

/* The offset, in elements, of the first element of A or B that the part reads. */
int64_t tgl_gemm_offset_a(const tgl_shape *shape, const tgl_rectangle *part);
int64_t tgl_gemm_offset_b(const tgl_shape *shape, const tgl_rectangle *part);

/* For tgl_family.explain: that all tiles are split over K. */
void tgl_gemm_explain_split(int splits, int64_t depth, int64_t workspace_bytes, tgl_text *out);

/* For tgl_family.explain: how A and B are copied. */
void tgl_gemm_explain_copies(const tgl_shape *shape, int vec_a, int vec_b, tgl_text *out);

#endif
