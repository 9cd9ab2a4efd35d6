/* SPDX-License-Identifier: Apache-2.0
 *
 * Grouped products in kernels whose blocks compute one tile each. GROUPED 1: groups of rows: the
 * block computes rows of one group, and args.m becomes the end of the group. GROUPED 2: groups
 * along K.
 */
#ifndef TGL_GROUP_TILES_H
#define TGL_GROUP_TILES_H

#include "lib/gemm_args.h"
#include "lib/group_table.h"

#ifndef GROUPED
#define GROUPED 0
#endif

#if GROUPED
static __device__ __forceinline__ const struct tgl_group_table *
group_table(const struct tgl_gemm_args *args)
{
    return (const struct tgl_group_table *)args->groups;
}
#endif

#if GROUPED == 1
/* Called before the block finds its tile. D has one row of tiles for each span of the table: args.m
 * becomes their height. Returns false if the grid has more blocks than there are tiles. */
static __device__ __forceinline__ bool group_rows(struct tgl_gemm_args *args, int tile)
{
    args->m = group_table(args)->head.group * BM;
    return tile < group_table(args)->head.group * ((args->n + BN - 1) / BN);
}

/* Called after the block has found its tile. *row: the tile's row among all spans' tiles; becomes
 * its row in D. Returns the number of the group. */
static __device__ __forceinline__ int group_of_rows(struct tgl_gemm_args *args, int *row)
{
    const struct tgl_group_span span = group_table(args)->spans[*row / BM];
    *row = span.first;
    args->m = span.end;
    return span.group;
}
#endif

#endif
