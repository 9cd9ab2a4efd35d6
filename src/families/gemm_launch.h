/* SPDX-License-Identifier: Apache-2.0
 *
 * What the launches of the production families have in common. Their kernels take a struct
 * tgl_gemm_args, and differ in grid, macros and a few members of that struct. A family describes
 * its launch by a tgl_gemm_step, from which the prediction and the launch list follow.
 */
#ifndef TGL_GEMM_LAUNCH_H
#define TGL_GEMM_LAUNCH_H

#include "../../kernels/lib/gemm_args.h"
#include "families/cost.h"

/* The step that computes a partition of D. The family sets the members. Members that it leaves out
 * are 0.
 *
 * A step has up to two kernels. The aligned kernel has the widest copies that sizes and strides
 * allow, and needs matrices that begin at a multiple of the copies' width. The unaligned kernel
 * takes matrices that begin at any element. */
typedef struct tgl_gemm_step {
    const char *name;          /* name of the configuration */
    const char *file, *symbol; /* source file and function of the kernel */
    unsigned needs;            /* features of the chip that the kernel needs */
    int threads, registers;    /* threads of a block; registers of a thread, for the prediction */
    /* Bytes of local memory that a thread may use (tgl_kernel), and of shared memory of a block.
     * static_shared: for the prediction. ..._unaligned: of the unaligned kernel; 0: as of the
     * aligned kernel. */
    int local_bytes, local_bytes_unaligned;
    int static_shared, dynamic_shared, dynamic_shared_unaligned;
    int vec_a, vec_b;      /* elements of A and B in a copy of the aligned kernel */
    int64_t blocks;        /* gridDim.x */
    int64_t tiles;         /* tiles of D: gridDim.x of a run without a product; 0: `blocks` */
    int batch_step;        /* number of problems of the batch in a launch */
    bool loops_over_batch; /* each block loops over the batch; else gridDim.z counts the problems */
    bool is_persistent;    /* each block takes several tiles in turn: gridDim.x may be reduced */
    bool has_whole_grid;   /* it is persistent, but a device must not reduce gridDim.x */
    int64_t scratch_bytes; /* bytes of workspace for partial sums */
    int64_t counter_bytes; /* bytes of workspace for the counters of split tiles */
    struct tgl_gemm_args args; /* raster, tiles_whole, splits, cluster, k_chunk, small_k_major */

    /* Tensor maps of A and B, and of D if the kernel stores by TMA. They are passed to the kernel
     * after args. A map whose base is TGL_VALUE_SCRATCH describes a copy of the operand in the
     * workspace (repack.h). The pointer to the operand in args is then NULL, unless keeps_operands
     * is set because the kernel also reads the operand itself. */
    const tgl_tensor *maps;
    int map_count; /* 0, 2 or 3 */
    bool keeps_operands;
    /* NULL, or the two operands whose panels args.left_tables and right_tables point to. An earlier
     * step computes the panels. scratch_bytes and counter_bytes are then 0. */
    const struct tgl_decompose *tables;

    int group_tile; /* grouped products (groups.h): rows of D of a tile */

    /* Set by tgl_gemm_launch(). */
    int64_t groups_at; /* offset of the table of groups in the scratch */
    const tgl_partition *of;
    const tgl_kernel *aligned, *unaligned; /* unaligned NULL: `aligned` takes all matrices */
    int64_t scratch_at, counters_at;       /* offsets in the workspace */
} tgl_gemm_step;

/* Sets batch_step, tiles and args.raster for a grid of all tiles of bm x bn. is_split: some of them
 * may be split. Returns NULL, or why the grid is impossible. */
const char *tgl_gemm_cut_tiles(const tgl_shape *shape, int bm, int bn, bool is_split,
                               tgl_gemm_step *step);

/* Sets the members of the candidate that follow from the step. Returns false if it has rejected the
 * candidate. */
bool tgl_gemm_predict_step(const tgl_chip *chip, const tgl_shape *shape, const tgl_gemm_step *step,
                           tgl_candidate *c);

/* For tgl_family.predict. If `why` is NULL, calls tgl_gemm_predict_step(); else rejects the
 * candidate for this reason and returns false. If it returns true, the family sets the times. */
static inline bool tgl_gemm_predict(const tgl_chip *chip, const tgl_shape *shape, const char *why,
                                    const tgl_gemm_step *step, tgl_candidate *c)
{
    if (why != NULL) tgl_reject(c, why);
    return why == NULL && tgl_gemm_predict_step(chip, shape, step, c);
}

/* For tgl_family.launch: if `why` is not NULL, fails the list and returns true. That would be an
 * error of the planner, which must not choose a rejected candidate. */
static inline bool tgl_gemm_fails(const char *why, tgl_list_builder *builder)
{
    if (why != NULL && builder->status == TGL_OK)
        builder->status = tgl_fail(TGL_UNSUPPORTED, "the planner's choice cannot serve: %s", why);
    return why != NULL;
}

/* A macro of a kernel. */
typedef struct tgl_macro {
    const char *name;
    int value;
} tgl_macro;
void tgl_add_macros(tgl_list_builder *builder, const tgl_macro *macros, size_t count);

/* Adds the family's macros of the aligned or the unaligned kernel. part: the shape of the part of D
 * that the kernel computes. */
typedef void tgl_macros_fn(const void *geometry, const tgl_shape *part, bool is_unaligned,
                           tgl_list_builder *builder);

/* Adds the step with its kernels and its alternative launches: without a product, aligned,
 * unaligned. geometry: passed to add_macros(). */
void tgl_gemm_launch(const tgl_partition *of, tgl_gemm_step *step, tgl_macros_fn *add_macros,
                     const void *geometry, tgl_list_builder *builder);

/* For tgl_family.explain: writes how many tiles are split over K, if any. first_depth: K of the
 * first split, if it differs from the other splits' K; else 0. */
void tgl_gemm_explain_split(const tgl_gemm_step *step, int64_t first_depth, tgl_text *out);

/* For tgl_family.explain: writes how A and B are copied. */
void tgl_gemm_explain_copies(const tgl_shape *shape, const tgl_gemm_step *step, tgl_text *out);

#endif
