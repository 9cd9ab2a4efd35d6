/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the family dmma share. dmma.c decides how a configuration computes a product,
 * and dmma_cost.c predicts its time.
 */
#ifndef TGL_DMMA_GEOMETRY_H
#define TGL_DMMA_GEOMETRY_H

#include "families/gemm_launch.h"

enum {
    DMMA_LINE_BYTES = 128, /* bytes of a line in a stage */
    DMMA_BK = 16,          /* doubles in a line */
    DMMA_WARP_COLUMNS = 32,
};

/* A configuration. */
typedef struct dmma_row {
    const char *name;
    int bm, bn;     /* the tile of D that a block computes */
    int wm;         /* rows of D that a warp computes, with DMMA_WARP_COLUMNS columns */
    int slices;     /* groups of warps, which take the stages of a tile in turn */
    int ahead;      /* groups of 16 rows whose fragments a warp loads in advance */
    int stages;     /* stages in shared memory, each of dmma_stage_lines() lines */
    int min_blocks; /* minimum resident blocks of an SM, which limits the registers */
    int registers;  /* per thread at launch, as compiled for sm_90a: the maximum of all layouts */
    double share;   /* fraction of the FP64 tensor-core peak that the main loop reaches; fitted like
                       the constants of dmma_cost.c */
} dmma_row;

/* How a choice (a configuration and its options) computes a product. */
typedef struct dmma_geometry {
    const dmma_row *row;
    bool exchanged;
    int warps;
    int64_t tile_rows, tile_columns;
    int64_t whole; /* tiles of the batch that are not split, if others are; else 0 */
    int64_t units; /* units of work: tiles that are not split, and splits of the others */
    tgl_gemm_step step;
} dmma_geometry;

/* Lines of a stage. A line of a complex B serves two columns or two k of the real matrix. */
static inline int dmma_stage_lines(const tgl_shape *s, const dmma_row *t)
{
    return t->bm + (s->pairs_b != 0 ? t->bn / 2 : t->bn);
}

/* Sets the times of a candidate whose other members are set. */
void tgl_dmma_predict_time(const tgl_chip *chip, const tgl_shape *shape, const dmma_geometry *g,
                           tgl_candidate *c);

/* State shared by the lower bounds of all candidates of one configuration, for the tiles of D or of
 * D^T. A bound lets the search skip candidates that cannot be the fastest. */
typedef struct dmma_bound {
    const tgl_chip *chip;
    const tgl_shape *shape;
    const dmma_geometry *g;   /* geometry with default options */
    double tiles;             /* tiles of the batch */
    int64_t depth;            /* steps of K of a tile */
    double step;              /* least cycles of an SM for one step of K of a tile */
    double memory, l2, start; /* seconds to read the operands and store D; to read the operands of
                                 all tiles from L2; before the first tile */
} dmma_bound;

/* Sets *bound for a configuration. It keeps the pointer g, which must stay valid as long as *bound
 * is used. */
void tgl_dmma_bound_start(const tgl_chip *chip, const tgl_shape *s, const dmma_geometry *g,
                          int resident, dmma_bound *bound);

/* Lower bounds of the seconds: if all tiles from number `whole` on have `splits` splits each; of
 * all candidates with `splits` or more splits, which grows with `splits`. */
double tgl_dmma_least_of_options(const dmma_bound *bound, int splits, int64_t whole);
double tgl_dmma_least_of_splits(const dmma_bound *bound, int splits);

#endif
