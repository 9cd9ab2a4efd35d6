/* SPDX-License-Identifier: Apache-2.0
 *
 * A unit of work of a persistent kernel is a tile, or with split-K k_chunk of the K of a tile. The
 * first tiles_whole tiles are one unit each. The other tiles, which would not fill the last wave of
 * blocks, have `splits` units each. A block takes every gridDim.x'th unit. In most grouped products
 * it takes the next free unit instead (lib/wgmma_queue.h). There are fewer than 2^30 units. Tiles
 * are ordered in bands of `raster` rows of tiles, so that concurrent blocks share operands in L2.
 * If the groups are rows of the left operand, all rows of a band belong to one group
 * (lib/group_table.h). With CLUSTER > 1 all these are counted in clusters of tiles and of units,
 * and each block of a cluster has the unit of its rank.
 *
 * lib/wgmma_tiles.h or lib/dmma_tiles.h, which define the tiles, are included before this file.
 */
#ifndef TGL_WGMMA_UNITS_H
#define TGL_WGMMA_UNITS_H

#include "lib/block_scales.h"
#include "lib/group_table.h"

#define GROUPED_LEFT  (GROUPED == 1 && !EXCHANGED) /* the groups are rows of left */
#define GROUPED_RIGHT (GROUPED == 1 && EXCHANGED)  /* the groups are columns of right */

/* A unit of work: K steps [first, first + steps) of a tile. */
struct unit {
    int left, right;         /* the first row of left, and column of right, of the tile */
    int own_left, own_right; /* the first row and column of the tile that the unit stores */
    int batch;
    int split, splits; /* number of the unit in its tile; units of the tile */
    int first, steps;
    int tile; /* number among the split tiles of the batch */
#if GROUPED
    int end;  /* GROUPED 1: the end of the group's rows */
    int k;    /* GROUPED 2: where K of the group begins */
    int last; /* GROUPED 2: elements of K in the group's last step */
#endif
};

#if GROUPED
static __device__ __forceinline__ const struct tgl_group_table *
group_table(const struct tgl_gemm_args *args)
{
    return (const struct tgl_group_table *)args->groups;
}
#endif

static __device__ __forceinline__ int left_extent(const struct tgl_gemm_args *args)
{
    return EXCHANGED ? args->n : args->m;
}

static __device__ __forceinline__ int right_extent(const struct tgl_gemm_args *args)
{
    return EXCHANGED ? args->m : args->n;
}

/* tile_rows(), tile_columns(): how many clusters of tiles lie along left and along right. */
static __device__ __forceinline__ int tile_rows(const struct tgl_gemm_args *args)
{
#if GROUPED_LEFT
    return group_table(args)->head.spans;
#else
    return (left_extent(args) + BM * CLUSTER_ROWS - 1) / (BM * CLUSTER_ROWS);
#endif
}

static __device__ __forceinline__ int tile_columns(const struct tgl_gemm_args *args)
{
#if GROUPED_RIGHT
    return group_table(args)->head.spans;
#else
    return (right_extent(args) + BN * CLUSTER_COLUMNS - 1) / (BN * CLUSTER_COLUMNS);
#endif
}

/* The number of clusters of tiles, over all problems of the batch. */
static __device__ __forceinline__ int tile_count(const struct tgl_gemm_args *args)
{
    return tile_rows(args) * tile_columns(args) * (GROUPED == 1 ? 1 : args->batch);
}

/* The number of units: one for each of the first tiles_whole tiles, `splits` for each of the other
 * tiles. */
static __device__ __forceinline__ int unit_count(const struct tgl_gemm_args *args)
{
#if CLUSTER_SPLITS > 1
    return tile_count(args) * CLUSTER_SPLITS;
#else
    const int whole = args->tiles_whole;
    return whole + (tile_count(args) - whole) * args->splits;
#endif
}

/* Returns the number of the tile that unit `number` belongs to. Sets u->split, u->splits,
 * u->tile. */
static __device__ __forceinline__ int find_tile(const struct tgl_gemm_args *args, int number,
                                                struct unit *u)
{
    u->split = 0;
    u->splits = 1;
    u->tile = 0;
#if CLUSTER_SPLITS > 1
    u->splits = CLUSTER_SPLITS;
    u->split = number % CLUSTER_SPLITS; /* the block's rank */
    return number / CLUSTER_SPLITS;
#else
    const int whole = args->tiles_whole;
    if (args->splits == 1 || number < whole) return number;
    const int rest = tile_count(args) - whole;
    number -= whole;
    u->splits = args->splits;
    u->split = number / rest;
    number -= u->split * rest;
    u->tile = number * CLUSTER + (int)blockIdx.x % CLUSTER;
    return number + whole;
#endif
}

/* Sets the first step and the number of steps of the unit; a step is BK of K. depth: K of the
 * product. */
static __device__ __forceinline__ void find_steps(const struct tgl_gemm_args *args, int depth,
                                                  struct unit *u)
{
    const int all = (depth + BK - 1) / BK;
    u->first = 0;
    u->steps = all;
    if (u->splits > 1) {
        const int chunk = args->k_chunk / BK;
        u->first = u->split * chunk;
        u->steps = u->first >= all ? 0 : all - u->first < chunk ? all - u->first : chunk;
    }
}

#if GROUPED == 1
/* find_unit() has set the tile's row (EXCHANGED: its column) to the number of a span in the group
 * table. Replaces it by the rows of that span. */
static __device__ __forceinline__ void find_rows(const struct tgl_gemm_args *args, struct unit *u)
{
    const struct tgl_group_span span =
        group_table(args)->spans[EXCHANGED ? u->right / BN : u->left / BM];
    if (EXCHANGED)
        u->right = u->own_right = span.first;
    else
        u->left = u->own_left = span.first;
    u->batch = span.group;
    u->end = span.end;
}
#elif GROUPED == 2
/* find_unit() has set u->batch to the number of a span in the group table. Replaces it by the group
 * of that span, and sets the K of the group. */
static __device__ __forceinline__ void find_depth(const struct tgl_gemm_args *args, int depth,
                                                  struct unit *u)
{
    const struct tgl_group_span span = group_table(args)->spans[u->batch];
    const int length = depth > 0 ? span.end - span.first : 0;
    u->batch = span.group;
    u->first = 0;
    u->steps = (length + BK - 1) / BK;
    u->k = span.first;
    u->last = length - (u->steps - 1) * BK;
}
#endif

/* A band of rows of tiles: the first row and the number of rows. */
struct band {
    int first, rows;
};

/* Returns the band of tile `number` of a matrix of rows x columns tiles. The tiles of a band are
 * consecutive: those of its rows in the first column, then those in the second one, and so on. */
static __device__ __forceinline__ struct band find_band(const struct tgl_gemm_args *args,
                                                        int number, int rows, int columns)
{
#if GROUPED_LEFT
    /* A band of r spans has r * columns consecutive tiles, and so the result is a row of the tile's
     * band, but not always the tile's own row. */
    const int row = number / columns;
    const struct tgl_group_span span = group_table(args)->spans[row];
    const struct band band = {row - span.in_band, span.band_spans};
    (void)rows;
#else
    const int first = number / (args->raster * columns) * args->raster;
    const struct band band = {first, rows - first < args->raster ? rows - first : args->raster};
#endif
    return band;
}

static __device__ __forceinline__ struct unit find_unit(const struct tgl_gemm_args *args,
                                                        int number, int depth)
{
    const int rows = tile_rows(args), columns = tile_columns(args),
              rank = (int)blockIdx.x % CLUSTER;
    const int tiles = rows * columns;
    struct unit u;
    number = find_tile(args, number, &u);
    u.batch = 0;
    if (args->batch > 1 && GROUPED != 1) {
        u.batch = number / tiles;
        number -= u.batch * tiles;
    }
    const struct band band = find_band(args, number, rows, columns);
    const int in_band = number - band.first * columns;
    u.left = u.own_left =
        ((band.first + in_band % band.rows) * CLUSTER_ROWS + rank % CLUSTER_ROWS) * BM;
    u.right = u.own_right = (in_band / band.rows * CLUSTER_COLUMNS + rank / CLUSTER_ROWS) * BN;
    find_steps(args, depth, &u);
#if GROUPED == 1
    find_rows(args, &u);
#elif GROUPED == 2
    find_depth(args, depth, &u);
#endif
    return u;
}

/* Returns the position of a tile of `length` rows or columns in a matrix of `extent` rows or
 * columns: `first` or, if it is smaller, the smallest multiple of 8 from which the tile reaches the
 * end of the matrix. It is a multiple of 8, because TMA boxes and 16-byte pieces of D begin at such
 * multiples. */
static __device__ __forceinline__ int inside(int first, int length, int extent)
{
    const int last = extent > length ? (extent - length + 7) / 8 * 8 : 0;
    return first < last ? first : last;
}

/* As find_unit(), but the tile lies within the matrices: it takes TMA 7 clocks to fill 128 bytes
 * outside of them with zeros, and 2 to copy 128 bytes (H200, docs/notes/2026-11-26-gpu-kernels.md).
 * Rows and columns before the unit's own are computed again, but not stored. A tile that has one
 * scale factor for all of its rows or columns is not moved. */
static __device__ __forceinline__ struct unit find_unit_inside(const struct tgl_gemm_args *args,
                                                               int number, int depth)
{
    struct unit u = find_unit(args, number, depth);
    if (!IN_ONE_BLOCK(EXCHANGED ? SCALE_B : SCALE_A, BM))
        u.left = inside(u.left, BM, left_extent(args));
    if (!IN_ONE_BLOCK(EXCHANGED ? SCALE_A : SCALE_B, BN))
        u.right = inside(u.right, BN, right_extent(args));
    return u;
}

/* ---- What a unit stores ---------------------------------------------------------------------- */

/* The first row and column of D that a unit stores. */
struct corner {
    int row, col;
#if GROUPED == 1
    int end; /* end of the group's rows */
#endif
};

static __device__ __forceinline__ struct corner corner_of(const struct unit *u)
{
    const struct corner corner = {
        EXCHANGED ? u->own_right : u->own_left,
        EXCHANGED ? u->own_left : u->own_right,
#if GROUPED == 1
        u->end
#endif
    };
    return corner;
}

static __device__ __forceinline__ bool is_own_row(const struct tgl_gemm_args *args,
                                                  const struct corner *corner, int row)
{
#if GROUPED == 1
    return row >= corner->row && row < corner->end;
#else
    return row >= corner->row && row < args->m;
#endif
}

/* Whether the unit stores nothing of this part of the tile: rows [left, left + lefts) of left, and
 * columns [right, right + rights) of right. */
static __device__ __forceinline__ bool is_foreign(const struct tgl_gemm_args *args,
                                                  const struct unit *u, int left, int lefts,
                                                  int right, int rights)
{
#if GROUPED == 1
    const int left_end = EXCHANGED ? left_extent(args) : u->end;
    const int right_end = EXCHANGED ? u->end : right_extent(args);
#else
    const int left_end = left_extent(args), right_end = right_extent(args);
#endif
    return left + lefts <= u->own_left || left >= left_end || right + rights <= u->own_right ||
           right >= right_end;
}

#endif
