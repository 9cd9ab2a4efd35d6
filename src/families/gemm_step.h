/* SPDX-License-Identifier: Apache-2.0
 *
 * tgl_gemm_step, with which a production family (any but the ladder) describes its launch. From it
 * gemm_launch.c predicts the occupancy and makes the step of the launch list.
 */
#ifndef TGL_GEMM_STEP_H
#define TGL_GEMM_STEP_H

#include "../../kernels/lib/gemm_args.h"
#include "plan/family.h"

/* Rows of tiles in a band (args.raster), if the family chooses no other number: rung 24 of
 * docs/ladder.md measures it. */
enum { TGL_RASTER = 8 };

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
     * static_shared is only for the prediction. ..._unaligned: of the unaligned kernel; 0: the
     * value of the aligned kernel. */
    int local_bytes, local_bytes_unaligned;
    int static_shared, dynamic_shared, dynamic_shared_unaligned;
    int vec_a, vec_b;      /* elements of A and B in a copy of the aligned kernel */
    int64_t blocks;        /* gridDim.x */
    int64_t tiles;         /* tiles of D: gridDim.x of a run without a product; 0: `blocks` */
    int batch_step;        /* number of problems of the batch in a launch */
    bool loops_over_batch; /* each block loops over the batch; else gridDim.z counts the problems */
    bool is_persistent;    /* each block takes several tiles in turn: gridDim.x may be reduced */
    bool has_whole_grid;   /* persistent, but gridDim.x must not be reduced */
    int64_t scratch_bytes; /* bytes of workspace for partial sums */
    int64_t counter_bytes; /* bytes of workspace for the counters of split tiles */
    /* The family sets the members raster, tiles_whole, splits, cluster, k_chunk and small_k_major
     * of args. */
    struct tgl_gemm_args args;

    /* Tensor maps of A and B (dequant: of B only), and of D if the kernel stores by TMA. They are
     * passed to the kernel after args. A map whose base is TGL_VALUE_SCRATCH describes a copy of
     * the operand in the workspace (repack.h). The pointer to the operand in args is then NULL,
     * unless keeps_operands is set because the kernel also reads the operand itself. */
    const tgl_tensor *maps;
    int map_count; /* 0 to 3 */
    bool keeps_operands;
    /* For the family accurate: the two operands whose tables of panels (decompose.h) an earlier
     * step computes. args.left_tables and args.right_tables point to these tables. scratch_bytes
     * and counter_bytes must be 0. NULL for other families. */
    const struct tgl_decompose *tables;

    int group_tile; /* grouped products (groups.h): rows of D of a tile */

    /* Set by tgl_gemm_launch(). */
    int64_t groups_at; /* offset of the table of groups in the scratch */
    const tgl_partition *of;
    const tgl_kernel *aligned, *unaligned; /* unaligned NULL: `aligned` takes all matrices */
    int64_t scratch_at, counters_at;       /* offsets in the scratch and in the counters */
} tgl_gemm_step;

#endif
