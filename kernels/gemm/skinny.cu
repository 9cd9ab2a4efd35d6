/* SPDX-License-Identifier: Apache-2.0
 *
 * GEMM where m or n is at most 16, GEMV included. It is bound by the memory bandwidth of reading
 * the big operand once. So loads must be in flight all the time, from the first to the last moment
 * of the launch, also during arithmetic. A and B are F32 or a 16-bit type, with sums in F32, or
 * F64.
 *
 * The big operand is B (or A: BIG_A), `length` x k. Every warp loads its part of it a step ahead of
 * the arithmetic, across the ends of tiles, by loads straight into registers. F32 that does not
 * allow 16-byte loads comes by cp.async into a ring of STAGES steps in shared memory instead. No
 * warp waits for another. The small operand, COUNT x k, is copied to shared memory, either all of
 * it or DEPTH of k at a time, the next part while the last one is multiplied. Elements of 16 bits
 * are copied as they are, and converted to F32 within shared memory once the last part is
 * multiplied.
 *
 * A thread multiplies RESULTS x UNIT of the big operand by COUNT x UNIT of the small one at a time,
 * UNIT being 16 bytes of the accumulation type. With COUNT 16, loads of the small operand from
 * shared memory would take longer than the memory needs, unless RESULTS is large.
 *
 *   ALONG_K 1   The big operand is K-major: LANES_K lanes share K, and a butterfly of shuffles adds
 *               their sums; other lanes and the warps have other results.
 *   ALONG_K 0   It is MN-major: lanes have neighbouring results; the warps of a block share K, and
 *               their sums are added in order.
 *
 * Grid: x = blocks, each with an equal number of units of work, z = batch. A unit is k_chunk of the
 * k of a tile; units are numbered tile by tile. If a tile is split over several blocks, each leaves
 * partial sums in the workspace (2 tiles for every block of the grid), and the last of them to
 * finish adds them in order. counters: one for each tile of the batch.
 */
#include "lib/async_copy.h"
#include "lib/dynamic_shared.h"
#include "lib/epilogue.h"
#include "lib/gemm_args.h"
#include "lib/last_block.h"
#include "lib/launch_order.h"
#include "lib/load_store.h"
#include "lib/operands.h"
#include "lib/shuffle.h"

#ifndef BIG_A
#define BIG_A 0 /* 1: A is the big operand (n <= 16), 0: B (m <= 16) */
#endif
#ifndef ALONG_K
#define ALONG_K 0 /* 1: the big operand is K-major, 0: MN-major */
#endif
#ifndef COUNT
#define COUNT 16 /* at least the small operand's rows or columns: 1, 2, 4, 8 or 16 */
#endif
/* VEC: elements of a copy; divides the big operand's alignment, leading dimension and edge. */
#ifndef VEC
#define VEC 4
#endif
#ifndef RESULTS
#define RESULTS 4 /* of a thread, times COUNT; a multiple of PACK unless ALONG_K */
#endif
#ifndef LANES_K
#define LANES_K 8 /* ALONG_K: lanes of a warp that share K: 4, 8, 16 or 32 */
#endif
#ifndef UNROLL
#define UNROLL 1 /* groups of DEEP of k that a thread multiplies in a step */
#endif
#ifndef STAGES
#define STAGES 3 /* steps in a warp's ring of F32, unless VEC is 4 */
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef DEPTH
#define DEPTH 512 /* k of the small operand that is in shared memory at once */
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif
#ifndef NAME
#define NAME sgemm_skinny
#endif

#define LOAD_SCALAR(at) (*(at)) /* few elements remain at the end of K: no cache hint */
#include "lib/packs.h"

#define THREADS      (WARPS * 32)
#define DEEP         (ALONG_K ? PACK : 4)                          /* k of a group */
#define STEP         (DEEP * (ALONG_K ? LANES_K : WARPS) * UNROLL) /* k of a step, block */
#define WARP_STEP    (ALONG_K ? STEP : DEEP * UNROLL)              /* warp */
#define LANES_LENGTH (ALONG_K ? 32 / LANES_K : 32)
#define WARP_TILE    (LANES_LENGTH * RESULTS) /* results of a warp, times COUNT */
#define TILE         (ALONG_K ? WARPS * WARP_TILE : WARP_TILE)
#define STRAIGHT     (TYPE_A != TYPE_F32 || VEC == PACK)

/* This lane's index along the results, and along K. For loads straight into registers, neighbouring
 * lanes share K, so that they load neighbouring elements. Else neighbouring lanes have other
 * results and read the same of the small operand, which is faster. */
#define ROW_LANE ((int)threadIdx.x % 32 / (STRAIGHT ? LANES_K : 1) % LANES_LENGTH)
#define K_LANE   ((int)threadIdx.x % 32 / (STRAIGHT ? 1 : LANES_LENGTH) % LANES_K)
#define K_BIT    (STRAIGHT ? 1 : LANES_LENGTH) /* bit 0 of K_LANE, in the lane number */

/* Rows or columns of the big operand that a thread has a pointer to: if it is MN-major, one for
 * each pack, or for each copy to a ring. */
#define POINTERS (ALONG_K ? RESULTS : STRAIGHT ? RESULTS / PACK : RESULTS / VEC)

/* Packs that a thread loads in a step. */
#define PACKS (ALONG_K ? RESULTS * UNROLL : DEEP * UNROLL * (RESULTS / PACK))

/* Neighbouring results of a lane where the big operand is MN-major. */
#define WIDTH (STRAIGHT ? VEC : 4)

/* A line of a ring: of k, padded so that four lines are in different banks, or of the length. */
#define LINE  (ALONG_K ? STEP + LANES_K % 32 : WARP_TILE)
#define STAGE ((ALONG_K ? WARP_TILE : WARP_STEP) * LINE)

/* A line of the small operand: DEEP of k of all rows, as UNIT of k of each row, then the next UNIT.
 * A line is an odd number of units, so that lanes that share K read from different banks. */
#define UNITS      (COUNT * DEEP / UNIT)
#define SMALL_LINE ((UNITS + 1 - UNITS % 2) * UNIT)
#define SMALL      (DEPTH / DEEP * SMALL_LINE)

/* Buffers of SMALL: one is multiplied while the other is filled. With elements of 16 bits the
 * second buffer holds them as they are stored in memory, in rows of STORED elements. */
#define PLACES     (IS_16_BITS ? 1 : 2)
#define STORED     (DEPTH + 8)
#define RAW_FLOATS (IS_16_BITS ? COUNT * STORED / 2 : 0)

/* Rows of the small operand whose sums are added over the warps at a time. */
#define SUM_ROWS (COUNT < 4 ? COUNT : 4)

/* Sums of 32 lanes, padded so that reading column by column has no bank conflicts. */
#define SUM_LINE (WIDTH == 8 ? 36 : 40)

#define RING_FLOATS (STRAIGHT ? 0 : WARPS * STAGES * STAGE)
#define SUMS        (ALONG_K ? 0 : WARPS * SUM_ROWS * RESULTS * SUM_LINE)

#if DEPTH % STEP || DEPTH % 32
#error "DEPTH: a multiple of a step and of 32"
#endif
#if !ALONG_K && RESULTS % PACK
#error "a thread has its columns in packs"
#endif

struct operands {
    const element_t *big, *small; /* of this problem of the batch */
    long long ld;                 /* of the big one */
    long long small_row, small_k; /* the small one's strides */
    int length, count;
};

static __device__ __forceinline__ struct operands
operands_of(const struct tgl_gemm_args *args, const bool a_k_major, const bool b_k_major)
{
    const int batch = (int)blockIdx.z;
    const element_a *A = A_OF(args, batch);
    const element_b *B = B_OF(args, batch);
    struct operands o;
    o.big = BIG_A ? A : B;
    o.small = BIG_A ? B : A;
    o.ld = BIG_A ? args->lda : args->ldb;
    o.length = BIG_A ? args->m : args->n;
    o.count = BIG_A ? args->n : args->m;
    o.small_row = BIG_A ? (b_k_major ? args->ldb : 1) : (a_k_major ? args->lda : 1);
    o.small_k = BIG_A ? (b_k_major ? 1 : args->ldb) : (a_k_major ? 1 : args->lda);
    return o;
}

/* ---- Work ------------------------------------------------------------------------------------ */

/* Units of work and how they are distributed: `each` to every block, and one more to the first
 * `more` blocks. */
struct work {
    int per_tile, each, more;
};

/* The part of a tile that this block computes, and its next unit. */
struct segment {
    int tile, from, to, next;
};

static __device__ __forceinline__ struct work work_of(const struct tgl_gemm_args *args, int length)
{
    const int tiles = (length - 1) / TILE + 1;
    struct work w;
    w.per_tile = DEPTH_OF(args) > args->k_chunk ? (DEPTH_OF(args) - 1) / args->k_chunk + 1 : 1;
    w.each = tiles * w.per_tile / (int)gridDim.x;
    w.more = tiles * w.per_tile - w.each * (int)gridDim.x;
    return w;
}

static __device__ __forceinline__ int first_unit(const struct work *w, int block)
{
    return block * w->each + min(block, w->more);
}

static __device__ __forceinline__ int block_of(const struct work *w, int unit)
{
    const int longer = w->more * (w->each + 1);
    return unit < longer ? unit / (w->each + 1) : w->more + (unit - longer) / w->each;
}

static __device__ __forceinline__ struct segment segment_at(const struct tgl_gemm_args *args,
                                                            const struct work *w, int unit, int end)
{
    struct segment s;
    s.tile = unit / w->per_tile;
    const int first = s.tile * w->per_tile, after = first + w->per_tile;
    s.next = min(end, after);
    s.from = (unit - first) * args->k_chunk;
    s.to = s.next == after ? DEPTH_OF(args) : (s.next - first) * args->k_chunk;
    return s;
}

/* ---- The big operand ------------------------------------------------------------------------- */

/* The state of a warp's loads. */
struct loader {
    const element_t *x[POINTERS]; /* what this thread loads next */
#if STRAIGHT && CHUNKS > 1 && !ALONG_K
    int room[POINTERS]; /* elements from there to the last load of a line: further ones repeat it */
#define ROOM(l, i) ((l)->room[i])
#else
#define ROOM(l, i) 0
#endif
    int k, to;                         /* in the block's segment: what to load next, and its end */
    int unit, end;                     /* the first of the next segment; the end of the block's */
    int stage;                         /* of the ring, to be filled next */
    pack_t next[STRAIGHT ? PACKS : 1]; /* the step to be multiplied next */
};

/* Points to this thread's rows or columns; those past the last one repeat it. */
static __device__ __forceinline__ void open_segment(struct loader *l,
                                                    const struct tgl_gemm_args *args,
                                                    const struct operands *o, const struct work *w)
{
    const struct segment s = segment_at(args, w, l->unit, l->end);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    l->unit = s.next;
    l->k = s.from;
    l->to = s.to;
#if ALONG_K
    const int row = s.tile * TILE + warp * WARP_TILE + lane / LANES_K;
#pragma unroll
    for (int r = 0; r < RESULTS; r++)
        l->x[r] = o->big + min(row + r * LANES_LENGTH, o->length - 1) * o->ld + s.from +
                  lane % LANES_K * VEC;
#else
#pragma unroll
    for (int i = 0; i < POINTERS; i++) {
        l->x[i] = o->big + (s.from + warp * WARP_STEP) * o->ld +
                  min(s.tile * TILE + (i * (TILE / POINTERS / VEC) + lane) * VEC, o->length - VEC);
#if STRAIGHT && CHUNKS > 1
        l->room[i] =
            max(o->length - VEC - (s.tile * TILE + (i * (TILE / POINTERS / VEC) + lane) * VEC), 0);
#endif
    }
#endif
}

#if STRAIGHT

/* Loads a step of this warp. is_whole: all of it exists; else `left` of k. */
static __device__ __forceinline__ void
load_big(struct loader *l, float *ring, const struct operands *o, int left, const bool is_whole)
{
#if ALONG_K
    const int mine = K_LANE * VEC;
#pragma unroll
    for (int i = 0; i < PACKS * CHUNKS; i++) {
        const int p = i / CHUNKS / RESULTS * LANES_K * PACK + i % CHUNKS * LANES_K * VEC;
        const element_t *x = l->x[i / CHUNKS % RESULTS] + p;
        l->next[i / CHUNKS].chunk[i % CHUNKS] =
            is_whole ? load_chunk(x) : load_part_of_chunk(x, 0, left - p - mine);
    }
    (void)o;
#else
#pragma unroll
    for (int i = 0; i < RESULTS / PACK; i++) {
        const element_t *x = l->x[i];
#pragma unroll
        for (int p = 0; p < WARP_STEP; p++, x += o->ld)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                const element_t *at = x + min(c * 32 * VEC, ROOM(l, i));
                l->next[p * (RESULTS / PACK) + i].chunk[c] =
                    is_whole ? load_chunk(at) : load_part_of_chunk(at, 0, p < left ? VEC : 0);
            }
    }
#endif
    (void)ring;
}

#else

static __device__ __forceinline__ void
load_big(struct loader *l, float *ring, const struct operands *o, int left, const bool is_whole)
{
    const int lane = (int)threadIdx.x % 32;
    float *slot = ring + l->stage * STAGE;
#if ALONG_K
    slot += lane / LANES_K * LINE + lane % LANES_K * VEC;
#pragma unroll
    for (int r = 0; r < RESULTS; r++)
#pragma unroll
        for (int i = 0; i < UNROLL * CHUNKS; i++) {
            const int p = i * LANES_K * VEC;
            if (is_whole) {
                async_copy(&slot[r * LANES_LENGTH * LINE + p], l->x[r] + p, VEC, true);
                continue;
            }
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                const bool valid = p + lane % LANES_K * VEC + e < left;
                async_copy_float_or_zero(&slot[r * LANES_LENGTH * LINE + p + e],
                                         valid ? l->x[r] + p + e : o->big, valid);
            }
        }
#else
#pragma unroll
    for (int i = 0; i < RESULTS / VEC; i++) {
        const float *x = l->x[i];
#pragma unroll
        for (int p = 0; p < WARP_STEP; p++, x += o->ld) {
            float *to = &slot[p * LINE + (i * 32 + lane) * VEC];
            if (is_whole)
                async_copy(to, x, VEC, true);
            else
                async_copy_or_zero(to, p < left ? x : o->big, VEC, p < left);
        }
    }
#endif
    l->stage = l->stage + 1 == STAGES ? 0 : l->stage + 1;
}

#endif

/* Loads the next step, if there is one; if not, the group of copies is empty. */
static __device__ __forceinline__ void load_step(struct loader *l, float *ring,
                                                 const struct tgl_gemm_args *args,
                                                 const struct operands *o, const struct work *w)
{
    if (l->k >= l->to && l->unit < l->end) open_segment(l, args, o, w);
    if (l->k < l->to) {
        const int left = l->to - l->k - (ALONG_K ? 0 : (int)threadIdx.x / 32 * WARP_STEP);
        if (left >= WARP_STEP)
            load_big(l, ring, o, left, true);
        else
            load_big(l, ring, o, left, false);
        l->k += STEP;
#pragma unroll
        for (int i = 0; i < (int)(sizeof l->x / sizeof l->x[0]); i++)
            l->x[i] += ALONG_K ? STEP : STEP * o->ld;
    }
    if (!STRAIGHT) async_commit();
}

/* ---- The small operand ----------------------------------------------------------------------- */

/* Where element p of k of row s goes: to the line of the thread that multiplies it. Loads of fewer
 * than 16 bytes give a thread CHUNKS times VEC elements of each group of LANES_K * PACK. */
#define IS_IN_ORDER (!ALONG_K || !STRAIGHT || CHUNKS == 1)
#define SMALL_LINE_OF(p)                                                                           \
    (IS_IN_ORDER ? (p) / DEEP : (p) / (LANES_K * PACK) * LANES_K + (p) % (LANES_K * VEC) / VEC)
#define SMALL_IN_LINE(p)                                                                           \
    (IS_IN_ORDER ? (p) % DEEP : (p) % (LANES_K * PACK) / (LANES_K * VEC) * VEC + (p) % VEC)
#define SMALL_AT(s, p)                                                                             \
    (SMALL_LINE_OF(p) * SMALL_LINE + (SMALL_IN_LINE(p) / UNIT * COUNT + (s)) * UNIT +              \
     SMALL_IN_LINE(p) % UNIT)

/* Elements of k that are copied for `depth` of it: whole steps. */
#define PADDED(depth) (((depth) + STEP - 1) / STEP * STEP + 31) / 32 * 32

/* Lanes copy neighbouring packs of a row: the numbers of all packs, some of them past the end, and
 * the first element of number i, in row i / 32 % COUNT. */
#define PACKS_OF_SMALL(padded) (COUNT * (((padded) + 32 * PACK - 1) / (32 * PACK)) * 32)
#define PACK_OF_SMALL(i)       (((i) / 32 / COUNT * 32 + (i) % 32) * PACK)

#if IS_16_BITS

/* Copies the rows of the small operand as they are stored, `depth` of k from `first` on, and zeros
 * up to a whole step: asynchronously if it is K-major and aligned. */
static __device__ __forceinline__ void copy_small(accumulate_t *small, const struct operands *o,
                                                  int first, int depth)
{
    enum { AT_ONCE = 8 }; /* loads of a thread, so that few trips to memory follow each other */
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

/* Converts what copy_small() has copied. All threads call it when that has arrived. */
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

/* Copies the rows of the small operand, `depth` of k from `first` on, and zeros up to a whole step.
 * Lanes copy neighbours in memory, by 16-byte copies if it is K-major and aligned. */
static __device__ __forceinline__ void copy_small(accumulate_t *small, const struct operands *o,
                                                  int first, int depth)
{
    const int padded = PADDED(depth);
    const bool k_major = o->small_k == 1;
    const element_t *x = o->small + first * o->small_k;
    if (IS_IN_ORDER && k_major && rows_are_packed(x, o->small_row) && depth % PACK == 0) {
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < PACKS_OF_SMALL(padded); i += THREADS) {
            const int s = i / 32 % COUNT, p = PACK_OF_SMALL(i);
            const bool valid = s < o->count && p < depth;
            if (p < padded)
                async_copy_or_zero((float *)&small[SMALL_AT(s, p)],
                                   (const float *)(valid ? x + s * o->small_row + p : x), 4, valid);
        }
        return;
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < COUNT * padded; i += THREADS) {
        const int s = k_major ? i / 32 % COUNT : i % COUNT;
        const int p = k_major ? i / 32 / COUNT * 32 + i % 32 : i / COUNT;
        const bool valid = s < o->count && p < depth;
        async_copy_or_zero((float *)&small[SMALL_AT(s, p)],
                           (const float *)(valid ? x + s * o->small_row + p * o->small_k : x),
                           sizeof(element_t) / 4, valid);
    }
}

#endif

/* The state of the copies of the small operand: DEPTH of k to one of two places, then the next to
 * the other. */
struct feeder {
    int k, to;     /* in the block's segment: what to copy next, and its end */
    int unit, end; /* the first of the next segment; the end of the block's */
    int place;     /* to be filled next */
#if IS_16_BITS
    int copied; /* k of the part that was copied last, to be converted */
#endif
};

static __device__ __forceinline__ void feed(struct feeder *f, accumulate_t *small,
                                            const struct tgl_gemm_args *args,
                                            const struct operands *o, const struct work *w)
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
    f->k += min(DEPTH, f->to - f->k); /* k may be as large as an int allows */
    f->place ^= PLACES - 1;
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* acc += a step of this warp: `now`, or a slot of its ring. small: at the step's first k. */
static __device__ __forceinline__ void multiply_step(accumulate_t (*acc)[RESULTS],
                                                     const pack_t *now, const float *slot,
                                                     const accumulate_t *small)
{
    const int lane = (int)threadIdx.x % 32;
    small += (ALONG_K ? K_LANE : (int)threadIdx.x / 32 * UNROLL) * SMALL_LINE;
#pragma unroll
    for (int i = 0; i < UNROLL * (DEEP / UNIT); i++) {
        const int u = i / (DEEP / UNIT), unit = i % (DEEP / UNIT);
        const accumulate_t *own =
            small + u * (ALONG_K ? LANES_K : 1) * SMALL_LINE + unit * (COUNT * UNIT);
        accumulate_t v[RESULTS][UNIT]; /* result, k */
#if ALONG_K
#pragma unroll
        for (int r = 0; r < RESULTS; r++) {
            const float *place = slot + (ROW_LANE + r * LANES_LENGTH) * LINE;
            if (STRAIGHT)
                unpack_unit(v[r], &now[u * RESULTS + r], unit * UNIT);
            else
                load_unit(v[r], (const accumulate_t *)&place[(K_LANE + u * LANES_K) * 4]);
        }
        (void)lane;
#else
#pragma unroll
        for (int j = 0; j < UNIT * (RESULTS / PACK); j++) {
            const int p = j / (RESULTS / PACK), r = j % (RESULTS / PACK) * PACK;
            const int row = u * DEEP + unit * UNIT + p;
            accumulate_t x[PACK];
            if (STRAIGHT)
                unpack_all(x, &now[row * (RESULTS / PACK) + r / PACK]);
            else
                load_unit(x, (const accumulate_t *)&slot[row * LINE + r * 32 + lane * 4]);
#pragma unroll
            for (int e = 0; e < PACK; e++)
                v[r + e][p] = x[e];
        }
#endif
#pragma unroll
        for (int s = 0; s < COUNT; s++) {
            accumulate_t y[UNIT];
            load_unit(y, &own[s * UNIT]);
#pragma unroll
            for (int p = 0; p < UNIT; p++)
#pragma unroll
                for (int r = 0; r < RESULTS; r++)
                    acc[s][r] += v[r][p] * y[p];
        }
    }
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Where finished sums go. */
struct finisher {
    const struct tgl_gemm_args *args;
    const struct operands *o;
    accumulate_t *partial; /* of this tile, if it is split over several blocks; else NULL */
    int tile;
};

static __device__ __forceinline__ void store_result(const struct tgl_gemm_args *args,
                                                    const struct operands *o, accumulate_t sum,
                                                    int at, int s)
{
    if (at >= o->length || s >= o->count) return;
    const int row = BIG_A ? at : s, col = BIG_A ? s : at, batch = (int)blockIdx.z;
    const struct epilogue_operands with = epilogue_operands(args, D_OF(args, batch), batch);
    epilogue_store(args, &with, sum, row, col);
}

/* at: within the tile. */
static __device__ __forceinline__ void finish(const struct finisher *f, accumulate_t sum, int at,
                                              int s)
{
    if (f->partial)
        f->partial[s * TILE + at] = sum;
    else
        store_result(f->args, f->o, sum, f->tile * TILE + at, s);
}

#if ALONG_K

/* Adds sums[] over the lanes along K: a butterfly reduction after which each lane has a part of the
 * results. Returns the index of this lane's first result. Its sums are sums[0..*held-1]; *held is 0
 * if another lane has the same results. */
static __device__ __forceinline__ int add_lanes(accumulate_t *sums, const int total, int *held)
{
    const int lane = (int)threadIdx.x % 32;
    int first = 0, left = total;
    bool holder = true;
#pragma unroll
    for (int x = LANES_K / 2; x > 0; x /= 2) {
        const bool upper = lane & x * K_BIT;
        left /= 2;
#pragma unroll
        for (int i = 0; i < total / 2; i++) {
            if (i >= left) continue;
            const accumulate_t mine = upper ? sums[i + left] : sums[i];
            const accumulate_t other = upper ? sums[i] : sums[i + left];
            sums[i] = mine + shuffle_xor(other, x * K_BIT);
        }
        first += upper ? left : 0;
        if (left == 0) {
            sums[0] += shuffle_xor(sums[0], x * K_BIT);
            holder = holder && !upper;
        }
    }
    *held = !holder ? 0 : total < LANES_K ? 1 : total / LANES_K;
    return first;
}

/* Adds the sums of the lanes that share K. */
static __device__ __forceinline__ void
finish_tile(const struct finisher *f, accumulate_t (*acc)[RESULTS], accumulate_t *shared)
{
    accumulate_t sums[COUNT * RESULTS];
    int held;
#pragma unroll
    for (int i = 0; i < COUNT * RESULTS; i++)
        sums[i] = BIG_A ? acc[i % COUNT][i / COUNT] : acc[i / RESULTS][i % RESULTS];
    const int first = add_lanes(sums, COUNT * RESULTS, &held);
    const int at = (int)threadIdx.x / 32 * WARP_TILE + ROW_LANE;
#pragma unroll
    for (int i = 0; i < (COUNT * RESULTS + LANES_K - 1) / LANES_K; i++) {
        const int s = BIG_A ? (first + i) % COUNT : (first + i) / RESULTS;
        const int r = BIG_A ? (first + i) / COUNT : (first + i) % RESULTS;
        if (i < held) finish(f, sums[i], at + r * LANES_LENGTH, s);
    }
    (void)shared;
}

#else

/* Adds the sums of the warps, which share K, in order. */
static __device__ __forceinline__ void
finish_tile(const struct finisher *f, accumulate_t (*acc)[RESULTS], accumulate_t *shared)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int warp_sums = SUM_ROWS * RESULTS * SUM_LINE;
#pragma unroll
    for (int from = 0; from < COUNT; from += SUM_ROWS) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SUM_ROWS * RESULTS; i++)
            shared[warp * warp_sums + i * SUM_LINE + lane] = acc[from + i / RESULTS][i % RESULTS];
        __syncthreads();
        for (int i = (int)threadIdx.x; i < SUM_ROWS * TILE; i += THREADS) {
            const int s = i / TILE, at = i % TILE;
            const int place = (s * RESULTS + at / (32 * WIDTH) * WIDTH + at % WIDTH) * SUM_LINE +
                              at % (32 * WIDTH) / WIDTH;
            accumulate_t sum = 0;
#pragma unroll
            for (int other = 0; other < WARPS; other++)
                sum += shared[other * warp_sums + place];
            finish(f, sum, at, from + s);
        }
    }
}

#endif

/* The workspace of a block for a split tile: its first tile, or its last. */
static __device__ __forceinline__ accumulate_t *
partial_of(const struct tgl_gemm_args *args, const struct work *w, int block, int tile)
{
    const int which = first_unit(w, block) / w->per_tile == tile ? 0 : 1;
    const long long place = ((long long)blockIdx.z * gridDim.x + block) * 2 + which;
    return (accumulate_t *)args->workspace + place * (TILE * COUNT);
}

/* Four sums that other blocks have stored. */
#if ACCUMULATE == TYPE_F64
typedef struct four_sums {
    double x, y, z, w;
} four_sums;

static __device__ __forceinline__ four_sums load_sums(const double *from)
{
    const double2 low = __ldcg((const double2 *)from), high = __ldcg((const double2 *)from + 1);
    const four_sums sums = {low.x, low.y, high.x, high.y};
    return sums;
}
#else
typedef float4 four_sums;
#define load_sums(from) __ldcg((const float4 *)(from))
#endif

/* The last of a split tile's blocks to finish adds the sums of all, which are in the workspace. */
static __device__ __forceinline__ void add_blocks(const struct tgl_gemm_args *args,
                                                  const struct operands *o, const struct work *w,
                                                  int tile)
{
    const int from = block_of(w, tile * w->per_tile);
    const int to = block_of(w, (tile + 1) * w->per_tile - 1);
    const int tiles = (o->length - 1) / TILE + 1;
    unsigned *counter = &args->counters[(long long)blockIdx.z * tiles + tile];
    if (!is_last_block(counter, to - from + 1)) return;

    enum { FOURS_EACH = (TILE * COUNT / 4 + THREADS - 1) / THREADS };
    four_sums sums[FOURS_EACH];
    const accumulate_t *part = partial_of(args, w, from, tile);
    for (int b = from; b <= to; b++) {
#pragma unroll
        for (int i = 0; i < FOURS_EACH; i++) {
            const int at = ((int)threadIdx.x + i * THREADS) * 4;
            if (at >= TILE * COUNT) continue;
            const four_sums x = load_sums(&part[at]);
            if (b == from) {
                sums[i] = x;
                continue;
            }
            sums[i].x += x.x, sums[i].y += x.y, sums[i].z += x.z, sums[i].w += x.w;
        }
        part = b == from ? partial_of(args, w, from + 1, tile) : part + 2 * TILE * COUNT;
    }
#pragma unroll
    for (int i = 0; i < FOURS_EACH; i++) {
        const int at = ((int)threadIdx.x + i * THREADS) * 4, s = at / TILE;
        accumulate_t four[4];
        if (at >= TILE * COUNT) continue;
        four[0] = sums[i].x, four[1] = sums[i].y, four[2] = sums[i].z, four[3] = sums[i].w;
#pragma unroll
        for (int e = 0; e < 4; e++)
            store_result(args, o, four[e], tile * TILE + at % TILE + e, s);
    }
}

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const struct tgl_gemm_args args)
{
    DYNAMIC_SHARED(accumulate_t, shared, RING_FLOATS + PLACES * SMALL + RAW_FLOATS + SUMS);
    float *ring = (float *)shared + (STRAIGHT ? 0 : (int)threadIdx.x / 32 * (STAGES * STAGE));
    accumulate_t *small = shared + RING_FLOATS, *sums = small + PLACES * SMALL + RAW_FLOATS;
    start_after_earlier_launches(args.waits_at_end);
    if (args.overlaps) let_later_launches_start();
#if BIG_A
    const struct operands o = operands_of(&args, ALONG_K, args.small_k_major);
#else
    const struct operands o = operands_of(&args, args.small_k_major, ALONG_K);
#endif
    const struct work w = work_of(&args, o.length);
    const int begin = first_unit(&w, (int)blockIdx.x), end = first_unit(&w, (int)blockIdx.x + 1);

    const bool once = DEPTH_OF(&args) <= DEPTH;        /* all of the small operand fits */
    const int fed = DEPTH_OF(&args) > 0 ? end : begin; /* without a product nothing is loaded */
    struct feeder feeder = {0, 0, begin, once ? begin : fed, 0};
    if (once)
        copy_small(small, &o, 0, DEPTH_OF(&args));
    else
        feed(&feeder, small, &args, &o, &w);
    async_commit();
    struct loader loader;
    loader.k = loader.to = loader.stage = 0;
    loader.unit = begin;
    loader.end = fed;
#pragma unroll 1
    for (int i = 0; i < (STRAIGHT ? 1 : STAGES - 1); i++)
        load_step(&loader, ring, &args, &o, &w);
    if (once) {
        ASYNC_WAIT(STRAIGHT ? 0 : STAGES - 1);
        __syncthreads();
#if IS_16_BITS
        convert_small(small, DEPTH_OF(&args));
#endif
    }

    int stage = 0, place = 0;
    for (int unit = begin; unit < end;) {
        const struct segment segment = segment_at(&args, &w, unit, end);
        accumulate_t acc[COUNT][RESULTS] = {{0}};
        const accumulate_t *y = small + segment.from / DEEP * SMALL_LINE;
        unsigned chunk =
            once ? segment.to
                 : segment.from; /* where the next DEPTH of the small operand is needed */
        for (int k = segment.from; k < segment.to; k += STEP, y += STEP / DEEP * SMALL_LINE) {
            if ((unsigned)k == chunk) {
                ASYNC_WAIT(0);
                __syncthreads();
                y = small + place * SMALL;
                place ^= PLACES - 1;
#if IS_16_BITS
                convert_small(small, feeder.copied);
#endif
                chunk += DEPTH;
                feed(&feeder, small, &args, &o, &w);
                if (STRAIGHT) async_commit();
            }
            pack_t now[STRAIGHT ? PACKS : 1];
            if (STRAIGHT) {
#pragma unroll
                for (int i = 0; i < PACKS; i++)
                    now[i] = loader.next[STRAIGHT ? i : 0];
            } else {
                ASYNC_WAIT(STAGES - 2);
                __syncwarp(); /* the other lanes' copies have arrived, and they have read the last
                                 step */
            }
            load_step(&loader, ring, &args, &o, &w);
            multiply_step(acc, now, ring + stage * STAGE, y);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
        }
        const bool is_whole = segment.to - segment.from == DEPTH_OF(&args);
        const struct finisher f = {
            &args, &o, is_whole ? 0 : partial_of(&args, &w, (int)blockIdx.x, segment.tile),
            segment.tile};
        finish_tile(&f, acc, sums);
        if (!is_whole) add_blocks(&args, &o, &w, segment.tile);
        unit = segment.next;
    }
    end_after_earlier_launches(args.waits_at_end);
}
