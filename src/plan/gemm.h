/* SPDX-License-Identifier: Apache-2.0
 *
 * The production families, kernels/gemm/: simt.cu for all products, skinny.cu for those with few
 * rows or columns, matvec.cu for those with up to 4, small_batch.cu for many at once that are
 * small. Their configurations, what a plan for a problem consists of, and the arguments of its
 * launches. Devices that run them differ only in how they compile and launch.
 */
#ifndef TGL_PLAN_GEMM_H
#define TGL_PLAN_GEMM_H

#include "../../kernels/lib/gemm_args.h"
#include "device.h"
#include "plan/registry.h"

typedef struct tgl_gemm_args tgl_gemm_args;

/* Macros of gemm/simt.cu. */
typedef struct tgl_simt_row {
    int bm, bn, bk; /* the tile of C that a block computes, and its steps along k */
    int wm, wn;     /* of a warp */
    int tm, tn;     /* of a thread */
    int stages;     /* tiles in shared memory */
    int slices;     /* groups of warps that share a tile's k */
    int min_blocks; /* a multiprocessor must hold, which bounds the registers */
    int registers;  /* of a thread, as compiled for sm_90a */
} tgl_simt_row;

/* Macros of gemm/simt.cu that say when copies and loads are issued: what the best of some hundred
 * ways was for a configuration, a layout and copies of a width. The order in which ptxas puts the
 * instructions follows from them in no simple way, and differs by a tenth in speed. */
typedef struct tgl_simt_schedule {
    const char *name, *layout; /* the configuration; "NT": B is transposed */
    int width; /* floats to a copy of the operands that do not lie along k; of "NT", where both
                  do, to a store of C */
    int copy_from, copy_every, load_from, load_every, column_order;
} tgl_simt_schedule;

/* Macros of gemm/skinny.cu, once for each way that the big operand may lie. */
typedef struct tgl_skinny_row {
    int warps;
    int results; /* times count, of a thread */
    int lanes_k; /* lanes that share k; only where the big operand lies along it */
    int unroll;  /* fours of k to a step, where copies are of fours; else 1 */
    int stages;  /* steps in a warp's ring, for narrow copies */
    int depth;   /* of the small operand in shared memory */
    int min_blocks;
    int registers;
} tgl_skinny_row;

/* Macros of gemm/small_batch.cu. */
typedef struct tgl_small_batch_row {
    int bm, bn, bk; /* the largest product, and its steps along k */
    int tm, tn;     /* of a thread */
    int stages;     /* tiles of k in shared memory */
    int per_block;  /* products that a block computes at once */
    int min_blocks;
    int registers;
} tgl_small_batch_row;

/* Macros of gemm/matvec.cu. */
typedef struct tgl_matvec_row {
    int registers;     /* of a thread; a multiprocessor holds as many threads as these allow */
    int lines;         /* of a thread, where the matrix lies along k */
    int unroll_k;      /* fours of each that a thread loads at once */
    int unroll_length; /* likewise where the matrix lies along its length */
} tgl_matvec_row;

typedef enum tgl_gemm_family {
    TGL_SIMT,        /* gemm/simt.cu */
    TGL_SKINNY,      /* gemm/skinny.cu */
    TGL_SMALL_BATCH, /* gemm/small_batch.cu */
    TGL_MATVEC,      /* gemm/matvec.cu */
} tgl_gemm_family;

/* A configuration: what of a family's macros does not depend on the problem. */
typedef struct tgl_gemm_row {
    const char *name; /* what the user calls it: "gemm/simt_128x256x8" */
    tgl_gemm_family family;
    tgl_simt_row simt;
    int count; /* skinny, matvec: rows or columns of the small operand, at most; else 0 */
    tgl_skinny_row along_length, along_k;
    tgl_matvec_row matvec;
    tgl_small_batch_row small_batch;
} tgl_gemm_row;

/* index 0, 1, ... until NULL. */
const tgl_gemm_row *tgl_gemm_row_at(int index);

/* NULL: no configuration of that name. */
const tgl_gemm_row *tgl_gemm_row_find(const char *name);

/* All that a device which runs CUDA kernels offers: the ladder's rungs, then the configurations.
 * index 0, 1, ... until NULL. */
const char *tgl_gpu_kernel_name(int index);

/* How a configuration serves a problem: all but the pointers and scalars of a run. */
typedef struct tgl_gemm_plan {
    const tgl_gemm_row *row;
    int threads, registers;            /* of a block; of a thread */
    bool is_bounded;                   /* in its registers, so that some may be spilled */
    int static_shared, dynamic_shared; /* bytes of a block */
    int dynamic_shared_any;            /* likewise of the variant for any pointers; 0: the same */
    int splits, k_chunk; /* blocks that share a tile's k; what each takes, but the first the rest */
    int cluster;         /* simt: of these, that add up in a cluster */
    int vec_a, vec_b;    /* floats to a copy where the pointers are aligned to as many; else 1 */
    int batch_step;      /* problems of the batch to a launch: a grid has no more than 65535 in z */
    int64_t workspace_floats, counters; /* for partial sums; 0 without a split */

    /* gemm/simt.cu */
    int64_t tiles_m, tiles_n;
    int raster;        /* rows of tiles in a band, see gemm_args.h */
    int tiles_whole;   /* tiles that one block computes; each of the others has `splits` blocks */
    bool wide_offsets; /* a tile spans 4 GB */

    /* gemm/skinny.cu and matvec.cu */
    bool big_a;     /* A is the big operand */
    bool along_k;   /* it is contiguous along k */
    int64_t length; /* of its edge */
    int per_block;  /* results (times count) that a block computes at once: a tile */

    int lanes_k;  /* gemm/matvec.cu: threads that share k */
    bool gathers; /* likewise: the vector's elements lie apart, those of the matrix along k */
    int blocks;   /* all but gemm/simt.cu: of the grid, in x */
} tgl_gemm_plan;

/* A rectangle of C, with a plan of its own. Plans of several parts have tiles of gemm/simt.cu for
 * most of C, and strips of gemm/skinny.cu or matvec.cu for a few columns or rows beside them. */
typedef struct tgl_gemm_part {
    int64_t row, col;     /* its first, in C */
    tgl_gemm_shape shape; /* the problem's, with the part's m and n */
    tgl_gemm_plan plan;
} tgl_gemm_part;

enum { TGL_STRIPS_MOST = 2, TGL_PARTS_MOST = 1 + TGL_STRIPS_MOST, TGL_STRIP_WIDTH_MOST = 16 };

/* The part of a problem that has m x n of C from (row, col) on, without its plan. */
void tgl_gemm_part_make(const tgl_gemm_shape *shape, int64_t row, int64_t col, int64_t m, int64_t n,
                        tgl_gemm_part *part);

/* A run of the whole in the terms of the part. */
tgl_run tgl_gemm_part_run(const tgl_gemm_part *part, const tgl_run *run);

/* The rectangles beside whole tiles of a configuration: columns right of them, then rows below
 * them, where these are at most TGL_STRIP_WIDTH_MOST. *tiles: the rest of C. Returns how many; 0:
 * there are none, *why says why, static text. */
int tgl_gemm_strips(const tgl_gemm_row *row, const tgl_gemm_shape *shape, tgl_gemm_part *tiles,
                    tgl_gemm_part strips[TGL_STRIPS_MOST], const char **why);

/* NULL if the families take the problem, else why not, static text: TGL_UNSUPPORTED. */
const char *tgl_gemm_lacks(const tgl_gemm_shape *shape);

/* How k may be shared among blocks. */
typedef struct tgl_gemm_split {
    int splits;          /* blocks to a tile; it may come out fewer */
    int cluster_most;    /* simt: of these in a cluster; 0 is as good as 1 */
    int multiprocessors; /* of the chip, if cluster_most says that it has clusters; matvec: 0 for
                          * some usual number */
    int64_t whole;       /* simt: tiles before this one, or a few less, are not split */
    int64_t chunk;       /* simt: of k, for each block but the first; 0: equal parts */
    int blocks;          /* skinny, small_batch: the most, which then share the work; 0: any */
} tgl_gemm_split;

/* The reason that stands for TGL_GRID_TOO_LARGE. */
extern const char tgl_gemm_grid_too_large[];

/* The plan of a configuration. NULL, or why there is none, static text. */
const char *tgl_gemm_plan_make(const tgl_gemm_row *row, const tgl_gemm_shape *shape,
                               const tgl_gemm_split *split, tgl_gemm_plan *plan);

/* A kernel of the families, ready to be compiled. */
typedef struct tgl_gemm_variant {
    tgl_kernel kernel; /* whose defines are: */
    char defines[384];
} tgl_gemm_variant;

enum { TGL_GEMM_ALIGNED = 0, TGL_GEMM_ANY = 1, TGL_GEMM_VARIANTS = 2 };

/* What was found for gemm/simt.cu's copies and stores of so many floats; NULL: nothing was looked
 * for, and the kernel has defaults. */
const tgl_simt_schedule *tgl_simt_schedule_find(const tgl_gemm_row *row,
                                                const tgl_gemm_shape *shape, int vec_a, int vec_b,
                                                int vec_c);

/* Has this schedule found in place of the table's, for its configuration, layout and width, until
 * another call; NULL: the table's. For bench/schedules.c, while nobody else plans. */
void tgl_simt_schedule_try(const tgl_simt_schedule *when);

/* The variant for pointers that allow the plan's widest copies, or for any. False: there is none,
 * because TGL_GEMM_ALIGNED takes any pointer already, or all that were promised. */
bool tgl_gemm_variant_make(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape, int which,
                           tgl_gemm_variant *variant);

/* Bytes of a block of the variant. */
int tgl_gemm_dynamic_shared(const tgl_gemm_plan *plan, int which);

/* The variant for the pointers of a run. */
int tgl_gemm_variant_for(const tgl_gemm_plan *plan, const tgl_run *run);

/* The arguments and the grid of the launch over the problems of the batch from `first` on. Without
 * a product (alpha or k is 0) neither A nor B is read. */
void tgl_gemm_launch(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape, const tgl_run *run,
                     int64_t first, void *workspace, void *counters, tgl_gemm_args *args,
                     unsigned grid[3]);

/* small_batch.c: the parts of the above that gemm/small_batch.cu has of its own. */
const char *tgl_small_batch_plan_make(const tgl_gemm_shape *shape, const tgl_gemm_split *split,
                                      tgl_gemm_plan *plan);
void tgl_small_batch_defines(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape, bool is_any,
                             char *text, size_t size);

/* skinny.c: likewise gemm/skinny.cu. */
const char *tgl_skinny_plan_make(const tgl_gemm_shape *shape, const tgl_gemm_split *split,
                                 tgl_gemm_plan *plan);
void tgl_skinny_defines(const tgl_gemm_plan *plan, bool is_any, char *text, size_t size);
const tgl_skinny_row *tgl_skinny_row_of(const tgl_gemm_plan *plan);
int tgl_skinny_step(const tgl_gemm_plan *plan); /* of k, of a block */

/* matvec.c: likewise gemm/matvec.cu. */
const char *tgl_matvec_plan_make(const tgl_gemm_shape *shape, const tgl_gemm_split *split,
                                 tgl_gemm_plan *plan);
void tgl_matvec_defines(const tgl_gemm_plan *plan, bool is_any, char *text, size_t size);
int tgl_matvec_fours(const tgl_gemm_plan *plan); /* of the matrix, that a thread loads at once */

static inline int64_t tgl_ceil_div(int64_t x, int64_t y)
{
    return x / y + (x % y != 0);
}

/* What of k the slices of a block multiply before the next tiles: parts of k are multiples. */
static inline int tgl_simt_step(const tgl_simt_row *row)
{
    return row->bk * row->slices;
}

/* simt: how much of k the first of the blocks that share a tile takes. */
static inline int64_t tgl_gemm_first_depth(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape)
{
    return shape->k - (int64_t)(plan->splits - 1) * plan->k_chunk;
}

/* The widest copy, 4, 2 or 1 floats, along an edge of A or B: what edge, leading dimension and the
 * distance of a batch's matrices are multiples of, or their pointers are promised to be. */
int tgl_gemm_copy_width(const tgl_gemm_shape *shape, int64_t edge, int64_t ld, int64_t stride);

/* The widest store to C, 4 floats or 1, by its rows. */
int tgl_gemm_store_width(const tgl_gemm_shape *shape);

#endif
