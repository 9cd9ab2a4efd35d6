/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products in kernels whose blocks compute one tile each. GROUPED 1: a group is a range of
 * rows of D. A block computes rows of one group, and args.m becomes the end of that group. GROUPED
 * 2: a group is a range of K. A span is a row of the group table (lib/group_table.h).
 */
#ifndef TGL_GROUP_TILES_H
#define TGL_GROUP_TILES_H

#include "lib/element.h"
#include "lib/gemm_args.h"
#include "lib/group_table.h"

#if GROUPED
static __device__ __forceinline__ const struct tgl_group_table *
group_table(const struct tgl_gemm_args *args)
{
    return (const struct tgl_group_table *)args->groups;
}
#endif

#if GROUPED == 1
/* Called before the block finds its tile. D has one row of tiles for each span, and args.m becomes
 * the height of all these rows of tiles. Returns false if the block has no tile, because the grid
 * has more blocks than there are tiles. */
static __device__ __forceinline__ bool group_rows(struct tgl_gemm_args *args, int tile)
{
    args->m = group_table(args)->head.spans * BM;
    return tile < group_table(args)->head.spans * ((args->n + BN - 1) / BN);
}

/* Called after the block has found its tile. *row: BM times the number of the tile's span; becomes
 * the tile's first row in D. Returns the number of the group. */
static __device__ __forceinline__ int group_of_rows(struct tgl_gemm_args *args, int *row)
{
    const struct tgl_group_span span = group_table(args)->spans[*row / BM];
    *row = span.first;
    args->m = span.end;
    return span.group;
}
#endif

#endif
