/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous copies of 16-bit operands that are aligned to 2 bytes only into the tiles of
 * lib/mma_tiles.h. cp.async copies 16-byte words to multiples of 16 bytes, so the lines of a tile
 * are copied in two steps. A line is a row of the tile as it is in memory: a row or a column of the
 * operand. First the 16-byte words that contain a line are copied, unshifted and whole, to a "raw"
 * line in shared memory. Then threads shift the raw line into the tile. The kernel defines THREADS.
 */
#ifndef TGL_RAW_COPIES_H
#define TGL_RAW_COPIES_H

#include "lib/mma_tiles.h"
#include "lib/unaligned.h"

/* A raw line has one 16-byte word more than a line of the tile. A thread copies, and later shifts,
 * the same word of every RAW_STEP'th line. RAW_STEP is a multiple of 8: all lines of a thread then
 * have the same swizzle, and begin at the same byte of a word. */
#define RAW_PITCH(edge, k_major)  (LINE_BYTES(edge, k_major) + 16)
#define RAW_BYTES(edge, k_major)  (((k_major) ? (edge) : BK) * RAW_PITCH(edge, k_major))
#define RAW_STEP(edge, k_major)   (THREADS * 16 / LINE_BYTES(edge, k_major))
#define RAW_IS_LEGAL(edge, k_maj) (RAW_STEP(edge, k_maj) % 8 == 0 && RAW_STEP(edge, k_maj) > 0)

/* A tile of an operand in global memory. */
struct raw_source {
    const char *from;        /* its first element */
    long long line;          /* bytes from a line to the next */
    int lines, bytes;        /* how many lines of the tile exist in the matrix; how many bytes of
                                each of these lines exist */
    const char *begin, *end; /* words in [begin, end) may be loaded whole; others are loaded element
                                by element */
};

#ifdef TGL_SIM
void tgl_sim_wide_load(const void *words, unsigned bytes);
#endif

/* Copies a 16-byte word, of which only bytes [first, last) are elements of the tile. is_inside: the
 * whole word may be loaded. The simulator reports loads that go beyond the end of a row: on the
 * simulator only the elements are copied. */
static __device__ __forceinline__ void copy_raw_word(char *to, const char *word, int first,
                                                     int last, const struct raw_source *x,
                                                     const bool is_inside)
{
    if (is_inside || (word >= x->begin && word + 16 <= x->end)) {
#ifdef TGL_SIM
        tgl_sim_wide_load(word, 16);
#else
        async_copy_bytes(to, word, 16, 16);
        return;
#endif
    }
    unsigned elements[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        elements[i] = 0;
        if (2 * i >= first && 2 * i < last) elements[i] = ((const unsigned short *)word)[i];
    }
    *(uint4 *)to = make_uint4(elements[0] | elements[1] << 16, elements[2] | elements[3] << 16,
                              elements[4] | elements[5] << 16, elements[6] | elements[7] << 16);
}

/* Issues the copies of a tile. is_inside: all 16-byte words that contain a part of the tile may be
 * loaded whole. */
static __device__ __forceinline__ void copy_raw_lines(char *raw, const struct raw_source *x,
                                                      const int edge, const bool k_major,
                                                      const bool is_inside)
{
    const int line_bytes = LINE_BYTES(edge, k_major), step = RAW_STEP(edge, k_major);
    const int at = (int)threadIdx.x % (line_bytes / 16) * 16;
    int line = (int)threadIdx.x / (line_bytes / 16);
    const char *word = x->from + line * x->line;
    const int skip = (int)((unsigned long long)word % 16), last = skip + x->bytes;
    const bool has_more = at == 0 && last > line_bytes;
    word += at - skip;
    char *to = raw + line * RAW_PITCH(edge, k_major) + at;
    if (at >= last) return;
#pragma unroll 1
    for (; line < x->lines; line += step) {
        copy_raw_word(to, word, at == 0 ? skip : 0, min(last - at, 16), x, is_inside);
        if (has_more)
            copy_raw_word(to + line_bytes, word + line_bytes, 0, last - line_bytes, x, is_inside);
        word += step * x->line;
        to += step * RAW_PITCH(edge, k_major);
    }
}

/* Issues the copies of a tile. raw: where its first raw line begins. */
static __device__ __forceinline__ void copy_raw(char *raw, const struct raw_source *x,
                                                const int edge, const bool k_major)
{
    const char *end = x->from + (x->lines - 1) * x->line + x->bytes;
    if (x->from - 15 >= x->begin && end + 15 <= x->end)
        copy_raw_lines(raw, x, edge, k_major, true);
    else
        copy_raw_lines(raw, x, edge, k_major, false);
}

/* The part of a raw_source that shift_raw() needs once the copies have been issued. */
struct raw_lines {
    int lines, bytes; /* as in struct raw_source */
    int skip;         /* bytes of the first line's first word that are before its elements */
};

static __device__ __forceinline__ struct raw_lines raw_lines_of(const struct raw_source *x)
{
    const struct raw_lines lines = {x->lines, x->bytes,
                                    (int)((unsigned)(unsigned long long)x->from % 16)};
    return lines;
}

/* Moves a tile from its raw lines to its place, with zeros from the end of K to the end of the last
 * step of mma.sync. Rows and columns that do not exist are not stored. k_left: K of the matrix from
 * the beginning of the tile on. ld: elements from a line to the next in memory. */
static __device__ __forceinline__ void shift_raw(char *tile, const char *raw,
                                                 const struct raw_lines *x, long long ld,
                                                 int k_left, const int edge, const bool k_major)
{
    const int line_bytes = LINE_BYTES(edge, k_major), step = RAW_STEP(edge, k_major);
    const int depth = min((k_left + MMA_K - 1) / MMA_K * MMA_K, BK);
    const int at = (int)threadIdx.x % (line_bytes / 16) * 16;
    const int lines = at >= (k_major ? depth * SIZE : x->bytes) ? 0 : k_major ? x->lines : depth;
    int line = (int)threadIdx.x / (line_bytes / 16);
    const int skip = (int)((unsigned)(x->skip + line * ((int)(ld % 8) * SIZE)) % 16);
    const char *from = raw + line * RAW_PITCH(edge, k_major) + at;
    char *to = tile + line * line_bytes + (at ^ (int)swizzle_of((unsigned)line, edge, k_major));
    unsigned keep[4]; /* masks of the elements that exist */
#pragma unroll
    for (int w = 0; w < 4; w++) {
        const int bytes = k_major ? x->bytes - at - 4 * w : 4;
        keep[w] = bytes >= 4 ? ~0u : bytes > 0 ? 0xffffu : 0;
    }
#pragma unroll 2
    for (; line < lines; line += step) {
        uint4 v = join_words(*(const uint4 *)from, *(const uint4 *)(from + 16), skip);
        if (k_major)
            v = make_uint4(v.x & keep[0], v.y & keep[1], v.z & keep[2], v.w & keep[3]);
        else if (line >= x->lines)
            v = make_uint4(0, 0, 0, 0);
        *(uint4 *)to = v;
        from += step * RAW_PITCH(edge, k_major);
        to += step * line_bytes;
    }
}

#endif
