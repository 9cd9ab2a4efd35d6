/* SPDX-License-Identifier: Apache-2.0
 *
 * The tiles of op(A) and op(B) of gemm/simt.cu in shared memory, and a thread's copies of these
 * tiles. Both operands lie there as [BK][edge], MN-major. A tile of an MN-major operand is copied
 * as it is, VEC floats at once. A tile of a K-major operand is transposed by scalar copies, which
 * work for any alignment. Its groups of four floats are swizzled by an amount that depends on k, so
 * that the floats of one copy go to different banks.
 *
 * The parameters `edge` (BM or BN), `vec` (floats per copy) and `order` (MN_MAJOR, ...) describe an
 * operand. They are constants, so the compiler evaluates everything that depends on them.
 *
 * PAIRS: B lies in shared memory as [BK / 2][BN], where a row has the complex elements of one
 * complex k: the real parts of two elements, then their imaginary parts. A lies as without PAIRS.
 * If it is transposed, scalar copies separate the real parts from the imaginary ones, which belong
 * to the next row.
 */
#ifndef TGL_SIMT_COPIES_H
#define TGL_SIMT_COPIES_H

#define ASYNC_COPY_L2 ".L2::128B" /* a miss loads 128 bytes into L2 */
#include "lib/async_copy.h"
#include "lib/simt_tiles.h"

#define COPIES_MAX (A_COPIES > B_COPIES ? A_COPIES : B_COPIES)

/* BY_LINES: whether each warp copies whole lines of an MN-major tile: with INSIDE, if copies are
 * narrower than 16 bytes. A line (lib/simt_tiles.h) is here one k of the tile. RUN: the number of a
 * thread's copies in one line. They are constant distances apart, and share one address register.
 */
#define BY_LINES(edge, vec, order)                                                                 \
    (INSIDE && (order) == MN_MAJOR && (vec) < 4 && (edge) % (32 * (vec)) == 0 &&                   \
     BK % (SLICE_THREADS / 32) == 0)
#define RUN(edge, vec) ((edge) / (32 * (vec)))
/* BY_STEPS: whether the lines that a thread copies are equal distances apart, and none lies outside
 * of the matrix. The distances are then equal in all threads: they take uniform registers, and only
 * the first address takes registers of the thread. It is off for tiles with BK 8, because they have
 * few copies and their schedules were measured without it, and for groups of rows, because these
 * may end within a tile. */
#define BY_STEPS(edge, vec, order)                                                                 \
    (INSIDE && BK >= 16 && GROUPED != 1 && ((order) == K_MAJOR || BY_LINES(edge, vec, order)))
/* FEW_ADDRESSES: whether the global addresses of a thread's copies of an MN-major tile, or of its
 * runs of copies, are kept in registers, because there are at most 4. */
#define FEW_ADDRESSES(edge, vec, order)                                                            \
    (!IS_ALONG_K(order) && !BY_STEPS(edge, vec, order) &&                                          \
     COPIES(edge, vec, order) / (BY_LINES(edge, vec, order) ? RUN(edge, vec) : 1) <= 4)

#if WIDE_OFFSETS
typedef long long tile_offset;
#else
typedef unsigned tile_offset;
#endif

/* A tile of op(A) and a tile of op(B). */
struct stage {
    float A[BK][PITCH(BM, A_ORDER)];
    float B[B_DEPTH][PITCH(BN, B_ORDER)];
};

/* STAGES_HELD: stages of shared memory per slice: STAGES, or more if the partial sums, or lines of
 * D (lib/simt_lines.h), which replace the tiles at the end, need more room. */
#define STAGE_FLOATS (BK * PITCH(BM, A_ORDER) + B_DEPTH * PITCH(BN, B_ORDER))
#define STAGE_BYTES  (STAGE_FLOATS * 4)
#define LINES_FLOATS (UNALIGNED_D ? 4 * LANES_M * WARPS_M * (BN + PAD) : 0)
#define END_FLOATS   (BM * BN > LINES_FLOATS ? BM * BN : LINES_FLOATS)
#if END_FLOATS > STAGES * STAGE_FLOATS
#define STAGES_HELD ((END_FLOATS + STAGE_FLOATS - 1) / STAGE_FLOATS)
#else
#define STAGES_HELD STAGES
#endif

/* The next stage of the ring. Stages are numbered by their offset in bytes. */
static __device__ __forceinline__ int stage_after(int stage)
{
    return stage == (STAGES - 1) * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
}

static __device__ __forceinline__ struct stage *in_stage(struct stage *stages, int stage)
{
    return (struct stage *)((char *)stages + stage);
}

/* copy_line(), copy_in_line(): the line of this thread's copy number i, and its position in the
 * line. The copies of a tile, each `vec` floats of an MN-major operand or one float of a K-major
 * one, are distributed over the slice's threads in order. The three cases compute the same values.
 * They let the compiler see that all positions of a thread are constant distances from its first
 * one. */
static __device__ __forceinline__ unsigned copy_line(int i, const unsigned per_line)
{
    if (SLICE_THREADS % per_line == 0) return THREAD / per_line + i * (SLICE_THREADS / per_line);
    if (per_line % SLICE_THREADS == 0) return i / (per_line / SLICE_THREADS);
    return (THREAD + i * SLICE_THREADS) / per_line;
}

static __device__ __forceinline__ unsigned copy_in_line(int i, const unsigned per_line)
{
    if (SLICE_THREADS % per_line == 0) return THREAD % per_line;
    if (per_line % SLICE_THREADS == 0)
        return THREAD + i % (per_line / SLICE_THREADS) * SLICE_THREADS;
    return (THREAD + i * SLICE_THREADS) % per_line;
}

/* Where copy number i reads: the number of the line in the tile, and the first float in the line.
 */
static __device__ __forceinline__ unsigned from_line(int i, const int edge, const int vec,
                                                     const int order)
{
    if (BY_LINES(edge, vec, order)) return THREAD / 32 + i / RUN(edge, vec) * (SLICE_THREADS / 32);
    return copy_line(i, LENGTH(edge, order) / vec);
}

static __device__ __forceinline__ unsigned from_float(int i, const int edge, const int vec,
                                                      const int order)
{
    if (BY_LINES(edge, vec, order)) return (THREAD % 32 + i % RUN(edge, vec) * 32) * vec;
    return copy_in_line(i, LENGTH(edge, order) / vec) * vec;
}

/* The place of float e of a row of complex elements in shared memory: exchanges the middle two of
 * four floats. */
static __device__ __forceinline__ unsigned pair_place(unsigned e)
{
    return e / 4 * 4 + e % 2 * 2 + e / 2 % 2;
}

/* Where copy number i writes, before the swizzle: the first float in a row of the tile in shared
 * memory, and the number of this row. */
static __device__ __forceinline__ unsigned to_float(int i, const int edge, const int vec,
                                                    const int order)
{
    if (order == PAIRS_K_MAJOR)
        return pair_place(2 * from_line(i, edge, vec, order) + from_float(i, edge, vec, order) % 2);
    if (order == PAIRS_MN_MAJOR) return pair_place(from_float(i, edge, vec, order));
    if (order == PARTS_MN_MAJOR) return from_float(i, edge, vec, order) / 2;
    return order == K_MAJOR ? from_line(i, edge, vec, order) : from_float(i, edge, vec, order);
}

static __device__ __forceinline__ unsigned to_row(int i, const int edge, const int vec,
                                                  const int order)
{
    if (order == PAIRS_K_MAJOR) return from_float(i, edge, vec, order) / 2;
    if (order == PARTS_MN_MAJOR)
        return 2 * from_line(i, edge, vec, order) + from_float(i, edge, vec, order) % 2;
    return order == K_MAJOR ? from_float(i, edge, vec, order) : from_line(i, edge, vec, order);
}

/* The first k, from the tile's first one on, that copy number i copies. */
static __device__ __forceinline__ int copy_depth(int i, const int edge, const int vec,
                                                 const int order)
{
    return (int)(IS_ALONG_K(order) ? from_float(i, edge, vec, order)
                                   : from_line(i, edge, vec, order) * LINE_K(order));
}

/* The global addresses of this thread's copies of an operand's tile. The copies of a run have the
 * address of its first copy. */
struct simt_origin {
    const char *at[COPIES_MAX]; /* with FEW_ADDRESSES: addresses of the copies of the next tile */
    const char *tile;           /* without FEW_ADDRESSES: the address of the next tile; BY_STEPS: of
                                   the thread's first copy in it */
    tile_offset offsets[COPIES_MAX]; /* constant distance of each copy from `tile`, in bytes */
};

/* Sets the addresses for the tile that begins at `tile`. inside: how many rows or columns of the
 * matrix exist from the tile's first one on. Missing ones are replaced by existing ones, a
 * different one for each lane: copies of one address by all lanes would be serialised. */
static __device__ __forceinline__ void locate_copies(struct simt_origin *from, const int copies,
                                                     const float *tile, long long ld, int inside,
                                                     const int edge, const int vec, const int order)
{
    /* As `inside`, in lines or in floats of a line. */
    const int stored = order == PARTS_MN_MAJOR ? inside * 2 : inside / LINE_EDGE(order);
    const unsigned some = (1u << (31 - __clz(stored))) - 1; /* a mask: e & some < stored */
    const bool by_steps = BY_STEPS(edge, vec, order);
    const unsigned first_line = from_line(0, edge, vec, order);
    const tile_offset first = first_line * ld + from_float(0, edge, vec, order);
    from->tile = (const char *)(by_steps ? tile + first : tile);
#pragma unroll
    for (int i = 0; i < copies; i++) {
        unsigned e =
            IS_ALONG_K(order) ? from_line(i, edge, vec, order) : from_float(i, edge, vec, order);
        const unsigned p =
            IS_ALONG_K(order) ? from_float(i, edge, vec, order) : from_line(i, edge, vec, order);
        if (!BY_LINES(edge, vec, order) && e >= (unsigned)stored) e &= some;
        from->offsets[i] =
            (tile_offset)(by_steps            ? (from_line(i, edge, vec, order) - first_line) * ld
                          : IS_ALONG_K(order) ? e * ld + p
                                              : p * ld + e) *
            sizeof(float);
        from->at[i] = from->tile + from->offsets[i];
    }
}

/* The global address of copy number i. */
static __device__ __forceinline__ const float *
copy_from(int i, const struct simt_origin *from, const int edge, const int vec, const int order)
{
    const int in_run = BY_LINES(edge, vec, order) ? i % RUN(edge, vec) : 0;
    const int first = i - in_run;
    return (const float *)(FEW_ADDRESSES(edge, vec, order) ? from->at[first]
                                                           : from->tile + from->offsets[first]) +
           in_run * 32 * vec;
}

/* Advances the addresses by this number of bytes, to the next tile. */
static __device__ __forceinline__ void move_copies(struct simt_origin *from, const int copies,
                                                   long long bytes)
{
    from->tile += bytes;
#pragma unroll
    for (int i = 0; i < copies; i++)
        from->at[i] += bytes;
}

/* The swizzle of a K-major operand: in row p of shared memory, element e of each group of four is
 * stored at position (e + swizzle) % 4. One copy instruction of a warp covers BK of K in 32 / BK
 * rows or columns. Without the swizzle, rows p and p + 8 would use the same banks. In a row of
 * complex elements, the copies of the two parts of an element are two floats apart. */
static __device__ __forceinline__ unsigned swizzle(unsigned p, const int order)
{
    return IS_ALONG_K(order) ? p / 8 * (order == K_MAJOR && BK <= 16 ? 2 : 1) % 4 : 0;
}

/* Returns the number of the base copy of copy number i. The destination of copy i in shared memory
 * lies a constant distance behind that of its base copy. The compiler therefore computes addresses
 * for base copies only, and LDGSTS has the distance as its immediate offset.
 *
 * K-major: the base copy is the first one whose row or column is equal to that of copy i modulo 4,
 * because the swizzle moves both by the same number of floats.
 *
 * MN-major: the base copy is copy 0 if all copies are at constant distances from it. This is so
 * with BY_LINES, and if the number of copies of a line is a multiple of the number of threads, or
 * the reverse. Otherwise each copy is its own base copy. */
static __device__ __forceinline__ int first_of(int i, const int edge, const int vec,
                                               const int order)
{
    const int per_line = LENGTH(edge, order) / vec;
    const int step = SLICE_THREADS / per_line * LINE_EDGE(order);
    if (IS_ALONG_K(order)) return i % (step % 4 == 0 ? 1 : step % 2 == 0 ? 2 : 4);
    if (BY_LINES(edge, vec, order)) return 0;
    return SLICE_THREADS % per_line == 0 || per_line % SLICE_THREADS == 0 ? 0 : i;
}

/* The distance of copy number i from copy number first_of(i), in floats. */
static __device__ __forceinline__ int from_first(int i, const int edge, const int vec,
                                                 const int order)
{
    const int per_line = LENGTH(edge, order) / vec, is_parts = order == PARTS_MN_MAJOR;
    const int pitch = PITCH(edge, order) * (is_parts ? 2 : 1); /* from line to line */
    if (IS_ALONG_K(order))
        return (i - first_of(i, edge, vec, order)) * (SLICE_THREADS / per_line) * LINE_EDGE(order);
    if (BY_LINES(edge, vec, order))
        return i / RUN(edge, vec) * (SLICE_THREADS / 32) * pitch + i % RUN(edge, vec) * 32 * vec;
    if (SLICE_THREADS % per_line == 0) return i * (SLICE_THREADS / per_line) * pitch;
    if (per_line % SLICE_THREADS == 0)
        return i / (per_line / SLICE_THREADS) * pitch +
               i % (per_line / SLICE_THREADS) * SLICE_THREADS * vec / (is_parts ? 2 : 1);
    return 0;
}

/* The address of copy number i in a tile in shared memory. */
static __device__ __forceinline__ float *copy_to(float *tile, int i, const int edge, const int vec,
                                                 const int order)
{
    const int first = first_of(i, edge, vec, order);
    const unsigned e = to_float(first, edge, vec, order), p = to_row(first, edge, vec, order);
    const unsigned swizzled = IS_ALONG_K(order) ? e / 4 * 4 + (e + swizzle(p, order)) % 4 : e;
    return &tile[p * PITCH(edge, order) + swizzled] + from_first(i, edge, vec, order);
}

/* Whether this thread has a copy number i: the last one exists only for some threads. */
static __device__ __forceinline__ bool has_copy(int i, const int edge, const int vec,
                                                const int order)
{
    const int floats = LINES(edge, order) * LENGTH(edge, order);
    return (i + 1) * SLICE_THREADS * vec <= floats || (THREAD + i * SLICE_THREADS) * vec < floats;
}

/* The next tile to copy. */
struct simt_arrival {
    struct stage *stages;
    int to;                                    /* its stage, as an offset in bytes */
    const struct simt_origin *from_A, *from_B; /* the addresses of this thread's copies */
    bool active; /* false: there is no next tile, and zeros are copied */
};

/* Issues this thread's copy number i of A, or of B. */
static __device__ __forceinline__ void copy_of_A(const struct simt_arrival *next, int i)
{
    if (has_copy(i, BM, VEC_A, A_ORDER))
        async_copy_or_zero(
            copy_to(&in_stage(next->stages, next->to)->A[0][0], i, BM, VEC_A, A_ORDER),
            copy_from(i, next->from_A, BM, VEC_A, A_ORDER), VEC_A, next->active);
}

static __device__ __forceinline__ void copy_of_B(const struct simt_arrival *next, int i)
{
    if (has_copy(i, BN, VEC_B, B_ORDER))
        async_copy_or_zero(
            copy_to(&in_stage(next->stages, next->to)->B[0][0], i, BN, VEC_B, B_ORDER),
            copy_from(i, next->from_B, BN, VEC_B, B_ORDER), VEC_B, next->active);
}

static __device__ __forceinline__ void simt_copy_tile(const struct simt_arrival *next)
{
#pragma unroll
    for (int i = 0; i < A_COPIES; i++)
        copy_of_A(next, i);
#pragma unroll
    for (int i = 0; i < B_COPIES; i++)
        copy_of_B(next, i);
}

/* Issues this thread's copies of an operand's first tile. That tile has the K remainder: `depth` of
 * K, padded with zeros. */
static __device__ __forceinline__ void copy_first_tile(float *shared,
                                                       const struct simt_origin *from,
                                                       const int copies, const int edge,
                                                       const int vec, const int order, int depth)
{
#pragma unroll
    for (int i = 0; i < copies; i++) {
        if (has_copy(i, edge, vec, order))
            async_copy_or_zero(copy_to(shared, i, edge, vec, order),
                               copy_from(i, from, edge, vec, order), vec,
                               copy_depth(i, edge, vec, order) < depth);
    }
}

#endif
