/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of gemm/dequant.cu and the sizes that follow from them. A row of weights is a
 * column of op(B), whose K is contiguous.
 */
#ifndef TGL_DEQUANT_TILES_H
#define TGL_DEQUANT_TILES_H

#include "lib/gemm_args.h"
#include "lib/operands.h"

#ifndef BITS
#define BITS 4 /* of a weight: 4 or 8 */
#endif
#ifndef COUNT
#define COUNT 8 /* maximum number of rows of A: 8 or 16 */
#endif
#ifndef GROUP
#define GROUP 0 /* successive k with one factor: 32, 64 or 128; 0: all of K */
#endif
#ifndef FACTORS
#define FACTORS 1 /* 0: the weights have no factors */
#endif
#ifndef FACTOR_STEP
#define FACTOR_STEP 1 /* 0: all rows of weights have the same factors */
#endif
#ifndef ZEROS
#define ZEROS 0 /* 1: the weights have zero points */
#endif
#ifndef WIDE
#define WIDE 1 /* 1: rows of weights and of A begin at multiples of 16 bytes */
#endif
#ifndef WARPS
#define WARPS 4 /* warps that multiply */
#endif
#ifndef DEPTHS
#define DEPTHS 1 /* warps that share a step of the same rows of weights: 1 or 2 */
#endif
#ifndef ROWS
#define ROWS 32 /* rows of weights of a warp: a multiple of 16 */
#endif
#ifndef STAGES
#define STAGES 4 /* steps in the ring of a block, at least 2; with TMA at least 3 */
#endif
#ifndef MAPS
#define MAPS 0 /* 1: the kernel has a tensor map of the weights */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* minimum resident blocks of an SM, which limits the registers */
#endif

#if TYPE_A != TYPE_F16 && TYPE_A != TYPE_BF16
#error "TYPE_A: F16 or BF16"
#endif
#if BITS != 4 && BITS != 8
#error "BITS: 4 or 8"
#endif
#if COUNT % 8
#error "COUNT: a multiple of 8"
#endif
#if ROWS % 16
#error "ROWS: a multiple of 16"
#endif

/* With TMA one more warp copies for all others (lib/dequant_ring.h). */
#define TMA     (MAPS && WIDE)
#define COPIERS (TMA ? 32 : WARPS * 32) /* threads that copy */
#define THREADS ((WARPS + MAPS) * 32)

#define LINE      128                     /* bytes of a row of weights in a step: TMA's swizzle */
#define TILE      (WARPS / DEPTHS * ROWS) /* rows of weights of a block */
#define STEP      (LINE * 8 / BITS)       /* K of a step */
#define FRAGMENTS (ROWS / 16)             /* left operands of mma.sync: 16 rows of weights each */
#define COLUMNS   (COUNT / 8)             /* right operands of mma.sync, 8 rows of A each */

/* A unit is the part of a row that four lanes read at once, UNIT bytes each. All of its k have the
 * same group. */
#define UNIT       (GROUP && GROUP * BITS / 32 < 16 ? GROUP * BITS / 32 : 16)
#define UNITS      (LINE / (4 * UNIT) / DEPTHS) /* units of each row that a warp reads in a step */
#define LANE_PARTS (UNIT / BITS)                /* parts of 8 successive k of a lane in a unit */

#define GROUPS      (GROUP ? STEP / GROUP : 1)              /* groups in a step */
#define OWN_GROUPS  (GROUPS > DEPTHS ? GROUPS / DEPTHS : 1) /* a warp's groups, whole or parts */
#define GROUP_UNITS (UNITS / OWN_GROUPS)

/* A piece is 16 bytes. A stage of the ring has the pieces of the weights, [row][piece], and of A,
 * and, with groups, factors and zero points, [group][row]. */
#define PIECES      (LINE / 16) /* pieces of a row of weights in a step */
#define PIECES_A    (STEP / 8)  /* pieces of a row of A in a step */
#define A_AT        (TILE * LINE)
#define FACTORS_AT  (A_AT + COUNT * STEP * 2)
#define ZEROS_AT    (FACTORS_AT + (GROUP && FACTORS ? GROUPS * TILE * 4 : 0))
#define STAGE_BYTES ((ZEROS_AT + (GROUP && ZEROS ? GROUPS * TILE : 0) + 1023) / 1024 * 1024)

/* For lib/split_k.h: sizes of a block's sums. */
#define BM            TILE
#define BN            COUNT
#define SLICE_THREADS (WARPS / DEPTHS * 32)
#define SUMS          (FRAGMENTS * COLUMNS * 4)

#endif
