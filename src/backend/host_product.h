/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of matrices in host memory, divided into tiles for a device with memory of its own:
 * rows x columns tiles of D, each the sum over slabs, parts of k. The division depends on the shape
 * only, so that results do not depend on how much memory is free.
 */
#ifndef TGL_HOST_PRODUCT_H
#define TGL_HOST_PRODUCT_H

#include "backend/backend.h"

/* Which plan a slab has. A single slab is TGL_SLAB_LAST. */
enum { TGL_SLAB_FIRST, TGL_SLAB_INNER, TGL_SLAB_LAST, TGL_SLABS };

typedef struct tgl_host_product {
    const tgl_shape *shape;           /* k is 0 if there is no product */
    const tgl_run *run;               /* pointers to host memory */
    int64_t m, n, k;                  /* of a whole tile: op(A) is m x k, op(B) is k x n */
    int64_t rows, columns, slabs;     /* numbers of tiles */
    size_t workspace;                 /* the largest of the plans */
    tgl_plan *plans[2][2][TGL_SLABS]; /* [in the last row of tiles][in the last column][slab] */
    int64_t delivered; /* tiles that the device has stored in D, in the order of tgl_tile_at() */
} tgl_host_product;

/* A tile of D: of which product of the batch, and where. */
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

/* The first element of a tile of A, B, C or D (TGL_AT_A to TGL_AT_D) in host memory. */
void *tgl_tile_address(const tgl_host_product *p, tgl_operand operand, const tgl_tile_place *at,
                       int64_t slab);

/* The sizes of the tile in this row and column, and of this slab. */
static inline int64_t tgl_tile_size(int64_t total, int64_t tile, int64_t index)
{
    const int64_t left = total - index * tile;
    return left < tile ? left : tile;
}

/* The index in plans[row][column] of the plan of a slab. */
int tgl_kind_of_slab(const tgl_host_product *p, int64_t slab);

/* The plan of a tile. */
const tgl_plan *tgl_tile_plan(const tgl_host_product *p, int64_t row, int64_t column, int64_t slab);

/* The types of what a slab's product is added to, and of its result. Between slabs a tile of D is
 * in the accumulation type. */
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
