/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the ladder share. The ladder is a series of teaching kernels, the rungs.
 * ladder.c has the table of rungs, ladder_geometry.c decides how a rung computes a product, and
 * ladder_launch.c launches it.
 */
#ifndef TGL_LADDER_GEOMETRY_H
#define TGL_LADDER_GEOMETRY_H

#include "families/repack.h"

/* The chapters of the ladder: groups of rungs by the type that they multiply. */
typedef enum ladder_chapter {
    FP32, /* 1: FP32 on CUDA cores */
    HALF, /* 2: f16 with sums in FP32 */
    WORDS /* 3: FP32 by products of TF32 words */
} ladder_chapter;

/* The grid of a kernel. */
typedef enum ladder_grid {
    TILES_XY,  /* a block for each tile: columns of tiles along x, rows along y */
    TILES_X,   /* all tiles along x, in an order that the kernel chooses */
    SPLIT_X,   /* as TILES_X, with several blocks for each tile (split-K) */
    PERSISTENT /* each block, or cluster of blocks, takes tiles in turn */
} ladder_grid;

/* A rung: a kernel, and how it is launched. */
typedef struct ladder_row {
    const char *name, *file, *symbol;
    ladder_chapter chapter;
    int block_m, block_n; /* the tile of D that a block computes */
    int threads;          /* threads of a block */
    unsigned needs;       /* features of the chip */
    ladder_grid layout;
    int shared;  /* bytes of dynamic shared memory */
    int maps;    /* number of tensor maps behind the arguments: 0; 2 (of A and B); 3 (also of D) */
    int cluster; /* blocks of a cluster, which share the tile of B */
    int products, promote; /* macros PRODUCTS and PROMOTE of chapter 3 */
} ladder_row;

enum { LADDER_MAPS_MAX = 3 };

/* How a rung computes a product. */
typedef struct ladder_geometry {
    const ladder_row *row;
    int64_t x, y;  /* blocks of the grid */
    bool too_many; /* the number of tiles exceeds an int */
    int splits;    /* blocks that divide the K of a tile among them */
    int64_t k_chunk;
    int64_t sums, counters;       /* bytes of the partial sums and counters in the workspace */
    int64_t sums_at, counters_at; /* offsets of the sums and counters in the workspace */
    tgl_repack repacks[2];        /* copies of operands whose rows TMA cannot read */
    int repack_count;
    int64_t repacked; /* bytes of the copies */
} ladder_geometry;

ladder_geometry tgl_ladder_geometry_of(const ladder_row *row, const tgl_chip *chip,
                                       const tgl_shape *shape);

/* Whether TMA can read or store `lines` rows of f16 that are ld elements apart. */
bool tgl_ladder_has_tma_rows(const tgl_shape *shape, int64_t lines, int64_t ld);

/* For tgl_family.launch. */
void tgl_ladder_launch(const tgl_partition *of, tgl_list_builder *builder);

#endif
