/* SPDX-License-Identifier: Apache-2.0
 *
 * How gemm/mma.cu and gemm/batch_mma.cu hold tiles of their operands in shared memory, and copy
 * them there. The kernel defines the macros that these functions use.
 *
 * A tile is BK deep and `edge` wide, which is BM for A and BN for B. It lies as the operand does:
 *
 *     K-major:    `edge` lines of BK elements      MN-major:   BK lines of `edge` elements
 *
 * One after the other, without padding. Fragments read 8 lines of 16 bytes at once (ldmatrix), or 4
 * lines of 32 bytes (scalar loads): UNIT bytes. So that these lie in different banks, units are
 * swizzled among the 128 bytes, or the line if that is shorter, in which they lie: their number is
 * XORed with the number of the line, or of the 128 bytes if these hold several lines.
 *
 * Copies of VEC elements by cp.async keep their order within a line. cp.async copies 4 bytes at
 * least: a 16-bit operand at odd addresses goes through registers, 8 elements at a time
 * (lib/mma_register_copies.h).
 */
#ifndef TGL_MMA_COPIES_H
#define TGL_MMA_COPIES_H

#include "lib/async_copy.h"

#define LINE_BYTES(edge, k_major) (((k_major) ? BK : (edge)) * SIZE)
#define USES_LDMATRIX(k_major)    (SIZE == 2 || (SIZE == 4 && (k_major)))
#define UNIT(k_major)             (USES_LDMATRIX(k_major) ? 16 : 32)

/* A place: the destination of one copy, by cp.async or through registers. */
#define IS_PLAIN(vec)               (SIZE * (vec) < 4)
#define PLACE_BYTES(vec)            (IS_PLAIN(vec) ? 16 : SIZE * (vec))
#define PLACES_OF_LINE(e, k_maj, v) (LINE_BYTES(e, k_maj) / PLACE_BYTES(v))
#define PLACES(edge, vec)           ((edge)*BK * SIZE / PLACE_BYTES(vec))
#define PLACES_OF_THREAD(edge, vec) ((PLACES(edge, vec) + THREADS - 1) / THREADS)

/* What to XOR to an offset within a line. */
static __device__ __forceinline__ unsigned swizzle_of(unsigned line, const int edge,
                                                      const bool k_major)
{
    const unsigned bytes = LINE_BYTES(edge, k_major), unit = UNIT(k_major);
    const unsigned lines = bytes < 128 ? 128 / bytes : 1;
    return line / lines % ((bytes < 128 ? bytes : 128) / unit) * unit;
}

/* The line of this thread's place number i, and the place's first byte in it. All are constant
 * distances from the thread's first one. */
static __device__ __forceinline__ unsigned place_line(int i, const unsigned per_line)
{
    if (THREADS % per_line == 0) return threadIdx.x / per_line + i * (THREADS / per_line);
    return i / (per_line / THREADS);
}

static __device__ __forceinline__ unsigned place_in_line(int i, const unsigned per_line)
{
    if (THREADS % per_line == 0) return threadIdx.x % per_line;
    return threadIdx.x + i % (per_line / THREADS) * THREADS;
}

/* Where a thread's places are in global memory. */
struct origin {
    const char *from;   /* its first place in the next tile */
    long long line;     /* bytes from a line to the next */
    long long tile;     /* bytes from a tile to the next */
    int edge_left;      /* rows or columns of the matrix from the tile on */
    const char *matrix; /* its first element */
};

/* X: the matrix, lines ld from each other; the tile begins at element `begin` of it. */
static __device__ __forceinline__ struct origin origin_of(const void *X, long long ld,
                                                          long long begin, int edge_left,
                                                          const int edge, const int vec,
                                                          const bool k_major)
{
    const unsigned per_line = PLACES_OF_LINE(edge, k_major, vec);
    struct origin from;
    from.line = ld * SIZE;
    from.tile = k_major ? BK * SIZE : BK * from.line;
    from.from = (const char *)X + begin * SIZE + place_line(0, per_line) * from.line +
                place_in_line(0, per_line) * PLACE_BYTES(vec);
    from.edge_left = edge_left;
    from.matrix = (const char *)X;
    return from;
}

/* A place: addresses, and how many of its bytes exist in the matrix (none, if it is negative). */
struct place_of_tile {
    char *to;
    const char *from;
    int valid_bytes;
};

static __device__ __forceinline__ struct place_of_tile
place_of(char *tile, const struct origin *from, int k_left, int i, const int edge, const int vec,
         const bool k_major, const bool has_tail)
{
    const unsigned per_line = PLACES_OF_LINE(edge, k_major, vec);
    const unsigned line = place_line(i, per_line), p = place_in_line(i, per_line);
    const int bytes = PLACE_BYTES(vec), lines_left = k_major ? from->edge_left : k_left;
    const int elements_left = (k_major ? k_left : from->edge_left) - (int)p * (bytes / SIZE);
    struct place_of_tile place;
    place.to =
        tile + line * LINE_BYTES(edge, k_major) + (p * bytes ^ swizzle_of(line, edge, k_major));
    place.from = from->from + (line - place_line(0, per_line)) * from->line +
                 (p - place_in_line(0, per_line)) * bytes;
    place.valid_bytes = (int)line >= lines_left || elements_left <= 0 ? 0
                        : has_tail ? min(elements_left, bytes / SIZE) * SIZE
                                   : bytes;
    return place;
}

/* Not all threads have the last place. */
static __device__ __forceinline__ bool has_place(int i, const int edge, const int vec)
{
    return (i + 1) * THREADS <= PLACES(edge, vec) ||
           (int)threadIdx.x + i * THREADS < PLACES(edge, vec);
}

/* Copies a tile that is k_left deep, with zeros for elements outside of the matrix. has_tail:
 * a place may be partly outside. */
static __device__ __forceinline__ void copy_places(char *tile, const struct origin *from,
                                                   int k_left, const int edge, const int vec,
                                                   const bool k_major, const bool has_tail)
{
#pragma unroll
    for (int i = 0; i < PLACES_OF_THREAD(edge, vec); i++) {
        const struct place_of_tile place =
            place_of(tile, from, k_left, i, edge, vec, k_major, has_tail);
        if (has_place(i, edge, vec))
            async_copy_bytes(place.to, place.from, PLACE_BYTES(vec), place.valid_bytes);
    }
}

#endif
