/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of matrices in host memory, divided into tiles for a device with memory of its own. D
 * has rows x columns tiles. K is divided into slabs, and a tile of D is the sum over all slabs.
 * The division depends on the shape only, so that results do not depend on how much memory is
 * free.
 */
#ifndef TGL_HOST_PRODUCT_H
#define TGL_HOST_PRODUCT_H

#include "backend/backend.h"

/* The first slab, the last slab and the slabs between them have different plans. If there is only
 * one slab, its plan is TGL_SLAB_LAST. */
enum { TGL_SLAB_FIRST, TGL_SLAB_INNER, TGL_SLAB_LAST, TGL_SLABS };

typedef struct tgl_host_product {
    const tgl_shape *shape;           /* its k is 0 if A and B are not read */
    const tgl_run *run;               /* pointers to host memory */
    int64_t m, n, k;                  /* sizes of a whole tile: op(A) is m x k, op(B) is k x n */
    int64_t rows, columns, slabs;     /* rows x columns tiles of D; number of slabs */
    size_t workspace;                 /* bytes: the maximum of all plans */
    tgl_plan *plans[2][2][TGL_SLABS]; /* [1: last row of tiles][1: last column][kind of slab] */
    int64_t delivered; /* tiles that the device has stored in D, in the order of tgl_tile_at() */
} tgl_host_product;

/* A tile of D: the index of its product in the batch, and its row and column in tiles. */
typedef struct tgl_tile_place {
    int64_t product, row, column;
} tgl_tile_place;

/* The tiles of D in the order in which they are computed: row by row, odd rows from right to left.
 * A row thus begins with the tiles of B that the row before used last. */
static inline int64_t tgl_tile_count(const tgl_host_product *p)
{
    return p->shape->batch * p->rows * p->columns;
}
tgl_tile_place tgl_tile_at(const tgl_host_product *p, int64_t index);

/* The first element of a tile of A, B, C or D (TGL_AT_A to TGL_AT_D) in host memory. slab: the slab
 * of A and B; C and D do not depend on it. */
void *tgl_tile_address(const tgl_host_product *p, tgl_operand operand, const tgl_tile_place *at,
                       int64_t slab);

/* The size of tile number `index` in one dimension: `tile` elements, or what is left of `total` for
 * the last tile. */
static inline int64_t tgl_tile_size(int64_t total, int64_t tile, int64_t index)
{
    const int64_t left = total - index * tile;
    return left < tile ? left : tile;
}

/* TGL_SLAB_FIRST, TGL_SLAB_INNER or TGL_SLAB_LAST: the last index of plans[][][] for this slab. */
int tgl_kind_of_slab(const tgl_host_product *p, int64_t slab);

/* The plan that computes one slab of the tile in this row and this column of tiles. */
const tgl_plan *tgl_tile_plan(const tgl_host_product *p, int64_t row, int64_t column, int64_t slab);

/* The type of the matrix to which a slab's product is added, and the type of the result. Between
 * slabs a tile of D is in the accumulation type. */
tgl_type tgl_slab_input(const tgl_host_product *p, int64_t slab);
tgl_type tgl_slab_result(const tgl_host_product *p, int64_t slab);

/* Whether the product of this slab is added to something: C times beta, or the slabs before it. */
static inline bool tgl_slab_has_input(const tgl_host_product *p, int64_t slab)
{
    return slab > 0 || p->run->beta != 0;
}

/* Elements from one row of a tile to the next in device memory: a multiple of 16 bytes, so that all
 * kernels can be used. */
int64_t tgl_tile_pitch(tgl_type type, int64_t columns);

#endif
