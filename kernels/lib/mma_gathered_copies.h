/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies 8-bit operands through registers into the K-major tiles of lib/mma_tiles.h, if cp.async
 * cannot copy them: if they are MN-major, or if their lines (rows in memory) are not aligned to 4
 * bytes. A place is 16 bytes of a tile: 16 elements along K. A thread reads the elements of a place
 * one by one, and stores them by one 16-byte store.
 */
#ifndef TGL_MMA_GATHERED_COPIES_H
#define TGL_MMA_GATHERED_COPIES_H

#include "lib/mma_tiles.h"

/* What a thread holds in registers between load_places() and store_places(): nothing, because
 * store_places() does all the work here. */
struct loaded {
    char unused;
};

/* Returns where a tile begins in global memory, the same for all threads. An element is a byte. X:
 * the matrix, whose lines are ld elements apart. begin: index in X of the tile's first element.
 * edge_left: rows or columns of the matrix from the tile on. k_major: X is K-major in global
 * memory. */
static __device__ __forceinline__ struct mma_origin
gathered_origin_of(const void *X, long long ld, long long begin, int edge_left, const bool k_major)
{
    struct mma_origin from;
    from.from = (const char *)X + begin;
    from.line = k_major ? ld : 1;
    from.tile = k_major ? BK : BK * ld;
    from.edge_left = edge_left;
    from.matrix = (const char *)X;
    return from;
}

/* gathered_edge(), gathered_k(): the row or column, and the first k, of the thread's place number i
 * in a tile. Neighbouring lanes read neighbouring places of a K-major operand, and neighbouring
 * elements of an MN-major one. */
static __device__ __forceinline__ int gathered_edge(int i, const int edge, const bool k_major)
{
    const int number = (int)threadIdx.x + i * THREADS;
    return k_major ? number / (BK / 16) : number % edge;
}

static __device__ __forceinline__ int gathered_k(int i, const int edge, const bool k_major)
{
    const int number = (int)threadIdx.x + i * THREADS;
    return (k_major ? number % (BK / 16) : number / edge) * 16;
}

/* Reads the 16 bytes of the thread's place number i, with zeros for elements outside of the matrix.
 * k_left: K of the matrix from the beginning of the tile on. k_major: the operand's layout in
 * global memory. */
static __device__ __forceinline__ uint4 gather_place(const struct mma_origin *from, int k_left,
                                                     int i, const int edge, const bool k_major)
{
    const long long stride = k_major ? 1 : from->tile / BK; /* bytes from one k to the next */
    const int e = gathered_edge(i, edge, k_major), p = gathered_k(i, edge, k_major);
    const char *at = from->from + e * from->line + p * stride;
    const int count = has_place(i, edge, 1) && e < from->edge_left ? k_left - p : 0;
    unsigned w[4] = {0, 0, 0, 0};
#pragma unroll
    for (int j = 0; j < 16; j++, at += stride)
        if (j < count) w[j / 4] |= (unsigned)__ldca((const unsigned char *)at) << j % 4 * 8;
    return make_uint4(w[0], w[1], w[2], w[3]);
}

static __device__ __forceinline__ void put_place(char *tile, uint4 words, int i, const int edge,
                                                 const bool k_major)
{
    const int e = gathered_edge(i, edge, k_major), p = gathered_k(i, edge, k_major);
    const unsigned swizzle = swizzle_of((unsigned)e, edge, true);
    if (has_place(i, edge, 1)) *(uint4 *)(tile + e * BK + (p ^ (int)swizzle)) = words;
}

/* Does nothing: store_places() loads each place just before it stores it. If a thread loaded all
 * its places before it stored the first one, their addresses would take more registers than are
 * free (NVRTC 13.0). */
static __device__ __forceinline__ void load_places(struct loaded *in, char *tile,
                                                   const struct mma_origin *from, int k_left,
                                                   const int edge, const bool k_major)
{
    (void)in, (void)tile, (void)from, (void)k_left, (void)edge, (void)k_major;
}

/* Copies all places of a tile. */
static __device__ __forceinline__ void store_places(char *tile, const struct loaded *in,
                                                    const struct mma_origin *from, int k_left,
                                                    const int edge, const bool k_major)
{
    (void)in;
#pragma unroll 1
    for (int i = 0; i < PLACES_OF_THREAD(edge, 1); i++)
        put_place(tile, gather_place(from, k_left, i, edge, k_major), i, edge, k_major);
}

#endif
