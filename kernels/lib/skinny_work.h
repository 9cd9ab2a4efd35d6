/* SPDX-License-Identifier: Apache-2.0
 *
 * How gemm/skinny.cu distributes its work. A unit of work is k_chunk of the K of a tile. Units are
 * numbered tile by tile. Every block of the grid computes consecutive units: each + 1 units if it
 * is one of the first `more` blocks, else `each` units.
 */
#ifndef TGL_SKINNY_WORK_H
#define TGL_SKINNY_WORK_H

#include "lib/skinny_tiles.h"

struct skinny_work {
    int per_tile;   /* units of a tile */
    int each, more; /* units of a block; blocks that have one more unit */
};

/* The part of a tile that a block computes: [from, to) of its K. */
struct segment {
    int tile, from, to;
    int next; /* the unit behind the segment */
};

static __device__ __forceinline__ struct skinny_work work_of(const struct tgl_gemm_args *args,
                                                             int length)
{
    const int tiles = (length - 1) / TILE + 1;
    struct skinny_work w;
    w.per_tile = DEPTH_OF(args) > args->k_chunk ? (DEPTH_OF(args) - 1) / args->k_chunk + 1 : 1;
    w.each = tiles * w.per_tile / (int)gridDim.x;
    w.more = tiles * w.per_tile - w.each * (int)gridDim.x;
    return w;
}

static __device__ __forceinline__ int first_unit(const struct skinny_work *w, int block)
{
    return block * w->each + min(block, w->more);
}

/* The block that computes unit number `unit`. */
static __device__ __forceinline__ int block_of(const struct skinny_work *w, int unit)
{
    const int longer = w->more * (w->each + 1);
    return unit < longer ? unit / (w->each + 1) : w->more + (unit - longer) / w->each;
}

/* The segment that begins with unit number `unit`. end: the unit behind the block's last one. */
static __device__ __forceinline__ struct segment
segment_at(const struct tgl_gemm_args *args, const struct skinny_work *w, int unit, int end)
{
    struct segment s;
    s.tile = unit / w->per_tile;
    const int first = s.tile * w->per_tile, after = first + w->per_tile;
    s.next = min(end, after);
    s.from = (unit - first) * args->k_chunk;
    s.to = s.next == after ? DEPTH_OF(args) : (s.next - first) * args->k_chunk;
    return s;
}

#endif
