/* SPDX-License-Identifier: Apache-2.0
 *
 * The production family, kernels/gemm/simt.cu: its rows in the registry, what a plan for a problem
 * consists of, and the arguments of its launches. Devices that run it differ only in how they
 * compile and launch.
 */
#ifndef TGL_PLAN_GEMM_H
#define TGL_PLAN_GEMM_H

#include "../../kernels/lib/gemm_args.h"
#include "device.h"
#include "plan/registry.h"

typedef struct tgl_gemm_args tgl_gemm_args;

/* A configuration: what of the family's macros does not depend on the problem. */
typedef struct tgl_gemm_row {
    const char *name; /* what the user calls it: "gemm/simt_128x256x8" */
    int bm, bn, bk;   /* the tile of C that a block computes, and its steps along k */
    int wm, wn;       /* of a warp */
    int tm, tn;       /* of a thread */
    int stages;       /* tiles in shared memory */
    int min_blocks;   /* a multiprocessor must hold, which bounds the registers */
    int registers;    /* of a thread, as compiled for sm_90a */
} tgl_gemm_row;

/* index 0, 1, ... until NULL. */
const tgl_gemm_row *tgl_gemm_row_at(int index);

/* NULL: no configuration of that name. */
const tgl_gemm_row *tgl_gemm_row_find(const char *name);

/* All that a device which runs CUDA kernels offers: the ladder's rungs, then the configurations.
 * index 0, 1, ... until NULL. */
const char *tgl_gpu_kernel_name(int index);

int tgl_gemm_row_threads(const tgl_gemm_row *row);
int tgl_gemm_row_shared(const tgl_gemm_row *row); /* bytes of a block */

/* How a configuration serves a problem: all but the pointers and scalars of a run. */
typedef struct tgl_gemm_plan {
    const tgl_gemm_row *row;
    int64_t tiles_m, tiles_n;
    int raster;      /* rows of tiles in a band, see gemm_args.h */
    int tiles_whole; /* tiles that one block computes; each of the others has `splits` blocks */
    int splits, k_chunk;
    int vec_a, vec_b;  /* floats to a copy where the pointers are aligned to as many; else 1 */
    bool wide_offsets; /* a tile spans 4 GB */
    int batch_step;    /* problems of the batch to a launch: a grid has no more than 65535 in z */
    int64_t workspace_floats, counters; /* for partial sums; 0 without a split */
} tgl_gemm_plan;

/* TGL_OK if the family takes the problem, else TGL_UNSUPPORTED with a sentence on the device. */
tgl_status tgl_gemm_check(tgl_device *dev, const tgl_gemm_shape *shape);

/* The plan of a configuration with k split `splits` ways in all tiles from number `whole` on
 * (whole < 0: in none). The splits may come out fewer than asked for. False: the grid would be too
 * large. */
bool tgl_gemm_plan_make(const tgl_gemm_row *row, const tgl_gemm_shape *shape, int64_t whole,
                        int splits, tgl_gemm_plan *plan);

/* A kernel of the family, ready to be compiled. */
typedef struct tgl_gemm_variant {
    tgl_kernel kernel; /* whose defines are: */
    char defines[192];
} tgl_gemm_variant;

enum { TGL_GEMM_ALIGNED = 0, TGL_GEMM_ANY = 1, TGL_GEMM_VARIANTS = 2 };

/* The variant for pointers that allow the plan's widest copies, or for any. False: there is none,
 * because TGL_GEMM_ALIGNED takes any pointer already. */
bool tgl_gemm_variant_make(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape, int which,
                           tgl_gemm_variant *variant);

/* The variant for the pointers of a run. */
int tgl_gemm_variant_for(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape,
                         const tgl_run *run);

/* The arguments and the grid of the launch over the problems of the batch from `first` on. Without
 * a product (alpha or k is 0) neither A nor B is read. */
void tgl_gemm_launch(const tgl_gemm_plan *plan, const tgl_gemm_shape *shape, const tgl_run *run,
                     int64_t first, void *workspace, void *counters, tgl_gemm_args *args,
                     unsigned grid[3]);

#endif
