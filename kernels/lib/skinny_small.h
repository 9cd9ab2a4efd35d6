/* SPDX-License-Identifier: Apache-2.0
 *
 * The small operand of gemm/skinny.cu in shared memory: all of its K if K is at most DEPTH. If K is
 * larger, DEPTH of K at a time are multiplied while the next DEPTH are copied. Elements of 16
 * bits are copied unconverted to a second buffer. When all threads have multiplied the previous
 * elements, the copied ones are converted to F32 in the first buffer.
 */
#ifndef TGL_SKINNY_SMALL_H
#define TGL_SKINNY_SMALL_H

#include "lib/async_copy.h"
#include "lib/skinny_work.h"

/* A line of shared memory holds GROUP_K of K of all rows, in units of 16 bytes: UNIT of K of each
 * row, then the next UNIT of each row. A line is an odd number of units, so that lanes that
 * multiply different k at the same time read from different banks. With PAIRS, rows are those of
 * the complex operand. */
#define ROWS       (COUNT / SMALL_PARTS) /* in memory */
#define UNITS      (ROWS * GROUP_K / UNIT)
#define SMALL_LINE ((UNITS + 1 - UNITS % 2) * UNIT)
#define SMALL      (DEPTH / GROUP_K * SMALL_LINE)

/* PLACES: buffers for F32 or F64. One is multiplied while the other is filled. With 16-bit elements
 * there is one buffer for F32, and another one (RAW_FLOATS) for unconverted elements, in rows of
 * STORED elements. */
#define PLACES     (IS_16_BITS ? 1 : 2)
#define STORED     (DEPTH + 8)
#define RAW_FLOATS (IS_16_BITS ? COUNT * STORED / 2 : 0)

/* SMALL_AT(s, p): the position of element p of row s. It is in the line of the thread that
 * multiplies element p of the big operand. ADJACENT elements of a pack of that operand are
 * contiguous in memory. If a pack has more, its groups of ADJACENT elements are
 * LANES_K * ADJACENT apart in each LANES_K * PACK of K. */
#define IS_IN_ORDER (!ALONG_K || !STRAIGHT || ADJACENT == PACK)
#define SMALL_LINE_OF(p)                                                                           \
    (IS_IN_ORDER ? (p) / GROUP_K                                                                   \
                 : (p) / (LANES_K * PACK) * LANES_K + (p) % (LANES_K * ADJACENT) / ADJACENT)
#define SMALL_IN_LINE(p)                                                                           \
    (IS_IN_ORDER ? (p) % GROUP_K                                                                   \
                 : (p) % (LANES_K * PACK) / (LANES_K * ADJACENT) * ADJACENT + (p) % ADJACENT)
#define SMALL_AT(s, p)                                                                             \
    (SMALL_LINE_OF(p) * SMALL_LINE + (SMALL_IN_LINE(p) / UNIT * ROWS + (s)) * UNIT +               \
     SMALL_IN_LINE(p) % UNIT)

/* The K that is copied if `depth` of K exist: depth rounded up to whole steps, and then to a
 * multiple of 32. The additional elements are zeros. */
#define PADDED(depth) ((((depth) + STEP - 1) / STEP * STEP + 31) / 32 * 32)

/* A pack is 16 bytes of elements. Packs are numbered so that the lanes of a warp copy neighbouring
 * packs of a row. PACKS_OF_SMALL: how many packs there are; some are past the end of a row. Pack i
 * is in row i / 32 % ROWS and begins at element PACK_OF_SMALL(i). */
#define PACKS_OF_SMALL(padded) (ROWS * (((padded) + 32 * PACK - 1) / (32 * PACK)) * 32)
#define PACK_OF_SMALL(i)       (((i) / 32 / ROWS * 32 + (i) % 32) * PACK)

#if IS_16_BITS

/* Copies `depth` of K from `first` on, of all rows, unconverted, and zeros up to PADDED(depth). The
 * copies are asynchronous if the operand is K-major and aligned. */
static __device__ __forceinline__ void copy_small(accumulate_t *small, const struct operands *o,
                                                  int first, int depth)
{
    enum { AT_ONCE = 8 }; /* loads that a thread has in flight */
    element_t *stored = (element_t *)(small + PLACES * SMALL);
    const int padded = PADDED(depth);
    const bool k_major = o->small_k == 1;
    const element_t *x = o->small + first * o->small_k;
    if (k_major && rows_are_packed(x, o->small_row)) {
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < PACKS_OF_SMALL(padded); i += THREADS) {
            const int s = i / 32 % COUNT, p = PACK_OF_SMALL(i);
            const int valid = s < o->count ? max(0, min(PACK, depth - p)) : 0;
            if (p < padded)
                async_copy_bytes(&stored[s * STORED + p], valid ? x + s * o->small_row + p : x, 16,
                                 valid * (int)sizeof(element_t));
        }
        return;
    }
#pragma unroll 1
    for (int from = (int)threadIdx.x; from < COUNT * padded; from += THREADS * AT_ONCE) {
        element_t some[AT_ONCE];
#pragma unroll
        for (int j = 0; j < 2 * AT_ONCE; j++) { /* all loads, then all stores */
            const int i = from + j % AT_ONCE * THREADS;
            const int s = k_major ? i / 32 % COUNT : i % COUNT;
            const int p = k_major ? i / 32 / COUNT * 32 + i % 32 : i / COUNT;
            const element_t zero = {0};
            if (j < AT_ONCE)
                some[j] = s < o->count && p < depth ? x[s * o->small_row + p * o->small_k] : zero;
            else if (p < padded)
                stored[s * STORED + p] = some[j % AT_ONCE];
        }
    }
}

/* Converts the elements that copy_small() has copied to F32, in the first buffer. Called by all
 * threads when the copies have arrived. */
static __device__ __forceinline__ void convert_small(accumulate_t *small, int depth)
{
    const element_t *stored = (const element_t *)(small + PLACES * SMALL);
    const int padded = PADDED(depth);
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < PACKS_OF_SMALL(padded); i += THREADS) {
        const int s = i / 32 % COUNT, p = PACK_OF_SMALL(i);
        if (p >= padded) continue;
        const uint4 words = *(const uint4 *)&stored[s * STORED + p];
        accumulate_t x[PACK];
        convert_words(x, words);
#pragma unroll
        for (int e = 0; e < PACK; e++)
            small[SMALL_AT(s, p + e)] = x[e];
    }
    __syncthreads();
}

#else

/* Copies k = first to first + depth - 1 of all rows of the small operand, and fills with zeros up
 * to PADDED(depth). Neighbouring lanes copy neighbouring elements. A copy has 16 bytes if
 * IS_IN_ORDER, the operand is K-major and aligned, and depth is a multiple of PACK; else one
 * element. */
static __device__ __forceinline__ void copy_small(accumulate_t *small, const struct operands *o,
                                                  int first, int depth)
{
    const int padded = PADDED(depth);
    const bool k_major = o->small_k == NUMBERS;
    const element_t *x = o->small + small_offset(o, 0, first);
    if (IS_IN_ORDER && k_major && rows_are_packed(x, o->small_row) && depth % PACK == 0) {
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < PACKS_OF_SMALL(padded); i += THREADS) {
            const int s = i / 32 % ROWS, p = PACK_OF_SMALL(i);
            const bool valid = s < o->count && p < depth;
            if (p < padded)
                async_copy_or_zero((float *)&small[SMALL_AT(s, p)],
                                   (const float *)(valid ? x + s * o->small_row + p : x), 4, valid);
        }
        return;
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < ROWS * padded; i += THREADS) {
        const int s = k_major ? i / 32 % ROWS : i / NUMBERS % ROWS;
        const int p =
            k_major ? i / 32 / ROWS * 32 + i % 32 : i / NUMBERS / ROWS * NUMBERS + i % NUMBERS;
        const bool valid = s < o->count && p < depth;
        async_copy_or_zero((float *)&small[SMALL_AT(s, p)],
                           (const float *)(valid ? x + small_offset(o, s, p) : x),
                           sizeof(element_t) / 4, valid);
    }
}

#endif

/* The state of the copies of the small operand, if K is larger than DEPTH. */
struct feeder {
    int k, to;     /* first k of the next copy; end of the segment's K */
    int unit, end; /* first unit of the next segment; end of the block's units (skinny_work.h) */
    int place;     /* the buffer to fill next */
#if IS_16_BITS
    int copied; /* how many k the last copy has; its elements are not yet converted */
#endif
};

/* Copies the next DEPTH of K, or the rest of the segment. */
static __device__ __forceinline__ void feed(struct feeder *f, accumulate_t *small,
                                            const struct tgl_gemm_args *args,
                                            const struct operands *o, const struct skinny_work *w)
{
    if (f->k >= f->to && f->unit < f->end) {
        const struct segment s = segment_at(args, w, f->unit, f->end);
        f->unit = s.next;
        f->k = s.from;
        f->to = s.to;
    }
    if (f->k >= f->to) return;
#if IS_16_BITS
    f->copied = min(DEPTH, f->to - f->k);
#endif
    copy_small(small + f->place * SMALL, o, f->k, min(DEPTH, f->to - f->k));
    f->k += min(DEPTH, f->to - f->k); /* not beyond `to`: k may be as large as an int allows */
    f->place ^= PLACES - 1;
}

#endif
