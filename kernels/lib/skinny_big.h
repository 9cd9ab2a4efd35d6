/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the big operand of gemm/skinny.cu. Each warp loads its own elements ahead of the
 * arithmetic, also across the ends of tiles, and waits for no other warp. STRAIGHT: the loads go
 * straight into registers, one step of K ahead. Without STRAIGHT, for F32 that does not allow
 * 16-byte loads, cp.async copies the elements to a ring of STAGES steps in shared memory, which
 * belongs to the warp: STAGES - 1 steps ahead.
 */
#ifndef TGL_SKINNY_BIG_H
#define TGL_SKINNY_BIG_H

#include "lib/async_copy.h"
#include "lib/skinny_work.h"

/* The number of a thread's pointers into the big operand. K-major: one for each of the thread's
 * rows or columns. MN-major: one for each pack (16 bytes) of one k or, without STRAIGHT, one for
 * each cp.async of one k (VEC elements). */
#define POINTERS (ALONG_K ? RESULTS : STRAIGHT ? RESULTS / PACK : RESULTS / VEC)

/* K_LINES: the lines in memory that an MN-major big operand has for the K of a warp's step. PACKS:
 * the number of packs that a thread loads in a step. */
#define K_LINES (WARP_STEP / BIG_PARTS)
#define PACKS   (ALONG_K ? RESULTS * UNROLL : K_LINES * (RESULTS / PACK))

/* A lane's pack of an MN-major big operand: PLACE_OF(e, lanes) is the distance of its element e
 * from the first, if the other lanes' elements lie in between. LANE_WIDTH: adjacent elements of a
 * lane. */
#define PLACE_OF(e, lanes) ((e) / ADJACENT * (ADJACENT * (lanes)) + (e) % ADJACENT)
#define LANE_WIDTH         (STRAIGHT ? ADJACENT : VEC)

/* LINE: floats in a line of a ring. K-major: a line is the K of a step, padded so that four lines
 * are in different banks. MN-major: a line is one k, the elements of a warp's tile. */
#define LINE        (ALONG_K ? STEP + LANES_K % 32 : WARP_TILE)
#define STAGE       ((ALONG_K ? WARP_TILE : K_LINES) * LINE)
#define RING_FLOATS (STRAIGHT ? 0 : WARPS * STAGES * STAGE) /* rings of all warps */

/* The state of a warp's loads, which run ahead of its arithmetic. */
struct loader {
    const element_t *x[POINTERS]; /* addresses of this thread's next loads */
#if STRAIGHT && CHUNKS > 1 && !ALONG_K
    int room[POINTERS]; /* largest offset from x[i] at which a load ends inside the operand; larger
                           offsets of chunks are reduced to it */
#define ROOM(l, i) ((l)->room[i])
#else
#define ROOM(l, i) 0
#endif
    int k, to;     /* k of the next step to load; end of the segment's K */
    int unit, end; /* first unit of the next segment; end of the block's units (skinny_work.h) */
    int stage;     /* the stage of the ring to fill next */
    pack_t next[STRAIGHT ? PACKS : 1]; /* the step to be multiplied next */
};

/* Moves to the next segment, the part of a tile that a block computes: sets the pointers to this
 * thread's rows or columns. Rows and columns past the end are replaced by the last one. */
static __device__ __forceinline__ void open_segment(struct loader *l,
                                                    const struct tgl_gemm_args *args,
                                                    const struct operands *o,
                                                    const struct skinny_work *w)
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
                  lane % LANES_K * LANE_WIDTH;
#else
#pragma unroll
    for (int i = 0; i < POINTERS; i++) {
        const int first = s.tile * TILE + i * (TILE / POINTERS) + lane * LANE_WIDTH;
        l->x[i] = o->big + (s.from + warp * WARP_STEP) / BIG_PARTS * o->ld +
                  min(first, o->length - LANE_WIDTH);
#if STRAIGHT && CHUNKS > 1
        l->room[i] = max(o->length - VEC - first, 0);
#endif
    }
#endif
}

#if STRAIGHT

/* Loads the elements of the big operand for a step of this warp into registers. left: elements of K
 * that exist from the step's beginning on. is_whole: all of the step's K exists. */
static __device__ __forceinline__ void
load_big(struct loader *l, float *ring, const struct operands *o, int left, const bool is_whole)
{
#if ALONG_K
    const int mine = K_LANE * ADJACENT;
#pragma unroll
    for (int i = 0; i < PACKS * CHUNKS; i++) {
        const int p = i / CHUNKS / RESULTS * LANES_K * PACK + PLACE_OF(i % CHUNKS * VEC, LANES_K);
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
        for (int p = 0; p < K_LINES; p++, x += o->ld)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                const bool exists = is_whole || p * BIG_PARTS < left;
                const element_t *at = x + min(PLACE_OF(c * VEC, 32), ROOM(l, i));
                l->next[p * (RESULTS / PACK) + i].chunk[c] =
                    is_whole ? load_chunk(at) : load_part_of_chunk(at, 0, exists ? VEC : 0);
            }
    }
#endif
    (void)ring;
}

#else

/* Issues copies of the elements of the big operand for a step of this warp, to its ring. */
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
        for (int p = 0; p < K_LINES; p++, x += o->ld) {
            const bool exists = is_whole || p * BIG_PARTS < left;
            float *to = &slot[p * LINE + (i * 32 + lane) * VEC];
            if (is_whole)
                async_copy(to, x, VEC, true);
            else
                async_copy_or_zero(to, exists ? x : o->big, VEC, exists);
        }
    }
#endif
    l->stage = l->stage + 1 == STAGES ? 0 : l->stage + 1;
}

#endif

/* Loads the next step, if there is one. With rings each call commits a group of copies, which is
 * empty if there is no next step. */
static __device__ __forceinline__ void load_step(struct loader *l, float *ring,
                                                 const struct tgl_gemm_args *args,
                                                 const struct operands *o,
                                                 const struct skinny_work *w)
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
            l->x[i] += ALONG_K ? STEP : STEP / BIG_PARTS * o->ld;
    }
    if (!STRAIGHT) async_commit();
}

#endif
