/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiles of gemm/mma.cu and gemm/batch_mma.cu: their layout in shared memory, the copies, and
 * the loads of a warp's fragments. The kernel defines BM, BN, BK, WM, WN and THREADS first.
 *
 * A tile is BK deep and `edge` wide: BM for A, BN for B. It has the layout of the operand (tiles of
 * 8-bit types are always K-major):
 *
 *     K-major:    `edge` lines of BK elements      MN-major:   BK lines of `edge` elements
 *
 * Lines follow each other without padding. To load a fragment, a warp reads 16 bytes of 8 lines at
 * once (ldmatrix), or 32 bytes of 4 lines (scalar loads). These 16 or 32 bytes are a unit (UNIT).
 * Units are swizzled, so that the units that a warp reads at once are in different banks:
 *
 *     position of a unit = unit ^ (line / lines % units)
 *
 * units: the units in 128 bytes of a line, or in a shorter line. lines: the lines in 128 bytes, at
 * least 1.
 *
 * cp.async copies VEC elements at a time, which keep their order within a unit. It copies at least
 * 4 bytes: a 16-bit operand with VEC 1 is copied through registers, 8 elements at a time
 * (lib/mma_register_copies.h), an 8-bit operand with VEC 1 or 2 by lib/mma_gathered_copies.h.
 *
 * ldmatrix loads the fragments of 16-bit elements, transposed if the tile is MN-major. It also
 * loads the fragments of 8-bit elements, as words of 16 bits, and of a K-major tf32 operand, as
 * pairs of such words. Other fragments are loaded by scalar loads.
 */
#ifndef TGL_MMA_TILES_H
#define TGL_MMA_TILES_H

#include "lib/async_copy.h"
#include "lib/element.h"
#include "lib/ldmatrix.h"
#include "lib/mma.h"

/* ---- Parameters ------------------------------------------------------------------------------ */

#ifndef TRANS_A
#define TRANS_A 0 /* 0: A is m x k; 1: k x m */
#endif
#ifndef TRANS_B
#define TRANS_B 0 /* 0: B is k x n; 1: n x k */
#endif
#ifndef VEC_A
#define VEC_A 1 /* elements per copy, at most 16 bytes; divides A's alignment, lda and stride */
#endif
#ifndef VEC_B
#define VEC_B 1 /* elements per copy: divides B's alignment, ldb and stride */
#endif
#ifndef TAIL_A
#define TAIL_A 1 /* 0: VEC_A also divides the length of A's lines: m or k */
#endif
#ifndef TAIL_B
#define TAIL_B 1 /* 0: VEC_B also divides the length of B's lines: n or k */
#endif

#define IS_F8(type) ((type) == TYPE_E4M3 || (type) == TYPE_E5M2)
#if (TYPE_A != TYPE_B && !(IS_F8(TYPE_A) && IS_F8(TYPE_B))) ||                                     \
    (ACCUMULATE == TYPE_F64) != (TYPE_A == TYPE_F64) ||                                            \
    (ACCUMULATE == TYPE_I32) != (TYPE_A == TYPE_I8)
#error "TYPE_A and TYPE_B are the same; ACCUMULATE: FP64 for FP64, int32 for int8, else FP32"
#endif

#define FRAGMENT 4 /* registers (f64: elements) of a lane for one fragment of A, or two of B */
#if TYPE_A == TYPE_F64
#define SIZE  8 /* bytes of an element */
#define MMA_K 8 /* K of one mma.sync, in elements; a step along K is this deep */
#define MMA   mma_f64
typedef double fragment_t;
#else
typedef unsigned fragment_t;
#if TYPE_A == TYPE_F32
#define SIZE  4
#define MMA_K 8
#define MMA   mma_tf32
#elif TYPE_A == TYPE_I8
#define SIZE  1
#define MMA_K 32
#define MMA   mma_s8
#elif IS_F8(TYPE_A)
#define SIZE  1
#define MMA_K 32
#define MMA   mma_f8
#else
#define SIZE  2
#define MMA_K 16
#if TYPE_A == TYPE_BF16
#define MMA mma_bf16
#else
#define MMA mma_f16
#endif
#endif
#endif

#if IS_F8(TYPE_A)
/* A_PAIR, B_PAIR: two f16, converted from the two 8-bit elements in the low half of a register. */
#define A_PAIR(pair) (TYPE_A == TYPE_E4M3 ? e4m3_pair_to_f16(pair) : e5m2_pair_to_f16(pair))
#define B_PAIR(pair) (TYPE_B == TYPE_E4M3 ? e4m3_pair_to_f16(pair) : e5m2_pair_to_f16(pair))

/* acc += a * b for e4m3 and e5m2, 32 of K, by two mma.sync of f16. The conversion to f16 is exact.
 * mma.sync of 8-bit floats does not exist on sm_80, converts to f16 itself on sm_90, and
 * accumulates with fewer bits on other chips. A register holds four neighbours in K, two for each
 * mma.sync. This permutes K, in the same way for a and b. */
static __device__ __forceinline__ void mma_f8(float *acc, const unsigned *a, const unsigned *b)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const unsigned of_a[4] = {A_PAIR(a[2 * i]), A_PAIR(a[2 * i + 1]), A_PAIR(a[2 * i] >> 16),
                                  A_PAIR(a[2 * i + 1] >> 16)};
        const unsigned of_b[2] = {B_PAIR(b[i]), B_PAIR(b[i] >> 16)};
        mma_f16(acc, of_a, of_b);
    }
}
#endif

#if BM % WM || BN % WN || WM % 16 || WN % 16
#error "BM x BN: a grid of warps; WM, WN: multiples of 16"
#endif

#define MT (WM / 16) /* a warp's part of D: MT x NT results of mma.sync */
#define NT (WN / 8)
/* The layout in shared memory. ldmatrix cannot transpose elements of 8 bits: their tiles are
 * K-major, and an MN-major operand is transposed on its way there. */
#define A_K_MAJOR   (SIZE == 1 || !TRANS_A)
#define B_K_MAJOR   (SIZE == 1 || TRANS_B)
#define A_BYTES     (BM * BK * SIZE)
#define STAGE_BYTES ((BM + BN) * BK * SIZE)

/* ---- Copies ---------------------------------------------------------------------------------- */

#define LINE_BYTES(edge, k_major) (((k_major) ? BK : (edge)) * SIZE)
#define USES_LDMATRIX(k_major)    (SIZE <= 2 || (SIZE == 4 && (k_major)))
#define UNIT(k_major)             (USES_LDMATRIX(k_major) ? 16 : 32)

/* A place is the destination of one copy in a tile, by cp.async or through registers. IS_PLAIN:
 * copies go through registers, because VEC elements are less than the 4 bytes that cp.async copies
 * at least. */
#define IS_PLAIN(vec)               (SIZE * (vec) < 4)
#define PLACE_BYTES(vec)            (IS_PLAIN(vec) ? 16 : SIZE * (vec))
#define PLACES_OF_LINE(e, k_maj, v) (LINE_BYTES(e, k_maj) / PLACE_BYTES(v))
#define PLACES(edge, vec)           ((edge)*BK * SIZE / PLACE_BYTES(vec))
#define PLACES_OF_THREAD(edge, vec) ((PLACES(edge, vec) + THREADS - 1) / THREADS)

/* Offsets within a line of a tile are XORed with this value, the swizzle of the line. */
static __device__ __forceinline__ unsigned swizzle_of(unsigned line, const int edge,
                                                      const bool k_major)
{
    const unsigned bytes = LINE_BYTES(edge, k_major), unit = UNIT(k_major);
    const unsigned lines = bytes < 128 ? 128 / bytes : 1;
    return line / lines % ((bytes < 128 ? bytes : 128) / unit) * unit;
}

/* place_line(), place_in_line(): the line of this thread's place number i, and the place's number
 * in the line. All places of a thread are constant distances from its place 0. */
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

/* A thread's view of an operand in global memory, from which its places are filled. */
struct mma_origin {
    const char *from;   /* the elements of its first place in the next tile */
    long long line;     /* bytes from a line to the next */
    long long tile;     /* bytes from a tile to the next */
    int edge_left;      /* rows or columns of the matrix from the tile on */
    const char *matrix; /* the first element of the matrix */
};

/* Finds this thread's places of a tile in global memory. X: the matrix, whose lines are ld elements
 * apart. begin: index of the element of X at which the tile begins. */
static __device__ __forceinline__ struct mma_origin mma_origin_of(const void *X, long long ld,
                                                                  long long begin, int edge_left,
                                                                  const int edge, const int vec,
                                                                  const bool k_major)
{
    const unsigned per_line = PLACES_OF_LINE(edge, k_major, vec);
    struct mma_origin from;
    from.line = ld * SIZE;
    from.tile = k_major ? BK * SIZE : BK * from.line;
    from.from = (const char *)X + begin * SIZE + place_line(0, per_line) * from.line +
                place_in_line(0, per_line) * PLACE_BYTES(vec);
    from.edge_left = edge_left;
    from.matrix = (const char *)X;
    return from;
}

/* One place of a thread. */
struct place_of_tile {
    char *to;
    const char *from;
    int valid_bytes; /* bytes of the place that exist in the matrix */
};

static __device__ __forceinline__ struct place_of_tile
mma_place_of(char *tile, const struct mma_origin *from, int k_left, int i, const int edge,
             const int vec, const bool k_major, const bool has_tail)
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

/* Whether the thread has a place number i: the last place exists only for some threads. */
static __device__ __forceinline__ bool has_place(int i, const int edge, const int vec)
{
    return (i + 1) * THREADS <= PLACES(edge, vec) ||
           (int)threadIdx.x + i * THREADS < PLACES(edge, vec);
}

/* Copies a tile, with zeros for elements outside of the matrix. k_left: K of the matrix from the
 * beginning of the tile on. has_tail: a place may be partly outside. */
static __device__ __forceinline__ void copy_places(char *tile, const struct mma_origin *from,
                                                   int k_left, const int edge, const int vec,
                                                   const bool k_major, const bool has_tail)
{
#pragma unroll
    for (int i = 0; i < PLACES_OF_THREAD(edge, vec); i++) {
        const struct place_of_tile place =
            mma_place_of(tile, from, k_left, i, edge, vec, k_major, has_tail);
        if (has_place(i, edge, vec))
            async_copy_bytes(place.to, place.from, PLACE_BYTES(vec), place.valid_bytes);
    }
}

/* Loads eight 16-bit elements at any address, one by one. valid_bytes of them exist; the others are
 * zeros. */
static __device__ __forceinline__ uint4 load_elements(const char *from, int valid_bytes)
{
    unsigned w[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (2 * i < valid_bytes)
            w[i / 2] |= (unsigned)__ldca((const unsigned short *)from + i) << i % 2 * 16;
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* ---- Fragments ------------------------------------------------------------------------------- */

/* Where a lane reads its fragments of an operand: an offset in the tile and an XOR mask. Fragments
 * are multiples of 8 lines, or of 32 bytes in a line, apart. One offset and one mask therefore
 * serve all of them. */
struct mma_lane_source {
    unsigned at;  /* offset in the tile, in bytes, of the lane's first line and 128-byte part */
    unsigned mix; /* XORed with the last 7 bits of an offset in a line: the swizzle, and the lane's
                     own offset */
};

/* Sets `at` and `mix` of this lane. first: the warp's first row or column in the tile; depth: the
 * first k of the warp's slice. */
static __device__ __forceinline__ struct mma_lane_source
mma_lane_source(unsigned first, unsigned depth, const int edge, const bool k_major, const bool is_a)
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
    struct mma_lane_source source;
    source.at = (lines + line) * LINE_BYTES(edge, k_major) + bytes / 128 * 128;
    source.mix = bytes % 128 ^ byte ^ swizzle_of(line, edge, k_major);
    return source;
}

/* Loads one fragment of A (16 rows) or two of B (8 columns each) at depth p. e: the first of these
 * rows or columns, counted from the warp's first one. */
static __device__ __forceinline__ void mma_load_fragment(fragment_t *to, const char *tile,
                                                         const struct mma_lane_source *from,
                                                         const int e, const int p, const int edge,
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

#if TYPE_A == TYPE_F32
/* Rounds `count` fragments to tf32. */
static __device__ __forceinline__ void round_fragments(fragment_t (*of)[FRAGMENT], const int count)
{
#pragma unroll
    for (int i = 0; i < count; i++)
#pragma unroll
        for (int e = 0; e < FRAGMENT; e++)
            of[i][e] = round_to_tf32(of[i][e]);
}
#else
#define round_fragments(of, count) (void)0
#endif

#endif
