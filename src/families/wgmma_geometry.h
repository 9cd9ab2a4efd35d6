/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the family wgmma share: wgmma.c has the configurations and the launch,
 * wgmma_geometry.c decides how a configuration computes a product, wgmma_cost.c predicts the time
 * of that, and wgmma_search.c chooses the options that are worth trying.
 */
#ifndef TGL_WGMMA_GEOMETRY_H
#define TGL_WGMMA_GEOMETRY_H

#include "families/gemm_launch.h"
#include "families/repack.h"

enum { WGMMA_LINE_BYTES = 128 }; /* of a line of a tile in shared memory, as TMA copies it */
enum { WGMMA_CLUSTER_MAX = 4 };  /* blocks of a cluster that share operands: 8 were not faster */
enum { WGMMA_BOX_ROWS = 64, WGMMA_RESULT_BYTES = 2 }; /* of a box of results for TMA */

/* splits: number of blocks that share the K of a tile. exchanged: 1: tiles are those of D^T.
 * cluster, columns: a cluster computes `cluster` x `columns` tiles, one block each. The blocks of a
 * row share their left tile, the blocks of a column their right tile. whole: number of clusters of
 * tiles, counted from the first one, that are not split. in_cluster: 1: the blocks that share a
 * tile form a cluster, which adds the sums of the tile in shared memory instead of the workspace.
 * left_registers: 1: a left operand of TF32 that is contiguous in its rows reaches wgmma through
 * registers, without a pre-pass: see lib/wgmma_left.h. */
enum {
    WGMMA_SPLITS,
    WGMMA_EXCHANGED,
    WGMMA_CLUSTER,
    WGMMA_WHOLE,
    WGMMA_IN_CLUSTER,
    WGMMA_LEFT_REGISTERS,
    WGMMA_COLUMNS,
};

/* A configuration. */
typedef struct wgmma_row {
    const char *name;
    int bm, bn;    /* the tile that a block computes: bm of the left operand, bn of the right one */
    int consumers; /* warpgroups that multiply */
    bool alternates; /* each consumer has tiles of its own, which it multiplies in turn */
    int stages;      /* stages of bm + bn lines of 128 bytes; fewer if boxes leave no room */
    int boxes;       /* TMA_STORES: boxes of 64 rows of results in a consumer's shared memory */
    int min_blocks;  /* minimum resident blocks of an SM, which limits the registers */
    int registers;   /* of a thread at launch, approximately, as compiled for sm_90a */
    double share;    /* fraction of the peak that the main loop reaches in short kernels */
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

/* How a choice computes a product. */
typedef struct wgmma_geometry {
    const wgmma_row *row;
    bool exchanged;
    wgmma_side left, right;
    int bk, splits;
    int cluster_rows, cluster_columns; /* tiles of a cluster; 1 if its blocks share a tile */
    int cluster_blocks;                /* cluster_rows * cluster_columns */
    bool in_cluster;
    bool stores_by_tma; /* TMA_STORES of the kernel */
    int stages;
    int64_t k_chunk;
    int64_t tile_rows, tile_columns; /* D is tile_rows x tile_columns clusters of tiles */
    int64_t tiles, whole; /* clusters of tiles in the batch; the number that is not split */
    int64_t units; /* number of units of work: whole clusters of tiles, and splits of the others */
    tgl_repack repacks[2];
    int repack_count;
    int64_t repacked_bytes;
    tgl_gemm_step step; /* without tensor maps */
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

/* Columns of a box of results: SPAN of the kernel. */
static inline int wgmma_box_columns(const wgmma_row *row)
{
    return row->bn % 64 == 0 ? 64 : 32;
}

/* Whether a consumer has registers for a left operand of TF32 that is contiguous in its rows. */
bool tgl_wgmma_has_room_for_left(const wgmma_row *row);

/* NULL, or why the choice cannot compute the part of D. */
const char *tgl_wgmma_make_geometry(const tgl_chip *chip, const tgl_shape *shape,
                                    const tgl_rectangle *part, const tgl_choice *choice,
                                    wgmma_geometry *g);

/* Sets what does not depend on how the operands lie in memory: the row, the tile, clusters, splits,
 * tiles and units, and the edges of the operands. The stages are those of the row, at most. NULL,
 * or why the choice is impossible for a product of this size. */
const char *tgl_wgmma_sketch(const tgl_chip *chip, const tgl_shape *shape, const tgl_choice *choice,
                             wgmma_geometry *g);

/* For tgl_family.search. */
void tgl_wgmma_search(tgl_search *in);

/* Sets the times of a candidate whose other members are set. */
void tgl_wgmma_predict_time(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                            tgl_candidate *c);

/* For tgl_family.least_seconds. */
double tgl_wgmma_least_seconds(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice);

/* For tgl_family.least_of_options. INFINITY: the options are impossible. */
double tgl_wgmma_least_of_options(const tgl_chip *chip, const tgl_shape *s,
                                  const tgl_choice *choice);

#endif
