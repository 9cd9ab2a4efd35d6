/* SPDX-License-Identifier: Apache-2.0
 *
 * How gemm/mma.cu holds tiles of its operands in shared memory, and copies them there. The kernel
 * defines the macros that these functions use.
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
 * least: a 16-bit operand at odd addresses goes through registers. A thread reads the two aligned
 * 16-byte words that hold 8 of its elements, and shifts them when they are stored. Where such a
 * word lies in part outside of the matrix, it reads single elements.
 */
#ifndef TGL_MMA_COPIES_H
#define TGL_MMA_COPIES_H

#include "lib/async_copy.h"
#include "lib/unaligned.h"

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

/* ---- Copies through registers ---------------------------------------------------------------- */

/* The elements between load_places() and store_places(). */
struct loaded {
    uint4 words[PLACES_MAX][2]; /* that contain a place's elements; zeros outside the matrix */
    unsigned is_stored;         /* bit i: place number i is in shared memory already */
};

/* A thread's places lie in one column of a tile, and their lines are a multiple of 8 lines apart:
 * they have the same swizzle, and begin at the same byte of a 16-byte word. */
#define LINES_APART(edge, k_major) (THREADS / PLACES_OF_LINE(edge, k_major, 1))
#define IS_IN_COLUMNS(edge, k_major)                                                               \
    (THREADS % PLACES_OF_LINE(edge, k_major, 1) == 0 && LINES_APART(edge, k_major) % 8 == 0)

/* The thread's column. */
struct column {
    char *to;         /* its first place, */
    const char *from; /* and where the elements are; */
    long long apart;  /* bytes from there to the next place's */
    int skip;         /* bytes of the first word before the elements */
    int valid_bytes;  /* of a place, if its line exists; at most 16 */
    int line, lines;  /* number of its first line; lines that exist; */
    int last;         /* from this line on, words may lie in part outside of the matrix */
};

static __device__ __forceinline__ struct column
column_of(char *tile, const struct origin *from, int k_left, const int edge, const bool k_major)
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
    c.apart = LINES_APART(edge, k_major) * from->line;
    c.skip = (int)((unsigned long long)from->from % 16);
    c.valid_bytes = 2 * max(min(elements, 8), 0);
    return c;
}

/* A word of a place, which has valid_bytes. The simulator reports reads beside a matrix's lines.
 * There the elements are read one by one, and the others are NaN; that the whole word lies in the
 * matrix is checked first. */
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

/* Copies the places of in->is_stored by single elements. */
static __device__ __forceinline__ void copy_elements(const struct loaded *in, struct column c,
                                                     const int edge, const bool k_major)
{
#pragma unroll 1
    for (unsigned left = in->is_stored; left != 0; left /= 2) {
        if (left % 2) {
            unsigned w[4] = {0, 0, 0, 0};
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (2 * i < c.valid_bytes)
                    w[i / 2] |= (unsigned)__ldca((const unsigned short *)c.from + i) << i % 2 * 16;
            *(uint4 *)c.to = make_uint4(w[0], w[1], w[2], w[3]);
        }
        c.from += c.apart;
        c.to += LINES_APART(edge, k_major) * LINE_BYTES(edge, k_major);
    }
}

/* Loads all places of a tile that is k_left deep. */
static __device__ __forceinline__ void load_places(struct loaded *in, char *tile,
                                                   const struct origin *from, int k_left,
                                                   const int edge, const bool k_major)
{
    const struct column c = column_of(tile, from, k_left, edge, k_major);
    const bool is_first = c.from - c.skip < from->matrix;
    in->is_stored = 0;
#pragma unroll
    for (int i = 0; i < PLACES_OF_THREAD(edge, 1); i++) {
        const int line = c.line + i * LINES_APART(edge, k_major);
        const char *place = c.from + i * c.apart;
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

static __device__ __forceinline__ void store_places(char *tile, const struct loaded *in,
                                                    const struct origin *from, int k_left,
                                                    const int edge, const bool k_major)
{
    const struct column c = column_of(tile, from, k_left, edge, k_major);
    unsigned keep[4]; /* the elements of the line, of which the last place may have too few */
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
