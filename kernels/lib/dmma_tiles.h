/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiles of gemm/dmma.cu: its parameters, how TMA brings tiles, and how a lane reads its
 * fragments of them.
 *
 * A stage is BM x BK of op(A) and then BN x BK of op(B), BK being 16 doubles, 128 bytes. A line is
 * 128 bytes, swizzled by TMA: the 16-byte chunk c of line r is at the position of chunk c ^ (r %
 * 8). A K-major tile is one box of a line for each row or column. An MN-major tile is a box of 16
 * lines, one for each k, for every 16 rows or columns.
 *
 * A lane loads single doubles. DMMA needs the doubles of a fragment in neighbouring registers, and
 * a 16-byte load would bring two neighbours in memory instead. To avoid bank conflicts, the rows
 * and columns of the instruction are permuted (lib/mma.h; g = lane / 4, t = lane % 4): its row g is
 * row ROW(g, half) of 16 in the tile, and likewise COLUMN().
 */
#ifndef TGL_DMMA_TILES_H
#define TGL_DMMA_TILES_H

#include "lib/element.h"
#include "lib/gemm_args.h"
#include "lib/stage_ring.h"
#include "lib/tma.h"

/* ---- Parameters ------------------------------------------------------------------------------ */

#ifndef BM
#define BM 128 /* rows of D that a block computes */
#endif
#ifndef BN
#define BN 128 /* columns */
#endif
#ifndef WM
#define WM 64 /* rows of D that a warp computes */
#endif
#ifndef SLICES
#define SLICES 1 /* groups of warps that share the stages of a tile */
#endif
#ifndef AHEAD
#define AHEAD 1 /* groups of 16 rows whose fragments of A are loaded before they are multiplied */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* minimum resident blocks of an SM, which limits the registers */
#endif
#ifndef EXCHANGED
#define EXCHANGED 0 /* 1: tiles are those of D^T: below, A is the user's B^T, and B is A^T */
#endif
#ifndef TRANS_A
#define TRANS_A 0 /* 0: A is m x k, or n x k if EXCHANGED; 1: k x m or k x n */
#endif
#ifndef TRANS_B
#define TRANS_B 0 /* 0: B is k x n, or k x m if EXCHANGED; 1: n x k or m x k */
#endif

#define WN 32 /* columns of D that a warp computes */
#define BK 16 /* depth of a stage */

#if TYPE_A != TYPE_F64 || TYPE_B != TYPE_F64 || ACCUMULATE != TYPE_F64
#error "it multiplies f64"
#endif
#if TYPE_C != TYPE_F64 || TYPE_D != TYPE_F64
#error "C and D are f64"
#endif
#if BM % WM || BN % WN || WM % 16
#error "a block is a grid of warps, a warp a grid of 16 x 32"
#endif

#define A_K_MAJOR        (!TRANS_A)
#define B_K_MAJOR        TRANS_B
#define WARPS_M          (BM / WM)
#define SLICE_WARPS      (WARPS_M * (BN / WN))
#define SLICE_THREADS    (SLICE_WARPS * 32)
#define CONSUMERS        (SLICE_WARPS * SLICES) /* warps that multiply */
#define CONSUMER_THREADS (CONSUMERS * 32)
/* Warps of 64 x 32 need more registers than a thread starts with (168 with 384 threads; 128 with
 * two blocks of 256). The producer is then a whole warpgroup, and gives up most of its registers.
 */
#define SETS_REGISTERS     (WM == 64)
#define PRODUCER_REGISTERS (CONSUMERS == 8 ? 40 : 32)
#define CONSUMER_REGISTERS (CONSUMERS == 8 ? 232 : 224)
#define THREADS            (CONSUMER_THREADS + (SETS_REGISTERS ? 128 : 32))
#define STEPS              (BK / 8)  /* of mma_f64 along a stage */
#define MT                 (WM / 16) /* a warp's part of D: MT x NT results of mma_f64 */
#define NT                 (WN / 8)
#define GROUPS             (STEPS * MT) /* of 16 rows of A in a stage, for a warp */
#define A_SLOTS            (2 * AHEAD)
#define A_BYTES            (BM * 128)
#define STAGE_BYTES        ((BM + BN) * 128)

#if STAGES % SLICES != 0
#error "a stage of the ring is always of the same slice"
#endif
#if SETS_REGISTERS && CONSUMERS * MIN_BLOCKS != 8
#error "the registers are those of 8 warps that multiply"
#endif
#if AHEAD > MT || GROUPS % A_SLOTS != 0
#error "a warp loads no more than a step ahead, and every stage into the same registers"
#endif

/* For lib/wgmma_units.h: blocks do not form clusters. */
#define CLUSTER         1
#define CLUSTER_ROWS    1
#define CLUSTER_COLUMNS 1
#define CLUSTER_SPLITS  1

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Where TMA finds the tiles of an operand: its map, the first row or column of the tile, and the
 * number of the matrix in the batch. */
struct dmma_source {
    const struct tgl_tensor_map *map;
    int edge, z;
};

/* The tile from depth p on, `edge` rows or columns. */
static __device__ __forceinline__ void load_tile(unsigned char *to, const struct dmma_source *from,
                                                 int p, const int edge, const bool k_major,
                                                 mbarrier *full)
{
    if (k_major) {
        tma_load_3d(to, from->map, p, from->edge, from->z, full);
    } else {
#pragma unroll
        for (int i = 0; i < edge; i += 16)
            tma_load_3d(to + i * 128, from->map, from->edge + i, p, from->z, full);
    }
}

/* ---- Fragments ------------------------------------------------------------------------------- */

/* The row, of 16, that row g or g + 8 (half 1) of the instruction stands for; and the column, of
 * the 32 of a warp, that column g of instruction j, 0 to 3, stands for. In a K-major tile, where
 * lines are rows or columns, bits 1 and 2 of the lines are different for g = 0..3, and for 4..7. In
 * an MN-major tile, where the lines are k = t, bit 3 of the elements is different for g = 0 and 2,
 * 1 and 3, and so on. */
#define K_MAJOR_ROW(g, half)  ((g) % 4 * 2 + (g) / 4 + (half)*8)
#define MN_MAJOR_ROW(g, half) ((g) / 2 % 2 * 8 + (g) / 4 * 2 + (g) % 2 + (half)*4)
#define ROW(g, half)          (A_K_MAJOR ? K_MAJOR_ROW(g, half) : MN_MAJOR_ROW(g, half))
#define K_MAJOR_COLUMN(g, j)  (((g) % 2 * 2 + (j) / 2) * 8 + ((g) / 2 ^ (g) % 2 * 2) * 2 + (j) % 2)
#define MN_MAJOR_COLUMN(g, j) ((j) / 2 * 16 + MN_MAJOR_ROW(g, (j) % 2))
#define COLUMN(g, j)          (B_K_MAJOR ? K_MAJOR_COLUMN(g, j) : MN_MAJOR_COLUMN(g, j))

/* Byte offsets in a stage of what a lane reads; the others are whole lines away. K-major: of each
 * step and half of its K; of B also for j = 0 and 1. MN-major: of each half of a step's K; of A for
 * both halves of 16 rows, of B for j = 0 and 1. */
struct dmma_lane_source {
    unsigned a[STEPS * 2], b[STEPS * 2 * 2];
};

static __device__ __forceinline__ unsigned dmma_offset_of(int line, int element)
{
    return swizzle_128((unsigned)(line * 128 + element * 8));
}

static __device__ __forceinline__ struct dmma_lane_source dmma_lane_source(int warp_row,
                                                                           int warp_col)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    struct dmma_lane_source from;
#pragma unroll
    for (int i = 0; i < STEPS * 2; i++)
        from.a[i] = A_K_MAJOR
                        ? dmma_offset_of(warp_row + ROW(g, 0), i * 4 + t)
                        : (unsigned)warp_row * 128 + dmma_offset_of(i / 2 * 4 + t, ROW(g, i % 2));
#pragma unroll
    for (int i = 0; i < STEPS * 2 * 2; i++)
        from.b[i] =
            A_BYTES + (B_K_MAJOR ? dmma_offset_of(warp_col + COLUMN(g, i % 2), i / 2 * 4 + t)
                                 : (unsigned)warp_col * 128 +
                                       dmma_offset_of(i / 2 % 2 * 4 + t, COLUMN(g, i % 2)));
    return from;
}

static __device__ __forceinline__ double double_at(const unsigned char *stage, unsigned at,
                                                   const int lines)
{
    return *(const double *)(stage + at + lines * 128);
}

/* The fragment of A for 16 rows of a step. */
static __device__ __forceinline__ void dmma_load_a(double *to, const unsigned char *stage,
                                                   const struct dmma_lane_source *from,
                                                   const int step, const int group)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = A_K_MAJOR ? double_at(stage, from->a[step * 2 + i / 2], group * 16 + i % 2 * 8)
                          : double_at(stage, from->a[i], group * 16 + step * 8);
}

/* The fragments of B for all columns of the warp. */
static __device__ __forceinline__ void dmma_load_b(double (*to)[2], const unsigned char *stage,
                                                   const struct dmma_lane_source *from,
                                                   const int step)
{
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            to[j][i] = B_K_MAJOR ? double_at(stage, from->b[(step * 2 + i) * 2 + j % 2], j / 2 * 8)
                                 : double_at(stage, from->b[i * 2 + j % 2], j / 2 * 16 + step * 8);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* A lane has the sums of rows ROW(g, 0) and ROW(g, 1) of 16: in each row four pairs of adjacent
 * columns. The pairs of one number of a row's four lanes cover 64 contiguous bytes, or two ranges
 * of 32. The first column of a pair: */
#define PAIR_COLUMN(t, number)                                                                     \
    (B_K_MAJOR ? COLUMN(2 * (t) + (number) / 2, (number) % 2 * 2) : COLUMN(2 * (t), number))

static __device__ __forceinline__ void take_pair(double *pair, double (*acc)[4], const int half,
                                                 const int number)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
        pair[i] =
            B_K_MAJOR ? acc[number % 2 * 2 + i][half * 2 + number / 2] : acc[number][half * 2 + i];
}

#endif
