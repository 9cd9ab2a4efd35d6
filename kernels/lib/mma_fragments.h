/* SPDX-License-Identifier: Apache-2.0
 *
 * How a warp loads the fragments of mma.sync from the tiles of lib/mma_copies.h: 16-bit elements by
 * ldmatrix, transposed where the operand is MN-major. A K-major tf32 operand by ldmatrix as well,
 * as pairs of 16 bits; others by scalar loads. None has bank conflicts.
 */
#ifndef TGL_MMA_FRAGMENTS_H
#define TGL_MMA_FRAGMENTS_H

#include "lib/ldmatrix.h"
#include "lib/mma_copies.h"
#include "lib/mma_type.h"

/* Where a lane reads its fragments of an operand: line by line, with the swizzle of its lines.
 * In steps of 8 lines, or of 32 bytes in a line, neither depends on the fragment. */
struct lane_source {
    unsigned at;  /* bytes from the beginning of a tile */
    unsigned mix; /* to be XORed to the last 7 bits of an offset in a line */
};

/* first: the warp's first row or column; depth: the slice's first k. */
static __device__ __forceinline__ struct lane_source
lane_source(unsigned first, unsigned depth, const int edge, const bool k_major, const bool is_a)
{
    const unsigned lane = threadIdx.x % 32;
    unsigned line, byte;
    if (!USES_LDMATRIX(k_major)) {
        line = k_major ? lane / 4 : lane % 4;
        byte = (k_major ? lane % 4 : lane / 4) * SIZE;
    } else if (k_major == is_a) {
        line = lane % 16;
        byte = lane / 16 * 16;
    } else {
        line = lane % 8 + lane / 16 * 8;
        byte = lane / 8 % 2 * 16;
    }
    const unsigned lines = k_major ? first : depth, bytes = (k_major ? depth : first) * SIZE;
    struct lane_source source;
    source.at = (lines + line) * LINE_BYTES(edge, k_major) + bytes / 128 * 128;
    source.mix = bytes % 128 ^ byte ^ swizzle_of(line, edge, k_major);
    return source;
}

/* The fragments of 16 rows of A or 16 columns of B, `e` from the warp's first one, at depth p: one
 * fragment of A, or two of B. */
static __device__ __forceinline__ void load_fragment(fragment_t *to, const char *tile,
                                                     const struct lane_source *from, const int e,
                                                     const int p, const int edge,
                                                     const bool k_major, const bool is_a)
{
    const int line_bytes = LINE_BYTES(edge, k_major);
    const char *at = tile + from->at;
#if SIZE < 8
    if (USES_LDMATRIX(k_major)) {
        const unsigned bytes = (k_major ? p : e) * SIZE;
        at += (k_major ? e : p) * line_bytes + bytes / 128 * 128 + (bytes % 128 ^ from->mix);
        if (k_major)
            ldmatrix_x4(to, at);
        else
            ldmatrix_x4_trans(to, at);
        return;
    }
#endif
#pragma unroll
    for (int i = 0; i < FRAGMENT; i++) {
        const int own_e = e + (is_a ? i % 2 : i / (FRAGMENT / 2)) * 8;
        const int own_p = p + (is_a ? i / 2 : i % (FRAGMENT / 2)) * 4;
        const unsigned bytes = (k_major ? own_p : own_e) * SIZE;
        to[i] = *(const fragment_t *)(at + (k_major ? own_e : own_p) * line_bytes +
                                      bytes / 128 * 128 + (bytes % 128 ^ from->mix));
    }
}

#endif
