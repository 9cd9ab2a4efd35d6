/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the family mma share. mma.c decides how a configuration computes a product, and
 * mma_cost.c predicts its time.
 */
#ifndef TGL_MMA_GEOMETRY_H
#define TGL_MMA_GEOMETRY_H

#include "families/gemm_launch.h"

/* A configuration. */
typedef struct mma_row {
    const char *name;
    int bm, bn;    /* the tile of D that a block computes */
    int bk_bytes;  /* depth of the tile in K, in bytes */
    int wm, wn;    /* the part of the tile that a warp computes */
    int stages;    /* tiles of A and B in shared memory */
    int slices;    /* groups of warps that divide the K of a tile among them */
    int fragments; /* macro FRAGMENTS of mma.cu, 0 to 2: how many fragments a thread loads in
                      advance */
    bool is_f64;   /* the configuration is for F64, else for other types */
    int registers; /* per thread, as compiled for sm_90a: the maximum of all types and layouts */
} mma_row;

/* How a choice (a configuration and its options) computes a product. step.args.k_chunk: K of each
 * split, except the last, which takes the rest of K. */
typedef struct mma_geometry {
    const mma_row *row;
    int size; /* bytes of an element of A and B */
    tgl_gemm_step step;
} mma_geometry;

/* Whether an operand is copied through registers: cp.async copies at least 4 bytes, so it cannot
 * copy single elements of 16 or 8 bits. */
static inline bool mma_copies_by_registers(const mma_geometry *g, int vec_a, int vec_b)
{
    return g->size * tgl_min64(vec_a, vec_b) < 4;
}

/* Sets the times of a candidate whose other members are set. */
void tgl_mma_predict_time(const tgl_chip *chip, const tgl_shape *shape, const mma_geometry *g,
                          tgl_candidate *c);

/* K of a split if each tile has `splits` splits. */
static inline int64_t mma_chunk_of(const tgl_shape *s, const mma_geometry *g, int64_t splits)
{
    return tgl_round_up(tgl_ceil_div(s->k, splits), g->row->bk_bytes / g->size);
}

/* State shared by the lower bounds of all candidates of one configuration. A bound lets the search
 * skip candidates that cannot be the fastest. */
typedef struct mma_bound {
    const tgl_chip *chip;
    const tgl_shape *shape;
    const mma_geometry *g; /* geometry with default options */
    int resident;          /* resident blocks per SM */
    double tiles;          /* tiles of the batch */
    double busy;           /* cycles of an SM to multiply a tile of K of a block */
} mma_bound;

/* Sets *bound for a configuration. It keeps the pointer g, which must stay valid as long as *bound
 * is used. */
void tgl_mma_bound_start(const tgl_chip *chip, const tgl_shape *s, const mma_geometry *g,
                         int resident, mma_bound *bound);

/* Lower bounds of the seconds: of all candidates that the search tries; of the candidate with these
 * options; of all candidates with `splits` or more splits. */
double tgl_mma_least_of_all(const mma_bound *bound);
double tgl_mma_least_of_options(const mma_bound *bound, int splits, int64_t whole);
double tgl_mma_least_of_splits(const mma_bound *bound, int splits);

#endif
