/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the family wgmma share. wgmma.c has the configurations and the launch.
 * wgmma_geometry.c decides how a configuration computes a product, wgmma_traffic.c counts the bytes
 * that it moves from and to memory, and wgmma_cost.c predicts its time. wgmma_search.c chooses the
 * options that are worth trying.
 */
#ifndef TGL_WGMMA_GEOMETRY_H
#define TGL_WGMMA_GEOMETRY_H

#include "families/gemm_launch.h"
#include "families/repack.h"

enum { WGMMA_LINE_BYTES = 128 };    /* bytes of a line of a tile, as TMA copies it */
enum { WGMMA_CLUSTER_MAX = 4 };     /* blocks of a cluster that share operands; 8 were not faster */
enum { WGMMA_SPLIT_DEPTH_MIN = 4 }; /* minimum depth of a split that is tried, in steps of K */
enum { WGMMA_BOX_ROWS = 64, WGMMA_RESULT_BYTES = 2 }; /* rows of a box for TMA; bytes of a result */

/* splits: number of blocks that divide the K of a tile among them. exchanged=1: tiles are those of
 * D^T. cluster, columns: a cluster computes `cluster` x `columns` tiles, one block each. The blocks
 * in one row of the cluster share a tile of the left operand, those in one column a tile of the
 * right operand. whole: the first `whole` clusters of tiles are not split. in_cluster=1: the blocks
 * that divide the K of a tile form a cluster, which adds the sums of the tile in shared memory
 * instead of the workspace. left_registers=1: an MN-major left operand of TF32 reaches wgmma
 * through registers, without a pre-pass (lib/wgmma_left.h). */
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
    bool alternates; /* each consumer has its own tiles: one multiplies while another stores */
    int stages;      /* stages of bm + bn lines of 128 bytes; fewer if result boxes or block scale
                        factors leave no room */
    int boxes;       /* TMA_STORES: boxes of 64 rows of results in a consumer's shared memory */
    int min_blocks;  /* minimum resident blocks of an SM, which limits the registers */
    int registers;   /* per thread at launch, approximately, as compiled for sm_90a without the code
                        that adds the sums of splits */
    double share;    /* fraction of the tensor-core peak that the main loop reaches in kernels too
                        short to reach the power limit */
} wgmma_row;

/* One of the two operands, as the kernel sees it. */
typedef struct wgmma_side {
    tgl_operand operand;
    bool along_k;       /* K-major in memory */
    int64_t edge, k;    /* rows or columns of D that come from this operand; K */
    int64_t ld, stride; /* strides between lines and between matrices, in elements */
    int64_t offset;     /* elements from the operand's beginning to the part */
    int64_t count;      /* matrices of the batch; 1 if all problems share one */
    bool is_direct;     /* TMA reads it as it lies; else it is repacked */
    bool is_k_major;    /* K-major in shared memory */
} wgmma_side;

/* How a choice (a configuration and its options) computes a product. */
typedef struct wgmma_geometry {
    const wgmma_row *row;
    bool exchanged;
    wgmma_side left, right;
    int bk, splits;
    int64_t depth, chunk;              /* steps of K of a tile, and of a split */
    int cluster_rows, cluster_columns; /* tiles of a cluster; 1 x 1 if its blocks share a tile */
    int cluster_blocks;                /* cluster_rows * cluster_columns */
    bool in_cluster;
    bool stores_by_tma; /* the kernel stores D by TMA (macro TMA_STORES) */
    int stages, boxes;
    int64_t k_chunk;
    int64_t tile_rows, tile_columns; /* D is tile_rows x tile_columns clusters of tiles */
    int64_t tiles, whole;            /* clusters of tiles in the batch; how many are not split, if
                                        others are, else 0 */
    int64_t units; /* units of work: a unit is a cluster of tiles, or one of its splits */
    tgl_repack repacks[2];
    int repack_count;
    int64_t repacked_bytes;
    tgl_gemm_step step; /* wgmma_launch() adds the tensor maps */
} wgmma_geometry;

static inline bool wgmma_is_tf32(const tgl_shape *s)
{
    return s->type_a == TGL_F32;
}

/* Whether wgmma takes the type only K-major from shared memory. */
static inline bool wgmma_is_k_major_only(const tgl_shape *s)
{
    return wgmma_is_tf32(s) || tgl_type_size(s->type_a) == 1;
}

/* Whether the kernel adds the sums of each stage in FP32 registers. wgmma itself keeps only 13 bits
 * of fraction in sums of 8-bit floating-point products: compute mode FAST permits this over all of
 * K. */
static inline bool wgmma_promotes(const tgl_shape *s)
{
    return tgl_type_is_f8(s->type_a) &&
           (s->compute != TGL_COMPUTE_FAST || tgl_shape_has_blocked_scales(s));
}

/* Whether threads spill some of their sums: a thread of a consumer of 128x192_alt has 192, and
 * NVRTC 13.0 spills 104 bytes. */
static inline bool wgmma_spills_sums(const wgmma_row *row)
{
    return row->alternates && row->bm * row->bn >= 128 * 192;
}

/* Elements of a line of an MN-major tile: LINE() of the kernel. */
static inline int wgmma_line_of(const tgl_shape *s, int edge)
{
    const int size = (int)tgl_type_size(s->type_a);
    return edge * size % WGMMA_LINE_BYTES == 0 ? WGMMA_LINE_BYTES / size : edge % 32 == 0 ? 32 : 16;
}

/* Whether wgmma takes its left operand, of TF32, from registers. Threads load it from shared memory
 * into these registers. */
static inline bool wgmma_left_in_registers(const tgl_shape *s, const wgmma_geometry *g)
{
    return wgmma_is_tf32(s) && !g->left.is_k_major;
}

/* Columns of a box of results: SPAN of the kernel. */
static inline int wgmma_box_columns(const wgmma_row *row)
{
    return row->bn % 64 == 0 ? 64 : 32;
}

/* Whether a consumer has enough registers to hold fragments of an MN-major left operand of TF32. */
bool tgl_wgmma_has_room_for_left(const wgmma_row *row);

/* Whether the search tries left_registers=1. */
static inline bool wgmma_tries_registers(const tgl_shape *s, const tgl_choice *choice,
                                         bool exchanged)
{
    const bool is_left_along_k = exchanged ? s->trans_b : !s->trans_a;
    return wgmma_is_tf32(s) && !is_left_along_k &&
           tgl_wgmma_has_room_for_left(tgl_choice_row(choice));
}

/* Returns NULL, or why the choice cannot compute `part`, a rectangle of D. */
const char *tgl_wgmma_make_geometry(const tgl_chip *chip, const tgl_shape *shape,
                                    const tgl_rectangle *part, const tgl_choice *choice,
                                    wgmma_geometry *g);

/* Two parts of tgl_wgmma_make_geometry(), enough to predict the time. tgl_wgmma_set_operands() sets
 * the row, `exchanged`, bk, depth, stages, boxes, the operands and their pre-pass. After one such
 * call, any number of choices that differ in clusters and splits may each be passed to
 * tgl_wgmma_set_options(). Both return NULL, or why the choice is impossible, and leave all other
 * members as they are. */
const char *tgl_wgmma_set_operands(const tgl_shape *s, const tgl_rectangle *part,
                                   const tgl_choice *choice, wgmma_geometry *g);
const char *tgl_wgmma_set_options(const tgl_chip *chip, const tgl_shape *s,
                                  const tgl_choice *choice, wgmma_geometry *g);

/* Whether the kernel stores whole words of packed results of 16 bits (HAS_PACKED). */
static inline bool wgmma_packs_results(const tgl_shape *s, const wgmma_geometry *g)
{
    const bool has_pairs = tgl_type_size(s->epilogue.type_residual) == 2 && !g->exchanged;
    return tgl_type_size(s->type_d) == 2 && !s->epilogue.amax &&
           (!s->epilogue.residual || has_pairs);
}

/* Whether the kernel stores D by TMA (TMA_STORES), which also needs legal strides of D. */
bool tgl_wgmma_stores_by_tma(const tgl_shape *s, const wgmma_geometry *g);

/* For tgl_family.search. */
void tgl_wgmma_search(tgl_search *in);

/* Sets the times of a candidate whose other members are set. */
void tgl_wgmma_predict_time(const tgl_chip *chip, const tgl_shape *s, const wgmma_geometry *g,
                            tgl_candidate *c);

/* For tgl_family.least_seconds. */
double tgl_wgmma_least_seconds(const tgl_chip *chip, const tgl_shape *s, const tgl_choice *choice);

/* How TMA copies a tile of an operand for one step of K, counted in lines of 128 bytes. */
typedef struct wgmma_copies {
    double received;
    double requested; /* lines read from L2; a line of the tile that lies in two lines of L2 counts
                         more */
} wgmma_copies;

/* Bytes that a product moves from and to memory. */
typedef struct wgmma_traffic {
    double operands, result;
    double missed; /* fraction of the copies that miss L2 */
    double step;   /* bytes copied for a step of K of a tile */
} wgmma_traffic;

wgmma_traffic tgl_wgmma_traffic(const tgl_chip *chip, const tgl_shape *s, const wgmma_row *t);

/* The left operand's fraction of the bytes of A and B. */
double tgl_wgmma_left_share(const wgmma_geometry *g);

/* Bytes that memory serves although A and B were read before. */
double tgl_wgmma_repeated_bytes(const tgl_shape *s, const wgmma_geometry *g);

/* Bytes that a product reads from memory or writes to it. steps: steps of K of all its units;
 * repeated: tgl_wgmma_repeated_bytes(), or a lower bound of it. */
double tgl_wgmma_memory_bytes(const wgmma_traffic *t, double steps, double repeated);

/* State shared by the lower bounds of many choices with the same configuration, the same
 * `exchanged`, and the left operand in registers or not. A bound lets the search skip choices that
 * cannot be the fastest. */
typedef struct wgmma_bound {
    const tgl_chip *chip;
    const tgl_shape *shape;
    wgmma_geometry g;   /* geometry with the options of the last choice */
    bool stores_by_tma; /* D is stored by TMA, unless the blocks of a cluster share a tile */
    wgmma_copies left, right;
    wgmma_traffic traffic;
    double tiles;   /* tiles of D or D^T in the batch */
    double product; /* cycles of the arithmetic of a step of K */
    double of_left; /* additional cycles of a step of K if wgmma takes its left operand from
                       registers, into which threads load it; else 0 */
    double tail;    /* cycles after the main loop of a tile that is not split */
    double start;   /* seconds of launches and of the pre-pass */
} wgmma_bound;

/* Sets *bound. Returns NULL, or why all choices that *bound is for are impossible. */
const char *tgl_wgmma_bound_start(const tgl_chip *chip, const tgl_shape *s,
                                  const tgl_choice *choice, wgmma_bound *bound);

/* A lower bound of the seconds of a choice. INFINITY: it is impossible. */
double tgl_wgmma_least_of_options(wgmma_bound *bound, const tgl_choice *choice);

/* A lower bound of the seconds of all choices that the search tries. */
double tgl_wgmma_least_of_all(const wgmma_bound *bound);

/* A lower bound of the seconds of all choices with `splits` or more splits whose sums are added in
 * the workspace. It grows with `splits`. */
double tgl_wgmma_least_of_splits(wgmma_bound *bound, int splits);

#endif
