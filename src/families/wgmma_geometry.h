/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two files of the family wgmma share: wgmma.c decides how a configuration serves a shape,
 * and wgmma_cost.c predicts the time of that.
 */
#ifndef TGL_WGMMA_GEOMETRY_H
#define TGL_WGMMA_GEOMETRY_H

#include "families/repack.h"

enum { WGMMA_LINE_BYTES = 128 }; /* of a line of a tile in shared memory, as TMA copies it */

/* A configuration. */
typedef struct wgmma_row {
    const char *name;
    int bm, bn;    /* the tile that a block computes: bm of the left operand, bn of the right one */
    int consumers; /* warpgroups that multiply */
    bool alternates; /* each of them has tiles of its own, in turn */
    int stages;      /* of bm + bn lines of 128 bytes; fewer if boxes leave no room */
    int boxes;       /* TMA_STORES: of 64 rows of results, in a consumer's shared memory */
    int min_blocks;  /* minimum resident blocks of an SM, which limits the registers */
    int registers;   /* per thread at launch, about, as compiled for sm_90a */
    double share;    /* of the peak that the main loop reaches in short kernels: wgmma_cost.c */
} wgmma_row;

/* One of the two operands, as the kernel sees it. */
typedef struct wgmma_side {
    tgl_operand operand;
    bool along_k;       /* K-major in memory */
    int64_t edge, k;    /* extents */
    int64_t ld, stride; /* elements */
    int64_t offset;     /* of the part, in elements */
    int64_t count;      /* matrices */
    bool is_direct;     /* TMA reads it as it lies; else it is repacked */
    bool is_k_major;    /* in shared memory */
} wgmma_side;

/* How a choice serves a shape on a chip. */
typedef struct wgmma_geometry {
    const wgmma_row *row;
    bool exchanged;
    wgmma_side left, right;
    int bk, raster, splits;
    int cluster_rows, cluster_columns; /* of tiles; 1: of blocks that share the K of a tile */
    int cluster_blocks;                /* the product */
    bool in_cluster;
    bool stores_by_tma; /* TMA_STORES of the kernel */
    int stages;
    int64_t k_chunk;
    int64_t tile_rows, tile_columns; /* of clusters of tiles */
    int64_t tiles, whole;            /* of clusters, in the batch; those that are not split */
    int64_t units;                   /* of clusters */
    int threads, shared;             /* shared: dynamic, bytes of a block */
    int64_t blocks;                  /* of the grid */
    int64_t sums, counters;          /* bytes of workspace */
    tgl_repack repacks[2];
    int repack_count;
    int64_t repacked_bytes;
} wgmma_geometry;

static inline bool wgmma_is_tf32(const tgl_shape *s)
{
    return s->type_a == TGL_F32;
}

/* Elements of a line of an MN-major tile: LINE() of the kernel. */
static inline int wgmma_line_of(const tgl_shape *s, int edge)
{
    const int size = (int)tgl_type_size(s->type_a);
    return edge * size % WGMMA_LINE_BYTES == 0 ? WGMMA_LINE_BYTES / size : edge % 32 == 0 ? 32 : 16;
}

/* Whether a left operand of TF32 goes through registers. */
static inline bool wgmma_left_in_registers(const tgl_shape *s, const wgmma_geometry *g)
{
    return wgmma_is_tf32(s) && !g->left.is_k_major;
}

/* Sets the times of a candidate whose other figures are set. */
void tgl_wgmma_predict_time(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                            tgl_candidate *c);

#endif
