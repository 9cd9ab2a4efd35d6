/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies 16-bit operands, if they are aligned to no more than 2 bytes, to the tiles of
 * lib/mma_tiles.h through registers. A thread reads the two aligned 16-byte words that contain 8 of
 * its elements, and shifts them when it stores them. If such a word lies partly outside of the
 * matrix, the thread reads single elements. A place is the destination of 8 elements (16 bytes) in
 * a line of a tile (lib/mma_tiles.h). The kernel defines PLACES_MAX, the maximum number of places
 * of a thread.
 */
#ifndef TGL_MMA_REGISTER_COPIES_H
#define TGL_MMA_REGISTER_COPIES_H

#include "lib/mma_tiles.h"
#include "lib/unaligned.h"

/* What a thread holds in registers between load_places() and store_places(). */
struct loaded {
    uint4 words[PLACES_MAX][2]; /* the words with the elements of a place; 0 outside the matrix */
    unsigned is_stored;         /* bit i: place number i is in shared memory already */
};

/* All places of a thread have the same position in their lines, which are LINES_APART apart: they
 * are one column of the tile. LINES_APART is a multiple of 8: all these places then have the same
 * swizzle. Their elements begin at the same byte of a 16-byte word of memory, because 8 lines of
 * 2-byte elements are a multiple of 16 bytes long. */
#define LINES_APART(edge, k_major) (THREADS / PLACES_OF_LINE(edge, k_major, 1))
#define IS_IN_COLUMNS(edge, k_major)                                                               \
    (THREADS % PLACES_OF_LINE(edge, k_major, 1) == 0 && LINES_APART(edge, k_major) % 8 == 0)

/* The column of a tile in which the thread has its places. */
struct column {
    char *to;         /* its first place in the tile */
    const char *from; /* the elements of that place in the matrix */
    long long stride; /* bytes in memory from the elements of one place to those of the next */
    int skip;         /* bytes of each first word that lie before the elements of its place */
    int valid_bytes;  /* bytes of a place inside the matrix if its line exists; at most 16 */
    int line, lines;  /* line of the first place; number of lines that exist */
    int last;         /* from this line on, words may lie partly outside of the matrix */
};

static __device__ __forceinline__ struct column
column_of(char *tile, const struct mma_origin *from, int k_left, const int edge, const bool k_major)
{
    const unsigned per_line = PLACES_OF_LINE(edge, k_major, 1);
    const int p = (int)(threadIdx.x % per_line);
    const int elements = (k_major ? k_left : from->edge_left) - p * 8;
    struct column c;
    c.line = (int)(threadIdx.x / per_line);
    c.lines = elements <= 0 ? 0 : k_major ? from->edge_left : k_left;
    c.last = from->line < 16 ? 0 : elements < 16 ? c.lines - 1 : c.lines;
    c.to = tile + c.line * LINE_BYTES(edge, k_major) +
           (p * 16 ^ (int)swizzle_of((unsigned)c.line, edge, k_major));
    c.from = from->from;
    c.stride = LINES_APART(edge, k_major) * from->line;
    c.skip = (int)((unsigned long long)from->from % 16);
    c.valid_bytes = 2 * max(min(elements, 8), 0);
    return c;
}

/* Loads a word that contains elements of a place, of which valid_bytes exist. The simulator reports
 * loads that are partly outside of a line. On the simulator this function therefore checks that the
 * word is inside of the matrix, reads the place's elements one by one, and returns NaN for the
 * other elements of the word. */
#ifdef TGL_SIM
void tgl_sim_wide_load(const void *words, unsigned bytes);
#endif
static __device__ __forceinline__ uint4 load_word(const uint4 *word, const char *place,
                                                  int valid_bytes)
{
#ifdef TGL_SIM
    unsigned short e[8];
    tgl_sim_wide_load(word, sizeof *word);
    for (int i = 0; i < 8; i++) {
        const char *at = (const char *)word + 2 * i;
        e[i] = at >= place && at < place + valid_bytes ? *(const unsigned short *)at : 0xffff;
    }
    return make_uint4(e[0] | (unsigned)e[1] << 16, e[2] | (unsigned)e[3] << 16,
                      e[4] | (unsigned)e[5] << 16, e[6] | (unsigned)e[7] << 16);
#else
    (void)place, (void)valid_bytes;
    return __ldca(word);
#endif
}

/* Copies the places whose bits are set in in->is_stored, element by element. */
static __device__ __forceinline__ void copy_elements(const struct loaded *in, struct column c,
                                                     const int edge, const bool k_major)
{
#pragma unroll 1
    for (unsigned left = in->is_stored; left != 0; left /= 2) {
        if (left % 2) *(uint4 *)c.to = load_elements(c.from, c.valid_bytes);
        c.from += c.stride;
        c.to += LINES_APART(edge, k_major) * LINE_BYTES(edge, k_major);
    }
}

/* Loads all places of a tile. k_left: K of the matrix from the beginning of the tile on. */
static __device__ __forceinline__ void load_places(struct loaded *in, char *tile,
                                                   const struct mma_origin *from, int k_left,
                                                   const int edge, const bool k_major)
{
    const struct column c = column_of(tile, from, k_left, edge, k_major);
    const bool is_first = c.from - c.skip < from->matrix;
    in->is_stored = 0;
#pragma unroll
    for (int i = 0; i < PLACES_OF_THREAD(edge, 1); i++) {
        const int line = c.line + i * LINES_APART(edge, k_major);
        const char *place = c.from + i * c.stride;
        const uint4 *words = (const uint4 *)(place - c.skip);
        const bool exists = line < c.lines && has_place(i, edge, 1);
        const bool is_single = exists && (line >= c.last || (i == 0 && is_first));
        in->words[i][0] = in->words[i][1] = make_uint4(0, 0, 0, 0);
        if (exists && !is_single) {
            in->words[i][0] = load_word(words, place, c.valid_bytes);
            if (c.skip + c.valid_bytes > 16)
                in->words[i][1] = load_word(words + 1, place, c.valid_bytes);
        }
        if (is_single) in->is_stored |= 1u << i;
    }
    if (in->is_stored != 0) copy_elements(in, c, edge, k_major);
}

/* Stores the loaded places in the tile. */
static __device__ __forceinline__ void store_places(char *tile, const struct loaded *in,
                                                    const struct mma_origin *from, int k_left,
                                                    const int edge, const bool k_major)
{
    const struct column c = column_of(tile, from, k_left, edge, k_major);
    unsigned keep[4]; /* masks of the elements that exist, in a line's last place */
#pragma unroll
    for (int w = 0; w < 4; w++)
        keep[w] = c.valid_bytes >= 4 * w + 4 ? ~0u : c.valid_bytes > 4 * w ? 0xffffu : 0;
#pragma unroll
    for (int i = 0; i < PLACES_OF_THREAD(edge, 1); i++) {
        const uint4 v = join_words(in->words[i][0], in->words[i][1], c.skip);
        if (has_place(i, edge, 1) && !(in->is_stored >> i & 1))
            *(uint4 *)(c.to + i * (LINES_APART(edge, k_major) * LINE_BYTES(edge, k_major))) =
                make_uint4(v.x & keep[0], v.y & keep[1], v.z & keep[2], v.w & keep[3]);
    }
}

#endif
