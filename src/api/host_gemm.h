/* SPDX-License-Identifier: Apache-2.0
 *
 * tgl_gemm_host() in tiles of other sizes.
 */
#ifndef TGL_HOST_GEMM_H
#define TGL_HOST_GEMM_H

#include "tegula/tegula.h"

/* The lengths of the sides of tiles, in elements. */
typedef struct tgl_tile_limits {
    int64_t least, most; /* a side that is shorter than `least` is not divided */
    int64_t unit;        /* tiles are a multiple of this, except the last of a side */
} tgl_tile_limits;

/* tgl_gemm_host() with other tiles. For tests. */
tgl_status tgl_gemm_host_in_tiles(tgl_device *dev, const tgl_problem *problem,
                                  const tgl_operands *operands, const tgl_tile_limits *limits);

#endif
