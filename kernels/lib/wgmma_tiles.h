/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of kernels that copy tiles by TMA and multiply them by wgmma, and the layout of
 * these tiles in shared memory. A stage is BM x BK of left and then BN x BK of right. BK is 128
 * bytes. TMA stores the tiles with a swizzle that wgmma expects. gemm/wgmma.cu says what left,
 * right and EXCHANGED are.
 */
#ifndef TGL_WGMMA_TILES_H
#define TGL_WGMMA_TILES_H

#include "lib/element.h"
#include "lib/gemm_args.h"
#include "lib/named_barrier.h"
#include "lib/tma.h"

/* ---- Parameters ------------------------------------------------------------------------------ */

#ifndef BM
#define BM 128 /* rows of left in a tile: a multiple of 64 for each consumer that works on it */
#endif
#ifndef BN
#define BN 128 /* columns of right in a tile: N of one wgmma */
#endif
#ifndef CONSUMERS
#define CONSUMERS 2 /* warpgroups that multiply: 1 to 3 */
#endif
#ifndef ALTERNATE
#define ALTERNATE 0 /* 1: consumers take tiles in turn: one stores while the other multiplies */
#endif
#ifndef CLUSTER_ROWS
#define CLUSTER_ROWS 1 /* rows of tiles in a cluster, along left: 1, 2 or 4 */
#endif
#ifndef CLUSTER_COLUMNS
#define CLUSTER_COLUMNS 1 /* columns of tiles in a cluster, along right: 1, 2 or 4 */
#endif
#define CLUSTER (CLUSTER_ROWS * CLUSTER_COLUMNS) /* blocks of a cluster, one for each tile */
#ifndef CLUSTER_SPLITS
#define CLUSTER_SPLITS 1 /* blocks of a cluster that divide a tile's K and add up its sums */
#endif
#ifndef TMA_STORES
#define TMA_STORES 0 /* boxes of results in a consumer's shared memory; 0: threads store */
#endif
#ifndef D_WORD
#define D_WORD 16 /* bytes of the words that rows of 16-bit results consist of; 4: any rows */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 /* minimum resident blocks of an SM, which limits the registers */
#endif
#ifndef EXCHANGED
#define EXCHANGED 0 /* 1: left is op(B)^T, right is op(A)^T */
#endif
#ifndef LEFT_ALONG_K
#define LEFT_ALONG_K 1 /* 1: left is K-major; 0: contiguous in its rows */
#endif
#ifndef PROMOTE
#define PROMOTE 0 /* 1: wgmma sums one stage of K, and FP32 additions sum the stages */
#endif
#ifndef RIGHT_ALONG_K
#define RIGHT_ALONG_K 0 /* 1: right is K-major; 0: contiguous in its columns */
#endif

#ifndef WGMMA_TYPE
#if EXCHANGED /* the types of the elements in shared memory */
#define WGMMA_TYPE       TYPE_B
#define WGMMA_RIGHT_TYPE TYPE_A
#else
#define WGMMA_TYPE       TYPE_A
#define WGMMA_RIGHT_TYPE TYPE_B
#endif
#endif
#define WGMMA_N BN
/* A left operand of TF32 that is MN-major goes to wgmma through registers (lib/wgmma_left.h). */
#define WGMMA_LEFT_IN_REGISTERS (WGMMA_TYPE == TYPE_F32 && !LEFT_ALONG_K)
#define WGMMA_LEFT_K_MAJOR      LEFT_ALONG_K
#define WGMMA_RIGHT_K_MAJOR     RIGHT_ALONG_K
#include "lib/wgmma.h"

#if BM % (64 * (ALTERNATE ? 1 : CONSUMERS)) != 0 || CONSUMERS < 1 || CONSUMERS > 3
#error "BM: a multiple of 64 rows for each consumer; CONSUMERS: 1 to 3"
#endif
#if ALTERNATE && (CONSUMERS != 2 || CLUSTER_SPLITS > 1)
#error "ALTERNATE: two consumers take tiles in turn; CLUSTER_SPLITS: 1"
#endif
#if 4 % CLUSTER_ROWS != 0 || 4 % CLUSTER_COLUMNS != 0 ||                                           \
    (RIGHT_ALONG_K && BN / CLUSTER_ROWS % 8 != 0)
#error "CLUSTER_ROWS, CLUSTER_COLUMNS: 1, 2 or 4; a block copies a multiple of 8 K-major lines"
#endif
#if CLUSTER_SPLITS > 1 && (CLUSTER > 1 || BN % (16 * CLUSTER_SPLITS) != 0)
#error "CLUSTER_SPLITS: the blocks store BN / CLUSTER_SPLITS columns each, and share no operands"
#endif

#define ELEMENT_BYTES (WGMMA_TYPE == TYPE_F32 ? 4 : WGMMA_IS_8_BITS ? 1 : 2)
#define BK            (128 / ELEMENT_BYTES)
#define K_STEPS       4 /* wgmmas along a stage's K, 32 bytes each */
#define WM            (ALTERNATE ? BM : BM / CONSUMERS)
#define M_STEPS       (WM / 64) /* wgmmas along a consumer's rows */
#define ACC           (BN / 2)  /* sums of a thread in one wgmma */
/* A consumer has M_STEPS parts of a tile, 64 rows each. If the tile has rows of a group, which may
 * be few, the consumers have parts in turn: wgmmas of parts without rows are left out, and the
 * remaining parts are divided evenly. PART_ROWS: rows from a part of a consumer to its next one. */
#define TAKES_TURNS         (GROUPED == 1 && !EXCHANGED && PROMOTE)
#define PART_ROWS           (TAKES_TURNS ? 64 * CONSUMERS : 64)
#define CONSUMER_ROW(group) ((group) * (TAKES_TURNS ? 64 : WM)) /* the consumer's first row */
/* Rows of the left tile in a box of TMA, if it is K-major and not shared by a cluster. */
#define LEFT_BOX         (TAKES_TURNS && CLUSTER_COLUMNS == 1 ? 64 : BM)
#define CONSUMER_THREADS (128 * CONSUMERS)
#define THREADS          (CONSUMER_THREADS + (CONSUMERS > 1 ? 128 : HAS_BLOCK_SCALES ? 64 : 32))
/* A barrier of the threads of one consumer. */
#define CONSUMER_BARRIER() named_barrier(2 + (int)threadIdx.x / 128, 128)

/* Registers per thread after setmaxnreg. A block of 384 threads starts with 168 per thread, one of
 * 512 with 128. The producer gives most of its registers to the consumers. */
#define PRODUCER_REGISTERS (CONSUMERS == 3 ? 32 : 40)
#define CONSUMER_REGISTERS (CONSUMERS == 3 ? 160 : 232)

/* ---- Shared memory --------------------------------------------------------------------------- */

/* LINE: elements in a line of an MN-major tile. The tile is divided along M or N into columns of
 * LINE elements. A column has BK lines, one for each k. The swizzle is as wide as a line. */
#define LINE(edge)                                                                                 \
    ((edge)*ELEMENT_BYTES % 128 == 0 ? 128 / ELEMENT_BYTES : (edge) % 32 == 0 ? 32 : 16)
#define LEFT_BYTES  (BM * 128)
#define RIGHT_BYTES (BN * 128)
#define STAGE_BYTES (LEFT_BYTES + RIGHT_BYTES)

/* GROUP_BYTES: bytes from 8 lines of a tile to the next 8 lines (group_bytes of make_wgmma_tile()).
 * K_STEP: bytes between the operands of successive wgmmas along K. */
#define GROUP_BYTES(along_k, edge) ((along_k) ? 1024 : LINE(edge) * 16)
#define K_STEP(along_k, edge)      ((along_k) ? 32 : LINE(edge) * 32)
/* Bytes from a part of the left tile to the consumer's next one. */
#define M_STEP (PART_ROWS * 128)

static __device__ __forceinline__ wgmma_tile tile_of(const unsigned char *shared,
                                                     const bool along_k, const int edge)
{
    return make_wgmma_tile(shared, along_k ? 128 : LINE(edge) * 2, LINE(edge) * 128,
                           GROUP_BYTES(along_k, edge));
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Where TMA finds a tile of an operand. */
struct wgmma_source {
    const struct tgl_tensor_map *map;
    int lines, edge; /* number of rows or columns of the tile that are copied; index of the first of
                        them */
    int z;           /* the number of the matrix in the batch */
};

/* The number of rows or columns of a tile that TMA copies: those that exist, rounded up to whole
 * boxes, min(tile, ceil(extent / box) * box). extent: rows or columns of the matrix. */
static __device__ __forceinline__ int copied_lines(const int tile, const int box, int extent)
{
    const int lines = (extent + box - 1) / box * box;
    return lines < tile ? lines : tile;
}

/* Copies one part of the tile that begins at k = p, to the blocks of the cluster whose ranks are
 * set in `blocks`. The tile has `parts` parts: a part of a K-major tile is some of its rows or
 * columns, a part of an MN-major tile is some of its K. edge: rows or columns of the tile. */
static __device__ __forceinline__ void
wgmma_load_part(unsigned char *to, const struct wgmma_source *from, int p, mbarrier *full,
                const bool along_k, const int edge, const int parts, int part, unsigned blocks)
{
    const int line = along_k ? edge : LINE(edge);
    to += part * (line * 128 / parts);
#pragma unroll
    for (int i = 0; i < edge; i += line) {
        const int x = along_k ? p : from->edge + i;
        const int y = along_k ? from->edge + part * (edge / parts) : p + part * (BK / parts);
        if (i >= from->lines) continue;
        if (parts > 1)
            tma_load_3d_multicast(to + i * 128, from->map, x, y, from->z, full, blocks);
        else
            tma_load_3d(to + i * 128, from->map, x, y, from->z, full);
    }
}

/* The block's row and column in its cluster. Its rank is column * CLUSTER_ROWS + row. */
#define ROW_IN_CLUSTER    ((int)blockIdx.x % CLUSTER_ROWS)
#define COLUMN_IN_CLUSTER ((int)blockIdx.x / CLUSTER_ROWS % CLUSTER_COLUMNS)

/* The ranks of the blocks in the first column and in the first row of the cluster, as bits. */
#define FIRST_COLUMN ((1u << CLUSTER_ROWS) - 1)
#define FIRST_ROW    (((1u << CLUSTER) - 1) / FIRST_COLUMN)

/* Copies this block's part of the left tile to all blocks in its row of the cluster. */
static __device__ __forceinline__ void load_left(unsigned char *to, const struct wgmma_source *from,
                                                 int p, mbarrier *full)
{
#if LEFT_BOX < BM
#pragma unroll
    for (int i = 0; i < BM; i += LEFT_BOX)
        if (i < from->lines) tma_load_3d(to + i * 128, from->map, p, from->edge + i, from->z, full);
    return;
#endif
    wgmma_load_part(to, from, p, full, LEFT_ALONG_K, BM, CLUSTER_COLUMNS, COLUMN_IN_CLUSTER,
                    FIRST_ROW << ROW_IN_CLUSTER);
}

/* Copies this block's part of the right tile to all blocks in its column of the cluster. */
static __device__ __forceinline__ void
load_right(unsigned char *to, const struct wgmma_source *from, int p, mbarrier *full)
{
    wgmma_load_part(to, from, p, full, RIGHT_ALONG_K, BN, CLUSTER_ROWS, ROW_IN_CLUSTER,
                    FIRST_COLUMN << COLUMN_IN_CLUSTER * CLUSTER_ROWS);
}

#endif
