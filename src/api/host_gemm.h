/* SPDX-License-Identifier: Apache-2.0
 *
 * tgl_gemm_host() with limits of the tiles' sizes that the caller chooses.
 */
#ifndef TGL_HOST_GEMM_H
#define TGL_HOST_GEMM_H

#include "tegula/tegula.h"

/* Limits of the side lengths of tiles, in elements. */
typedef struct tgl_tile_limits {
    int64_t min, max; /* minimum and maximum; m, n or k is not divided if it is at most `min` */
    int64_t unit;     /* lengths are multiples of this, except for the last tile of a side */
} tgl_tile_limits;

/* tgl_gemm_host() with given limits of the tile sizes, for tests. */
tgl_status tgl_gemm_host_in_tiles(tgl_device *dev, const tgl_problem *problem,
                                  const tgl_operands *operands, const tgl_tile_limits *limits);

#endif
