/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands whose lines do not all begin at multiples of 8 bytes, for gemm/batch_mma.cu. A line is a
 * row of the tile as it is in memory: a row or a column of the operand. cp.async copies 16 bytes at
 * once only between multiples of 16 bytes. Therefore the 16-byte words that contain a line are
 * copied whole, to a "raw" line in shared memory. The line keeps its distance from a multiple of 16
 * bytes, and lanes read their fragments from it element by element. Raw lines take more shared
 * memory, and reads of single elements take longer. If lines begin at multiples of 8 bytes, copies
 * of 8 bytes into the tiles of lib/mma_tiles.h are therefore faster. The kernel defines THREADS.
 */
#ifndef TGL_RAW_COPIES_H
#define TGL_RAW_COPIES_H

#include "lib/mma_tiles.h"

/* Whether an operand has raw lines. vec: VEC_A or VEC_B. */
#define IS_RAW(vec) (SIZE * (vec) < 8)

/* A raw line has a 16-byte word more than a line of the tile. MN-major lines of FP32 are 32 bytes
 * longer: with aligned lines, the lanes of a warp then read from different banks. A thread copies
 * the same word of every RAW_STEP'th line. */
#define RAW_PAD(k_major)         (SIZE == 4 && !(k_major) ? 32 : 16)
#define RAW_PITCH(edge, k_major) (LINE_BYTES(edge, k_major) + RAW_PAD(k_major))
#define RAW_BYTES(edge, k_major) (((k_major) ? (edge) : BK) * RAW_PITCH(edge, k_major))
#define RAW_STEP(edge, k_major)  (THREADS * 16 / LINE_BYTES(edge, k_major))

#if SIZE == 2
typedef unsigned short raw_element;
#else
typedef unsigned raw_element; /* F64 has no raw lines */
#endif

/* ---- Copies ---------------------------------------------------------------------------------- */

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
                                                     int last, const struct raw_source *from,
                                                     const bool is_inside)
{
    if (is_inside || (word >= from->begin && word + 16 <= from->end)) {
#ifdef TGL_SIM
        tgl_sim_wide_load(word, 16);
#else
        async_copy_bytes(to, word, 16, 16);
        return;
#endif
    }
    enum { ELEMENTS = 16 / SIZE };
    raw_element x[ELEMENTS];
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) {
        x[i] = 0;
        if (i * SIZE >= first && i * SIZE < last) x[i] = ((const raw_element *)word)[i];
    }
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++)
        ((raw_element *)to)[i] = x[i];
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
    const char *from = x->from + line * x->line;
    char *to = raw + line * RAW_PITCH(edge, k_major) + at;
#pragma unroll 1
    for (; line < x->lines; line += step) {
        const int skip = (int)((unsigned)(unsigned long long)from % 16), last = skip + x->bytes;
        const char *word = from - skip + at;
        if (at < last)
            copy_raw_word(to, word, at == 0 ? skip : 0, min(last - at, 16), x, is_inside);
        if (at == 0 && last > line_bytes)
            copy_raw_word(to + line_bytes, word + line_bytes, 0, last - line_bytes, x, is_inside);
        from += step * x->line;
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

/* ---- Fragments ------------------------------------------------------------------------------- */

/* Lines that are a multiple of 8 apart begin at the same byte of a word, and so do parts of a line
 * that are 16 bytes apart. The elements of a lane's fragments are therefore constant distances from
 * one of two places. */
struct raw_lane_source {
    unsigned at;   /* offset in the raw lines, in bytes, of the lane's first element */
    unsigned next; /* of the next element in K; only 16-bit types use it */
};

/* skip: distance of the tile's first element from a multiple of 16 bytes in memory. ld: elements
 * from a line to the next in memory. first: the warp's first row or column in the tile. */
static __device__ __forceinline__ struct raw_lane_source
raw_lane_source(unsigned skip, long long ld, int first, const int edge, const bool k_major)
{
    const unsigned lane = threadIdx.x % 32, k = lane % 4 * (SIZE == 2 ? 2 : 1);
    const unsigned line = k_major ? lane / 4 : k, element = k_major ? k : first + lane / 4;
    const unsigned lines = (k_major ? first : 0) + line, step = (unsigned)ld * SIZE;
    struct raw_lane_source source;
    source.at = lines * RAW_PITCH(edge, k_major) + (skip + line * step) % 16 + element * SIZE;
    source.next = k_major ? source.at + SIZE
                          : (lines + 1) * RAW_PITCH(edge, k_major) +
                                (skip + (line + 1) * step) % 16 + element * SIZE;
    return source;
}

/* As mma_load_fragment(), from raw lines. k_left: K of the product from p = 0 on. Elements behind
 * the end of K become zero, because shared memory may contain NaNs there. */
static __device__ __forceinline__ void raw_load_fragment(fragment_t *to, const char *raw,
                                                         const struct raw_lane_source *from,
                                                         const int e, const int p, int k_left,
                                                         const int edge, const int vec,
                                                         const bool k_major, const bool is_a)
{
#pragma unroll
    for (int i = 0; i < FRAGMENT; i++) {
        const int own_e = e + (is_a ? i % 2 : i / 2) * 8;
        const int own_p = p + (is_a ? i / 2 : i % 2) * (MMA_K / 2);
        const char *at = raw + (k_major ? own_e : own_p) * RAW_PITCH(edge, k_major) +
                         (k_major ? own_p : own_e) * SIZE;
#if SIZE == 2
        if (k_major && vec > 1)
            to[i] = *(const unsigned *)(at + from->at);
        else
            to[i] = *(const unsigned short *)(at + from->at) |
                    (unsigned)*(const unsigned short *)(at + from->next) << 16;
#else
        to[i] = *(const fragment_t *)(at + from->at);
#endif
    }
    if (p + MMA_K <= k_left) return;
#pragma unroll
    for (int i = 0; i < FRAGMENT; i++) {
        const int k = p + (is_a ? i / 2 : i % 2) * (MMA_K / 2) +
                      (int)(threadIdx.x % 4u) * (SIZE == 2 ? 2 : 1);
#if SIZE == 2
        to[i] &= k + 1 < k_left ? ~0u : k < k_left ? 0xffffu : 0u;
#else
        if (k >= k_left) to[i] = 0;
#endif
    }
}

#endif
