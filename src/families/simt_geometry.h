/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the family simt share. simt.c has the configurations and the launch.
 * simt_geometry.c decides how a configuration computes a product, and simt_cost.c predicts its
 * time. simt_search.c chooses the options that are worth trying.
 */
#ifndef TGL_SIMT_GEOMETRY_H
#define TGL_SIMT_GEOMETRY_H

#include "families/gemm_launch.h"

/* A configuration. */
typedef struct simt_row {
    const char *name;
    int bm, bn, bk;    /* the tile of D that a block computes, and its depth in K */
    int wm, wn;        /* the part of the tile that a warp computes */
    int tm, tn;        /* the part of the tile that a thread computes */
    int stages;        /* tiles of A and B in shared memory */
    int slices;        /* groups of warps that divide the K of a tile among them */
    int min_blocks;    /* minimum resident blocks of an SM, which limits the registers */
    int registers;     /* per thread, as compiled for sm_90a */
    int registers_max; /* the same, if all copies have addresses of their own: the largest number */
} simt_row;

/* splits: number of blocks that divide the K of a tile among them. whole: the first `whole` tiles
 * are not split. depth: K of each split but the first, which takes the rest; by default all splits
 * have the same depth. SIMT_SCHEDULE: the first of five options that replace the macros of a
 * schedule (simt_schedules.inc). */
enum { SIMT_SPLITS, SIMT_WHOLE, SIMT_DEPTH, SIMT_SCHEDULE };

/* How a choice (a configuration and its options) computes a product. */
typedef struct simt_geometry {
    const simt_row *row;
    const tgl_choice *choice;
    int64_t first_depth; /* K of the first split; args.k_chunk is K of each other split */
    bool wide_offsets;   /* byte offsets within a tile need more than 32 bits */
    tgl_gemm_step step;
} simt_geometry;

/* Returns NULL, or why the choice cannot compute the product. */
const char *tgl_simt_make_geometry(const tgl_chip *chip, const tgl_shape *shape,
                                   const tgl_choice *choice, simt_geometry *g);

/* The macro INSIDE of the kernel, for copies of this many elements: whether D is at least as large
 * as a tile. It is false where it would change nothing. */
bool tgl_simt_is_inside(const tgl_shape *s, const simt_row *t, int vec_a, int vec_b);

/* K that the slices of a block multiply together in one step of the main loop. The depth of a split
 * is a multiple of it. */
static inline int simt_depth_of_step(const simt_row *row)
{
    return row->bk * row->slices;
}

/* Whether the first split of a tile is deeper than the others. */
static inline bool simt_is_uneven(const simt_geometry *g)
{
    return g->step.args.splits > 1 && g->first_depth > g->step.args.k_chunk;
}

/* Sets the times of a candidate whose other members are set. */
void tgl_simt_predict_time(const tgl_chip *chip, const tgl_shape *shape, const simt_geometry *g,
                           tgl_candidate *c);

/* The depth in K whose FFMAs take as long as everything else that a split does, such as loading its
 * first tiles and storing its sums. */
double tgl_simt_split_overhead(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                               int resident);

/* State shared by the lower bounds of all candidates of one configuration. A bound lets the search
 * skip candidates that cannot be the fastest. */
typedef struct simt_bound {
    const tgl_chip *chip;
    const tgl_shape *shape;
    const simt_geometry *g; /* geometry with default options */
    int resident;           /* blocks per SM with default options; other options may allow fewer */
    double tiles;           /* tiles of the batch */
    double store, slices;   /* cycles of an SM to store a tile, and to add the sums of its slices */
    /* of_k[b]: a lower bound of the cycles of an SM to multiply one k of a block, with 1 to b
     * resident blocks. */
    double of_k[TGL_BLOCKS_PER_SM_MAX + 1];
} simt_bound;

/* Sets *bound for a configuration. It keeps the pointer g, which must stay valid as long as *bound
 * is used. */
void tgl_simt_bound_start(const tgl_chip *chip, const tgl_shape *s, const simt_geometry *g,
                          int resident, simt_bound *bound);

/* Lower bounds of the seconds of a candidate that splits the tiles from `whole` on. Even: into
 * splits of equal depth. Uneven: into a deep one and others of depth `chunk`. */
double tgl_simt_least_of_even(const simt_bound *bound, int splits, int64_t whole);
double tgl_simt_least_of_uneven(const simt_bound *bound, int splits, int64_t whole, int64_t chunk);

/* A lower bound of the seconds of all candidates. */
double tgl_simt_least_of_all(const simt_bound *bound);

/* A lower bound of the seconds of all candidates with `splits` or more splits. It grows with
 * `splits`. */
double tgl_simt_least_of_splits(const simt_bound *bound, int splits);

/* For tgl_family.least_seconds. */
double tgl_simt_least_seconds(const tgl_chip *chip, const tgl_shape *shape,
                              const tgl_choice *choice);

/* The minimum depth of a split that the search tries. */
int64_t tgl_simt_least_depth(const simt_row *t);

/* For tgl_family.search. */
void tgl_simt_search(tgl_search *in);

#endif
