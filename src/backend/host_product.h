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

/* Kinds of slabs. Their plans differ because they read and write different types: the first slab
 * reads C, the last one writes D, and between slabs a tile has the accumulation type. If there is
 * one slab, its kind is TGL_SLAB_LAST. */
enum { TGL_SLAB_FIRST, TGL_SLAB_INNER, TGL_SLAB_LAST, TGL_SLABS };

typedef struct tgl_host_product {
    const tgl_shape *shape;           /* shape of the product; its k is 0 if A and B are not read */
    const tgl_run *run;               /* operands: pointers to host memory */
    int64_t m, n, k;                  /* size of a whole tile and slab: op(A) m x k, op(B) k x n */
    int64_t rows, columns, slabs;     /* tiles of D along m and n; slabs along k */
    size_t workspace;                 /* bytes of workspace: maximum over all plans */
    tgl_plan *plans[2][2][TGL_SLABS]; /* indices: 1 for the last row of tiles, else 0; 1 for the
                                         last column of tiles, else 0; kind of slab */
    int64_t delivered; /* number of tiles that the device has stored in D, in the order of
                          tgl_tile_at() */
} tgl_host_product;

/* A tile of D: index of its product in the batch, row and column in units of tiles. */
typedef struct tgl_tile_place {
    int64_t product, row, column;
} tgl_tile_place;

/* The tiles of D in the order of computation: row by row, odd rows from right to left. Each row of
 * tiles thus begins with the tiles of B that the previous row used last, which are still in device
 * memory. */
static inline int64_t tgl_tile_count(const tgl_host_product *p)
{
    return p->shape->batch * p->rows * p->columns;
}
tgl_tile_place tgl_tile_at(const tgl_host_product *p, int64_t index);

/* The first element of a tile of A, B, C or D (TGL_AT_A to TGL_AT_D) in host memory. slab: the slab
 * of A or B; ignored for C and D. */
void *tgl_tile_address(const tgl_host_product *p, tgl_operand operand, const tgl_tile_place *at,
                       int64_t slab);

/* The size of tile `index` in one dimension: `tile`, or less for the last tile. total: size of the
 * matrix in this dimension. */
static inline int64_t tgl_tile_size(int64_t total, int64_t tile, int64_t index)
{
    const int64_t left = total - index * tile;
    return left < tile ? left : tile;
}

/* The kind of a slab: TGL_SLAB_FIRST, TGL_SLAB_INNER or TGL_SLAB_LAST. If there is only one slab:
 * TGL_SLAB_LAST. */
int tgl_kind_of_slab(const tgl_host_product *p, int64_t slab);

/* The plan for one slab of the tile in this row and column of tiles. */
const tgl_plan *tgl_tile_plan(const tgl_host_product *p, int64_t row, int64_t column, int64_t slab);

/* The types of the matrix that is added to a slab's product, and of its result. Between slabs, a
 * tile of D has the accumulation type. */
tgl_type tgl_slab_input(const tgl_host_product *p, int64_t slab);
tgl_type tgl_slab_result(const tgl_host_product *p, int64_t slab);

/* Whether something is added to the product of this slab: beta*C, or the sum of the slabs before
 * it. */
static inline bool tgl_slab_has_input(const tgl_host_product *p, int64_t slab)
{
    return slab > 0 || p->run->beta != 0;
}

/* Leading dimension of a tile in device memory, in elements. Rows are multiples of 16 bytes apart,
 * so that every kernel can use its widest loads. */
int64_t tgl_tile_pitch(tgl_type type, int64_t columns);

#endif
